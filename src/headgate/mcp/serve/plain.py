"""Which MCP requests are plain: of a form that is understood completely, so that they are answered without the SDK.

Both transports read their messages here. A request that is not plain is not wrong: the SDK gets it as it came, and
alone decides what its answer is. Nothing of the SDK is imported, because on stdio that takes longer than an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from headgate.mcp.body import MAX_ID_CHARS
from headgate.mcp.serve.results import LEGACY, MODERN
from headgate.model.wire import Json

MAX_BODY_BYTES = 1 << 20
CALL = "tools/call"
HANDSHAKE = "initialize"
DISCOVER = "server/discover"
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list"})
_LARGEST_ID = 2**53
_PREFIX = "io.modelcontextprotocol"
_ENVELOPE_NAMES = frozenset(
    f"{_PREFIX}/{name}" for name in ("protocolVersion", "clientCapabilities", "clientInfo")
)
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9.-]*(/[A-Za-z0-9._-]+)?")
#: By the bytes of the header that names it.
_VERSIONS = {version.encode(): version for version in LEGACY | MODERN}
_PARAM_HEADER = b"mcp-param-"
#: Headers for which the protocol, or HTTP, has rules that only the SDK applies.
_RULED_HEADERS = frozenset({b"mcp-session-id", b"last-event-id", b"transfer-encoding", b"content-encoding"})
#: Headers that ordinary clients send, and that are not looked at twice.
_ORDINARY_HEADERS = frozenset(
    {
        *(b"host", b"authorization", b"content-type", b"content-length", b"connection", b"user-agent"),
        *(b"accept", b"accept-encoding", b"accept-language", b"origin", b"request-id"),
        *(b"mcp-protocol-version", b"mcp-method", b"mcp-name"),
    }
)
_MAX_ACCEPT_BYTES = 256
_BOTH_TYPES = frozenset({b"application/json", b"text/event-stream"})


class NotPlain(Enum):
    """Why the SDK has to answer a request."""

    HEADER_TWICE = "a header was sent twice"
    RULED_HEADER = "a header has rules that only the SDK applies"
    CONTENT_TYPE = "the content type is not exactly application/json"
    ACCEPT = "the client does not name both content types that an answer can have"
    UNKNOWN_VERSION = "the protocol version is missing, unknown, or older than structured content"
    LENGTH = "the length of the body is not given, or too large to hold the body in memory"
    NO_REQUEST = "the body is no JSON-RPC 2.0 request with members that are known"
    REQUEST_ID = "the id is long, or a number beyond those that every JSON reader keeps exact"
    PARAMS = "the method has no plain form, or its parameters are of another shape"
    METHOD_OF_OTHER_ERA = (
        "the method does not exist in this protocol version, or not at this point of a session"
    )
    UNKNOWN_TOOL = "no tool has this name"
    META = "_meta has members that the SDK has to judge, or an envelope that does not fit the version"
    HEADERS_DIFFER = "the headers announce another method or tool than the body"


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON-RPC request, or a notification, which has no id."""

    jsonrpc: str
    method: str
    id: int | str | UnsetType = UNSET
    params: Json = {}


class PlainRequest(msgspec.Struct, frozen=True):
    """What a plain request asks for: a tool call, a list, or who the server is."""

    id: int | str
    method: str
    version: str
    #: Only for a call.
    tool: str = ""
    arguments: Json | None = None


class PlainHeaders(msgspec.Struct, frozen=True):
    """What the headers of an HTTP request say of its body."""

    version: str
    method: bytes | None
    name: bytes | None


class _Roots(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listChanged: bool | UnsetType = UNSET  # noqa: N815 - as the protocol spells it


class _Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tools: Json | UnsetType = UNSET
    context: Json | UnsetType = UNSET


class _Elicitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    form: Json | UnsetType = UNSET
    url: Json | UnsetType = UNSET


class _Capabilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    roots: _Roots | UnsetType = UNSET
    sampling: _Sampling | UnsetType = UNSET
    elicitation: _Elicitation | UnsetType = UNSET


class _ClientInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    version: str
    title: str | UnsetType = UNSET
    websiteUrl: str | UnsetType = UNSET  # noqa: N815 - as the protocol spells it
    description: str | UnsetType = UNSET


class _Envelope(msgspec.Struct, frozen=True):
    """The members of ``_meta`` that every request of a version without a handshake has."""

    version: str = msgspec.field(name=f"{_PREFIX}/protocolVersion")
    capabilities: _Capabilities = msgspec.field(name=f"{_PREFIX}/clientCapabilities")
    client: _ClientInfo | UnsetType = msgspec.field(name=f"{_PREFIX}/clientInfo", default=UNSET)


class _ListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    meta: Json = msgspec.field(name="_meta", default_factory=dict[str, Any])


class _CallParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: Json = {}
    meta: Json = msgspec.field(name="_meta", default_factory=dict[str, Any])


class _HandshakeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    protocolVersion: str  # noqa: N815 - as the protocol spells it
    capabilities: _Capabilities
    clientInfo: _ClientInfo  # noqa: N815 - the same


_T = TypeVar("_T")
_Params = _ListParams | _CallParams | _HandshakeParams
_SHAPES: dict[str, type[_Params]] = {
    CALL: _CallParams,
    HANDSHAKE: _HandshakeParams,
    DISCOVER: _ListParams,
    **dict.fromkeys(LISTS, _ListParams),
}
_decode_message = msgspec.json.Decoder(Message).decode


class _Facts(msgspec.Struct, frozen=True):
    """All that the rules look at."""

    message: Message
    params: _Params
    #: None when neither the session nor the request names one that is known.
    version: str | None
    is_first: bool
    tools: Collection[str]
    headers: PlainHeaders | None


def decode_message(line: bytes) -> Message | None:
    """Read a request or a notification; None for anything else."""
    try:
        message = _decode_message(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return message if message.jsonrpc == "2.0" else None


def read_headers(headers: Sequence[tuple[bytes, bytes]]) -> PlainHeaders | NotPlain:
    """Read the headers of an HTTP request, before anything of its body is read."""
    found = dict(headers)
    # A header that is sent twice may be allowed; whether it is, the SDK knows.
    if len(found) < len(headers):
        return NotPlain.HEADER_TWICE
    for reason, holds in _HEADER_RULES:
        if not holds(found):
            return reason
    version = _VERSIONS[found[b"mcp-protocol-version"]]
    return PlainHeaders(version, found.get(b"mcp-method"), found.get(b"mcp-name"))


def read_plain(
    message: Message | None,
    *,
    version: str | None,
    tools: Collection[str],
    headers: PlainHeaders | None = None,
) -> PlainRequest | NotPlain:
    """Say what a request asks for, or why it is not plain.

    The version is that of the session or of the headers. Without one the message is the first of a session on
    stdio, and names the version itself.
    """
    if message is None or message.id is UNSET:
        return NotPlain.NO_REQUEST
    params = _params_of(message)
    if params is None:
        return NotPlain.PARAMS
    asked = _version_of(params) if version is None else version
    facts = _Facts(message, params, asked, version is None, tools, headers)
    for reason, holds in _RULES:
        if not holds(facts):
            return reason
    assert asked is not None
    if isinstance(params, _CallParams):
        return PlainRequest(message.id, message.method, asked, params.name, params.arguments)
    return PlainRequest(message.id, message.method, asked)


def _params_of(message: Message) -> _Params | None:
    shape = _SHAPES.get(message.method)
    return None if shape is None else _converted(message.params, shape)


def _converted(value: Json, shape: type[_T]) -> _T | None:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return None


def _version_of(params: _Params) -> str | None:
    """Read which version the first request of a session is for."""
    if isinstance(params, _HandshakeParams):
        return params.protocolVersion if params.protocolVersion in LEGACY else None
    version = params.meta.get(f"{_PREFIX}/protocolVersion")
    return version if isinstance(version, str) and version in MODERN else None


def _is_exact(value: object) -> bool:
    """Say whether an id, or a progress token, comes back to every client as it was sent."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_ID


def _is_of_this_era(facts: _Facts) -> bool:
    if facts.message.method == HANDSHAKE:
        return facts.is_first
    return facts.message.method != DISCOVER or facts.version in MODERN


def _is_known_tool(facts: _Facts) -> bool:
    return not isinstance(facts.params, _CallParams) or facts.params.name in facts.tools


def _has_plain_meta(facts: _Facts) -> bool:
    if isinstance(facts.params, _HandshakeParams):
        return True
    meta = facts.params.meta
    if not _is_exact(meta.get("progressToken", "")):
        return False
    if facts.version in LEGACY:
        # A request that carries the envelope of another era is for the SDK to judge.
        return not any(name.startswith(_PREFIX) for name in meta)
    envelope = _converted(meta, _Envelope)
    others = meta.keys() - _ENVELOPE_NAMES
    return envelope is not None and envelope.version == facts.version and all(map(_is_plain_name, others))


def _is_plain_name(name: str) -> bool:
    return not name.startswith(_PREFIX) and _PLAIN_NAME.fullmatch(name) is not None


def _agrees_with_headers(facts: _Facts) -> bool:
    headers = facts.headers
    if headers is None or facts.version in LEGACY:
        return True
    name = facts.params.name.encode() if isinstance(facts.params, _CallParams) else None
    return headers.method == facts.message.method.encode() and headers.name == name


def _has_no_rules(headers: dict[bytes, bytes]) -> bool:
    others = headers.keys() - _ORDINARY_HEADERS
    return _RULED_HEADERS.isdisjoint(others) and not any(name.startswith(_PARAM_HEADER) for name in others)


def _accepts_both(accept: bytes) -> bool:
    # Short ones are remembered, so that strangers cannot fill the memory with long ones.
    return len(accept) <= _MAX_ACCEPT_BYTES and _names_both(accept)


@lru_cache(maxsize=64)
def _names_both(accept: bytes) -> bool:
    return {kind.strip() for kind in accept.split(b",")} >= _BOTH_TYPES


def _has_small_body(headers: dict[bytes, bytes]) -> bool:
    length = headers.get(b"content-length", b"")
    return length.isdigit() and int(length) <= MAX_BODY_BYTES


_HEADER_RULES: tuple[tuple[NotPlain, Callable[[dict[bytes, bytes]], bool]], ...] = (
    (NotPlain.RULED_HEADER, _has_no_rules),
    (NotPlain.CONTENT_TYPE, lambda headers: headers.get(b"content-type") == b"application/json"),
    (NotPlain.ACCEPT, lambda headers: _accepts_both(headers.get(b"accept", b""))),
    (NotPlain.UNKNOWN_VERSION, lambda headers: headers.get(b"mcp-protocol-version") in _VERSIONS),
    (NotPlain.LENGTH, _has_small_body),
)
_RULES: tuple[tuple[NotPlain, Callable[[_Facts], bool]], ...] = (
    (NotPlain.REQUEST_ID, lambda facts: _is_exact(facts.message.id)),
    (NotPlain.UNKNOWN_VERSION, lambda facts: facts.version is not None),
    (NotPlain.METHOD_OF_OTHER_ERA, _is_of_this_era),
    (NotPlain.UNKNOWN_TOOL, _is_known_tool),
    (NotPlain.META, _has_plain_meta),
    (NotPlain.HEADERS_DIFFER, _agrees_with_headers),
)
