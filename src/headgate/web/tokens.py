"""The handlers that answer about tokens and grants: introspection and revocation."""

from __future__ import annotations

from urllib.parse import parse_qs

from headgate.auth.introspect import introspect
from headgate.errors import InvalidRequest, NotFound
from headgate.model.ids import GrantId, grant_id
from headgate.web.addresses import WebRequest
from headgate.web.replies import NO_STORE, PLAIN_JSON, HttpReply, json_reply

_MAX_FORM_BYTES = 64 * 1024
_MAX_FORM_FIELDS = 20
_HEADERS = (PLAIN_JSON, NO_STORE)


async def introspection(request: WebRequest) -> HttpReply:
    """Describe a token to a resource server (RFC 7662)."""
    token = _form(await request.body(_MAX_FORM_BYTES)).get("token", "")
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
    await request.services.revoke_grant(token, _grant_id(request.places["grant_id"]))
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
