"""Headgate: a gate for personal data, and typed operations from remote MCP servers."""

__all__ = ["__version__"]

__version__ = "0.1.0"
