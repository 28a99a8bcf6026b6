"""The MCP server: the SDK's low-level server with our tools and resources, for both eras of the protocol.

It validates nothing and decides nothing: arguments are read in `headgate.mcp.serve.call`, and every read
goes through the port of the request's `Reader`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as t
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from headgate.errors import HeadgateError, InvalidResourceUri, ToolHandlerFailed
from headgate.mcp.serve import resources
from headgate.mcp.serve.call import call_with
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import LIST_TTL_MS, TITLE, ServerIdentity, failure, result_of, stamped
from headgate.mcp.serve.tools import WHOLE, Surface
from headgate.model.wire import Json
from headgate.telemetry import get_logger

Context = ServerRequestContext[Any, Any]
#: Gives the reader of a request; the text names the call for the log.
ReaderOf = Callable[[Context, str], Awaitable[Reader]]


def build_server(reader_of: ReaderOf, identity: ServerIdentity, surface: Surface = WHOLE) -> Server[Any]:
    """Build the server; every request gets a new reader."""
    serving = _Serving(reader_of, identity, surface, frozenset(tool["name"] for tool in surface.tools))
    icons = [t.Icon.model_validate(icon) for icon in identity.icons] or None
    listed = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    server: Server[Any] = Server(
        identity.name,
        version=identity.version,
        title=TITLE,
        instructions=surface.instructions,
        icons=icons,
        cache_hints={
            "tools/list": listed,
            "resources/list": listed,
            "resources/templates/list": listed,
            "server/discover": listed,
            "resources/read": CacheHint(ttl_ms=0, scope="private"),
        },
        # No argument is repeated in a header, which is all that the SDK would look for in the schema at every call.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=serving.list_tools,
        on_call_tool=serving.call_tool,
        on_list_resources=serving.list_resources,
        on_list_resource_templates=serving.list_templates,
        on_read_resource=serving.read_resource,
    )
    return server


@dataclass(frozen=True, slots=True)
class _Serving:
    """The SDK's handlers. They return results as dictionaries, which the SDK checks and sends unchanged."""

    reader_of: ReaderOf
    identity: ServerIdentity
    surface: Surface
    tool_names: frozenset[str]

    async def list_tools(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        _refuse_cursor(params)
        return self._stamped(context, {"tools": list(self.surface.tools)})

    async def call_tool(self, context: Context, params: t.CallToolRequestParams) -> Any:
        if params.name not in self.tool_names:
            raise MCPError(code=t.INVALID_PARAMS, message=f"Unknown tool: {params.name[:128]}")
        outcome = await call_with(
            lambda via: self.reader_of(context, via), params.name, params.arguments or {}
        )
        return result_of(outcome, self.identity, context.protocol_version)

    async def list_resources(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        # A person's records are not enumerated: URIs are found in answers.
        _refuse_cursor(params)
        return self._stamped(context, {"resources": list[Json]()})

    async def list_templates(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        _refuse_cursor(params)
        return self._stamped(context, {"resourceTemplates": list(self.surface.templates)})

    async def read_resource(self, context: Context, params: t.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        try:
            reader = await self.reader_of(context, "mcp:resources/read")
        except HeadgateError as error:
            raise _resource_error(error, uri, "") from error
        try:
            content = await resources.read(reader, uri)
        except HeadgateError as error:
            raise _resource_error(error, uri, reader.provider_url) from error
        except Exception as error:
            get_logger().exception("resource_failed")
            raise _resource_error(ToolHandlerFailed(), uri, reader.provider_url) from error
        return self._stamped(context, {"contents": [content]})

    def _stamped(self, context: Context, result: Json) -> Json:
        return stamped(result, self.identity, context.protocol_version)


def _refuse_cursor(params: t.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(code=t.INVALID_PARAMS, message="Invalid cursor: these lists have one page")


def _resource_error(error: HeadgateError, uri: str, provider_url: str) -> MCPError:
    described: Json = {"uri": uri[:256], **failure(error, provider_url)}
    if isinstance(error, InvalidResourceUri):
        # The URI was not made by this server, so no read was made.
        del described["provider_url"], described["http_status"], described["request_id"]
    code = t.INTERNAL_ERROR if isinstance(error, ToolHandlerFailed) else t.INVALID_PARAMS
    return MCPError(code=code, message=error.message, data=described)
