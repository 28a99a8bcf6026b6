"""From when to when the records of each stream are, for the owner's overview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from headgate.model.grant import Access
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.plan import PagePlan
from headgate.policy.allowance import StreamScope
from headgate.reading.services import ReadServices

#: The first and the last time, in microseconds since 1970.
Span: TypeAlias = tuple[int, int]
StreamPlace: TypeAlias = tuple[ConnectionId, StreamName]


class StreamSpans:
    """Remembers spans by what is stored of a stream: its number of records, and when one was last added."""

    __slots__ = ("_known", "_services")

    def __init__(self, services: ReadServices) -> None:
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


async def _read(services: ReadServices, access: Access, places: set[StreamPlace]) -> dict[StreamPlace, Span]:
    """Read the first and the last time of streams that have times; no record leaves the store."""
    found: dict[StreamPlace, Span] = {}
    for scope in (await services.decisions(access)).allowance.scopes:
        for one in scope.connections if scope.declaration.consent_time_field else ():
            if (one.id, scope.stream) in places:
                span = await _span(services, scope.among((one,)))
                found |= {} if span is None else {(one.id, scope.stream): span}
    return found


async def _span(services: ReadServices, scope: StreamScope) -> Span | None:
    plan = PagePlan(scope.reach(scope.declaration.primary_key), 1, with_extent=True)
    extent = (await services.store.page(plan)).extent
    if extent is None or extent.earliest is None or extent.latest is None:
        return None
    return extent.earliest, extent.latest
