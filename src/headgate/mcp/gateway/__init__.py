"""``to_mcp``: a registry shown to MCP clients through four fixed tools, whatever it holds."""
