"""Headgate: a gate for personal data, and typed operations from remote MCP servers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.mcp.client.from_mcp import FromMCP, ImportedOperations, ImportOptions, from_mcp
    from headgate.mcp.client.pins import FilePins
    from headgate.mcp.client.servers import import_servers

__all__ = [
    "FilePins",
    "FromMCP",
    "ImportOptions",
    "ImportedOperations",
    "__version__",
    "from_mcp",
    "import_servers",
]

__version__ = "0.1.0"

#: Names that need the ``mcp`` extra, and where they are; imported when they are asked for.
_WITH_MCP = {
    "FilePins": "headgate.mcp.client.pins",
    "FromMCP": "headgate.mcp.client.from_mcp",
    "ImportOptions": "headgate.mcp.client.from_mcp",
    "ImportedOperations": "headgate.mcp.client.from_mcp",
    "from_mcp": "headgate.mcp.client.from_mcp",
    "import_servers": "headgate.mcp.client.servers",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_MCP:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    try:
        return getattr(import_module(_WITH_MCP[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"headgate.{name} needs the 'mcp' extra ({error.name} is not installed): "
            "pip install 'headgate[mcp]'"
        ) from error
