"""Speak MCP, both ways. No rules."""
