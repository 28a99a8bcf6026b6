"""From when to when the records of each stream are, for the owner's overview."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.model.grant import Access
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.plan import PagePlan
from headgate.policy.allowance import StreamScope
from headgate.reading.services import ReadServices

#: The first and the last time, in microseconds since 1970.
Span = tuple[int, int]


async def spans(services: ReadServices, access: Access) -> Mapping[tuple[ConnectionId, StreamName], Span]:
    """Read the first and the last time of every stream that has times; no record leaves the store."""
    found: dict[tuple[ConnectionId, StreamName], Span] = {}
    for scope in (await services.decisions(access)).allowance.scopes:
        for one in scope.connections if scope.declaration.consent_time_field else ():
            span = await _span(services, scope.among((one,)))
            if span is not None:
                found[one.id, scope.stream] = span
    return found


async def _span(services: ReadServices, scope: StreamScope) -> Span | None:
    plan = PagePlan(scope.reach(scope.declaration.primary_key), 1, with_extent=True)
    extent = (await services.store.page(plan)).extent
    if extent is None or extent.earliest is None or extent.latest is None:
        return None
    return extent.earliest, extent.latest
