"""Speak HTTP. No rules."""
