from __future__ import annotations

import json
import re

import pytest

from headgate.text.budget import SCHEMA_INDEX_TEXT, SCHEMA_STREAM_TEXT, size
from headgate.text.schema import index_text, stream_text


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
    shown = stream_text(document, connection_id="cin_slack")
    lines = [line for line in shown.splitlines() if line.startswith("stream ")]
    assert len(lines) == 2
    assert shown.splitlines()[1].startswith("field_capability_legend ")
    for token in (
        'name="messages"',
        'connector_key="slack"',
        'connections={connection_id:cin_slack,display_name:"My slack"}',
        "fields=id[t=string,eq];sent_at[t=string,r=gte|lt,a=group_by_time];text[t=string,lex]",
        "projection=fields",
        "sort=sent_at|-sent_at",
        "count=none|estimated|exact",
        "expand=attachments(10..50)",
        "search=lexical",
        "aggregations=count;group_by_time=sent_at",
    ):
        assert token in lines[0]


def test_a_stream_with_many_fields_names_them_within_the_budget():
    many = {f"field_{n}": "t=string,eq,lex,a=count_distinct|group_by" for n in range(200)}
    shown = stream_text(
        {"connectors": [connector("x", [stream("s", field_capabilities=many)])]}, connection_id=None
    )
    assert all(f"field_{n}" in shown for n in range(200))
    assert size(shown) <= SCHEMA_STREAM_TEXT


def test_a_full_schema_has_the_flags_of_its_usable_capabilities():
    full = {"type": "string", "exact_filter": {"declared": True, "usable": True}, "lexical_search": REFUSED}
    document = {"connectors": [connector("x", [stream("s", field_capabilities={"id": full})])]}
    assert "fields=id[t=string,eq] " in stream_text(document, connection_id=None)


def test_a_stream_that_is_not_granted_points_to_the_index():
    assert "call schema() for the index" in stream_text({"connectors": []}, connection_id=None)


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
    shown = stream_text(many_sources(count), connection_id=None)
    assert set(re.findall(r"cin_\d{24}", shown)) == {f"cin_{n:024}" for n in range(count)}
    assert shown.count("fields=id[") == 1
    assert f" records={2 * count} " in shown
    assert shown.splitlines()[-1].startswith("next: ")
    assert size(shown) <= SCHEMA_STREAM_TEXT


def test_connectors_that_do_not_fit_are_counted_with_the_call_that_describes_them():
    many = {f"field_{n}": "t=string,eq,lex,a=count_distinct|group_by" for n in range(40)}
    sources = [connector(f"kind{n}", [stream("s", field_capabilities=many)]) for n in range(90)]
    shown = stream_text({"connectors": sources}, connection_id=None)
    printed = len(re.findall(r"^stream name=", shown, re.MULTILINE))
    left = int(re.search(r"more_sources=(\d+) do not fit; schema\(stream, connection_id\)", shown)[1])
    assert printed + left == 90
    assert shown.splitlines()[-1].startswith("next: ")
    assert size(shown) <= SCHEMA_STREAM_TEXT
