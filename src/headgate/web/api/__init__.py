"""Speak REST: parse requests into queries, send answers. No rules."""
