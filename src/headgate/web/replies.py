"""Replies: status, headers and content, and how they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import msgspec
from starlette.types import Message, Send

Header = tuple[bytes, bytes]
NO_CONTENT = 204
JSON: Header = (b"content-type", b"application/json; charset=utf-8")
#: JSON outside of ``/v1``; JSON is UTF-8 in any case, and clients of these addresses never saw a charset.
PLAIN_JSON: Header = (b"content-type", b"application/json")
HTML: Header = (b"content-type", b"text/html; charset=utf-8")
#: An answer to a token: it changes with the grant, so no cache may hold it.
PRIVATE: Header = (b"cache-control", b"private, no-store")
NO_STORE: Header = (b"cache-control", b"no-store")
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")
_POLICY_NAME = b"content-security-policy"
#: What is no page runs nothing, loads nothing and is shown inside no page, should a browser open it as one.
_NO_PAGE: Header = (_POLICY_NAME, b"default-src 'none'; frame-ancestors 'none'")
#: The version of the resource server's protocol, which every REST answer names.
PDPP_VERSION: Header = (b"pdpp-version", b"2026-04-06")
#: The headers of an answered read.
JSON_HEADERS = (JSON, PRIVATE)


class HttpReply(msgspec.Struct, frozen=True):
    """What is sent back."""

    content: bytes = b""
    status: int = 200
    headers: tuple[Header, ...] = JSON_HEADERS
    #: Sent piece by piece instead of the content; the headers then hold its length.
    stream: AsyncIterator[bytes] | None = None


def json_reply(
    document: Mapping[str, Any], status: int = 200, headers: tuple[Header, ...] = JSON_HEADERS
) -> HttpReply:
    """Reply with a JSON document."""
    return HttpReply(msgspec.json.encode(document), status, headers)


def empty_reply() -> HttpReply:
    """Reply that the request is done, with no content."""
    return HttpReply(status=NO_CONTENT, headers=(PRIVATE,))


class ResponseSender:
    """Sends the response of one request, with the headers every response has, and notes its status."""

    __slots__ = ("_request_id", "_send", "more", "status")

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id: Header = (b"request-id", request_id.encode("ascii"))
        #: The status that was sent; 0 while there is none.
        self.status = 0
        #: Headers that the response has besides, also one that a handler writes itself.
        self.more: tuple[Header, ...] = ()

    async def __call__(self, message: Message) -> None:
        """Send a message of an ASGI application that writes its response itself."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._headers(message.get("headers", ()))}
        await self._send(message)

    def _headers(self, own: Iterable[Header]) -> list[Header]:
        headers = [*own, *self.more, self._request_id, NOSNIFF]
        if not any(name == _POLICY_NAME for name, _ in headers):
            headers.append(_NO_PAGE)
        return headers

    async def reply(self, reply: HttpReply, extra: tuple[Header, ...] = ()) -> None:
        """Send a reply with some more headers."""
        self.status = reply.status
        headers = self._headers((*reply.headers, *extra))
        if reply.stream is None and reply.status != NO_CONTENT:
            headers.append((b"content-length", b"%d" % len(reply.content)))
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if reply.stream is not None:
            async for piece in reply.stream:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": reply.content})
