"""What a grant would show: how many records, of which time, and three of them. For the owner, before it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec

from headgate.audit.journal import Disclosed, disclosed, owner_event
from headgate.model.declaration import LineFields
from headgate.model.grant import Access, AccessMode, Grant, StreamGrant, TokenKind
from headgate.model.ids import ClientId, ConnectionId, FieldName, GrantId, RequestId, StreamName, SubjectId
from headgate.model.plan import PagePlan
from headgate.model.query import Count
from headgate.model.wire import LineBody
from headgate.policy.allowance import StreamScope, allow
from headgate.policy.resolve import Terms
from headgate.reading.home import ReadableHome
from headgate.text.line import line_body

SAMPLES = 3
_PREVIEW_CHARS = 160


@dataclass(frozen=True, slots=True)
class SampleField:
    """One field of a sample, and whether the grant would show it."""

    name: FieldName
    value: str
    is_withheld: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """One record, whole as the owner sees it, and the line that the grant would show of it."""

    fields: tuple[SampleField, ...]
    line: LineBody


@dataclass(frozen=True, slots=True)
class GrantPreview:
    """What would be shown of one stream."""

    stream: StreamGrant
    source_id: str
    count: int
    #: Microseconds since 1970; None where no record has a time.
    earliest: int | None
    latest: int | None
    #: The fields of samples, in the order of the line: when, who, how much and what come first.
    fields: tuple[FieldName, ...]
    samples: tuple[Sample, ...]


async def preview(
    services: ReadableHome, terms: Sequence[Terms], request_id: RequestId, via: str
) -> tuple[GrantPreview, ...]:
    """Read what a grant of these terms would show; the log notes it as the owner's look."""
    previews: list[GrantPreview] = []
    disclosures: list[Disclosed] = []
    catalog = await services.catalog()
    for term in terms:
        # Decided as it will be when the client reads, but with every field: the page strikes out what is withheld.
        access = Access(TokenKind.CLIENT, SubjectId("owner"), ClientId("preview"), (_whole(term),))
        for scope in allow(access, catalog, services.rules).scopes:
            granted = next(stream for stream in term.streams if stream.name == scope.stream)
            stream_preview, parts = await _stream(services, scope, granted, term)
            previews.append(stream_preview)
            disclosures += parts
    services.discloser.write(owner_event(services.clock(), request_id, via, parts=tuple(disclosures)))
    return tuple(previews)


async def _stream(
    services: ReadableHome, scope: StreamScope, granted: StreamGrant, terms: Terms
) -> tuple[GrantPreview, tuple[Disclosed, ...]]:
    fields = tuple(scope.capability.fields)
    plan = PagePlan(
        scope.reach(fields), SAMPLES, count=Count.EXACT, with_extent=True, preview_chars=_PREVIEW_CHARS
    )
    page = await services.store.page(plan)
    line = scope.declaration.line
    samples = tuple(_sample(record.body, fields, granted, line) for record in page.records)
    extent = page.extent
    stream_preview = GrantPreview(
        granted,
        terms.source.source_id,
        page.count or 0,
        None if extent is None else extent.earliest,
        None if extent is None else extent.latest,
        fields,
        samples,
    )
    return stream_preview, disclosed(page.records, fields) if page.records else ()


def _sample(body: bytes, fields: Sequence[FieldName], granted: StreamGrant, line: LineFields) -> Sample:
    values: dict[FieldName, Any] = msgspec.json.decode(body)
    return Sample(
        tuple(
            SampleField(name, _text(values[name]), name not in granted.fields)
            for name in fields
            if name in values
        ),
        line_body(line, {name: value for name, value in values.items() if name in granted.fields}),
    )


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    plain = " ".join(text.split())
    return plain if len(plain) <= _PREVIEW_CHARS else plain[: _PREVIEW_CHARS - 1] + "…"


def _whole(terms: Terms) -> Grant:
    streams = tuple(
        replace(stream, fields=tuple(terms.source.streams[stream.name].fields)) for stream in terms.streams
    )
    return Grant(
        id=GrantId("preview"),
        subject_id=SubjectId("owner"),
        client_id=ClientId("preview"),
        source_id=terms.source.source_id,
        source_kind=terms.source.source_kind,
        declaration_version=terms.source.version,
        purpose_code="",
        access_mode=AccessMode.CONTINUOUS,
        streams=streams,
        issued_at=0,
    )


#: The first and the last time, in microseconds since 1970.
Span: TypeAlias = tuple[int, int]
StreamPlace: TypeAlias = tuple[ConnectionId, StreamName]


class StreamSpans:
    """Remembers spans by what is stored of a stream: its number of records, and when one was last added."""

    __slots__ = ("_known", "_services")

    def __init__(self, services: ReadableHome) -> None:
        self._services = services
        self._known: dict[StreamPlace, tuple[object, Span | None]] = {}

    async def spans(
        self, access: Access, stored: Iterable[tuple[StreamPlace, object]]
    ) -> Mapping[StreamPlace, Span | None]:
        """Return the spans of streams; only one whose store has changed is read again."""
        wanted, known = dict(stored), self._known
        stale = {place for place, state in wanted.items() if place not in known or known[place][0] != state}
        read = await _read(self._services, access, stale) if stale else {}
        # Streams that are gone are forgotten with this.
        self._known = {
            place: (state, read.get(place)) if place in stale else known[place]
            for place, state in wanted.items()
        }
        return {place: span for place, (_, span) in self._known.items()}


async def _read(services: ReadableHome, access: Access, places: set[StreamPlace]) -> dict[StreamPlace, Span]:
    """Read the first and the last time of streams that have times; no record leaves the store."""
    spans: dict[StreamPlace, Span] = {}
    for scope in (await services.decisions(access)).allowance.scopes:
        for connection in scope.connections if scope.declaration.consent_time_field else ():
            if (connection.id, scope.stream) in places:
                span = await _span(services, scope.among((connection,)))
                spans |= {} if span is None else {(connection.id, scope.stream): span}
    return spans


async def _span(services: ReadableHome, scope: StreamScope) -> Span | None:
    plan = PagePlan(scope.reach(scope.declaration.primary_key), 1, with_extent=True)
    extent = (await services.store.page(plan)).extent
    if extent is None or extent.earliest is None or extent.latest is None:
        return None
    return extent.earliest, extent.latest
