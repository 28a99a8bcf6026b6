"""The fast path of ``/mcp``: plain requests are answered here, with the same answers as the SDK's.

Everything else is replayed into the SDK's application, which alone decides what those answers are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.mcp.body import read_body, replaying
from headgate.mcp.serve.call import call
from headgate.mcp.serve.plain import (
    MAX_BODY_BYTES,
    NotPlain,
    PlainRequest,
    decode_message,
    read_headers,
    read_plain,
)
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity, constant_result, result_of
from headgate.mcp.serve.tools import WHOLE, Surface

ReaderOfScope = Callable[[Scope, str], Reader]
#: Gives the headers that every answer to a request has.
HeadersOfScope = Callable[[Scope], tuple[tuple[bytes, bytes], ...]]

_JSON_HEADER = (b"content-type", b"application/json")
_TOOLS = WHOLE.names


class _Response(msgspec.Struct):
    jsonrpc: str
    id: int | str
    result: Any


_encode = msgspec.json.Encoder().encode


class FastPath:
    """An ASGI application in front of the SDK's."""

    __slots__ = ("_headers_of", "_identity", "_reader_of", "_sdk", "_surface")

    def __init__(
        self,
        sdk: ASGIApp,
        reader_of: ReaderOfScope,
        headers_of: HeadersOfScope,
        identity: ServerIdentity,
        surface: Surface = WHOLE,
    ) -> None:
        self._sdk = sdk
        self._reader_of = reader_of
        self._headers_of = headers_of
        self._identity = identity
        self._surface = surface

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request; replay any other into the SDK's application."""
        headers = read_headers(scope["headers"])
        if isinstance(headers, NotPlain):
            await self._sdk(scope, receive, send)
            return
        body = await read_body(receive, MAX_BODY_BYTES)
        message = None if body is None else decode_message(body)
        request = read_plain(message, version=headers.version, tools=_TOOLS, headers=headers)
        if isinstance(request, NotPlain):
            await self._sdk(scope, replaying(body, receive), send)
            return
        content = _encode(_Response("2.0", request.id, await self._result(request, scope)))
        length = (b"content-length", b"%d" % len(content))
        found = [_JSON_HEADER, *self._headers_of(scope), length]
        await send({"type": "http.response.start", "status": 200, "headers": found})
        await send({"type": "http.response.body", "body": content})

    async def _result(self, request: PlainRequest, scope: Scope) -> Any:
        if request.arguments is None:
            return constant_result(request.method, self._identity, self._surface, request.version)
        reader = self._reader_of(scope, f"mcp:{request.tool}")
        outcome = await call(request.tool, request.arguments, reader)
        return result_of(outcome, self._identity, request.version)
