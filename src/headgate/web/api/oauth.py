"""The addresses of the authorization server that programs call; the pages that a person sees are in the console."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import msgspec

from headgate.auth.documents import introspect
from headgate.auth.grants import revoke_grant
from headgate.auth.oauth.rules import Pairs
from headgate.auth.oauth.server import OAuthPlace, OAuthReply
from headgate.auth.oauth.service import AuthorizationService, server_metadata
from headgate.errors import InvalidClientMetadata, InvalidRequest, NotFound
from headgate.model.ids import GrantId, grant_id
from headgate.web.admission import Callers, Sharing
from headgate.web.front import Address
from headgate.web.replies import NO_STORE, PLAIN_JSON, Header, HttpReply, WebRequest, json_reply

MAX_FORM_BYTES = 64 * 1024
_MAX_REGISTRATION_BYTES = 16 * 1024
_MAX_FORM_FIELDS = 40
_HEADERS = (PLAIN_JSON, NO_STORE)
_WELL_KNOWN = "/.well-known/"
_PUBLIC: tuple[Header, ...] = (PLAIN_JSON, (b"cache-control", b"public, max-age=300"))


def place_of(request: WebRequest) -> OAuthPlace:
    """Name the server as the caller knows it; a configured address is the issuer wherever it is called."""
    origin, public = request.context.origin, request.services.public_url
    return OAuthPlace(public or origin, frozenset({origin, *([public] if public else [])}))


async def metadata(service: AuthorizationService, request: WebRequest) -> HttpReply:
    """Describe the authorization server (RFC 8414); where no document can be fetched, clients are to register."""
    takes_documents = service.now() >= service.documents.offline_until
    document = server_metadata(place_of(request).issuer, takes_documents=takes_documents)
    return json_reply(document, headers=_PUBLIC)


async def answer(service: AuthorizationService, endpoint: str, request: WebRequest) -> HttpReply:
    """Answer a form of a client: tokens, revocation (RFC 7009) or the codes of a device (RFC 8628)."""
    pairs, context = read_pairs(await request.body(MAX_FORM_BYTES)), request.context
    sent = context.headers.values.get(b"authorization")
    authorization = None if sent is None else sent.decode("latin-1")
    place = place_of(request)
    return _reply(await service.answer(endpoint, pairs, authorization, place, context.client_address))


async def register(service: AuthorizationService, request: WebRequest) -> HttpReply:
    """Register a client (RFC 7591)."""
    try:
        document = msgspec.json.decode(await request.body(_MAX_REGISTRATION_BYTES), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        error = InvalidClientMetadata("The body must be a JSON object.")
        body = {"error": error.code, "error_description": error.message}
        return _reply(OAuthReply(error.status, body, (("Cache-Control", "no-store"),)))
    return _reply(await service.register(document, request.context.client_address))


def read_pairs(content: bytes) -> Pairs:
    """Read a form or a query in order, with every value of every name."""
    try:
        return parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS)
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None


def _reply(reply: OAuthReply) -> HttpReply:
    own = {name.lower().encode(): value.encode("latin-1", "replace") for name, value in reply.headers}
    headers = {**own, b"content-type": PLAIN_JSON[1]}
    return HttpReply(msgspec.json.encode(reply.body or {}), reply.status, tuple(headers.items()))


def oauth_addresses(service: AuthorizationService) -> tuple[Address, ...]:
    """Make the rows of the table; the short ones are for clients that do not read the metadata."""
    documents = ("oauth-authorization-server", "oauth-authorization-server/mcp", "openid-configuration")
    endpoints = {"/token": "token", "/revoke": "revocation", "/device_authorization": "device_authorization"}
    handlers = {
        "/register": partial(register, service),
        **{path: partial(answer, service, endpoint) for path, endpoint in endpoints.items()},
    }
    return (
        *(
            Address(
                "GET",
                _WELL_KNOWN + document,
                Callers.ANYONE,
                partial(metadata, service),
                sharing=Sharing.EVERY_PAGE,
            )
            for document in documents
        ),
        *(
            Address("POST", prefix + path, Callers.ANYONE, handler, sharing=Sharing.LISTED)
            for path, handler in handlers.items()
            for prefix in ("/oauth", "")
        ),
    )


async def introspection(request: WebRequest) -> HttpReply:
    """Describe a token to a resource server (RFC 7662)."""
    token = _form(await request.body(MAX_FORM_BYTES)).get("token", "")
    if not token:
        raise InvalidRequest("token is required.", param="token")
    services, origin = request.services, request.context.origin
    document = await introspect(
        services.admission, token, issuer=services.public_url or origin, audience=origin
    )
    return json_reply(document, headers=_HEADERS)


async def revocation(request: WebRequest) -> HttpReply:
    """End a grant for its owner, or for the client that holds it."""
    token = request.context.headers.bearer
    assert token is not None
    services, named = request.services, _grant_id(request.places["grant_id"])
    await revoke_grant(services.ledger, services.admission, token, named, clock=services.clock)
    return json_reply({"revoked": True}, headers=_HEADERS)


def _grant_id(text: str) -> GrantId:
    try:
        return grant_id(text)
    except InvalidRequest:
        raise NotFound(param="grant_id") from None


def _form(content: bytes) -> dict[str, str]:
    try:
        fields = parse_qs(content.decode(), max_num_fields=_MAX_FORM_FIELDS)
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}
