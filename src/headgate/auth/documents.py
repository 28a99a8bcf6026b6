"""Grants as documents: as they are kept, shown, and introspected by a separate resource server (RFC 7662)."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from headgate.auth.admission import Admission
from headgate.errors import ConfigInvalid, HeadgateError
from headgate.home import Home, read_or_create_private
from headgate.model.grant import Access, Grant, StreamGrant, TimeConstraint, TokenKind
from headgate.model.instants import iso
from headgate.model.ledger import IssuedGrant

DETAIL_TYPE = "https://pdpp.dev/data-access"
_FILE = "introspection"
_SECRET_BYTES = 32
USER = "resource-server"


def grant_document(grant: Grant) -> dict[str, Any]:
    """Write a grant the way the protocol shows it."""
    document: dict[str, Any] = {
        "version": grant.version,
        "grant_id": grant.id,
        "issued_at": iso(grant.issued_at),
        "subject": {"id": grant.subject_id},
        "client": {"client_id": grant.client_id},
        "source": {"kind": grant.source_kind, "id": grant.source_id},
        "source_declaration": {"version": grant.declaration_version},
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode.value,
        "streams": [stream_document(stream) for stream in grant.streams],
        "expires_at": None if grant.expires_at is None else iso(grant.expires_at),
    }
    if grant.retention is not None:
        document["retention"] = msgspec.to_builtins(grant.retention)
    return document


def stream_document(stream: StreamGrant) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": stream.name,
        "instance_ids": list(stream.connection_ids),
        "fields": list(stream.fields),
    }
    if stream.time is not None:
        document["time_constraint"] = _time_document(stream.time)
    if stream.resources is not None:
        document["resources"] = sorted(stream.resources)
    return document


def issued_document(issued: IssuedGrant, now: int) -> dict[str, Any]:
    """Write a grant with where it stands."""
    return grant_document(issued.grant) | {
        "state": issued.state(now).value,
        "package_id": issued.package_id,
        "revoked_at": None if issued.revoked_at is None else iso(issued.revoked_at),
        "daily_records": issued.daily_records,
    }


def authorization_detail(grant: Grant) -> dict[str, Any]:
    """Write the rights of a grant for an introspecting resource server."""
    return {
        "type": DETAIL_TYPE,
        "source": {"kind": grant.source_kind, "id": grant.source_id},
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode.value,
        "streams": [stream_document(stream) for stream in grant.streams],
    }


def in_words(issued: IssuedGrant, labels: Mapping[str, str], now: int) -> str:
    """Show in words what a grant lets its client see."""
    grant = issued.grant
    lines = [
        f"{grant.client_id} may read from {grant.source_id} ({issued.state(now)}).",
        *(f"  {_stream_words(stream, labels)}" for stream in grant.streams),
    ]
    if issued.daily_records is not None:
        lines.append(f"  At most {issued.daily_records} records a day.")
    lines.append(f"  {_end_words(issued)}")
    return "\n".join(lines)


def _stream_words(stream: StreamGrant, labels: Mapping[str, str]) -> str:
    connections = ", ".join(labels.get(connection, connection) for connection in stream.connection_ids)
    words = f"{stream.name} of {connections}: {', '.join(stream.fields)}"
    if stream.time is not None:
        time = _time_document(stream.time)
        since = f" from {time['since']}" if "since" in time else ""
        until = f" until {time['until']}" if "until" in time else ""
        words += f"; only with {stream.time.field}{since}{until}"
    if stream.resources is not None:
        words += f"; only {len(stream.resources)} chosen records"
    return words + "."


def _end_words(issued: IssuedGrant) -> str:
    if issued.revoked_at is not None:
        return f"Revoked at {iso(issued.revoked_at)}."
    expires_at = issued.grant.expires_at
    return "It does not end by itself." if expires_at is None else f"It ends at {iso(expires_at)}."


def _time_document(time: TimeConstraint) -> dict[str, Any]:
    bounds = {"since": time.since, "until": time.until}
    return {"field": time.field} | {name: iso(at) for name, at in bounds.items() if at is not None}


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
