"""Typed values as numpy columns: filters, counts and aggregates."""
