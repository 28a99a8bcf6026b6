"""Grants as documents: the one shape they are kept in, shown in and introspected by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headgate.model.grant import Grant, StreamGrant, TimeConstraint
from headgate.model.instants import iso
from headgate.model.ledger import IssuedGrant

DETAIL_TYPE = "https://pdpp.dev/data-access"


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
    """Write what is granted of one stream."""
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
