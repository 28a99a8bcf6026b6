"""Import remote MCP servers as typed operations: session, discovery, forwarding, content blocks."""
