"""Maintain the store: check, copy, erase, prune and measure."""
