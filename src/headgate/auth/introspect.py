"""Introspection (RFC 7662): what a separate resource server learns about a token."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import Any

from headgate.auth.admission import Admission
from headgate.auth.documents import authorization_detail, grant_document
from headgate.errors import ConfigInvalid, HeadgateError
from headgate.home import Home, read_or_create_private
from headgate.model.grant import Access, TokenKind
from headgate.model.instants import iso

_FILE = "introspection"
_SECRET_BYTES = 32
USER = "resource-server"


def load_secret(home: Home) -> str:
    """Read the password of the resource server, or make one for a new home."""
    path = home.keys / _FILE
    content = read_or_create_private(
        path, lambda: secrets.token_urlsafe(_SECRET_BYTES).encode(), least_bytes=_SECRET_BYTES
    ).strip()
    if len(content) < _SECRET_BYTES or not content.isascii():
        raise ConfigInvalid(
            f"{path} is damaged: it must hold at least {_SECRET_BYTES} characters of ASCII.",
            hint="Restore it from a backup, or remove it: resource servers then need the new password.",
        )
    return content.decode("ascii")


def is_resource_server(header: str, secret: str) -> bool:
    """Check the HTTP Basic header of a resource server against the secret."""
    scheme, _, encoded = header.partition(" ")
    try:
        credentials = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(credentials, f"{USER}:{secret}".encode())


async def introspect(admission: Admission, token: str, *, issuer: str, audience: str) -> dict[str, Any]:
    """Describe what a token stands for now; of an inactive one only the reason, if it is known."""
    holder = await admission.look_up(token)
    if holder is None:
        return {"active": False}
    try:
        access = await admission.admit(token)
    except HeadgateError as ended:
        return {"active": False, "inactive_reason": ended.code}
    document: dict[str, Any] = {
        "active": True,
        "pdpp_token_kind": access.token_kind.value,
        "subject_id": access.subject_id,
        "iss": issuer,
        "aud": audience,
    }
    if holder.token.expires_at is not None:
        document["exp"] = holder.token.expires_at // 1_000_000
    return document | _rights(access)


def _rights(access: Access) -> dict[str, Any]:
    if access.token_kind is TokenKind.OWNER:
        return {}
    rights: dict[str, Any] = {
        "client_id": access.client_id,
        "authorization_details": [authorization_detail(grant) for grant in access.grants],
    }
    if access.token_kind is TokenKind.MCP_PACKAGE:
        package = {
            "version": "reference.mcp_package.v2",
            "package_id": access.package_id,
            "client": {"client_id": access.client_id},
            "subject": {"id": access.subject_id},
            "approved_source_count": len(access.grants),
            "source_bounded_child_grants": True,
            "members": [grant_document(grant) for grant in access.grants],
        }
        return rights | {"package": package}
    grant = access.grants[0]
    context = {
        "context_kind": "oauth_rar_0_1",
        "client_id": access.client_id,
        "subject_id": access.subject_id,
        "grant_id": grant.id,
        "issued_at": iso(grant.issued_at),
        "source": {"kind": grant.source_kind, "id": grant.source_id},
        "source_declaration": {"version": grant.declaration_version},
    }
    return rights | {"grant_id": grant.id, "pdpp": context}
