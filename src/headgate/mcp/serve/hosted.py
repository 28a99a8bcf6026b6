"""MCP over HTTP at ``/mcp``: who may come in, and then the protocol. Stateless; every request stands alone.

Hosts and origins are the web's to judge. Then the order is fixed: method, size, bearer, kind of token. Nothing of
a body is read before all of them have passed, and a token is looked up anew for every request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.errors import (
    AuthenticationFailed,
    GrantConsumed,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HeadgateError,
    MethodRefused,
    PermissionRefused,
    RateLimited,
    ResourceLimit,
)
from headgate.mcp.serve.fast import FastPath
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.server import Context, build_server
from headgate.model.grant import Access
from headgate.reading.port import ResourceServer

PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
SCOPE = "records:read"
MAX_BODY_BYTES = 4 * 1024 * 1024
#: Where whom a request was admitted for, and the address it came to, wait for the handlers.
ADMITTED = "headgate.admitted"
ORIGIN = "headgate.origin"
_BEARER = b"bearer "
_NEEDS_CONSENT = (GrantConsumed, GrantExpired, GrantInvalid, GrantRevoked)

_NOT_KEPT = (b"cache-control", b"no-store")

Headers = list[tuple[bytes, bytes]]


class Admitted(msgspec.Struct, frozen=True):
    """Whom a token lets in, and how they read."""

    access: Access
    #: Opens the resource server for one call, which is named for the log.
    port: Callable[[str], ResourceServer]
    #: What the request is known by in the log.
    request_id: str | None = None


class Doorkeeper(Protocol):
    """Knows where the server is, and who may come in."""

    def origin(self, scope: Scope) -> str:
        """Give the server's address as the caller of a request knows it, without a slash at its end."""
        ...

    def admit(self, scope: Scope, token: str) -> Admitted:
        """Look a token up.

        Raises:
            AuthenticationFailed, PermissionRefused, RateLimited, or one of their kinds.
        """
        ...


@dataclass(slots=True)
class HostedMcp:
    """The ASGI application at ``/mcp`` and ``/mcp/``."""

    doorkeeper: Doorkeeper
    handles: HandleMaker
    identity: ServerIdentity
    #: Left out, every request takes the SDK's way; both ways answer the same.
    with_fast_path: bool = True
    _inner: ASGIApp | None = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the SDK's part; nothing is served outside of it."""
        manager = StreamableHTTPSessionManager(
            build_server(self._reader, self.identity),
            json_response=True,
            stateless=True,
            # Hosts and origins have been judged before, against exact lists.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with manager.run():
            slow = _with_own_headers(_as_the_sdk_reads(manager.handle_request))
            self._inner = (
                FastPath(slow, self._reader_of_scope, _own_headers, self.identity)
                if self.with_fast_path
                else slow
            )
            try:
                yield
            finally:
                self._inner = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request, or say why not."""
        assert self._inner is not None, "HostedMcp is used outside of running()"
        origin = self.doorkeeper.origin(scope)
        try:
            admitted = self._admitted(scope)
        except HeadgateError as error:
            await _refuse(error, origin, send)
            return
        scope[ADMITTED] = admitted
        scope[ORIGIN] = origin
        await self._inner(scope, receive, send)

    def _admitted(self, scope: Scope) -> Admitted:
        if scope["method"] != "POST":
            raise MethodRefused(hint="Send JSON-RPC requests with POST.")
        _refuse_length(scope["headers"])
        admitted = self.doorkeeper.admit(scope, _token(scope["headers"]))
        if admitted.access.is_owner:
            raise PermissionRefused(
                "An owner's token is not accepted here.",
                hint="Use a client's token, or a package's, that the owner granted for agents.",
            )
        return admitted

    def _reader(self, context: Context, via: str) -> Reader:
        assert context.request is not None
        return self._reader_of_scope(context.request.scope, via)

    def _reader_of_scope(self, scope: Scope, via: str) -> Reader:
        admitted: Admitted = scope[ADMITTED]
        return Reader(admitted.port(via), self.handles, scope[ORIGIN], admitted.request_id)


def _as_the_sdk_reads(app: ASGIApp) -> ASGIApp:
    """Give requests the one path, the bare header values and the task of their own that the SDK expects."""

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        told = {**scope, "path": PATH, "headers": _trimmed(scope["headers"])}
        await asyncio.ensure_future(app(told, receive, send))

    return reading


def _with_own_headers(app: ASGIApp) -> ASGIApp:
    """Add to every answer what all of ours have."""

    async def with_own(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, _adding(send, _own_headers(scope)))

    return with_own


def _trimmed(headers: Headers) -> Headers:
    """Take away the blanks around a value, which HTTP does not count as part of it."""
    return [(name, value.strip(b" \t")) for name, value in headers]


@lru_cache(maxsize=64)
def _icon_link(origin: str) -> tuple[bytes, bytes]:
    icon = f'<{origin}/icon.svg>; rel="icon"; type="image/svg+xml"'
    return b"link", icon.encode("latin-1", "replace")


def _own_headers(scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
    access: Access = scope[ADMITTED].access
    found = (_icon_link(scope[ORIGIN]), _NOT_KEPT)
    if access.package_id is None:
        return found
    return (
        *found,
        (b"x-pdpp-grant-package-id", access.package_id.encode("latin-1", "replace")),
        (b"x-pdpp-grant-package-member-count", str(len(access.grants)).encode()),
    )


def _refuse_length(headers: Headers) -> None:
    length = dict(headers).get(b"content-length", b"")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise ResourceLimit(f"A request has at most {MAX_BODY_BYTES} bytes.")


def _token(headers: Headers) -> str:
    """Find the bearer token of a request."""
    told = dict(headers)
    given = told.get(b"authorization")
    if given is None:
        raise AuthenticationFailed("No token was sent.", data={"is_missing": True})
    scheme, token = given[: len(_BEARER)], given[len(_BEARER) :].strip()
    is_alone = len(told) == len(headers) or [name for name, _ in headers].count(b"authorization") == 1
    if not is_alone or scheme.lower() != _BEARER or not token.isascii():
        raise AuthenticationFailed("Send one bearer token in one Authorization header.")
    return token.decode("ascii")


def _adding(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return adding


async def _refuse(error: HeadgateError, origin: str, send: Send) -> None:
    asks_again = isinstance(error, (AuthenticationFailed, *_NEEDS_CONSENT))
    told: dict[str, Any] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
    }
    headers: Headers = []
    if asks_again:
        metadata = f"{origin}{METADATA_PATH}{PATH}"
        headers.append((b"www-authenticate", _challenge(error, metadata).encode("latin-1", "replace")))
        told |= {"type": "authentication_error", "resource_metadata": metadata, "next_step": error.hint}
    if isinstance(error, MethodRefused):
        headers.append((b"allow", b"POST"))
    if isinstance(error, RateLimited):
        headers.append((b"retry-after", str(error.data.get("retry_after_seconds", 1)).encode()))
    await _send_json(send, 401 if asks_again else error.status, {"error": told}, headers)


def _challenge(error: HeadgateError, metadata: str) -> str:
    parts = [f'resource_metadata="{metadata}"', f'scope="{SCOPE}"']
    if not error.data.get("is_missing"):
        parts += ['error="invalid_token"', f'error_description="{error.code}"']
    return "Bearer " + ", ".join(parts)


async def _send_json(send: Send, status: int, body: Any, headers: Iterable[tuple[bytes, bytes]]) -> None:
    content = msgspec.json.encode(body)
    fixed = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": content})
