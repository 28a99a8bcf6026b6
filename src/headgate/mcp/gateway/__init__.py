"""The gateway: the operations of a registry as four fixed MCP tools."""
