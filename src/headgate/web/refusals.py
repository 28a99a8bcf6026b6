"""How a failure is written as an HTTP response. This is the one place where that is decided.

REST, MCP and introspection clients expect different challenges and bodies for the same failure; each of these
is a flavour, and the table of addresses names the flavour of every address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from headgate.errors import (
    AuthenticationFailed,
    GrantConsumed,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HeadgateError,
    MethodRefused,
    Overloaded,
    PackageRevoked,
    RateLimited,
    StorageUnusable,
)
from headgate.web.replies import JSON, NO_STORE, PLAIN_JSON, PRIVATE, Header, HttpReply, RequestContext

METADATA_PATH = "/.well-known/oauth-protected-resource"
MCP_METADATA_PATH = f"{METADATA_PATH}/mcp"
MCP_SCOPE = "records:read"
_DEFAULT_WAIT_SECONDS = 1
_NEXT_STEP = (
    "Fetch resource_metadata, ask the owner for a grant through its authorization server, send the token."
)
#: An MCP client mends these by asking the owner again, which a 401 makes it do.
_NEEDS_CONSENT = (
    *(AuthenticationFailed, GrantConsumed, GrantExpired, GrantInvalid, GrantRevoked, PackageRevoked),
)
_MAY_RETRY = (Overloaded, RateLimited, StorageUnusable)


class Flavour(StrEnum):
    """Whose conventions a refusal follows."""

    REST = "rest"
    MCP = "mcp"
    #: A resource server that authenticates with a password (RFC 7662).
    INTROSPECTION = "introspection"


def refusal(error: HeadgateError, context: RequestContext, flavour: Flavour, *, origin: str) -> HttpReply:
    """Write a failure as status, headers and body; `origin` begins the address of the metadata document."""
    return _WRITERS[flavour](error, context, origin)


def _rest(error: HeadgateError, context: RequestContext, origin: str) -> HttpReply:
    if isinstance(error, MethodRefused):
        return HttpReply(status=error.status, headers=(PRIVATE, _allow(error)))
    body = {**_described(error, context), **error.data}
    headers = [JSON, PRIVATE]
    if isinstance(error, AuthenticationFailed):
        metadata = origin + METADATA_PATH
        body |= {"resource_metadata": metadata, "next_step": _NEXT_STEP}
        headers.append(_challenge(f'Bearer resource_metadata="{metadata}"'))
    if isinstance(error, _MAY_RETRY):
        body.pop("retry_after_seconds", None)
        headers.append(_retry_after(error))
    return HttpReply(msgspec.json.encode({"error": body}), error.status, tuple(headers))


def _mcp(error: HeadgateError, context: RequestContext, origin: str) -> HttpReply:
    body: dict[str, Any] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
    }
    headers, status = [PLAIN_JSON, NO_STORE], error.status
    if isinstance(error, _NEEDS_CONSENT):
        metadata, status = origin + MCP_METADATA_PATH, AuthenticationFailed.status
        headers.append(_challenge(_mcp_challenge(error, context, metadata)))
        body |= {"type": "authentication_error", "resource_metadata": metadata, "next_step": error.hint}
    elif isinstance(error, MethodRefused):
        headers.append(_allow(error))
        body["hint"] = "Send JSON-RPC requests with POST."
    elif isinstance(error, _MAY_RETRY):
        headers.append(_retry_after(error))
    return HttpReply(msgspec.json.encode({"error": body}), status, tuple(headers))


def _mcp_challenge(error: HeadgateError, context: RequestContext, metadata: str) -> str:
    parts = [f'resource_metadata="{metadata}"', f'scope="{MCP_SCOPE}"']
    # RFC 6750: a request without credentials is challenged without an error code.
    if b"authorization" in context.headers.values:
        parts += ['error="invalid_token"', f'error_description="{error.code}"']
    return "Bearer " + ", ".join(parts)


def _introspection(error: HeadgateError, context: RequestContext, origin: str) -> HttpReply:
    reply = _rest(error, context, origin)
    if error.status != AuthenticationFailed.status:
        return reply
    return HttpReply(
        reply.content, reply.status, (PLAIN_JSON, NO_STORE, _challenge('Basic realm="introspection"'))
    )


_WRITERS: Mapping[Flavour, Callable[[HeadgateError, RequestContext, str], HttpReply]] = {
    Flavour.REST: _rest,
    Flavour.MCP: _mcp,
    Flavour.INTROSPECTION: _introspection,
}


def _described(error: HeadgateError, context: RequestContext) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "request_id": context.request_id,
        "hint": error.hint,
    }
    if error.param is not None:
        body["param"] = error.param
    return body


def _challenge(text: str) -> Header:
    return b"www-authenticate", text.encode("latin-1", "replace")


def _allow(error: MethodRefused) -> Header:
    return b"allow", str(error.data["allow"]).encode("ascii")


def _retry_after(error: HeadgateError) -> Header:
    return b"retry-after", str(error.data.get("retry_after_seconds", _DEFAULT_WAIT_SECONDS)).encode("ascii")
