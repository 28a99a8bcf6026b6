"""Whatever is asked, no plan reaches outside the grant."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st

from headgate.errors import HeadgateError
from headgate.model.declaration import RangeOperator
from headgate.model.grant import Access, Grant, StreamGrant, TimeConstraint
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, FieldName, RecordId, StreamName
from headgate.model.plan import ExpandPlan, Reach, SearchReach, TimeGroups, WindowPlan
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Count,
    ExactFilter,
    ExpandRequest,
    Granularity,
    ListQuery,
    Metric,
    Order,
    Query,
    RangeFilter,
    RecordQuery,
    SchemaQuery,
    SearchQuery,
    WindowQuery,
)
from tests.policy.worlds import HOME, SHOP, WORK, allowed, catalog, client, decide, grant, seals

WORLD = catalog()
STREAMS = st.sampled_from(["messages", "attachments", "orders", "nothing", "*"]).map(StreamName)
FIELDS = st.sampled_from(
    [
        *{
            name
            for source in WORLD.declarations.values()
            for s in source.streams.values()
            for name in s.fields
        },
        "secret",
        "*",
        "",
        "id\0",
    ]
).map(FieldName)
CONNECTIONS = st.none() | st.sampled_from([HOME, WORK, SHOP, ConnectionId("cin_none")])
VALUES = st.one_of(
    st.text(max_size=5),
    st.integers(),
    st.floats(allow_nan=True),
    st.booleans(),
    st.sampled_from(["2026-01-01", "2026-05-01T00:00:00Z", "true", "7", "1e999"]),
)
FILTERS = st.lists(
    st.builds(ExactFilter, FIELDS, VALUES)
    | st.builds(RangeFilter, FIELDS, st.sampled_from(RangeOperator), VALUES.filter(lambda v: v is not True)),
    max_size=3,
).map(tuple)
EXPAND = st.lists(
    st.builds(ExpandRequest, st.sampled_from(["attachments", "parents"]), st.none() | st.integers(-1, 60)),
    max_size=2,
).map(tuple)
CONNECTORS = st.none() | st.sampled_from([ConnectorKey("mail"), ConnectorKey("shop"), ConnectorKey("none")])
PICKED = st.none() | st.lists(FIELDS, max_size=4).map(tuple)
TOKENS = st.none() | st.text(max_size=20)


def queries() -> st.SearchStrategy[Query]:
    keys = st.text(max_size=4).map(RecordId)
    numbers = st.none() | st.integers(-5, 20_000)
    return st.one_of(
        st.builds(
            ListQuery, STREAMS, st.integers(-1, 200), st.none() | st.sampled_from(Order),
            st.none() | FIELDS | FIELDS.map(lambda name: "-" + name), st.sampled_from(Count), PICKED,
            st.none() | st.sampled_from(["subjects", "other"]), st.booleans(), CONNECTIONS, CONNECTORS,
            FILTERS, EXPAND, TOKENS,
        ),
        st.builds(
            ChangesQuery, STREAMS, st.just("beginning") | st.text(max_size=9), st.integers(1, 100),
            PICKED, CONNECTIONS, TOKENS,
        ),
        st.builds(RecordQuery, STREAMS, keys, CONNECTIONS, PICKED, EXPAND),
        st.builds(
            WindowQuery, STREAMS, keys, FIELDS, CONNECTIONS, numbers, numbers, st.none() | st.text(max_size=5),
            numbers, numbers, TOKENS,
        ),
        st.builds(
            AggregateQuery, STREAMS, st.sampled_from(Metric), st.none() | FIELDS, st.none() | FIELDS,
            st.none() | FIELDS, st.none() | st.sampled_from(Granularity),
            st.none() | st.sampled_from(["UTC", "Europe/Paris", "../etc/passwd", "+02:00", "x\0"]),
            CONNECTIONS, CONNECTORS, st.integers(0, 101), FILTERS,
        ),
        st.builds(
            SearchQuery, st.text(max_size=8), st.none() | st.lists(STREAMS, max_size=2).map(tuple), CONNECTIONS,
            CONNECTORS, st.integers(0, 200), filters=FILTERS, cursor=TOKENS,
        ),
        st.builds(SchemaQuery, st.none() | STREAMS, CONNECTIONS, CONNECTORS, st.booleans(), st.booleans()),
        st.builds(BlobQuery, st.just(BlobId("blob_" + "0" * 64)), CONNECTIONS),
    )  # fmt: skip


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    source_key = draw(st.sampled_from(sorted(WORLD.declarations)))
    source = WORLD.declarations[source_key]
    connections = WORLD.connections_of(source_key)
    names = draw(st.lists(st.sampled_from(sorted(source.streams)), min_size=1, unique=True))
    return grant(
        *(
            StreamGrant(
                name,
                tuple(draw(st.lists(st.sampled_from(connections), min_size=1, unique=True))),
                tuple(
                    draw(
                        st.lists(
                            st.sampled_from(sorted(source.streams[name].fields)), min_size=1, unique=True
                        )
                    )
                ),
                draw(st.none() | st.just(TimeConstraint(FieldName("sent_at"), 0, 2_000_000_000_000_000))),
                draw(st.none() | st.just(frozenset({RecordId("a")}))),
            )
            for name in names
        ),
        id_=f"grt_{source_key}",
        source=source_key,
    )


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    chosen = draw(st.lists(grants(), min_size=1, max_size=2, unique_by=lambda one: one.source_id))
    return client(*chosen)


def parts(value: Any) -> Iterator[Any]:
    yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from parts(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from parts(item)


def fits(reach: Reach, access: Access) -> bool:
    """Some one grant allows all of the reach, with the same bounds."""
    return any(
        reach.stream == stream.name
        and set(reach.connection_ids) <= set(stream.connection_ids)
        and reach.connection_ids
        and set(reach.fields) <= set(stream.fields)
        and reach.time == stream.time
        and reach.resources == stream.resources
        for one in access.grants
        for stream in one.streams
    )


def granted_names(access: Access, stream: StreamName) -> set[FieldName]:
    return {name for one in access.grants for s in one.streams if s.name == stream for name in s.fields}


def named_fields(plan: Any) -> Iterator[tuple[StreamName, FieldName]]:
    """Every field that a plan names outside a reach, with the stream it is a field of."""
    reaches = [part for part in parts(plan) if isinstance(part, Reach)]
    own = reaches[0].stream if reaches else StreamName("")
    for part in parts(plan):
        match part:
            case ExactFilter() | RangeFilter() | TimeGroups() | WindowPlan():
                yield own, part.field
            case ExpandPlan():
                yield part.child.stream, part.foreign_key
            case SearchReach():
                named = (*part.search_fields, *part.meaning_fields, *part.quoted_fields)
                yield from ((part.reach.stream, name) for name in named)
            case _:
                pass
    for attribute in ("field", "group_by"):
        name = getattr(plan, attribute, None)
        if isinstance(name, str):
            yield own, FieldName(name)


@settings(max_examples=600, deadline=None)
@given(accesses(), queries(), st.sampled_from([True, False]), st.none() | st.just(100))
def test_no_plan_reaches_outside_the_grant(access: Access, query: Query, strict_core, preview_chars):
    allowance = allowed(access, strict_core=strict_core)
    refusal: HeadgateError | None = None
    try:
        decision = decide(allowance, query, seals(), preview_chars=preview_chars)
    except HeadgateError as error:
        refusal = error
    if refusal is not None:
        assert refusal.status in {400, 403, 404, 409, 410}
        return
    for scope in decision.scopes:
        assert fits(scope.reach(tuple(scope.capability.fields)), access)
    reaches = [part for part in parts(decision.plan) if isinstance(part, Reach)]
    # A schema has no plan, and a search may have nowhere to look.
    assert reaches or isinstance(query, SchemaQuery | SearchQuery)
    for reach in reaches:
        assert fits(reach, access), (reach, access)
    for stream, name in named_fields(decision.plan):
        assert name in granted_names(access, stream), name
    if getattr(decision.plan, "by_cursor_field", False):
        assert "sent_at" in granted_names(access, decision.plan.reach.stream)
    if strict_core:
        assert not getattr(decision.plan, "filters", ())
        assert not getattr(decision.plan, "expand", ())


@settings(max_examples=300, deadline=None)
@given(grants(), queries())
def test_a_field_that_is_hidden_and_one_that_does_not_exist_are_refused_alike(one: Grant, query: Query):
    """The same question with every hidden name replaced by a name that does not exist."""
    access = client(one)
    visible = {name for stream in one.streams for name in stream.fields}
    hidden = {
        name for source in WORLD.declarations.values() for s in source.streams.values() for name in s.fields
    } - visible

    def rename(value: Any) -> Any:
        if isinstance(value, str) and value.lstrip("-") in hidden:
            return "-zzz" if value.startswith("-") else "zzz"
        if isinstance(value, tuple):
            return tuple(rename(item) for item in value)
        if dataclasses.is_dataclass(value):
            names = [f.name for f in dataclasses.fields(value) if f.name in FIELD_MEMBERS]
            return dataclasses.replace(value, **{name: rename(getattr(value, name)) for name in names})
        if isinstance(value, msgspec.Struct):
            names = [name for name in value.__struct_fields__ if name in FIELD_MEMBERS]
            return msgspec.structs.replace(value, **{name: rename(getattr(value, name)) for name in names})
        return value

    assert outcome(access, query) == outcome(access, rename(query))


FIELD_MEMBERS = {"field", "fields", "filters", "sort", "group_by", "group_by_time"}


def outcome(access: Access, query: Query) -> Any:
    try:
        decide(allowed(access), query, seals())
    except HeadgateError as refusal:
        return (refusal.code, refusal.status, refusal.param)
    return "decided"
