"""Random lines to put in, and random plans to ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from headgate.model.declaration import FieldKind, RangeOperator
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName, canonical_key
from headgate.model.instants import instant
from headgate.model.plan import (
    AggregatePlan,
    ChangesPlan,
    PagePlan,
    Reach,
    SearchPlan,
    SearchReach,
    Term,
    TimeGroups,
    WordCondition,
)
from headgate.model.query import Count, ExactFilter, Filter, Granularity, Metric, Order, RangeFilter
from tests.store.declared import GAUGES, LOOSE, MARKS, NOTES, ODD, PAGES, declared

KEYS = ("a", "b", "c", "ü", "Ω", "10", "9", 'q"\\')
TIMES = (
    "2026-03-29T00:59:59Z",
    "2026-03-29T01:00:00Z",
    "2026-03-29T03:00:00+02:00",
    "2025-12-31T23:30:00.000001Z",
    "2026-10-25T02:30:00+01:00",
    "1883-11-18T16:59:59Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59Z",
    "2026-01-01",
    "soon",
)
DAYS = ("2026-01-01", "2026-02-28", "2024-02-29", "0999-12-31", "never")
WORDS = (
    "apple",
    "Apfel",
    "café",
    "CAFE\u0301",
    "Straße",
    "and",
    "OR",
    "日本語",
    "東京都",
    "x1",
    "don't",
    "NEAR",
)
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Africa/Monrovia",
    "Australia/Lord_Howe",
)
_TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
_WRONG = st.sampled_from([None, [], {"a": 1}, {"a": "x"}])


def _or_nothing(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, _WRONG)


_INTEGERS = st.sampled_from([0, 1, 2, 2, 7, 7.0, -3, 2**63 - 1, 1 - 2**63, 2.5, "7", True])
_NUMBERS = st.sampled_from([0, 0.0, 1, 1.5, 1.5, -2.25, 1e300, 0.1, 0.2, "x", False])
_WORDS = st.sampled_from(["red", "Red", "blue", "", "7", 7])

NOTE = st.fixed_dictionaries(
    {"id": st.sampled_from(KEYS)},
    optional={
        "title": _or_nothing(_TEXTS),
        "body": _or_nothing(_TEXTS),
        "label": _or_nothing(_WORDS),
        "code": _or_nothing(_WORDS),
        "size": _or_nothing(_INTEGERS),
        "weight": _or_nothing(_NUMBERS),
        "done": _or_nothing(st.sampled_from([True, False, 1, "true"])),
        "day": _or_nothing(st.sampled_from(DAYS)),
        "at": _or_nothing(st.sampled_from(TIMES)),
        "seen_at": _or_nothing(st.sampled_from(TIMES)),
        "extra": st.sampled_from([1, "x", {"a": [1, None]}]),
        "": st.sampled_from([1, 2]),
        ODD: _or_nothing(_WORDS),
    },
)
_MARK = st.fixed_dictionaries(
    {"note": st.sampled_from(KEYS[:4]), "n": st.integers(0, 2)},
    optional={"text": _or_nothing(_TEXTS), "hidden": _or_nothing(_TEXTS)},
)
_PAGE = st.fixed_dictionaries(
    {"id": st.integers(8, 12)},
    optional={
        "slug": _or_nothing(st.sampled_from(["a", "B", "ä", "a ", "😀", "\ufffd"])),
        "size": _or_nothing(_INTEGERS),
        "text": _or_nothing(_TEXTS),
    },
)
_GAUGE = st.fixed_dictionaries(
    {"id": st.sampled_from(KEYS)},
    optional={
        "level": _or_nothing(_NUMBERS),
        "number": _or_nothing(st.sampled_from([10, 9, 9.0, 0, "10"])),
        "seen_at": _or_nothing(st.sampled_from(TIMES)),
    },
)
_LOOSE = st.fixed_dictionaries({"id": st.sampled_from(KEYS)}, optional={"text": _or_nothing(_TEXTS)})
_DATA = {NOTES: NOTE, MARKS: _MARK, PAGES: _PAGE, GAUGES: _GAUGE, LOOSE: _LOOSE}
_STREAMS = st.sampled_from([NOTES, NOTES, NOTES, MARKS, PAGES, GAUGES, LOOSE])


def _deletion(stream: StreamName, data: dict[str, Any]) -> dict[str, Any]:
    key = canonical_key([data[name] for name in declared().streams[stream].primary_key])
    return {"op": "delete", "key": key}


@st.composite
def batches(draw: st.DrawFn, connections: int, stream: StreamName | None = None) -> tuple[Any, ...]:
    """Give a connection's number, a stream and some lines for it."""
    name = stream or draw(_STREAMS)
    data = draw(st.lists(_DATA[name], min_size=1, max_size=8))
    gone = draw(st.lists(st.integers(0, 9), min_size=len(data), max_size=len(data)))
    lines = [
        _deletion(name, one) if chance < 2 else {"data": one} for one, chance in zip(data, gone, strict=True)
    ]
    return draw(st.integers(0, connections - 1)), name, lines


@st.composite
def reaches(draw: st.DrawFn, ids: Sequence[ConnectionId], stream: StreamName) -> Reach:
    """Give a random part of a stream."""
    chosen = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
    fields = tuple(declared().streams[stream].fields)
    bound = declared().streams[stream].consent_time_field
    time = None
    if bound is not None and draw(st.booleans()):
        ends = draw(st.lists(st.sampled_from(TIMES[:-1]), min_size=1, max_size=2))
        places = sorted(place for text in ends if (place := instant(text)) is not None)
        if places:
            time = TimeConstraint(bound, places[0], places[-1] if len(places) > 1 else None)
    resources = draw(st.one_of(st.none(), st.none(), st.frozensets(st.sampled_from(KEYS))))
    return Reach(
        stream,
        tuple(chosen),
        tuple(draw(st.lists(st.sampled_from(fields), unique=True))),
        time,
        None if resources is None else frozenset(map(RecordId, resources)),
    )


_EXACT = {
    FieldKind.TEXT: st.sampled_from(["red", "Red", "", "7", "apple", "a", "nothing"]),
    FieldKind.INTEGER: st.sampled_from([0, 2, 7, 2**63 - 1, 1 - 2**63, 5]),
    FieldKind.NUMBER: st.sampled_from([0.0, 1.5, 1, -2.25, 1e300, 9.75]),
    FieldKind.BOOLEAN: st.booleans(),
    FieldKind.DATE: st.sampled_from([instant(day) for day in DAYS[:-1]]),
    FieldKind.DATE_TIME: st.sampled_from([place for time in TIMES if (place := instant(time)) is not None]),
}


@st.composite
def filters(draw: st.DrawFn, stream: StreamName) -> tuple[Filter, ...]:
    """Give none, one or two filters on fields of any kind."""
    fields = [one for one in declared().streams[stream].fields.values() if one.kind.is_scalar]
    found: list[Filter] = []
    for one in draw(st.lists(st.sampled_from(fields), max_size=2)):
        value = draw(_EXACT[one.kind])
        if one.kind.is_ordered and draw(st.booleans()):
            found.append(RangeFilter(one.name, draw(st.sampled_from(list(RangeOperator))), value))
        else:
            found.append(ExactFilter(one.name, value))
    return tuple(found)


@st.composite
def page_plans(draw: st.DrawFn, ids: Sequence[ConnectionId]) -> PagePlan:
    """Give a first page."""
    stream = draw(_STREAMS)
    return PagePlan(
        draw(reaches(ids, stream)),
        draw(st.integers(1, 5)),
        draw(st.sampled_from(list(Order))),
        by_cursor_field=draw(st.booleans()),
        filters=draw(filters(stream)),
        count=draw(st.sampled_from(list(Count))),
        with_extent=draw(st.booleans()),
    )


_TERM = st.one_of(
    # In quotes: what a word finds beside itself is not for a model to say.
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
        lambda words: Term(tuple(words), is_strict=True)
    ),
    st.sampled_from(WORDS[:8]).map(lambda word: Term((word[:3],), is_prefix=True)),
    st.sampled_from(["日", "京", "本語", "東京"]).map(lambda text: Term((text,))),
)


@st.composite
def _word_conditions(draw: st.DrawFn) -> WordCondition:
    lexical = declared().streams[NOTES].query.lexical_fields
    fields = draw(st.lists(st.sampled_from(lexical), min_size=1, unique=True))
    quoted = draw(st.lists(st.sampled_from(fields), unique=True))
    return WordCondition(tuple(draw(st.lists(_TERM, min_size=1, max_size=2))), tuple(fields), tuple(quoted))


@st.composite
def aggregate_plans(draw: st.DrawFn, ids: Sequence[ConnectionId]) -> AggregatePlan:
    """Give any aggregate that the declaration allows."""
    declaration = declared().streams[NOTES]
    allowed = declaration.query.aggregations
    assert allowed is not None
    reach, chosen = draw(reaches(ids, NOTES)), draw(filters(NOTES))
    limit, words = draw(st.integers(1, 6)), draw(st.none() | _word_conditions())
    metric = draw(st.sampled_from([Metric.COUNT, *Metric]))
    field = None if metric is Metric.COUNT else draw(st.sampled_from(getattr(allowed, metric)))
    form = draw(st.sampled_from(["number", "group", "time", "both"]))
    by_time = TimeGroups(
        draw(st.sampled_from(allowed.group_by_time)),
        draw(st.sampled_from(list(Granularity))),
        draw(st.sampled_from(ZONES)),
    )
    if form == "number":
        return AggregatePlan(reach, metric, field, filters=chosen, words=words)
    group_by = by_time if form == "time" else draw(st.sampled_from(allowed.group_by))
    then_by = by_time if form == "both" else None
    return AggregatePlan(reach, metric, field, group_by, then_by, filters=chosen, limit=limit, words=words)


@st.composite
def changes_plans(draw: st.DrawFn, ids: Sequence[ConnectionId], since: int) -> ChangesPlan:
    """Give the first page of a session."""
    return ChangesPlan(draw(reaches(ids, draw(_STREAMS))), draw(st.integers(1, 5)), since)


@st.composite
def search_plans(draw: st.DrawFn, ids: Sequence[ConnectionId]) -> SearchPlan:
    """Give the first page of a search over some streams."""
    chosen: list[SearchReach] = []
    for stream in draw(st.lists(st.sampled_from([NOTES, MARKS, PAGES]), min_size=1, unique=True)):
        reach = draw(reaches(ids, stream))
        lexical = declared().streams[stream].query.lexical_fields
        fields: list[FieldName] = draw(st.lists(st.sampled_from(lexical), unique=True))
        quoted = draw(st.lists(st.sampled_from(fields), unique=True)) if fields else ()
        chosen.append(SearchReach(reach, tuple(fields), quoted_fields=tuple(quoted)))
    narrowed = draw(filters(chosen[0].reach.stream)) if len(chosen) == 1 else ()
    return SearchPlan(
        tuple(chosen), tuple(draw(st.lists(_TERM, min_size=1, max_size=2))), draw(st.integers(1, 5)), narrowed
    )
