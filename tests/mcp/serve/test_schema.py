from __future__ import annotations

import json

import pytest

from headgate.errors import AmbiguousSchemaDetail
from tests.mcp.serve.prepared import CountingPort, run


def stream(name: str, **more: object) -> dict[str, object]:
    flags = {f"field_{n}": "t=string,eq,lex" for n in range(30)}
    return {"name": name, "cursor_field": "sent_at", "field_capabilities": flags, **more}


def document(*names: str) -> dict[str, object]:
    connector = {
        "object": "connector",
        "connector_key": "slack",
        "granted_connections": [{"connection_id": "cin_a"}],
        "streams": [stream(name) for name in names],
    }
    return {"object": "schema", "detail": "compact", "connectors": [connector], "streams": [stream("twin")]}


@pytest.mark.requirement("S2-23", "S2-27", "S2-28", "S2-30", "S2-45", "S2-46")
def test_without_a_stream_there_is_an_index_and_no_fields():
    outcome = run(CountingPort(schema=document(*[f"stream_{n}" for n in range(80)])), "schema")
    data = outcome.structured["data"]
    assert (data["object"], data["detail"]) == ("schema", "compact")
    assert "streams" not in data
    assert "data" not in data
    assert "field_3" not in json.dumps(outcome.structured) + outcome.text
    assert len(json.dumps(outcome.structured).encode()) < 60_000


def test_an_index_of_very_many_streams_is_reduced_to_names():
    names = [f"a rather long stream name number {n}" for n in range(900)]
    outcome = run(CountingPort(schema=document(*names)), "schema")
    assert len(json.dumps(outcome.wire()).encode()) < 160_000
    assert all(name in outcome.text for name in names)
    assert "reduced" in outcome.structured["data"]["meta"]


@pytest.mark.requirement("S2-44")
@pytest.mark.parametrize("fields", [600, 3000])
def test_a_full_schema_fits_one_answer_or_is_refused_by_name(fields: int):
    full = document("messages")
    full["connectors"][0]["streams"][0]["schema"] = {"properties": {f"f{n}": "x" * 60 for n in range(fields)}}
    outcome = run(CountingPort(schema=full), "schema", stream="messages", detail="full")
    assert len(json.dumps(outcome.wire()).encode()) < 100_000
    assert outcome.is_error == (fields == 3000)
    if outcome.is_error:
        assert outcome.structured["error"]["code"] == "resource_limit"
        assert "compact" in outcome.text


@pytest.mark.requirement("S2-29", "S2-35")
def test_with_a_stream_there_are_flags_and_their_legend():
    port = CountingPort(schema=document("messages"))
    outcome = run(port, "schema", stream="messages", connection_id="cin_a")
    ((_, query),) = port.calls
    assert (query.stream, query.connection_id, query.full) == ("messages", "cin_a", False)
    assert "field_29[t=string,eq,lex]" in outcome.text
    assert "field_capability_legend" in outcome.text
    assert outcome.structured["data"]["field_capability_legend"]["eq"]
    assert len(json.dumps(outcome.structured).encode()) < 6_000


@pytest.mark.requirement("S2-42")
def test_an_ambiguous_full_schema_says_what_to_choose_from():
    options = [{"connection_id": "cin_a", "connector_key": "slack", "stream": "messages"}]
    error = AmbiguousSchemaDetail(data={"retry_with": "connection_id", "available_connections": options})
    outcome = run(CountingPort(schema=error), "schema", stream="messages", detail="full")
    told = outcome.structured["error"]
    assert (told["code"], told["retry_with"]) == ("ambiguous_schema_detail", "connection_id")
    assert told["available_connections"] == options
    assert outcome.structured["http_status"] == 409
