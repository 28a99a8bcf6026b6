"""The short way for ordinary requests: the same answers as the SDK's, without its layers.

It takes a request only when every part of it is of a form it fully understands. Everything else, and every
error of the protocol, is replayed into the SDK's application, which alone decides what those answers are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from mcp_types import ClientCapabilities, Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.mcp.serve.call import HANDLERS, call
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity, result_of

ReaderOfScope = Callable[[Scope, str], Reader]
#: Gives the headers that every answer to a request has.
HeadersOfScope = Callable[[Scope], tuple[tuple[bytes, bytes], ...]]

#: Earlier versions know no structured content: the SDK knows how to tell them.
_LEGACY = frozenset({"2025-06-18", "2025-11-25"})
_MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)
#: By the bytes of the header that names it.
_VERSIONS = {version.encode(): version for version in _LEGACY | _MODERN}
_CALL = "tools/call"
#: Lists that are the same for everybody, so that one answer of the SDK serves all.
_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "server/discover"})
_MAX_BODY = 1 << 20
_PARAMS = re.compile(rb"^mcp-param-", re.MULTILINE)
_UNKNOWN = frozenset({b"mcp-session-id", b"last-event-id", b"transfer-encoding", b"content-encoding"})
#: What clients send and the protocol has no further rule for.
_KNOWN = frozenset(
    {
        *(b"host", b"authorization", b"content-type", b"content-length", b"connection", b"user-agent"),
        *(b"accept", b"accept-encoding", b"accept-language", b"origin", b"request-id"),
        *(b"mcp-protocol-version", b"mcp-method", b"mcp-name"),
    }
)
_JSON_HEADER = (b"content-type", b"application/json")
_LARGEST_ID = 2**53
_PLAIN_META = re.compile(r"[A-Za-z][A-Za-z0-9.-]*(/[A-Za-z0-9._-]+)?")


class _Meta(msgspec.Struct, frozen=True):
    """The envelope of a modern request; other members are none of our business."""

    version: str | msgspec.UnsetType = msgspec.field(
        name="io.modelcontextprotocol/protocolVersion", default=msgspec.UNSET
    )
    capabilities: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        name="io.modelcontextprotocol/clientCapabilities", default=msgspec.UNSET
    )
    client: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        name="io.modelcontextprotocol/clientInfo", default=msgspec.UNSET
    )


class _Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str
    method: str
    params: _Params | msgspec.UnsetType = msgspec.UNSET


class _Response(msgspec.Struct):
    jsonrpc: str
    id: int | str
    result: Any


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class FastPath:
    """An ASGI application in front of the SDK's."""

    __slots__ = ("_headers_of", "_identity", "_lists", "_reader_of", "_slow")

    def __init__(
        self, slow: ASGIApp, reader_of: ReaderOfScope, headers_of: HeadersOfScope, identity: ServerIdentity
    ) -> None:
        self._slow = slow
        self._reader_of = reader_of
        self._headers_of = headers_of
        self._identity = identity
        self._lists: dict[tuple[str, str], msgspec.Raw] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is understood; replay the rest."""
        headers = _plain_headers(scope["headers"])
        if headers is None:
            await self._slow(scope, receive, send)
            return
        body, ended = await _read(receive)
        request = _understood(body, headers) if ended else None
        if request is None:
            await self._slow(scope, _replaying(body, receive, ended=ended), send)
        elif request.method == _CALL:
            await self._call(request, headers, scope, send)
        else:
            await self._list(request, headers, scope, _replaying(body, receive, ended=True), send)

    async def _call(self, request: _Request, headers: dict[bytes, bytes], scope: Scope, send: Send) -> None:
        params = request.params
        assert params is not msgspec.UNSET
        assert params.name is not msgspec.UNSET
        arguments = {} if params.arguments is msgspec.UNSET else params.arguments
        outcome = await call(params.name, arguments, self._reader_of(scope, f"mcp:{params.name}"))
        version = _VERSIONS[headers[b"mcp-protocol-version"]]
        await self._answer(scope, send, request.id, result_of(outcome, self._identity, version))

    async def _list(
        self, request: _Request, headers: dict[bytes, bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        key = (request.method, _VERSIONS[headers[b"mcp-protocol-version"]])
        known = self._lists.get(key)
        if known is not None:
            await self._answer(scope, send, request.id, known)
            return
        heard = _Listening(send)
        await self._slow(scope, receive, heard)
        result = heard.result()
        if result is not None:
            self._lists[key] = result

    async def _answer(self, scope: Scope, send: Send, request_id: int | str, result: Any) -> None:
        content = _encode(_Response("2.0", request_id, result))
        headers = [_JSON_HEADER, *self._headers_of(scope), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


class _Listening:
    """Passes an answer on, and keeps what it said."""

    __slots__ = ("_body", "_send", "_status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 0
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._body += message.get("body", b"")
        await self._send(message)

    def result(self) -> msgspec.Raw | None:
        """Give the result of a good answer as it stood on the wire."""
        if self._status != 200:  # noqa: PLR2004 - OK
            return None
        return _decode_members(self._body).get("result")


def _plain_headers(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes] | None:
    """Give the headers of a request that is plain in every respect, or None."""
    found = dict(headers)
    # A header that is sent twice may be fine; whether it is, the SDK knows.
    if len(found) < len(headers) or not (found.keys() <= _KNOWN or _is_harmless(found)):
        return None
    length = found.get(b"content-length", b"")
    is_plain = (
        found.get(b"content-type") == b"application/json"
        and _accepts_both(found.get(b"accept", b""))
        and found.get(b"mcp-protocol-version") in _VERSIONS
        and length.isdigit()
        and int(length) <= _MAX_BODY
    )
    return found if is_plain else None


def _is_harmless(headers: dict[bytes, bytes]) -> bool:
    return _UNKNOWN.isdisjoint(headers) and not _PARAMS.search(b"\n".join(headers))


@lru_cache(maxsize=64)
def _accepts_both(accept: bytes) -> bool:
    kinds = {kind.strip() for kind in accept.split(b",")}
    return {b"application/json", b"text/event-stream"} <= kinds


async def _read(receive: Receive) -> tuple[bytes, bool]:
    """Read a whole body; False when the client left before its end."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(pieces), False
        body = message.get("body", b"")
        if not message.get("more_body"):
            return b"".join([*pieces, body]) if pieces else body, True
        pieces.append(body)


def _replaying(body: bytes, receive: Receive, *, ended: bool) -> Receive:
    """Give the body once more, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    if not ended:
        waiting = [{"type": "http.disconnect"}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _understood(body: bytes, headers: dict[bytes, bytes]) -> _Request | None:
    try:
        request = _decode_request(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if request.jsonrpc != "2.0" or (isinstance(request.id, int) and abs(request.id) > _LARGEST_ID):
        return None
    params = _Params() if request.params is msgspec.UNSET else request.params
    is_tool = request.method == _CALL and params.name in HANDLERS
    is_list = request.method in _LISTS and params.name is msgspec.UNSET and params.arguments is msgspec.UNSET
    if not (is_tool or is_list):
        return None
    version = _VERSIONS[headers[b"mcp-protocol-version"]]
    if version in _MODERN:
        return request if _is_modern(request, params, headers, version) else None
    # A legacy request that carries a modern envelope is for the SDK to judge, and so is an unknown method.
    is_plain = request.method != "server/discover" and _is_legacy_meta(params.meta)
    return request if is_plain else None


def _is_modern(request: _Request, params: _Params, headers: dict[bytes, bytes], version: str) -> bool:
    # What is no tool has no name, and then there is no such header either.
    name = None if params.name is msgspec.UNSET else params.name.encode()
    is_told = headers.get(b"mcp-method") == request.method.encode() and headers.get(b"mcp-name") == name
    return is_told and params.meta is not msgspec.UNSET and _is_modern_meta(bytes(params.meta), version)


@lru_cache(maxsize=256)
def _is_modern_meta(raw: bytes, version: str) -> bool:
    """Check an envelope with the SDK's own models; a client sends the same one every time."""
    try:
        meta = _decode_meta(raw)
        if meta.version != version or meta.capabilities is msgspec.UNSET or not _has_plain_members(raw):
            return False
        ClientCapabilities.model_validate_json(bytes(meta.capabilities))
        if meta.client is not msgspec.UNSET:
            Implementation.model_validate_json(bytes(meta.client))
    except (msgspec.MsgspecError, ValidationError):
        return False
    return True


def _has_plain_members(raw: bytes) -> bool:
    known = {"protocolVersion", "clientCapabilities", "clientInfo"}
    for name in _decode_members(raw):
        prefix, _, rest = name.partition("/")
        if name == "progressToken" or not _PLAIN_META.fullmatch(name):
            return False
        if prefix == "io.modelcontextprotocol" and rest not in known:
            return False
    return True


def _is_legacy_meta(raw: msgspec.Raw | msgspec.UnsetType) -> bool:
    return raw is msgspec.UNSET or _is_empty_meta(bytes(raw))


@lru_cache(maxsize=256)
def _is_empty_meta(raw: bytes) -> bool:
    try:
        members = _decode_members(raw)
    except msgspec.MsgspecError:
        return False
    return not any(name == "progressToken" or name.startswith("io.modelcontextprotocol") for name in members)
