"""Replies: status, headers and content, sent as they are, and in one go where the server can."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import msgspec
from starlette.types import Message, Send

Header = tuple[bytes, bytes]
#: Writes an answer at once: its status, the lines of its head and its body; says whether it could.
WriteWhole = Callable[[int, bytes, bytes], bool]
#: Where in the scope the server puts it, if it has one.
WHOLE = "headgate.whole"
NO_CONTENT = 204
JSON: Header = (b"content-type", b"application/json; charset=utf-8")
#: Answers are for one token alone and change with its grant.
PRIVATE: Header = (b"cache-control", b"private, no-store")
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")


#: The headers of an answered read.
USUAL = (JSON, PRIVATE)
_ABOUT_SENDING = frozenset({b"content-length", b"transfer-encoding", b"connection", b"trailer", b"upgrade"})


class Reply(msgspec.Struct, frozen=True):
    """What is sent back."""

    content: bytes = b""
    status: int = 200
    headers: tuple[Header, ...] = USUAL
    #: Sent instead of the content, piece by piece; the headers tell its length.
    stream: AsyncIterator[bytes] | None = None


def json_reply(document: Mapping[str, Any], status: int = 200) -> Reply:
    """Reply with a document."""
    return Reply(msgspec.json.encode(document), status)


def nothing() -> Reply:
    """Reply that it is done, and no more."""
    return Reply(status=NO_CONTENT, headers=(PRIVATE,))


class Visitor(Protocol):
    """Whom an answer goes to: by which name the request is known, and what is noted about it."""

    request_id: str
    status: int


class Delivery(msgspec.Struct):
    """Sends one answer with the headers that every answer has. An ASGI ``send``, and quicker if asked to be."""

    _visitor: Visitor
    _send: Send
    _whole: WriteWhole | None
    _start: Message | None = None

    def answer(self, headers: tuple[Header, ...], body: bytes) -> bool:
        """Send a good answer that is all there; says whether that can be done, and does nothing if not."""
        if self._whole is None:
            return False
        visitor = self._visitor
        visitor.status = 200
        named = visitor.request_id.encode("ascii")
        return self._whole(200, _GOOD_HEAD % (_kept_lines(headers), len(body), named), body)

    def _at_once(self, status: int, headers: list[Header], body: bytes) -> bool:
        if self._whole is None or not _is_simple(headers, len(body)):
            return False
        self._visitor.status = status
        return self._whole(status, _lines([*headers, NOSNIFF, self._named()]), body)

    def _named(self) -> Header:
        return b"request-id", self._visitor.request_id.encode("ascii")

    async def __call__(self, message: Message) -> None:
        """Send a message; the head is held back until it is known whether there is more than one piece."""
        start = self._start
        if message["type"] == "http.response.start":
            self._start = message
            return
        if start is not None:
            self._start = None
            status, headers = start["status"], list[Header](start.get("headers", ()))
            if not message.get("more_body") and self._at_once(status, headers, message.get("body", b"")):
                return
            self._visitor.status = status
            await self._send({**start, "headers": [*headers, self._named(), NOSNIFF]})
        await self._send(message)


def _is_simple(headers: Iterable[Header], size: int) -> bool:
    """Say whether headers tell the length of a body, and nothing about how it is sent or what comes after."""
    told = {name: value for name, value in headers if name in _ABOUT_SENDING}
    return told == {b"content-length": b"%d" % size}


def _lines(headers: Iterable[Header]) -> bytes:
    return b"".join(map(header_line, headers))


#: For heads that are the same again and again.
_kept_lines = lru_cache(maxsize=64)(_lines)


def header_line(header: Header) -> bytes:
    """Write a header as a line of the head.

    Raises:
        ValueError: it would be more than one.
    """
    line = b"%b: %b\r\n" % header
    if line.count(b"\n") > 1 or line.count(b"\r") > 1:
        raise ValueError("a header must be one line")
    return line


_GOOD_HEAD = b"%%bcontent-length: %%d\r\n%brequest-id: %%b\r\n" % header_line(NOSNIFF)


async def send_reply(reply: Reply, send: Send, extra: tuple[Header, ...] = ()) -> None:
    """Send a reply with some more headers."""
    if reply.stream is None:
        length = (b"content-length", b"%d" % len(reply.content))
        headers = [*reply.headers, *extra] if reply.status == NO_CONTENT else [*reply.headers, length, *extra]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.content})
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, *extra]})
    async for piece in reply.stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
