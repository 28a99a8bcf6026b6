"""Import remote MCP servers as typed operations: session, discovery, forwarding, content blocks."""

from headgate.mcp.client.forward import map_mcp_content_blocks
from headgate.mcp.client.from_mcp import FromMCP, ImportedOperations, ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.pins import FilePins
from headgate.mcp.client.questions import Question, Reply
from headgate.mcp.client.servers import import_servers

__all__ = [
    "FilePins",
    "FromMCP",
    "ImportOptions",
    "ImportedOperations",
    "Limits",
    "Question",
    "Reply",
    "from_mcp",
    "import_servers",
    "map_mcp_content_blocks",
]
