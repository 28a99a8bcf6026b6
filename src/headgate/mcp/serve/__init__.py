"""Speak MCP as a server: six read tools and their resources, hosted and on stdio. No rules."""
