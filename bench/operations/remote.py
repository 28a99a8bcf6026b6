"""The server that the client bench calls, run as a separate process: one tool, one small structured answer."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from mcp import types
from mcp.server import Server

_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
_OUTPUT = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
_TOOLS = types.ListToolsResult(
    tools=[types.Tool(name="echo", description="Echo.", input_schema=_SCHEMA, output_schema=_OUTPUT)]
)
_ANSWER = types.CallToolResult(
    content=[types.TextContent(text='{"ok":true}')], structured_content={"ok": True}
)


async def _list(_context: Any, _params: Any) -> types.ListToolsResult:
    return _TOOLS


async def _call(_context: Any, _params: Any) -> types.CallToolResult:
    return _ANSWER


def main() -> None:
    """Serve on the port of the first argument until the process is killed."""
    server = Server(
        "bench",
        version="1",
        on_list_tools=_list,
        on_call_tool=_call,
        get_tool_input_schema={"echo": _SCHEMA}.get,
    )
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")


if __name__ == "__main__":
    main()
