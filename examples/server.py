"""A small MCP server to try an import with: ``python examples/server.py``, until Ctrl-C.

It answers at http://127.0.0.1:8322/mcp; give another port as an argument.
"""

from __future__ import annotations

import sys
from typing import TypedDict

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("example")
READ_ONLY = ToolAnnotations(read_only_hint=True)


class Weather(TypedDict):
    """What the tool `weather` returns."""

    city: str
    celsius: float


@server.tool(annotations=READ_ONLY)
def weather(city: str) -> Weather:
    """Say how warm it is in a city; invented."""
    return {"city": city, "celsius": float(len(city))}


@server.tool(annotations=READ_ONLY, structured_output=False)
def echo(message: str) -> str:
    """Return a message as a block of text."""
    return message


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8322)
