"""Promises over several calls: what one answer prints, compared with what the next call does."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from headgate.auth.credentials import home_credential_path, write_token
from headgate.errors import HeadgateError
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.tools import TOOLS
from headgate.model.grant import Access
from headgate.model.wire import Json
from headgate.text.writing import unfenced
from tests.mcp.serve.prepared import CountingPort, found, hit, page, record, run
from tests.mcp.serve.product import product
from tests.mcp.serve.test_world import in_world, mail, read
from tests.mcp.serve.world import World
from tests.stitched import StitchedAccount

OUTPUT = {tool["name"]: jsonschema.Draft202012Validator(tool["outputSchema"]) for tool in TOOLS}
ENCODED = base64.b64encode(bytes(range(256)) * 40).decode()
URL_SAFE = base64.urlsafe_b64encode(bytes(range(255, -1, -1)) * 42).decode()
END = "THE-VERY-END"


@pytest.mark.requirement("S1-04", "S1-27", "S1-28", "S1-35", "S1-36", "S2-55")
def test_every_printed_hit_is_the_result_at_its_place():
    async def work(w: World) -> None:
        keys = ["plain", '["a b","c]"]', "k" * 90, "a/b", "Ünï 世界"]
        rows = [
            {
                "id": key,
                "subject": f"Zebra {n}",
                "body": "zebra stripes " * 30,
                "sent_at": f"2026-07-0{n + 1}",
            }
            for n, key in enumerate(keys)
        ]
        await w.add("Home mail", "messages", *rows)
        access, cursor, seen = mail(w), {}, list[str]()
        while True:
            answer = await w.call(access, "search", q="zebra", limit=3, **cursor)
            printed = re.findall(r"^(\d)\. (.*)\n   .*\n   id=(.*)$", answer.text, re.MULTILINE)
            assert 'sources: "Home mail" (mail) ' in answer.text
            results, hits = answer.structured["results"], answer.structured["data"]["data"]
            assert len(printed) == len(results)
            for number, facts, printed_id in printed:
                result, shown = results[int(number) - 1], hits[int(number) - 1]
                assert printed_id == result["id"]
                assert f'"{result["title"]}"' in facts
                assert '"Home mail"' in facts
                assert shown["stream"] == "messages"
                assert result["title"] != shown["snippet"]["text"]
                opened = await w.call(access, "fetch", id=printed_id)
                assert opened.structured["title"] == result["title"]
                seen.append(shown["record_key"])
            going = re.search(r'next_cursor="([^"]+)"', answer.text)
            if going is None:
                break
            cursor = {"cursor": going[1]}
        assert sorted(seen) == sorted(keys)

    in_world(work)


@pytest.mark.requirement("S1-22", "S1-23")
@pytest.mark.parametrize("tool", ["fetch"])
def test_two_connections_in_one_call_are_both_named(tool: str):
    port = CountingPort(record=record())
    error = run(port, tool, id="cin_first/orders:o1", connection_id="cin_second").structured["error"]
    assert error["code"] == "conflicting_connection_id"
    assert "cin_first" in error["message"]
    assert "cin_second" in error["message"]
    assert error["hint"]
    assert port.calls == []


@pytest.mark.requirement("S1-10", "S1-20", "S1-21", "S2-74", "S2-75", "S2-77")
def test_a_small_package_is_listed_whole_and_each_entry_leads_on():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail"), w.grant("Village chat", grant_id="grt_2"))
        asked: list[tuple[str, Json]] = [
            ("query_records", {"stream": "messages"}),
            ("aggregate", {"stream": "messages", "metric": "count"}),
            ("fetch", {"id": "messages:m00001"}),
        ]
        for tool, arguments in asked:
            answer = await w.call(access, tool, **arguments)
            error = answer.structured["error"]
            assert (error["code"], error["retry_with"]) == ("ambiguous_connection", "connection_id")
            entries = error["available_connections"]
            assert {one["display_name"] for one in entries} == {"Home mail", "Village chat"}
            assert {one["grant_id"] for one in entries} == {"grt_1", "grt_2"}
            assert not any("truncated" in key or "omitted" in key for key in error)
            assert json.loads(answer.text) == answer.structured
            (chosen,) = [one for one in entries if one["connector_key"] == "mail"]
            again = await w.call(access, tool, **arguments, connection_id=chosen["connection_id"])
            assert not again.is_error
        with pytest.raises(HeadgateError) as raised:
            await read(w, access, "pdpp://stream/messages")
        assert raised.value.code == "ambiguous_connection"

    in_world(work)


@pytest.mark.requirement("S2-29", "S2-35", "S2-43")
def test_a_schema_of_one_source_tells_of_no_other():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"), w.grant("Village chat", grant_id="grt_2"))
        both = await w.call(access, "schema", stream="messages")
        assert len(re.findall(r"^stream ", both.text, re.MULTILINE)) == 2
        chosen = w.connections["Work mail"]
        one = await w.call(access, "schema", stream="messages", connection_id=chosen)
        assert len(re.findall(r"^stream ", one.text, re.MULTILINE)) == 1
        for name, connection in w.connections.items():
            assert (connection in json.dumps(one.wire())) == (name == "Work mail")

    in_world(work)


@pytest.mark.requirement("S2-56")
@pytest.mark.parametrize(
    "name", ["sent_at", "authored_at", "created_at", "source_created_at", "occurred_at", "updated_at"]
)
def test_a_record_is_dated_by_when_it_was_written_wherever_it_is_titled(name: str):
    authored, emitted = "2026-02-03T07:59:50Z", "2027-01-01T00:00:00Z"
    row = record(**{name: authored}) | {"emitted_at": emitted}
    opened = run(CountingPort(record=row), "fetch", id="cin_a/messages:m1").structured
    dated = [hit(), hit(data={name: authored}, previews={}), hit(**{name: authored})]
    for one in dated[1:]:
        if name != "authored_at" or "data" in one:
            del one["authored_at"]
    listed = run(CountingPort(search=found(*dated)), "search", q="x").structured["results"]
    titles = {opened["title"], *(one["title"] for one in listed)}
    assert titles == {f"Work Slack / messages / {authored}"}
    del row["data"][name]
    assert emitted in run(CountingPort(record=row), "fetch", id="cin_a/messages:m1").structured["title"]


@pytest.mark.requirement("S2-25", "S2-47")
@pytest.mark.parametrize(
    ("tool", "port", "arguments"),
    [("query_records", "records", {"stream": "messages"}), ("search", "search", {"q": "x"})],
)
def test_every_page_prints_its_cursor_bookmark_and_count(tool: str, port: str, arguments: Json):
    counts = {"records": {"kind": "estimated", "value": 4711}, "search": 4711}
    more = {"has_more": True, "next_cursor": "pg1.next", "next_changes_since": "ch1.mark"}
    body = (page(record()) if port == "records" else found(hit())) | more
    body["meta"] = {"count": counts[port]}
    text = run(CountingPort(**{port: body}), tool, **arguments).text
    assert 'next_cursor="pg1.next"' in text
    assert 'next_changes_since="ch1.mark"' in text
    assert re.search(r"count=\w+:4711", text)


@asynccontextmanager
async def long_letter(w: World) -> AsyncIterator[tuple[Access, str, str]]:
    body = "A zebra came. " + "It went on and on. " * 3000 + END
    row = {"id": "long", "subject": "A letter", "body": body, "sent_at": "2026-12-01T00:00:00Z"}
    await w.add("Home mail", "messages", row)
    yield mail(w), f"{w.connections['Home mail']}/messages:long", body


def rungs(outcome: Outcome) -> list[Json]:
    structured: Mapping[str, Any] = outcome.structured
    if "results" in structured:
        tool = structured["content_ladder"]["read_tool"]
        return [
            {"read": {"tool": tool, "args": {"id": result["id"], **one["read"]["args"]}}}
            for result in structured["results"]
            for one in result["match_windows"]
        ]
    if "metadata" in structured:
        return structured["metadata"]["content_ladder"]["field_windows"]
    ladder = structured["content_ladder"]
    return [
        {
            "read": {
                "tool": ladder["read_tool"],
                "args": {"id": entry["fetch_id"], "field_path": one["field_path"]},
            }
        }
        for entry in ladder["records"]
        for one in entry["field_windows"]
    ]


def call_from_text(tool: str, text: str) -> tuple[str, Json]:
    """Read the call for more of the first long field out of a text, as a client without structure does."""
    if tool == "fetch":
        (rung,) = json.loads(text)["metadata"]["content_ladder"]["field_windows"]
        return rung["read"]["tool"], rung["read"]["args"]
    if tool == "search":
        path, offset, record_id = re.search(
            r"\[(\S+): read from (\d+)(?: of \d+)?\]\n   id=(.*)$", text, re.MULTILINE
        ).groups()
        called = re.search(r"^.*\[F: read from N\]: (\w+) with the id", text, re.MULTILINE)[1]
        return called, {"id": record_id, "field_path": path, "offset_chars": int(offset)}
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("1. ")).removeprefix("1. ").split(" | ")
    columns = lines[lines.index(next(line for line in lines if line.endswith(" | id")))].split(" | ")
    offset, path = next(
        (found[1], column)
        for column, cell in zip(columns, row, strict=True)
        if (found := re.search(r"…\"\[\+\d+ from (\d+)\]$", cell))
    )
    called = re.search(r"\[\+n from m\]: (\w+) with the id, field_path of the column", text)[1]
    return called, {"id": row[-1].removeprefix("id="), "field_path": path, "offset_chars": int(offset)}


@pytest.mark.requirement("S3-01", "S3-02", "S3-03", "S3-04", "S3-08", "S3-28", "S3-29", "S3-30")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("search", {"q": "zebra"}), ("query_records", {"stream": "messages", "limit": 1}), ("fetch", {})],
)
def test_a_long_field_is_begun_by_each_tool_and_can_be_reached_four_ways(tool: str, arguments: Json):
    async def work(w: World) -> None:
        async with long_letter(w) as (access, key, body):
            given = arguments or {"id": key}
            answer = await w.call(access, tool, **given)
            assert END not in json.dumps(answer.wire())
            assert "A zebra came." in answer.text.replace("<mark>", "").replace("</mark>", "")
            # By the text: the id, the field and the tool are in it.
            assert key in answer.text
            assert "body" in answer.text
            assert "read_record_field" in answer.text
            called, args = call_from_text(tool, answer.text)
            by_text = await w.call(access, called, **args)
            assert by_text.structured["window"]["text"] in body
            assert len(by_text.structured["window"]["text"]) > 200
            assert len(answer.text) < 20_000
            if tool == "search":
                # No more than the words around the match.
                assert len(json.dumps(answer.wire())) < 4_000
            # By the structure, by the tool, and by the resource that the window names.
            (rung,) = rungs(answer)
            assert (rung["read"]["args"]["id"], rung["read"]["args"]["field_path"]) == (key, "body")
            window = await w.call(access, rung["read"]["tool"], **rung["read"]["args"])
            assert unfenced(window.text) == window.structured["window"]["text"]
            assert window.structured["window"]["text"] in body
            uri = rung["resource_uri"] if tool == "fetch" else window.structured["resource"]["uri"]
            content = await read(w, access, uri)
            assert unfenced(content["text"]) == body[:4096] or unfenced(content["text"]) in body

    in_world(work)


@pytest.mark.requirement("S3-12", "S3-13", "S3-15")
def test_a_window_is_the_same_by_id_by_its_parts_and_by_uri_and_fits_its_schema():
    async def work(w: World) -> None:
        async with long_letter(w) as (access, key, body):
            parts = {"connection_id": w.connections["Home mail"], "stream": "messages", "record_id": "long"}
            await w.add(
                "Work mail", "messages", {"id": "long", "subject": "s", "body": "It WENT elsewhere. " * 9}
            )
            uri = w.reader(access).handles.record_uri(w.reader(access).handles.read_id(key))
            for more in ({}, {"offset_chars": 100, "limit_chars": 50}, {"q": "WENT", "before_chars": 5}):
                answer = [
                    (await w.call(access, "read_record_field", **who, field_path="body", **more)).structured
                    for who in ({"id": key}, parts, {"id": uri})
                ]
                plain = [(one["record"], one["field"], one["window"]["text"]) for one in answer]
                assert plain[0] == plain[1] == plain[2]
                for one in answer:
                    OUTPUT["read_record_field"].validate(one)
                    assert set(one) == {"record", "field", "window", "resource"}
                    assert not OUTPUT["read_record_field"].is_valid({**one, "surplus": 1})
                    at = body.casefold().index("went") if "q" in more else None
                    match = None if at is None else {"q": "WENT", "start_chars": at, "end_chars": at + 4}
                    assert one["window"]["match"] == match
                    for name in one:
                        one[name]["surplus"] = 1
                        assert not OUTPUT["read_record_field"].is_valid(one), name
                        del one[name]["surplus"]

    in_world(work)


@pytest.mark.requirement("S3-32", "S3-34")
@pytest.mark.parametrize("encoded", [ENCODED, URL_SAFE, "\n".join(re.findall(".{1,76}", ENCODED))])
@pytest.mark.parametrize("field", ["text", "photo"])
def test_bytes_in_a_text_field_are_described_and_never_shown(field: str, encoded: str):
    row = record(**{field: encoded, "nested": {"deep": [encoded]}})
    hits = found(hit(data=row["data"], previews={}))
    port = CountingPort(records=page(row), record=row, search=hits)
    for outcome in (
        run(port, "query_records", stream="messages"),
        run(port, "fetch", id="cin_a/messages:m1"),
        run(port, "search", q="x"),
    ):
        assert encoded[:40] not in json.dumps(outcome.wire())
    rung = rungs_of_bytes(run(port, "query_records", stream="messages"))[field]
    assert rung["field_path"] == field
    assert (rung["mime_type"], rung["size_chars"]) == ("application/octet-stream", len(encoded))


def rungs_of_bytes(outcome: Outcome) -> dict[str, Json]:
    (entry,) = outcome.structured["content_ladder"]["records"]
    return {rung["field_path"]: rung for rung in entry["binary_fields"]}


def problems(tools: tuple[Json, ...]) -> list[str]:
    """Give the faults of a list of tools."""
    names = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
    size = len(msgspec.json.encode(tools))
    return [
        *(f"{tool['name']} does not belong here" for tool in tools if tool["name"] not in names),
        *(f"{name} is missing" for name in names if name not in {tool["name"] for tool in tools}),
        *([f"{size} bytes are too many"] if size >= 24_576 else []),
    ]


@pytest.mark.requirement("S2-10", "S2-11", "S2-19", "S2-20", "S2-21", "S2-22")
def test_a_planted_tool_a_missing_one_and_a_fat_one_are_found():
    assert problems(TOOLS) == []
    for name in ("list_streams", "fetch_blob", "create_event_subscription", "run_sql"):
        assert problems((*TOOLS, {**TOOLS[0], "name": name})) == [f"{name} does not belong here"]
    assert problems(TOOLS[1:]) == ["schema is missing"]
    assert problems(({**TOOLS[0], "description": "x" * 24_576}, *TOOLS[1:]))[0].endswith("too many")


@pytest.mark.requirement("S2-15", "S3-22")
def test_a_session_that_is_open_ends_to_read_when_its_grant_is_revoked(tmp_path: Path):
    async def go(shipped: Any) -> None:
        home = shipped.settings.home
        write_token(
            home_credential_path(tmp_path, home),
            shipped.address,
            {"access_token": shipped.mail},
            created_at="2026-01-01T00:00:00Z",
        )
        program = ["-m", "headgate", "--home", str(home), "mcp", "--cache-root", str(tmp_path)]
        async with Client(
            StdioServerParameters(
                command=sys.executable, args=program, env={"HEADGATE_SEMANTIC_MODEL": "off"}
            )
        ) as client:
            found_before = await client.call_tool("search", {"q": "minutes", "limit": 1})
            key = found_before.structured_content["results"][0]["id"]
            window = await client.call_tool("read_record_field", {"id": key, "field_path": "body"})
            uri = window.structured_content["resource"]["uri"]
            await asyncio.to_thread(shipped.revoke, shipped.mail)
            for tool, arguments in (
                ("search", {"q": "minutes"}),
                ("fetch", {"id": key}),
                ("read_record_field", {"id": key, "field_path": "body"}),
            ):
                refused = await client.call_tool(tool, arguments)
                assert refused.is_error
                assert refused.structured_content["error"]["code"] == "grant_revoked"
            with pytest.raises(MCPError) as raised:
                await client.read_resource(uri)
            assert raised.value.error.data["error"]["code"] == "grant_revoked"

    with product(rate_limit="0") as shipped:
        asyncio.run(go(shipped))


def test_accounts_of_one_kind_are_distinguished_in_a_search():
    async def work(w: World) -> None:
        answer = await w.call(mail(w), "search", q="garden", limit=20)
        assert re.search(
            r'^sources: "\w+ mail" \(mail\) \d+ · "\w+ mail" \(mail\) \d+$', answer.text, re.MULTILINE
        )
        hits = answer.structured["data"]["data"]
        assert {(hit["connector_key"], hit["display_name"]) for hit in hits} == {
            ("mail", "Home mail"),
            ("mail", "Work mail"),
        }

    in_world(work, (StitchedAccount("mail", "Home mail", 40), StitchedAccount("mail", "Work mail", 40)))
