"""Speak to a terminal; one module per noun."""
