"""Import remote MCP servers as typed operations: session, discovery, forwarding, content blocks."""

from headgate.mcp.client.forward import map_mcp_content_blocks
from headgate.mcp.client.from_mcp import (
    FromMCP,
    ImportedOperations,
    ImportOptions,
    SyncImport,
    from_mcp,
    from_mcp_sync,
)
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.pins import FilePins
from headgate.mcp.client.questions import Question, Reply
from headgate.mcp.client.servers import from_servers

__all__ = [
    "FilePins",
    "FromMCP",
    "ImportOptions",
    "ImportedOperations",
    "Limits",
    "Question",
    "Reply",
    "SyncImport",
    "from_mcp",
    "from_mcp_sync",
    "from_servers",
    "map_mcp_content_blocks",
]
