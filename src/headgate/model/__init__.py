"""Immutable values that all packages share. No I/O and no access rules."""
