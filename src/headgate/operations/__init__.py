"""Typed operations: their descriptions, who may call them, and the pipeline that runs every call.

Imports nothing of MCP, HTTP or the web; adapters for those make registrations and pass them to a registry.
"""
