"""List the tools of a server, page by page, up to the limits.

A cursor is opaque and used once. The definitions are not checked here; ``mapping`` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headgate.errors import UpstreamProtocolError, UpstreamTooLarge
from headgate.mcp.client.upstream import Upstream
from headgate.operations.secrets import Secret
from headgate.telemetry import get_logger


async def list_tools(upstream: Upstream, token: Secret | None, deadline: float) -> list[Any]:
    """Return the definitions of all tools as the server wrote them; none when it has no tools capability.

    Raises:
        AdapterError: a page is missing, the pages do not end, or they break the protocol.
    """
    session = await upstream.open(token, deadline)
    if session.capabilities.tools is None:
        get_logger().info("server_offers_no_tools", address=upstream.endpoint.public)
        return []
    tools: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(upstream.limits.max_pages):
        page = await upstream.request(
            "tools/list",
            {} if cursor is None else {"cursor": cursor},
            token=token,
            deadline=deadline,
            is_repeatable=True,
        )
        tools.extend(_tools_of(page))
        if len(tools) > upstream.limits.max_tools:
            raise UpstreamTooLarge(f"The server lists more than {upstream.limits.max_tools} tools.")
        cursor = _next_cursor(page)
        if cursor is None:
            return tools
        if cursor in seen:
            raise UpstreamProtocolError("The server's tool list goes in a circle.")
        seen.add(cursor)
    raise UpstreamTooLarge(f"The server's tool list has more than {upstream.limits.max_pages} pages.")


def _tools_of(page: Mapping[str, Any]) -> list[Any]:
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise UpstreamProtocolError("The server's tool list is not a list.")
    return cast("list[Any]", tools)


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    cursor = page.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise UpstreamProtocolError("The server's page cursor is not a text.")
    return cursor
