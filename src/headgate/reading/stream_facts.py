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
from headgate.model.record import Connection, Freshness, freshness_in
from headgate.model.wire import FieldFlags, FlagBody
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import AGGREGATIONS, FieldCapability, Flag, Use
from headgate.policy.decide import whole
from headgate.reading.home import CurrentRead
from headgate.reading.port import Body

if TYPE_CHECKING:
    from headgate.store.engines.store import Store


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
    fresh = {
        summary: await _read_freshness(store, summary)
        for summary in {each.connection_id for each in summaries}
    }
    return {
        (summary.connection_id, summary.stream): StreamFacts(
            summary.record_count,
            summary.last_updated,
            fresh[summary.connection_id].attempted_at,
            fresh[summary.connection_id].status(now),
            summary.span,
        )
        for summary in summaries
    }


async def _read_freshness(store: Store, connection_id: ConnectionId) -> Freshness:
    try:
        stored = await store.state(connection_id)
    except ConnectionNotFound:
        # It was removed a moment ago.
        stored = None
    state: Any = None if stored is None else msgspec.json.decode(stored)
    noted = freshness_in(cast("dict[str, Any]", state)) if isinstance(state, dict) else None
    return noted or Freshness()


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
