from __future__ import annotations

import json
import re

import msgspec
import pytest

from headgate.errors import AmbiguousSchemaDetail
from tests.mcp.serve.odd import declare, grant_of, stream_of
from tests.mcp.serve.prepared import CountingPort, run
from tests.mcp.serve.test_world import in_world
from tests.mcp.serve.world import World


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
@pytest.mark.parametrize("count", [1, 3, 80])
def test_without_a_stream_there_is_an_index_and_no_fields(count: int):
    outcome = run(CountingPort(schema=document(*[f"stream_{n}" for n in range(count)])), "schema")
    data = outcome.structured["data"]
    assert (data["object"], data["detail"]) == ("schema", "compact")
    assert "streams" not in data
    assert "data" not in data
    assert "field_3" not in json.dumps(outcome.structured) + outcome.text
    assert len(json.dumps(outcome.structured).encode()) < 60_000


def row(name: str, connection: str) -> dict[str, object]:
    connections = [{"connection_id": connection, "display_name": "An account of mine"}]
    return stream(
        name, connection_id=connection, record_count=7, granted=True, granted_connections=connections
    )


def connector(key: str, *streams: dict[str, object]) -> dict[str, object]:
    return {
        "object": "connector",
        "connector_key": key,
        "connector_id": key,
        "source": {"kind": "connector", "id": f"https://registry.example/connectors/{key}"},
        "display_name": f"Connector {key}",
        "stream_count": len(streams),
        "granted_connections": [{"connection_id": f"cin_{key}", "display_name": "An account of mine"}],
        "streams": list(streams),
    }


def many(shape: str) -> list[dict[str, object]]:
    names = [f"a rather long stream name {n}" for n in range(900)]
    if shape == "one connector":
        return [connector("slack", *(row(name, "cin_" + "a" * 24) for name in names))]
    if shape == "own connections":
        return [connector("slack", *(row(name, f"cin_{n:024}") for n, name in enumerate(names)))]
    if shape == "ninety connectors":
        return [connector(f"k{n}", *(row(name, f"cin_{n}") for name in names[n::90])) for n in range(90)]
    return [connector(f"k{n}", row(name, f"cin_{n}")) for n, name in enumerate(names)]


@pytest.mark.requirement("S2-26", "S2-27", "S2-32")
@pytest.mark.parametrize(
    "shape", ["one connector", "own connections", "ninety connectors", "a connector for each"]
)
def test_an_index_of_very_many_streams_fits_and_names_every_one(shape: str):
    connectors = many(shape)
    names = [str(one["name"]) for source in connectors for one in source["streams"]]
    outcome = run(CountingPort(schema={"object": "schema", "connectors": connectors}), "schema")
    assert len(msgspec.json.encode(outcome.wire())) <= 100_000
    assert len(msgspec.json.encode(outcome.structured)) < 60_000
    index = "\n".join(line for line in outcome.text.splitlines() if line.startswith("stream_index"))
    assert {name for name in names if json.dumps(name) in index} == set(names)
    assert "reduced" in outcome.structured["data"]["meta"]


def test_names_that_cannot_all_fit_are_counted_and_the_way_to_them_is_printed():
    rows = [row(f"{n:04}" + "x" * 250, f"cin_{n % 20}") for n in range(900)]
    body = {"object": "schema", "connectors": [connector("slack", *rows)]}
    outcome = run(CountingPort(schema=body), "schema")
    assert len(msgspec.json.encode(outcome.wire())) <= 100_000
    found: set[str] = set()
    while True:
        index = next(line for line in outcome.text.splitlines() if line.startswith("stream_index"))
        found |= set(index.partition("streams=")[2].split("|"))
        more = re.search(r"^more_names=\d+ do not fit: schema args=(.*)$", outcome.text, re.MULTILINE)
        if more is None:
            break
        outcome = run(CountingPort(schema=body), "schema", **json.loads(more[1]))
        assert len(msgspec.json.encode(outcome.wire())) <= 100_000
    assert found == {str(row["name"]) for row in rows}
    assert outcome.structured["data"]["stream_count"] == 900


@pytest.mark.parametrize(
    "given", [{"cursor": "x"}, {"cursor": "sources:0"}, {"stream": "m", "cursor": "streams:1"}]
)
def test_a_cursor_that_is_none_of_a_schema_causes_no_read(given: dict[str, str]):
    port = CountingPort(schema=document("m"))
    error = run(port, "schema", **given).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_cursor", "cursor")
    assert port.calls == []


@pytest.mark.requirement("S1-09", "S2-42")
@pytest.mark.parametrize("is_one_connector", [True, False])
def test_with_175_connections_in_24_grants_an_ambiguity_leads_to_every_connection(is_one_connector: bool):  # noqa: FBT001 - a case
    keys = ["odd"] if is_one_connector else ["odd", "even", "prime"]

    async def work(w: World) -> None:
        names = {key: [f"{key} {n}" for n in range(175 // len(keys) + 1)][: 175 // len(keys)] for key in keys}
        names[keys[0]] += [f"{keys[0]} more {n}" for n in range(175 - sum(map(len, names.values())))]
        for key in keys:
            await declare(w, key, stream_of("things", {"note": {}}), connections=names[key])
        grants = [
            grant_of(w, key, {"things": ("id", "note")}, names[key][at :: 24 // len(keys)], number=at)
            for key in keys
            for at in range(24 // len(keys))
        ]
        assert len(grants) == 24
        access = w.access(*grants)
        for tool, given in (("query_records", {"stream": "things"}), ("fetch", {"id": "things:r1"})):
            if tool == "fetch":
                for name in w.connections:
                    await w.add(name, "things", {"id": "r1", "note": "n"})
            refused = await w.call(access, tool, **given)
            error = refused.structured["error"]
            assert error["code"] == "ambiguous_connection", error
            call = json.loads(re.search(r"schema with (\{.*?\})", error["discovery_hint"])[1])
            assert call == {"stream": "things"}
        asked, found = [call], set[str]()
        for args in asked:
            shown = await w.call(access, "schema", **args)
            assert len(msgspec.json.encode(shown.wire())) <= 60_000
            assert len(shown.text.encode()) <= 12_000
            found |= set(re.findall(r"connection_id:([a-z0-9-]+)", shown.text))
            asked += [
                json.loads(one) for one in re.findall(r"schema args=(\{.*\})$", shown.text, re.MULTILINE)
            ]
        assert len(found) == 175
        assert found == set(w.connections.values())
        chosen = await w.call(access, "query_records", stream="things", connection_id=min(found))
        assert not chosen.is_error

    in_world(work, ())


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


@pytest.mark.requirement("S2-29", "S2-35", "S2-46")
def test_with_a_stream_there_are_flags_and_their_legend():
    port = CountingPort(schema=document("messages"))
    outcome = run(port, "schema", stream="messages", connection_id="cin_a")
    ((_, query),) = port.calls
    assert (query.stream, query.connection_id, query.full) == ("messages", "cin_a", False)
    assert "field_29[t=string,eq,lex]" in outcome.text
    assert "field_capability_legend" in outcome.text
    assert outcome.structured["data"]["field_capability_legend"]["eq"]
    assert "streams" not in outcome.structured["data"]
    assert len(json.dumps(outcome.structured).encode()) < 6_000


@pytest.mark.requirement("S2-42")
def test_an_ambiguous_full_schema_says_what_to_choose_from():
    options = [{"connection_id": "cin_a", "connector_key": "slack", "stream": "messages"}]
    error = AmbiguousSchemaDetail(data={"retry_with": "connection_id", "available_connections": options})
    outcome = run(CountingPort(schema=error), "schema", stream="messages", detail="full")
    error = outcome.structured["error"]
    assert (error["code"], error["retry_with"]) == ("ambiguous_schema_detail", "connection_id")
    assert error["available_connections"] == options
    assert outcome.structured["http_status"] == 409


@pytest.mark.parametrize("fields", [30, 400])
@pytest.mark.parametrize("sources", [1, 175])
def test_a_stream_of_many_sources_and_fields_has_at_most_24_000_bytes(sources: int, fields: int):
    flags = {f"field_{n}": "t=string,eq,lex,a=group_by" for n in range(fields)}
    connectors = [
        {
            "connector_key": "mail",
            "granted_connections": [{"connection_id": f"cin_{n:024}", "display_name": f"Mailbox {n}"}],
            "streams": [stream("messages", field_capabilities=flags)],
        }
        for n in range(sources)
    ]
    outcome = run(CountingPort(schema={"connectors": connectors}), "schema", stream="messages")
    assert len(json.dumps(outcome.wire()).encode()) <= 24_000
    assert all(f"cin_{n:024}" in outcome.text for n in range(sources))
    assert all(f"field_{n}" in outcome.text for n in range(fields))
    data = outcome.structured["data"]
    assert ("reduced" in data.get("meta", {})) == (sources > 1 or fields > 30)
    assert data.get("listing", outcome.text) == outcome.text
