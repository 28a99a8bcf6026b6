"""Narrow a grant: the owner takes away from what was approved; nothing is ever added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headgate.auth.consent import MOST_DAYS, MOST_RECORDS, whole_number
from headgate.errors import InvalidRequest
from headgate.model.declaration import StreamDeclaration
from headgate.model.grant import StreamGrant, TimeConstraint
from headgate.model.ids import FieldName, StreamName
from headgate.model.instants import DAY_US, instant
from headgate.model.ledger import IssuedGrant
from headgate.policy.allowance import SourceCatalog
from headgate.policy.resolve import StreamRequest, Terms, granted_fields


def read_narrowed(
    issued: IssuedGrant,
    get: Callable[[str], str],
    get_all: Callable[[str], Sequence[str]],
    catalog: SourceCatalog,
    now: int,
) -> IssuedGrant:
    """Return the grant that stays by the fields of a form.

    Raises:
        InvalidRequest: nothing of it would stay, or a field of the form cannot be read.
    """
    days, daily = get("days"), get("daily_records").strip()
    requests = [
        StreamRequest(
            name,
            fields=tuple(map(FieldName, get_all(f"fields/{name}"))),
            since=_since(get(f"since/{name}").strip()),
        )
        for name in (stream.name for stream in issued.grant.streams)
        if name in get_all("keep")
    ]
    records = whole_number(daily, MOST_RECORDS, "daily_records") if daily else None
    if records is not None and issued.daily_records is not None and records > issued.daily_records:
        raise InvalidRequest(
            f"The grant has {issued.daily_records:,} records a day already, and narrowing cannot raise that.",
            hint="Choose a smaller number, or leave it empty to keep the limit.",
            param="daily_records",
        )
    ends_at = now + whole_number(days, MOST_DAYS, "days") * DAY_US if days else None
    return narrow(issued, requests, catalog, expires_at=ends_at, daily_records=records)


def _since(text: str) -> int | None:
    at = instant(text) if text else None
    if text and at is None:
        raise InvalidRequest("The day must be written like 2026-01-31.", param="since")
    return at


def narrow(
    issued: IssuedGrant,
    requests: Sequence[StreamRequest],
    catalog: SourceCatalog,
    *,
    expires_at: int | None = None,
    daily_records: int | None = None,
) -> IssuedGrant:
    """Return the grant that stays of the requested streams; whatever would widen it has no effect.

    Raises:
        InvalidRequest: nothing of it would stay, or a stream has no times to choose by.
    """
    grant, by_name = issued.grant, {request.name: request for request in requests}
    streams = tuple(
        _stream(stream, by_name[stream.name], _declared(issued, stream.name, catalog))
        for stream in grant.streams
        if stream.name in by_name
    )
    if not streams:
        raise InvalidRequest("This would leave the grant empty.", hint="Revoke it instead.", param="streams")
    return replace(
        issued,
        grant=replace(grant, streams=streams, expires_at=_least(grant.expires_at, expires_at)),
        daily_records=_least(issued.daily_records, daily_records),
    )


def terms_of_grant(issued: IssuedGrant, catalog: SourceCatalog) -> tuple[Terms, ...]:
    """Return the terms of a grant, to look at what they show; none if its source is gone."""
    source = catalog.source(issued.grant.source_id)
    return () if source is None else (Terms(*source, issued.grant.streams),)


def always_shown(issued: IssuedGrant, stream: StreamGrant, catalog: SourceCatalog) -> tuple[FieldName, ...]:
    """Return the fields that stay as long as any of the stream does."""
    declared = _declared(issued, stream.name, catalog)
    return () if declared is None else granted_fields(declared, ())


def _declared(issued: IssuedGrant, name: StreamName, catalog: SourceCatalog) -> StreamDeclaration | None:
    source = catalog.source(issued.grant.source_id)
    return None if source is None else source[1].streams.get(name)


def _stream(granted: StreamGrant, request: StreamRequest, declared: StreamDeclaration | None) -> StreamGrant:
    always = () if declared is None else granted_fields(declared, ())
    fields = tuple(name for name in granted.fields if name in (request.fields or ()) or name in always)
    if not fields:
        raise InvalidRequest(f"No field of '{granted.name}' would stay.", param="fields")
    return replace(granted, fields=fields, time=_time(granted, request.since, declared))


def _time(
    granted: StreamGrant, since: int | None, declared: StreamDeclaration | None
) -> TimeConstraint | None:
    before = granted.time
    if since is None:
        return before
    field = before.field if before is not None else declared.consent_time_field if declared else None
    if field is None:
        raise InvalidRequest(f"'{granted.name}' has no time to choose by.", param="since")
    until = None if before is None else before.until
    if until is not None and since >= until:
        raise InvalidRequest(f"No time of '{granted.name}' would stay.", param="since")
    return TimeConstraint(field, max(since, before.since or since) if before else since, until)


def _least(first: int | None, other: int | None) -> int | None:
    return min((value for value in (first, other) if value is not None), default=None)
