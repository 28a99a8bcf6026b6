"""The master test: nothing that a grant hides makes any difference to any answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from headgate.web.api.definitions import ENDPOINTS, Who
from tests import postgres
from tests.web.leaks import LEAKS
from tests.web.twins import HIDDEN, HOME, WORDS, WORK, Twins

STREAMS = ("messages", "messages", "messages", "attachments", "notes", "diary", "nothing")
FIELDS = ("id", "sender", "subject", "sent_at", "size", "body", "weight", "is_read", "day", "headers", "nope")
KEYS = (*(f"v{n}" for n in range(1, 13)), *(f"h{n}" for n in range(1, 13)), "zz")


def one_of(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


def pairs(**choices: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Some of the parameters, each with one of its values."""
    return st.fixed_dictionaries({}, optional=dict(choices)).map(lambda found: list(found.items()))


FIELD = one_of(*FIELDS)
CONNECTION = one_of(HOME, WORK, HIDDEN, "cin_none")
CONNECTOR = one_of("mail", "mail", "none")
SINCE = one_of("2026-03-05T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-20T00:00:00Z")
VALUE = one_of("ann", "bob", "5", "true", "2026-05-03", "amber")
#: Several words, phrases, beginnings, other forms, typing errors, words left out, and what nothing visible holds.
QUERIES = (
    "amber birch",
    "amber birch fjord zz",
    '"cedar delta"',
    '"amber amber"',
    "em*",
    "am* -birch",
    "ambers",
    "birches cedars",
    "fjrod",
    "ambre delta",
    "how is the amber",
    "amber OR zz",
    "zz",
    "zeppelin",
    "amber in March 2026",
    "messages from ann amber",
    "latest birch last month",
)
IN = one_of("subject", "body", "subject,body", "text", "sender", "nope", "")
FILTERS = st.one_of(
    st.just([]),
    st.tuples(FIELD, VALUE).map(lambda found: [(f"filter[{found[0]}]", found[1])]),
    st.tuples(one_of("gte", "lt"), SINCE).map(lambda found: [(f"filter[sent_at][{found[0]}]", found[1])]),
    st.tuples(FIELD, VALUE).map(lambda found: [(f"filter[{found[0]}][gt]", found[1])]),
)


def added(*parts: st.SearchStrategy[list[tuple[str, str]]]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.tuples(*parts).map(lambda found: [pair for part in found for pair in part])


EXPAND_LIMIT = st.just([]) | one_of("1", "9").map(lambda n: [("expand_limit[attachments]", n)])
EXTRACT = st.tuples(one_of(*WORDS, "amber birch"), one_of("number", "date")).map(
    lambda found: [("extract[after]", found[0]), ("extract[type]", found[1])]
)
LIST = st.tuples(
    one_of(*STREAMS).map(lambda name: f"/v1/streams/{name}/records"),
    added(
        pairs(
            limit=one_of("1", "3", "100"), order=one_of("asc", "desc"), sort=one_of("sent_at", "-sent_at", "body"),
            count=one_of("none", "exact"), fields=one_of("id", "subject,size", "body", "id,weight"),
            window=one_of("exact"), connection_id=CONNECTION, cursor=one_of("<next>"), expand=one_of("attachments"),
            view=one_of("subjects", "nothing"), connector_instance_id=CONNECTION,
            connector_key=CONNECTOR, connector_id=CONNECTOR,
        ),
        FILTERS, EXPAND_LIMIT,
    ),
)  # fmt: skip
CLEAN_LIST = st.tuples(
    st.just("/v1/streams/messages/records"),
    pairs(
        limit=one_of("2", "100"), order=one_of("asc", "desc"), count=one_of("exact"), window=one_of("exact")
    ),
)
NOTES = st.tuples(
    st.just("/v1/streams/notes/records"), pairs(limit=one_of("2", "100"), order=one_of("asc", "desc"))
)
CLEAN_AGGREGATE = st.tuples(
    st.just("/v1/streams/messages/aggregate"),
    one_of("sum weight", "sum size", "count_distinct sender", "max sent_at").map(
        lambda text: [("metric", text.split()[0]), ("field", text.split()[1])]
    ),
)
CLEAN_WINDOW = st.tuples(
    one_of(*KEYS).map(lambda key: f"/v1/streams/messages/records/{key}/field-window"),
    one_of(HOME, WORK).map(lambda name: [("connection_id", name), ("field", "subject")]),
)
CLEAN_RECORD = st.tuples(
    one_of(*KEYS).map(lambda key: f"/v1/streams/messages/records/{key}"),
    one_of(HOME, WORK).map(lambda name: [("connection_id", name)]),
)
CLEAN_FILTER = st.tuples(
    st.just("/v1/streams/messages/records"),
    one_of("is_read=true", "is_read=false", "day=2026-05-03", "sender=ann", "size=5").map(
        lambda text: [(f"filter[{text.split('=')[0]}]", text.split("=")[1])]
    ),
)
CHILDREN = st.tuples(
    one_of(*KEYS).map(lambda key: f"/v1/streams/messages/records/{key}"),
    one_of(HOME, WORK).map(lambda name: [("connection_id", name), ("expand", "attachments")]),
)
PAGES = st.tuples(one_of("1", "2", "5"), one_of("asc", "desc")).map(
    lambda found: [
        ("/v1/streams/messages/records", [("limit", found[0]), ("order", found[1])]),
        *[
            ("/v1/streams/messages/records", [("limit", found[0]), ("order", found[1]), ("cursor", "<next>")])
            for _ in range(3)
        ],
    ]
)
CHANGES = st.tuples(
    one_of(HOME, WORK, HIDDEN), one_of("2", "50"),
    one_of("messages id,subject", "messages id", "messages id,body", "notes id,text"),
).map(
    lambda found: [
        (f"/v1/streams/{found[2].split()[0]}/records",
         [("changes_since", since), ("connection_id", found[0]), ("limit", found[1]), ("fields", found[2].split()[1])])
        for since in ("beginning", "<since>", "<since>")
    ]
)  # fmt: skip
RECORD = st.tuples(
    st.tuples(one_of(*STREAMS), one_of(*KEYS)).map(
        lambda found: f"/v1/streams/{found[0]}/records/{found[1]}"
    ),
    added(
        pairs(
            connection_id=CONNECTION, fields=one_of("id", "subject", "body"), expand=one_of("attachments"),
            connector_instance_id=CONNECTION,
        ),
        EXPAND_LIMIT,
    ),
)  # fmt: skip
WINDOW = st.tuples(
    one_of(*KEYS).map(lambda key: f"/v1/streams/messages/records/{key}/field-window"),
    added(
        pairs(
            connection_id=CONNECTION, limit_chars=one_of("3", "9"), q=one_of(*WORDS),
            offset_chars=one_of("0", "4"), cursor=one_of("<window>"), before_chars=one_of("0", "3"),
            after_chars=one_of("0", "3"), connector_instance_id=CONNECTION, **{"as": one_of("json")},
        ),
        st.tuples(st.just("field"), FIELD).map(lambda found: [found]),
    ),
)  # fmt: skip
AGGREGATE = st.tuples(
    one_of(*STREAMS).map(lambda name: f"/v1/streams/{name}/aggregate"),
    added(
        pairs(
            metric=one_of("count", "count", "sum", "max", "count_distinct"), field=FIELD, group_by=FIELD,
            group_by_time=one_of("sent_at", "day"), granularity=one_of("day", "month"), limit=one_of("1", "50"),
            connection_id=CONNECTION, connector_instance_id=CONNECTION, time_zone=one_of("UTC", "Asia/Tokyo"),
            connector_key=CONNECTOR, connector_id=CONNECTOR, q=one_of(*WORDS, *QUERIES), **{"in": IN},
        ),
        FILTERS, st.just([]) | EXTRACT,
    ),
)  # fmt: skip
#: Values after words.
WORD_VALUES = st.tuples(
    st.just("/v1/streams/messages/aggregate"),
    added(
        one_of("count", "sum", "min", "max").map(lambda metric: [("metric", metric)]),
        EXTRACT,
        pairs(group_by=one_of("sender"), q=one_of(*WORDS), **{"in": IN}),
    ),
)
#: Numbers over the records that hold words.
WORD_NUMBERS = st.tuples(
    st.just("/v1/streams/messages/aggregate"),
    added(
        one_of("count", "sum size", "count_distinct sender", "max sent_at").map(
            lambda text: list(zip(("metric", "field"), text.split(), strict=False))
        ),
        one_of(*WORDS, *QUERIES).map(lambda q: [("q", q)]),
        pairs(group_by=one_of("sender"), **{"in": IN}),
        FILTERS,
    ),
)
GROUPS = one_of("sender", "is_read", "day").map(
    lambda name: ("/v1/streams/messages/aggregate", [("metric", "count"), ("group_by", name)])
)
SEARCH = st.tuples(
    one_of("/v1/search", "/v1/search/semantic", "/v1/search/hybrid"),
    added(
        one_of(*WORDS, *QUERIES).map(lambda q: [("q", q)]),
        pairs(
            limit=one_of("1", "4", "100"),
            sort=one_of("relevance", "time"),
            connection_id=CONNECTION,
            cursor=one_of("<next>"),
            connector_instance_id=CONNECTION,
            connector_key=CONNECTOR,
        ),
        st.one_of(st.just([]), one_of(*STREAMS).map(lambda name: [("streams[]", name)])),
        st.one_of(st.just([]), st.just([]), FILTERS),
    ),
)
SEARCH_IN = st.tuples(
    one_of("/v1/search", "/v1/search", "/v1/search/semantic", "/v1/search/hybrid"),
    added(
        one_of(*WORDS, *QUERIES).map(lambda q: [("q", q)]),
        IN.map(lambda names: [("in", names)]),
        pairs(
            limit=one_of("0", "4", "100"),
            connection_id=CONNECTION,
            collapse=one_of("true", "false"),
            understand=one_of("true", "false"),
        ),
        st.one_of(st.just([]), one_of(*STREAMS).map(lambda name: [("streams[]", name)])),
    ),
)
PLACES = st.tuples(
    one_of("/v1/schema", "/v1/streams", "/v1/streams/messages", "/v1/streams/notes", "/v1/connectors"),
    st.just([]),
)
STREAM_PLACES = st.tuples(
    one_of("/v1/streams", "/v1/streams/messages", "/v1/streams/notes", "/v1/streams/diary"),
    pairs(connection_id=CONNECTION, connector_instance_id=CONNECTION),
)
SCHEMA = st.tuples(
    st.just("/v1/schema"),
    pairs(
        view=one_of("compact"), stream=one_of(*STREAMS), connection_id=CONNECTION, detail=one_of("full"),
        connector_instance_id=CONNECTION,
        connector_key=CONNECTOR, connector_id=CONNECTOR,
    ),
)  # fmt: skip
BLOB = st.tuples(
    st.just(f"/v1/blobs/blob_{'0' * 64}"), pairs(connection_id=CONNECTION, connector_instance_id=CONNECTION)
)
CLEAN = st.one_of(
    CLEAN_LIST,
    CLEAN_RECORD,
    CLEAN_FILTER,
    CLEAN_AGGREGATE,
    CLEAN_WINDOW,
    CHILDREN,
    NOTES,
    GROUPS,
    WORD_NUMBERS,
    WORD_VALUES,
    PLACES,
    STREAM_PLACES,
)
SINGLE = st.one_of(
    CLEAN, CLEAN, CLEAN, LIST, RECORD, WINDOW, AGGREGATE, SEARCH, SEARCH, SEARCH_IN, SCHEMA, BLOB
).map(lambda step: [step])
SEQUENCES = st.lists(st.one_of(SINGLE, SINGLE, SINGLE, PAGES, CHANGES), min_size=2, max_size=6).map(
    lambda parts: [step for part in parts for step in part]
)
READS = [endpoint for endpoint in ENDPOINTS if endpoint.who is Who.READER]
READERS = one_of("timed", "timed", "blind", "chosen")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    made = Twins(tmp_path_factory.mktemp("twins"), pairs=4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def mixed_twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Pairs of which the first home is a file, and the second is in a database."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    flags = {2: {"store_url": postgres.database_url()}}
    made = Twins(tmp_path_factory.mktemp("mixed"), pairs=2, flags=flags)
    yield made
    made.close()


def assert_same(twins: Twins, number: int, steps: list[Any], who: str) -> None:
    first, second = twins.transcripts(number, steps, who)
    different = [step for step, one, other in zip(steps, first, second, strict=True) if one != other]
    assert not different


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=120, deadline=None, suppress_health_check=QUIET)
@given(st.integers(0, 3), SEQUENCES, READERS)
@pytest.mark.hostile("T4", "T7", "T10", "T11")
def test_what_a_grant_hides_makes_no_difference(twins: Twins, number: int, steps: list[Any], who: str):
    assert_same(twins, number, steps, who)


@settings(max_examples=80, deadline=None, suppress_health_check=QUIET)
@given(st.integers(0, 1), SEQUENCES, READERS)
def test_both_engines_give_the_same_bytes_whatever_is_hidden(
    mixed_twins: Twins, number: int, steps: list[Any], who: str
):
    assert_same(mixed_twins, number, steps, who)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None, suppress_health_check=QUIET)
@given(st.integers(0, 3), SEQUENCES, READERS)
def test_what_a_grant_hides_makes_no_difference_for_long(
    twins: Twins, number: int, steps: list[Any], who: str
):
    assert_same(twins, number, steps, who)


def test_the_twins_do_differ_in_what_is_hidden(twins: Twins):
    """Otherwise the master test would prove nothing."""
    for pair in twins.pairs:
        counts = [
            twins.runner.run(twin.program.get("/v1/streams", twin.program.owner)).body["data"]
            for twin in pair
        ]
        assert [row["record_count"] for row in counts[0]] != [row["record_count"] for row in counts[1]]


def test_the_twins_do_answer(twins: Twins, tmp_path: Path):
    """And neither would it if everything were refused."""
    steps = [("/v1/streams/messages/records", []), ("/v1/search", [("q", "amber")])]
    for twin in twins.pairs[0]:
        for who in ("timed", "blind", "chosen"):
            answer = twins.runner.run(twin.program.get("/v1/streams/messages/records", twin.tokens[who]))
            assert answer.body["data"]
    assert twins.transcripts(0, steps, "timed")[0]


def questions(count: int) -> list[tuple[int, list[Any], str]]:
    """Draw what the master test would ask, without asking."""
    drawn: list[tuple[int, list[Any], str]] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 3), SEQUENCES, READERS)
    def draw(number: int, steps: list[Any], who: str) -> None:
        drawn.append((number, steps, who))

    draw()
    return drawn


def test_every_reading_endpoint_is_asked_with_every_parameter():
    asked = {
        (endpoint.id, re.split(r"[\[]", name)[0])
        for _, steps, _ in questions(1500)
        for path, pairs_given in steps
        for endpoint in READS
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", endpoint.path), path)
        for name in ("", *(name for name, _ in pairs_given))
    }
    assert asked >= {(one.id, name) for one in READS for name in ("", *(param.name for param in one.params))}


def test_every_kind_of_leak_is_planted():
    """The kinds of the threat list; more may be planted, none may be missing."""
    kinds = {
        "filter": "filter_on_a_hidden_field",
        "sort": "order_by_a_hidden_field",
        "group": "group_by_a_hidden_field",
        "count": "count_what_is_outside_the_time",
        "snippet": "snippet_with_hidden_text",
        "rank": "rank_by_hidden_text",
        "cursor": "cursor_that_holds_a_hidden_number",
        "error text": "error_that_tells_hidden_from_missing",
        "schema": "schema_with_the_size_of_everything",
        "has_more": "has_more_because_of_hidden_records",
        "rules": "cover_what_rules_hide",
    }
    assert set(kinds.values()) <= {leak.__name__ for leak in LEAKS}


@pytest.fixture(scope="module")
def asked() -> list[tuple[int, list[Any], str]]:
    return questions(450)


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_the_master_test_finds_a_planted_leak(
    twins: Twins, asked: list[tuple[int, list[Any], str]], monkeypatch: pytest.MonkeyPatch, leak: Any
):
    leak(monkeypatch)
    twins.forget()
    try:
        assert any(
            one != other
            for number, steps, who in asked
            for one, other in [twins.transcripts(number, steps, who)]
        )
    finally:
        monkeypatch.undo()
        twins.forget()
