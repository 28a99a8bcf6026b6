"""What all schema documents share: what is stored of each stream, how fresh it is, and the words for fields and connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import ConnectionNotFound
from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.instants import iso
from headgate.model.plan import Reach
from headgate.model.record import Connection, Coverage, Freshness, coverage_in, freshness_in
from headgate.model.wire import FieldFlags, FlagBody
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import AGGREGATIONS, FieldCapability, Flag, Use
from headgate.policy.decide import whole
from headgate.reading.home import CurrentRead
from headgate.reading.port import Body

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

DAY_CHARS = 10
#: How many connections a number may be of that says what it covers.
_MOST_STATES = 8


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is stored of one stream of one connection, and how fresh it is."""

    record_count: int
    #: Microseconds since 1970: when a record was last ingested; None if there is none.
    last_updated: int | None
    #: Of an account: when it was last fetched, and its status now.
    attempted_at: int | None = None
    status: str = "unknown"
    #: The first and the last time of the visible records.
    span: tuple[int, int] | None = None
    #: The period of which every record is there, as far as this reader may know.
    coverage: Coverage | None = None

    def freshness(self) -> Body:
        """Write the member of that name."""
        times = {"captured_at": self.last_updated, "last_attempted_at": self.attempted_at}
        return {"status": self.status} | {name: iso(time) for name, time in times.items() if time is not None}


Summaries = Mapping[tuple[ConnectionId, StreamName], StreamFacts]


async def read_summaries(read: CurrentRead, scopes: Sequence[StreamScope]) -> Summaries:
    if not scopes:
        return {}
    reaches = [whole(scope) for scope in scopes]
    return await _stream_facts(read.home.store, reaches, now=read.home.clock())


async def _stream_facts(store: Store, reaches: Sequence[Reach], *, now: int) -> Summaries:
    """Count the records of each stream of each connection, and judge how fresh those of accounts are."""
    summaries = await store.summaries(reaches)
    states = {name: await _read_state(store, name) for name in {each.connection_id for each in summaries}}
    fresh = {name: freshness_in(state) or Freshness() for name, state in states.items()}
    return {
        (summary.connection_id, summary.stream): StreamFacts(
            summary.record_count,
            summary.last_updated,
            fresh[summary.connection_id].attempted_at,
            fresh[summary.connection_id].status(now),
            summary.span,
            _known_coverage(coverage_in(states[summary.connection_id], summary.stream), summary.seen_at),
        )
        for summary in summaries
    }


def _known_coverage(noted: Sequence[Coverage], seen_at: int | None) -> Coverage | None:
    """Return the newest note whose import began before the last visible change.

    An import that brought nothing visible must not show: it began after that change.
    """
    known = [coverage for coverage in noted if seen_at is not None and coverage.began_at <= seen_at]
    return known[-1] if known else None


async def _read_state(store: Store, connection_id: ConnectionId) -> dict[str, Any]:
    try:
        stored = await store.state(connection_id)
    except ConnectionNotFound:
        # It was removed a moment ago.
        stored = None
    state: Any = None if stored is None else msgspec.json.decode(stored)
    return cast("dict[str, Any]", state) if isinstance(state, dict) else {}


async def read_coverage(read: CurrentRead, scope: StreamScope) -> Body:
    """Read the same of one stream; where nothing was noted, its records are not counted for it."""
    states = [await _read_state(read.home.store, one.id) for one in scope.connections[:_MOST_STATES]]
    if len(states) < len(scope.connections) or not all(coverage_in(state, scope.stream) for state in states):
        return {}
    return coverage_of(scope, await read_summaries(read, (scope,)))


def coverage_of(scope: StreamScope, summaries: Summaries) -> Body:
    """Return the member that says of which period every record of all connections is there; none if that is not known."""
    facts = facts_of(scope, summaries)
    known = [stored.coverage for stored in facts if stored.coverage is not None]
    if not known or len(known) < len(scope.connections):
        return {}
    since, until = (None, None) if scope.time is None else (scope.time.since, scope.time.until)
    starts = [time for time in (since, *(coverage.start for coverage in known)) if time is not None]
    ends = [time for time in (until, *(coverage.end for coverage in known)) if time is not None]
    if starts and ends and max(starts) > min(ends):
        # Its parts have no period in common, or the grant shows none of it.
        return {}
    body: Body = {
        "start": iso(max(starts))[:DAY_CHARS] if starts else None,
        "end": iso(min(ends))[:DAY_CHARS] if ends else None,
        "complete_at": iso(min(coverage.complete_at for coverage in known))[:DAY_CHARS],
    }
    return {"coverage": {name: day for name, day in body.items() if day is not None}}


def by_connector(scopes: Sequence[StreamScope]) -> list[list[StreamScope]]:
    groups: dict[tuple[ConnectorKey, object], list[StreamScope]] = {}
    for scope in scopes:
        groups.setdefault((scope.connector_key, scope.grant_id), []).append(scope)
    return list(groups.values())


def connector_body(group: Sequence[StreamScope]) -> Body:
    first = group[0]
    body: Body = {
        "object": "connector",
        "connector_key": first.connector_key,
        "connector_id": first.connector_key,
        "source": {"kind": first.source.source_kind, "id": first.source.source_id},
        "display_name": first.source.display_name,
        "stream_count": len(group),
    }
    return body if first.grant_id is None else body | {"grant_id": first.grant_id}


def connection_body(connection: Connection) -> Body:
    name = connection.label
    body: Body = {"connection_id": connection.id}
    return body if name is None else body | {"display_name": name}


def count_of(scope: StreamScope, summaries: Summaries) -> int:
    return sum(facts.record_count for facts in facts_of(scope, summaries))


def freshness_of(scope: StreamScope, summaries: Summaries) -> Body:
    """Sum up the connections of a stream: one that is stale makes the whole stale."""
    facts = facts_of(scope, summaries)
    statuses = {stored.status for stored in facts}
    return StreamFacts(
        0,
        max((stored.last_updated for stored in facts if stored.last_updated is not None), default=None),
        max((stored.attempted_at for stored in facts if stored.attempted_at is not None), default=None),
        next((status for status in ("stale", "unknown", "current") if status in statuses), "unknown"),
    ).freshness()


def facts_of(scope: StreamScope, summaries: Summaries) -> list[StreamFacts]:
    facts = (summaries.get((connection.id, scope.stream)) for connection in scope.connections)
    return [stored for stored in facts if stored is not None]


def field_flags(capability: FieldCapability) -> FieldFlags:
    role = capability.field.schema.get("x_pdpp_role")
    body: FieldFlags = {
        "type": "|".join(capability.field.types) or "any",
        "granted": True,
        "exact_filter": _flag(capability.flag(Use.EXACT_FILTER)),
        "range_filter": _range_flag(capability),
        "lexical_search": _flag(capability.flag(Use.LEXICAL_SEARCH)),
        "semantic_search": _flag(capability.flag(Use.SEMANTIC_SEARCH)),
        "aggregation": {use.value: _flag(capability.flag(use)) for use in AGGREGATIONS},
    }
    if isinstance(role, str):
        body["role"] = role
    return body


def _range_flag(capability: FieldCapability) -> FlagBody:
    body = _flag(capability.flag(Use.RANGE_FILTER))
    if capability.operators:
        body["operators"] = list(capability.operators)
    return body


def _flag(flag: Flag) -> FlagBody:
    body: FlagBody = {"declared": flag.declared, "usable": flag.usable}
    if flag.reason is not None:
        body["reason"] = flag.reason
    return body
