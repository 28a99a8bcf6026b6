"""List the tools of a server, page by page, up to the limits.

A cursor is opaque and used once. The definitions are not checked here; ``mapping`` does that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.errors import UpstreamProtocolError, UpstreamTooLarge
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.message import measure
from headgate.mcp.client.upstream import Upstream
from headgate.operations.running import off_loop
from headgate.operations.secrets import Secret

_log = logging.getLogger("headgate.mcp.client")


async def list_tools(upstream: Upstream, token: Secret | None, deadline: float) -> list[Any]:
    """Return the definitions of all tools as the server wrote them; none when it has no tools capability.

    Raises:
        AdapterError: a page is missing, the pages do not end, or they break the protocol.
    """
    session = await upstream.open(token, deadline)
    if session.capabilities.tools is None:
        _log.info("%s offers no tools", upstream.endpoint.public)
        return []
    tools: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    size = values = 0
    for _ in range(upstream.limits.max_pages):
        page = await upstream.request(
            "tools/list",
            {} if cursor is None else {"cursor": cursor},
            token=token,
            deadline=deadline,
            is_repeatable=True,
        )
        listed = _tools_of(page)
        added = await off_loop(deadline, _cost_of, listed, upstream.limits)
        size, values = size + added[0], values + added[1]
        if size > upstream.limits.max_bytes or values > upstream.limits.max_values:
            raise UpstreamTooLarge("The tools that the server lists are too large together.")
        tools.extend(listed)
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


def _cost_of(tools: list[Any], limits: Limits) -> tuple[int, int]:
    """Return the bytes and the values of definitions."""
    data = msgspec.json.encode(tools)
    return len(data), measure(data, limits.max_values)[0]


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    cursor = page.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise UpstreamProtocolError("The server's page cursor is not a text.")
    return cursor
