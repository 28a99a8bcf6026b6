"""The handlers of ``/mcp``, its discovery document, and ``/gateway``: admitted requests, passed on to those packages.

A body is read whole within a limit, checked for its id and method, and given to the SDK again, with one version.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.types import Message, Receive, Scope

from headgate.mcp.gateway.hosted import MAX_BODY_BYTES as MAX_GATEWAY_BYTES
from headgate.mcp.serve.results import MAX_ID_CHARS
from headgate.mcp.serve.server import MAX_BODY_BYTES as MAX_MCP_BYTES, MODERN_VERSIONS, VERSIONS, McpCall
from headgate.operations.spec import Identity
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.web.replies import NO_STORE, PLAIN_JSON, HttpReply, WebRequest, json_reply

#: Of a method as it is written: the SDK repeats one that it does not know.
MAX_METHOD_BYTES = 256
_VERSION_HEADER = b"mcp-protocol-version"
_VERSIONS = frozenset(version.encode() for version in VERSIONS)
#: Of a version that is not known, as it comes back.
_VERSION_CHARS = 64
_UNSUPPORTED_VERSION = -32022
#: As many digits as 64 bits have.
_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_UNFIT = json_reply(
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": f"The id must be an integer, or a string of at most {MAX_ID_CHARS} characters, "
            f"and the method a string of at most {MAX_METHOD_BYTES} bytes.",
        },
    },
    400,
    (PLAIN_JSON, NO_STORE),
)


class _RepeatedMembers(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw = msgspec.Raw(b"")


_decode = msgspec.json.Decoder(_RepeatedMembers).decode


async def mcp(request: WebRequest) -> HttpReply | None:
    """Answer a message of an MCP client under its grants."""
    body = await request.body(MAX_MCP_BYTES)
    if not _is_fit(body):
        return _UNFIT
    scope = with_one_version(request.scope)
    if scope is None:
        return _unsupported(request.scope, body)
    context, services = request.context, request.services
    access = context.access
    assert access is not None

    def port(via: str) -> LocalResourceServer:
        reading = ReadContext(access, context.request_id, via)
        return LocalResourceServer(services.reads, reading)

    call = McpCall(access, port, services.public_url or context.origin, context.request_id)
    await services.mcp(call, scope, _replaying(body, request.receive), request.send)
    return None


async def gateway(request: WebRequest) -> HttpReply | None:
    """Answer a message of a client of the operations gateway."""
    body = await request.body(MAX_GATEWAY_BYTES)
    if not _is_fit(body):
        return _UNFIT
    scope = with_one_version(request.scope)
    if scope is None:
        return _unsupported(request.scope, body)
    services, context = request.services, request.context
    caller = context.gateway_caller or context.client_id
    assert services.gateway is not None
    grants = None if context.access is None else context.access.grant_ids
    scopes = None if caller is None else await services.gateway_callers.scopes(caller, grants)
    identity = Identity(caller, scopes) if caller is not None and scopes else None
    await services.gateway(identity, scope, _replaying(body, request.receive), request.send)
    return None


def with_one_version(scope: Scope) -> Scope | None:
    """Return a request that names its version once; None for one that is not served.

    Programs and proxies that set the header twice join it: "2025-11-25, 2025-11-25" (RFC 9110, 5.3).
    """
    values = [value for name, value in scope["headers"] if name == _VERSION_HEADER]
    if not values or (len(values) == 1 and values[0] in _VERSIONS):
        return scope
    versions = {part.strip(b" \t") for value in values for part in value.split(b",")}
    if len(versions) != 1 or not versions <= _VERSIONS:
        return None
    others = [header for header in scope["headers"] if header[0] != _VERSION_HEADER]
    return {**scope, "headers": [*others, (_VERSION_HEADER, versions.pop())]}


def _unsupported(scope: Scope, body: bytes) -> HttpReply:
    values = [value for name, value in scope["headers"] if name == _VERSION_HEADER]
    requested = b", ".join(values).decode("latin-1")[:_VERSION_CHARS]
    error = {
        "code": _UNSUPPORTED_VERSION,
        "message": f"Protocol version '{requested}' is not supported. Send one of {', '.join(VERSIONS)} in "
        "MCP-Protocol-Version.",
        # As discovery lists them: the others begin with a handshake, which finds its version by itself.
        "data": {"supported": [*MODERN_VERSIONS], "requested": requested},
    }
    answer = {"jsonrpc": "2.0", "id": _id_of(body), "error": error}
    return json_reply(answer, 400, (PLAIN_JSON, NO_STORE))


def _id_of(body: bytes) -> msgspec.Raw | None:
    try:
        request_id = _decode(body).id
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return None if request_id is msgspec.UNSET else request_id


def _is_fit(body: bytes) -> bool:
    """Return whether a message can be given to the SDK: its id is a string or an integer, and neither id nor method is long.

    The SDK takes a request with another id for a notification in some versions of the protocol, and then nothing
    answers it; and its answers repeat ids and unknown methods whole.
    """
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


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return the body a second time, and then what really comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def mcp_metadata(request: WebRequest) -> HttpReply:
    """Answer with the metadata of the MCP resource."""
    origin = request.context.origin
    document = _protected_mcp(origin, request.services.public_url or origin)
    return json_reply(document, headers=(PLAIN_JSON, NO_STORE))


def _protected_mcp(origin: str, authorization_server: str) -> dict[str, Any]:
    """Describe the hosted MCP resource (RFC 9728, path form)."""
    return {
        "resource": f"{origin}/mcp",
        "resource_name": "Headgate Hosted MCP Resource",
        "authorization_servers": [authorization_server],
        "bearer_methods_supported": ["header"],
        "pdpp_core_query_base": f"{origin}/v1",
        "pdpp_token_kinds_supported": ["client", "mcp_package"],
        "pdpp_agent_discovery": {
            "mcp": {
                "endpoint": f"{origin}/mcp",
                "transport": "streamable_http",
                "tool_surface": "profile_free_normal_read",
                "setup_intent": "grant_scoped_read",
                "no_owner_token": True,
            }
        },
    }
