"""Narrow a grant: the owner takes away from what was approved; nothing is ever added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headgate.errors import InvalidRequest
from headgate.model.declaration import StreamDeclaration
from headgate.model.grant import StreamGrant, TimeConstraint
from headgate.model.ids import FieldName, StreamName
from headgate.model.ledger import IssuedGrant
from headgate.policy.allowance import SourceCatalog
from headgate.policy.resolve import Terms, granted_fields


@dataclass(frozen=True, slots=True)
class NarrowedStream:
    """What stays of one stream."""

    fields: frozenset[FieldName]
    #: Microseconds since 1970: only records from then on; None changes nothing.
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What stays of a grant. Whatever would widen it has no effect."""

    #: The streams that stay, by name.
    streams: Mapping[StreamName, NarrowedStream]
    #: Microseconds since 1970: it ends then, or earlier if it does already; None changes nothing.
    expires_at: int | None = None
    daily_records: int | None = None


def narrow(issued: IssuedGrant, narrowing: Narrowing, catalog: SourceCatalog) -> IssuedGrant:
    """Return the grant that stays.

    Raises:
        InvalidRequest: nothing of it would stay, or a stream has no times to choose by.
    """
    grant = issued.grant
    streams = tuple(
        _stream(stream, narrowing.streams[stream.name], _declared(issued, stream.name, catalog))
        for stream in grant.streams
        if stream.name in narrowing.streams
    )
    if not streams:
        raise InvalidRequest("This would leave the grant empty.", hint="Revoke it instead.", param="streams")
    return replace(
        issued,
        grant=replace(grant, streams=streams, expires_at=_least(grant.expires_at, narrowing.expires_at)),
        daily_records=_least(issued.daily_records, narrowing.daily_records),
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


def _stream(
    granted: StreamGrant, narrowed: NarrowedStream, declared: StreamDeclaration | None
) -> StreamGrant:
    always = () if declared is None else granted_fields(declared, ())
    fields = tuple(name for name in granted.fields if name in narrowed.fields or name in always)
    if not fields:
        raise InvalidRequest(f"No field of '{granted.name}' would stay.", param="fields")
    return replace(granted, fields=fields, time=_time(granted, narrowed.since, declared))


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
