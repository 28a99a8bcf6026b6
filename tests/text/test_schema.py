from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from headgate.text.schema import read_schema_place, stream_text
from headgate.text.schema_index import index_text
from headgate.text.writing import SCHEMA_INDEX_TEXT, SCHEMA_NAMES_TEXT, SCHEMA_STREAM_TEXT, size


def connector(key: str, streams: list[dict[str, object]]) -> dict[str, object]:
    connections = [{"connection_id": f"cin_{key}", "display_name": f"My {key}"}]
    return {"connector_key": key, "streams": streams, "granted_connections": connections}


def stream(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "primary_key": ["id"], "cursor_field": "sent_at", **more}


REFUSED = {"declared": True, "usable": False, "reason": "not_granted"}
MESSAGES = stream(
    "messages",
    field_capabilities={
        "id": "t=string,eq",
        "sent_at": "t=string,r=gte|lt,a=group_by_time",
        "text": "t=string,lex",
    },
    expand_capabilities=[{"name": "attachments", "default_limit": 10, "max_limit": 50, "usable": True}],
)


@pytest.mark.requirement("S2-26", "S2-31", "S2-32")
@pytest.mark.parametrize("count", [1, 24, 80])
def test_the_index_names_every_stream_and_the_next_call(count: int):
    names = [f"stream_{n}" for n in range(count)]
    shown = index_text({"connectors": [connector("slack", [stream(name) for name in names])]})
    assert all(re.search(rf"\b{name}\b", shown) for name in names)
    assert "cin_slack" in shown
    assert "next: schema(stream[, connection_id])" in shown
    assert size(shown) <= SCHEMA_INDEX_TEXT


def test_long_stream_names_are_all_in_the_index():
    names = [f"stream {n} " + "x" * 500 for n in range(30)]
    shown = index_text({"connectors": [connector("slack", [stream(name) for name in names])]})
    assert all(json.dumps(name) in shown for name in names)


@pytest.mark.requirement("S2-33", "S2-36", "S2-37")
def test_a_scoped_text_gives_each_source_a_line_and_a_legend():
    document = {"connectors": [connector("slack", [MESSAGES]), connector("mail", [stream("messages")])]}
    shown = stream_text(document, {"connection_id": "cin_slack"})
    lines = [line for line in shown.splitlines() if line.startswith("stream ")]
    assert len(lines) == 2
    assert shown.splitlines()[1].startswith("field_capability_legend ")
    for token in (
        'name="messages"',
        'connector_key="slack"',
        'connections={connection_id:cin_slack,display_name:"My slack"}',
        "fields=id[t=string,eq];sent_at[t=string,r=gte|lt];text[t=string,lex]",
        "projection=fields",
        "sort=sent_at|-sent_at",
        "count=none|estimated|exact",
        "expand=attachments(10..50)",
        "search=lexical",
        "aggregations=count;group_by_time=sent_at",
    ):
        assert token in lines[0]


@pytest.mark.requirement("S2-33")
def test_a_name_that_many_connectors_share_has_the_fields_of_each():
    sources = [
        connector(
            f"kind{n}", [stream("messages", field_capabilities={f"feld_{n}_名": "t=string,a=group_by"})]
        )
        for n in range(12)
    ]
    shown = stream_text({"connectors": sources})
    lines = [line for line in shown.splitlines() if line.startswith("stream ")]
    assert len(lines) == 12
    for n, line in enumerate(lines):
        assert f'name="messages" connector_key="kind{n}"' in line
        assert f"connection_id:cin_kind{n}," in line
        assert f'fields="feld_{n}_名"[t=string] ' in line
        assert f'group_by="feld_{n}_名"' in line


def test_a_stream_with_many_fields_names_them_within_the_budget():
    many = {f"field_{n}": "t=string,eq,lex,a=count_distinct|group_by" for n in range(200)}
    shown = stream_text({"connectors": [connector("x", [stream("s", field_capabilities=many)])]})
    assert all(f"field_{n}" in shown for n in range(200))
    assert size(shown) <= SCHEMA_STREAM_TEXT


def test_a_full_schema_has_the_flags_of_its_usable_capabilities():
    full = {"type": "string", "exact_filter": {"declared": True, "usable": True}, "lexical_search": REFUSED}
    document = {"connectors": [connector("x", [stream("s", field_capabilities={"id": full})])]}
    assert "fields=id[t=string,eq] " in stream_text(document)


def test_a_stream_that_is_not_granted_points_to_the_index():
    assert "call schema() for the index" in stream_text({"connectors": []})


def many_sources(count: int) -> dict[str, object]:
    """A stream of one shape in many grants, each with one connection."""
    sources = []
    for n in range(count):
        one = connector("mail", [{**MESSAGES, "record_count": 2}])
        one["granted_connections"] = [{"connection_id": f"cin_{n:024}", "display_name": f"Mailbox {n}"}]
        sources.append(one)
    return {"connectors": sources}


@pytest.mark.parametrize("count", [9, 24, 175])
def test_every_connection_is_named_and_fields_of_one_shape_are_printed_once(count: int):
    shown = stream_text(many_sources(count))
    assert set(re.findall(r"cin_\d{24}", shown)) == {f"cin_{n:024}" for n in range(count)}
    assert shown.count("fields=id[") == 1
    assert f" records={2 * count} " in shown
    assert shown.splitlines()[-1].startswith("next: ")
    assert size(shown) <= SCHEMA_STREAM_TEXT


@pytest.mark.parametrize("is_same", [False, True])
def test_sources_of_other_connectors_that_allow_the_same_have_their_fields_printed_once(is_same: bool):  # noqa: FBT001 - a case
    sources = [
        connector(f"kind{n}", [stream("s", field_capabilities={f"a{0 if is_same else n}": "t=string,eq"})])
        for n in range(9)
    ]
    lines = [line for line in stream_text({"connectors": sources}).splitlines() if line.startswith("stream ")]
    assert len(lines) == 9
    assert "fields=a0[t=string,eq] projection=fields" in lines[0]
    assert all(("fields=as connection_id:cin_kind0" in line) == is_same for line in lines[1:])
    assert all("t=string" in line for line in lines[1:]) != is_same


def called(document: dict[str, object]) -> list[str]:
    """Give the texts of a stream's schema, by following every call that they print."""
    asked: list[str | None] = [None]
    texts: list[str] = []
    for cursor in asked:
        place = None if cursor is None else read_schema_place(cursor)
        shown = stream_text(document, {"stream": "s"}, place=place)
        assert shown is not None
        assert size(shown) <= SCHEMA_STREAM_TEXT
        assert shown.splitlines()[-1].startswith("next: ")
        texts.append(shown)
        calls = [json.loads(call) for call in re.findall(r"schema args=(\{.*\})$", shown, re.MULTILINE)]
        assert all(call["stream"] == "s" for call in calls)
        asked += [call["cursor"] for call in calls if call["cursor"] not in asked]
    return texts


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 175), st.integers(1, 3)), min_size=1, max_size=16),
    st.sampled_from([0, 30, 200]),
)
def test_every_connection_and_every_field_is_read_by_the_printed_calls(
    shapes: list[tuple[int, int, int]], label_chars: int
):
    expected_fields: set[str] = set()
    expected_connections: set[str] = set()
    sources: list[dict[str, object]] = []
    for number, (fields, connections, kind) in enumerate(shapes):
        flags = {f"field_{number}_{n}": "t=string,eq,lex,a=group_by" for n in range(fields)}
        named = [f"cin_{number:04}_{n:018}" for n in range(connections)]
        one = connector(f"kind{kind}", [stream("s", field_capabilities=flags)])
        label = {"display_name": "L" * label_chars} if label_chars else {}
        one["granted_connections"] = [{"connection_id": name, **label} for name in named]
        sources.append(one)
        expected_fields |= set(flags)
        shown_label = "L" * label_chars if label_chars <= 60 else "L" * 59 + "…"
        suffix = f',display_name:"{shown_label}"' if label_chars else ""
        expected_connections |= {f"{{connection_id:{name}{suffix}}}" for name in named}
    text = "\n".join(called({"connectors": sources}))
    found = re.findall(r"(field_\d+_\d+)\[t=string,eq,lex(?:,a=group_by)?\]", text)
    assert set(found) == expected_fields
    aggregated = re.findall(r"group_by=([\w,]+)", text) + re.findall(
        r"(field_\d+_\d+)\[[^]]*a=group_by\]", text
    )
    assert {path for paths in aggregated for path in paths.split(",")} >= expected_fields
    assert set(re.findall(r"\{connection_id:[^}]*\}", text)) == expected_connections


@pytest.mark.parametrize("cursor", ["sources:9", "connections:0:1", "connections:7:0", "fields:0:3"])
def test_a_place_that_is_not_there_is_not_read(cursor: str):
    document = {"connectors": [connector("slack", [MESSAGES])]}
    assert stream_text(document, place=read_schema_place(cursor)) is None
    assert read_schema_place(cursor + "x") is None


def test_a_hundred_connections_are_named_before_the_first_call_for_more():
    flags = {f"field_{n}": "t=string,eq,lex,a=count_distinct|group_by" for n in range(400)}
    one = connector("mail", [stream("s", field_capabilities=flags)])
    one["granted_connections"] = [
        {"connection_id": f"cin_{n:024}", "display_name": f"A mailbox of mine {n}"} for n in range(175)
    ]
    first = called({"connectors": [one]})[0]
    assert len(set(re.findall(r"cin_\d{24}", first))) >= 100


def test_connectors_that_do_not_fit_are_counted_with_the_call_that_describes_them():
    sources = [
        connector(
            f"kind{n}",
            [stream("s", field_capabilities={f"field_{n}_{k}": "t=string,eq,a=group_by" for k in range(40)})],
        )
        for n in range(90)
    ]
    shown = stream_text({"connectors": sources}, {"stream": "s"})
    printed = len(re.findall(r"^stream name=", shown, re.MULTILINE))
    left = int(re.search(r"more_sources=(\d+) do not fit: schema args=", shown)[1])
    assert printed + left == 90
    assert shown.splitlines()[-1].startswith("next: ")
    assert size(shown) <= SCHEMA_STREAM_TEXT


@pytest.mark.parametrize(("count", "chars"), [(120, 20), (40, 1000), (2000, 250)])
def test_every_stream_is_named_by_the_index_and_the_calls_that_it_prints(count: int, chars: int):
    names = [f"stream_{n:04}_" + "x" * chars for n in range(count)]
    document = {"connectors": [connector("slack", [stream(name) for name in names])]}
    found: set[str] = set()
    first = 0
    while True:
        shown = index_text(document, {"connector_key": "slack"}, first)
        assert size(shown) <= SCHEMA_INDEX_TEXT + SCHEMA_NAMES_TEXT + 500
        assert shown.splitlines()[-1].startswith("next: ")
        found |= set(re.findall(r"stream_\d{4}_x+", shown))
        following = re.search(r"^more_names=\d+ do not fit: schema args=(.*)$", shown, re.MULTILINE)
        if following is None:
            break
        call = json.loads(following[1])
        assert call["connector_key"] == "slack"
        first = read_schema_place(call["cursor"]).first
    assert found == set(names)
