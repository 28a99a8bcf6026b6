"""The body of an MCP request over HTTP: read whole within a limit, checked for its id, and given to the SDK again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import ResourceLimit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_ID_CHARS = 256
#: Of a method as it is written: the SDK repeats one that it does not know.
MAX_METHOD_BYTES = 256
#: As many digits as 64 bits have.
_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_REFUSED = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": f"The id must be an integer, or a string of at most {MAX_ID_CHARS} characters, "
            f"and the method a string of at most {MAX_METHOD_BYTES} bytes.",
        },
    }
)


class _RepeatedMembers(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw = msgspec.Raw(b"")


_decode = msgspec.json.Decoder(_RepeatedMembers).decode


async def read_body(receive: Receive, limit_bytes: int) -> bytes | None:
    """Read a whole body; None when the client left before its end."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece: bytes = message.get("body", b"")
        pieces.append(piece)
        limit_bytes -= len(piece)
        if limit_bytes < 0:
            raise ResourceLimit("The body is too large.")
        if not message.get("more_body"):
            return b"".join(pieces)


def replaying(body: bytes | None, receive: Receive) -> Receive:
    """Return the body, or the end of the connection, a second time, and then what really comes."""
    waiting: list[Message] = [{"type": "http.disconnect"}]
    if body is not None:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def with_checked_messages(app: ASGIApp, limit_bytes: int) -> ASGIApp:
    """Refuse requests whose id is no string or integer, or whose id or method is long.

    The SDK takes a request with such an id for a notification in some versions of the protocol, and then nothing
    answers it; and its answers repeat ids and unknown methods whole.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive, limit_bytes)
        if body is None or _is_fit(body):
            await app(scope, replaying(body, receive), send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_REFUSED))]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})

    return checked


def _is_fit(body: bytes) -> bool:
    try:
        members = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # What is no JSON object is the SDK's to refuse.
        return True
    return len(bytes(members.method)) <= MAX_METHOD_BYTES and _is_fit_id(members.id)


def _is_fit_id(request_id: msgspec.Raw | msgspec.UnsetType) -> bool:
    if request_id is msgspec.UNSET:
        return True
    written = bytes(request_id)
    if written.startswith(b'"'):
        return len(msgspec.json.decode(written, type=str)) <= MAX_ID_CHARS
    return _INTEGER.fullmatch(written) is not None
