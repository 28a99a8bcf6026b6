"""Replies: status, headers and content, sent as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from starlette.types import Send

Header = tuple[bytes, bytes]
NO_CONTENT = 204
JSON: Header = (b"content-type", b"application/json; charset=utf-8")
#: Answers are for one token alone and change with its grant.
PRIVATE: Header = (b"cache-control", b"private, no-store")
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")


class Reply(msgspec.Struct, frozen=True):
    """What is sent back."""

    content: bytes = b""
    status: int = 200
    headers: tuple[Header, ...] = (JSON, PRIVATE)
    #: Sent instead of the content, piece by piece; the headers tell its length.
    stream: AsyncIterator[bytes] | None = None


def json_reply(document: Mapping[str, Any], status: int = 200) -> Reply:
    """Reply with a document."""
    return Reply(msgspec.json.encode(document), status)


def nothing() -> Reply:
    """Reply that it is done, and no more."""
    return Reply(status=NO_CONTENT, headers=(PRIVATE,))


async def send_reply(reply: Reply, send: Send, extra: tuple[Header, ...] = ()) -> None:
    """Send a reply with some more headers."""
    if reply.stream is None:
        length = (b"content-length", str(len(reply.content)).encode("ascii"))
        headers = [*reply.headers, *extra] if reply.status == NO_CONTENT else [*reply.headers, length, *extra]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.content})
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, *extra]})
    async for piece in reply.stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
