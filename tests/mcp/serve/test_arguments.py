from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.model.ids import RecordRef, format_result_id
from headgate.model.query import (
    ChangesQuery,
    ExactFilter,
    ExpandRequest,
    RangeFilter,
    SearchMode,
    SearchQuery,
)
from tests.mcp.serve.prepared import HANDLES, CountingPort, found, names_the_key, page, run, window

WRONG: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("schema", {"detail": "full"}, "invalid_request", "detail"),
    ("schema", {"detail": "huge"}, "invalid_request", "detail"),
    ("schema", {"stream": "../x"}, "invalid_request", "stream"),
    ("schema", {"profile": "core"}, "invalid_request", "profile"),
    ("query_records", {}, "invalid_request", "stream"),
    ("query_records", {"stream": "messages", "limit": 101}, "invalid_request", "limit"),
    ("query_records", {"stream": "messages", "limit": 0}, "invalid_request", "limit"),
    ("query_records", {"stream": "messages", "limit": "5"}, "invalid_request", "limit"),
    (
        "query_records",
        {"stream": "messages", "connector_instance_id": "x"},
        "invalid_request",
        "connector_instance_id",
    ),
    ("query_records", {"stream": "messages", "filter": "a=b"}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a[gte]": 1}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a": {}}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a": {"like": 1}}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a": {"gte": True}}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a": None}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "filter": {"a": [1]}}, "invalid_filter", "filter"),
    ("query_records", {"stream": "messages", "expand": "x"}, "invalid_expand", "expand"),
    ("query_records", {"stream": "messages", "expand_limit": {}}, "invalid_expand", "expand_limit"),
    ("query_records", {"stream": "messages", "expand": ["a[b]"]}, "invalid_expand", "expand"),
    (
        "query_records",
        {"stream": "m", "expand": ["a"], "expand_limit": {"a": 0}},
        "invalid_expand",
        "expand_limit",
    ),
    ("query_records", {"stream": "m", "expand_limit": {"a": 1}}, "invalid_expand", "expand_limit"),
    ("query_records", {"stream": "m", "changes_since": "beginning", "sort": "a"}, "invalid_request", "sort"),
    (
        "query_records",
        {"stream": "m", "changes_since": "beginning", "expand": ["a"]},
        "invalid_expand",
        "expand",
    ),
    ("aggregate", {"stream": "messages", "metric": "median"}, "invalid_request", "metric"),
    ("aggregate", {"stream": "messages"}, "invalid_request", "metric"),
    ("search", {"q": ""}, "invalid_request", "query"),
    ("search", {}, "invalid_request", "query"),
    ("search", {"query": ""}, "invalid_request", "query"),
    ("search", {"q": "x", "query": "x"}, "invalid_request", "query"),
    ("search", {"q": "x", "mode": "psychic"}, "invalid_request", "mode"),
    ("search", {"q": "x", "filter": {"a": 1}}, "invalid_filter", "filter"),
    ("fetch", {}, "invalid_request", "id"),
    (
        "fetch",
        {"id": "cin_a/orders:o1", "connection_id": "cin_b"},
        "conflicting_connection_id",
        "connection_id",
    ),
    ("read_record_field", {"id": "c/m:1"}, "invalid_request", "field_path"),
    ("read_record_field", {"id": "m:1", "field_path": "t"}, "invalid_field_window_selector", "id"),
    ("read_record_field", {"id": "c/../m:1", "field_path": "t"}, "invalid_result_id", "id"),
    ("read_record_field", {"field_path": "t"}, "invalid_field_window_selector", None),
    (
        "read_record_field",
        {"stream": "m", "record_id": "1", "field_path": "t"},
        "invalid_field_window_selector",
        None,
    ),
    (
        "read_record_field",
        {"id": "c/m:1", "stream": "m", "field_path": "t"},
        "invalid_field_window_selector",
        "id",
    ),
    (
        "read_record_field",
        {"id": "c/m:1", "field_path": "t", "limit_chars": 16385},
        "invalid_request",
        "limit_chars",
    ),
]


@pytest.mark.requirement("S2-14", "S2-24", "S2-39", "S1-22", "S1-23")
@pytest.mark.parametrize(("tool", "arguments", "code", "param"), WRONG)
def test_wrong_arguments_have_a_code_and_cause_no_read(
    tool: str, arguments: dict[str, Any], code: str, param: str | None
):
    port = CountingPort()
    outcome = run(port, tool, **arguments)
    assert outcome.is_error
    error = outcome.structured["error"]
    assert (error["type"], error["code"], error.get("param")) == ("adapter_error", code, param)
    assert error["hint"]
    assert port.calls == []


@pytest.mark.requirement("S3-10", "S3-11")
@pytest.mark.parametrize("extra", [{"offset_chars": 0}, {"q": "x"}, {"before_chars": 1}, {"after_chars": 1}])
def test_a_cursor_excludes_every_other_window(extra: dict[str, Any]):
    port = CountingPort()
    outcome = run(port, "read_record_field", id="c/m:1", field_path="t", cursor="fw1.x", **extra)
    assert outcome.structured["error"]["code"] == "invalid_field_window_selector"
    assert "cursor excludes" in outcome.structured["error"]["message"]
    assert port.calls == []


@pytest.mark.parametrize(
    "extra", [{"q": "x", "offset_chars": 0}, {"before_chars": 1}, {"after_chars": 1, "offset_chars": 1}]
)
def test_two_windows_at_once_are_refused(extra: dict[str, Any]):
    port = CountingPort()
    outcome = run(port, "read_record_field", id="c/m:1", field_path="t", **extra)
    assert outcome.structured["error"]["code"] == "invalid_field_window_selector"
    assert port.calls == []


@pytest.mark.requirement("S2-40")
def test_the_refusal_of_a_full_schema_without_a_stream_names_the_scoped_call():
    error = run(CountingPort(), "schema", detail="full").structured["error"]
    assert 'schema(stream, connection_id, detail: "full")' in error["hint"]


BAD_IDS = [
    *("cin_aaa/orders:..", "cin_aaa/orders:a..b", "cin_aaa/..:o1", "../orders:o1", "..:o1", "orders:."),
    *("cin_aaa/orders:../../x", "../c/o:1", "cin_aaa/", "/orders:o1", "cin_aaa/orders", "a/b/o:1"),
    *(
        "orders:",
        ":o1",
        "x",
        "c/o:a\\b",
        "pdpp://record/",
        "pdpp://record/rh1.AAAA",
        "pdpp://record/..%2fx:y",
    ),
]


@pytest.mark.requirement("S1-11", "S1-24", "S1-25")
@pytest.mark.parametrize("bad", BAD_IDS)
def test_malformed_ids_are_refused_without_a_read(bad: str):
    port = CountingPort()
    outcome = run(port, "fetch", id=bad)
    assert outcome.structured["error"]["code"] == "invalid_result_id"
    assert port.calls == []


@given(st.text(max_size=40))
def test_no_id_breaks_the_parser(text: str):
    port = CountingPort()
    outcome = run(port, "read_record_field", id=text, field_path="t", limit_chars=1, cursor="c", q="x")
    assert outcome.is_error
    assert port.calls == []


def test_filters_and_expansions_become_a_query():
    port = CountingPort(records=page())
    run(
        port,
        "query_records",
        stream="messages",
        filter={"channel": "general", "sent_at": {"gte": "2026-01-01", "lt": "2026-02-01"}, "read": True},
        expand=["attachments"],
        expand_limit={"attachments": 3},
        fields=["id"],
        sort="-sent_at",
        limit=None,
    )
    ((_, query),) = port.calls
    assert query.filters == (
        ExactFilter("channel", "general"),
        RangeFilter("sent_at", "gte", "2026-01-01"),
        RangeFilter("sent_at", "lt", "2026-02-01"),
        ExactFilter("read", True),
    )
    assert query.expand == (ExpandRequest("attachments", 3),)
    assert (query.sort, query.limit, query.fields) == ("-sent_at", 25, ("id",))


@pytest.mark.parametrize("name", ["q", "query"])
def test_a_search_takes_its_words_from_either_name(name: str):
    port = CountingPort(search=found())
    run(port, "search", **{name: "bridge"})
    both = SearchQuery("bridge", limit=10, mode=SearchMode.HYBRID, or_words=True)
    assert port.calls == [("search", both)]


def test_a_search_that_names_a_mode_has_it_alone():
    port = CountingPort(search=found())
    run(port, "search", q="bridge", mode="lexical")
    assert port.calls == [("search", SearchQuery("bridge", limit=10))]


def test_changes_become_a_changes_query():
    port = CountingPort(records=page())
    run(port, "query_records", stream="messages", changes_since="beginning", cursor="ch1.x", limit=5)
    assert port.calls == [("records", ChangesQuery("messages", "beginning", limit=5, cursor="ch1.x"))]


def test_a_window_around_words_has_default_context():
    port = CountingPort(window=window("x"))
    run(port, "read_record_field", id="cin_a/messages:m1", field_path="text", q="bridge")
    ((_, query),) = port.calls
    assert (query.q, query.before_chars, query.after_chars) == ("bridge", 2048, 2048)


@pytest.mark.requirement("S1-03", "S1-06", "S1-07", "S1-08", "S1-10", "S1-20")
@pytest.mark.parametrize(
    ("arguments", "connection", "key"),
    [
        ({"id": "cin_a/orders:o1"}, "cin_a", "o1"),
        ({"id": "Cin_A-9/orders:O1"}, "Cin_A-9", "O1"),
        ({"id": "Über~1/orders:o1"}, "Über~1", "o1"),
        ({"id": "cin_a/orders:o1", "connection_id": "cin_a"}, "cin_a", "o1"),
        ({"id": "orders:o1"}, None, "o1"),
        ({"id": "orders:o1", "connection_id": "cin_a"}, "cin_a", "o1"),
        ({"id": 'orders:["a:b","c"]'}, None, '["a:b","c"]'),
        ({"id": "pdpp://record/cin_a%2Forders%3Ao1"}, "cin_a", "o1"),
    ],
)
def test_ids_of_both_grammars_are_read_unchanged(arguments: dict[str, Any], connection: str | None, key: str):
    port = CountingPort()
    run(port, "fetch", **arguments)
    ((name, query),) = port.calls
    assert (name, query.stream, query.connection_id, query.record_id) == ("record", "orders", connection, key)


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)


@pytest.mark.requirement("S1-01", "S1-05")
@given(PARTS, PARTS, PARTS)
def test_every_record_has_an_id_that_leads_back_to_it(connection: str, stream: str, key: str):
    text = HANDLES.result_id(RecordRef(connection, stream, key))
    # Only a connection that the grammar of ids cannot hold is left out: it is printed beside the id.
    is_beside = format_result_id(RecordRef(connection, "s", "r")) is None and not text.startswith("pdpp://")
    again = HANDLES.read_id(text)
    assert (again.connection_id, again.stream) == (None if is_beside else connection, stream)
    assert names_the_key(again, key)
    assert " ".join(text.split()) == text
