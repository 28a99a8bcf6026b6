"""The tools over the real resource server: a real store, real grants, and a counter on the port."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headgate.mcp.serve.call import call
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.tools import IDENTITY, OPERATIONAL
from headgate.model.grant import Access, StreamGrant, TimeConstraint
from headgate.model.instants import instant
from headgate.reading.port import ResourceServer
from headgate.text.writing import unfenced
from tests.mcp.serve.world import MAIL, NOW, SMALL, World, world
from tests.stitched import StitchedAccount

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "tools.md"


def in_world(work: Callable[[World], Awaitable[None]], accounts: tuple[StitchedAccount, ...] = SMALL) -> None:
    async def go() -> None:
        async with world(accounts) as made:
            await work(made)

    asyncio.run(go())


def mail(w: World, *names: str, fields: tuple[str, ...] = MAIL, **more: Any) -> Access:
    names = names or ("Home mail", "Work mail")
    ids = tuple(w.connections[name] for name in names)
    return w.access(w.grant(*names, streams=[StreamGrant("messages", ids, fields, **more)]))


class ForgetfulPort:
    """A port like a remote one, whose answers have bodies and no rows in memory."""

    def __init__(self, inner: ResourceServer) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def ask(*asked: Any, **more: Any) -> Any:
            return msgspec.structs.replace(await getattr(self._inner, name)(*asked, **more), document=None)

        return ask


def test_a_page_and_a_document_are_the_same_whether_drawn_from_what_was_written_or_from_its_text():
    odd = [
        {"id": "long", "subject": "long", "body": "two words " * 3000, "sent_at": "2026-08-31T00:00:00Z"},
        {"id": "dense", "subject": "dense", "body": "QUJD" * 200, "sent_at": "2026-08-30T00:00:00Z"},
        {"id": "url", "subject": "url", "body": "data:image/png;base64," + "QUJD " * 90},
        {"id": "odd", "subject": '{"[\\u0041"', "body": "é\u202e\x7f", "sent_at": "2026-08-29T00:00:00Z"},
    ]

    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *odd)
        accesses = (mail(w), w.access(w.grant("Home mail")), w.access(w.grant("Village chat")))
        cases = [("messages", 0), ("attachments", 1), ("messages", 2), ("channels", 2)]
        seen = set[str]()
        for stream, number in cases:
            reader = w.reader(accesses[number])
            other = msgspec.structs.replace(reader, port=ForgetfulPort(reader.port))
            asked: dict[str, Any] = {"stream": stream, "limit": 25}
            while asked:
                made, read = [await call("query_records", asked, one) for one in (reader, other)]
                assert on_the_wire(made) == on_the_wire(read)
                page = on_the_wire(made)["structuredContent"]
                seen |= {kind for one in page.get("content_ladder", {}).get("records", ()) for kind in one}
                ids = re.findall(r" id=(\S+)", made.text)
                for record_id in ids:
                    opened = [await call("fetch", {"id": record_id}, one) for one in (reader, other)]
                    assert on_the_wire(opened[0]) == on_the_wire(opened[1])
                cursor = page["data"].get("next_cursor")
                asked = {**asked, "cursor": cursor} if cursor else {}
        assert {"field_windows", "binary_fields"} <= seen

    in_world(work)


def on_the_wire(outcome: Outcome) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(outcome.wire()))


@pytest.mark.requirement("S1-01", "S1-06", "S1-18", "S1-19", "S1-21", "S1-09", "S2-50", "S2-52")
def test_an_id_from_search_opens_what_its_key_alone_would_not():
    async def work(w: World) -> None:
        access = mail(w)
        keys = ["Ünï 世界", "a b", "a/b", "k" * 1000, "世" * 400, '["x y","z"]']
        rows = [{"id": key, "subject": "A bridge", "sent_at": "2026-09-01T00:00:00Z"} for key in keys]
        await w.add("Work mail", "messages", *rows)
        hits, cursor = list[dict[str, Any]](), dict[str, str]()
        while True:
            found = await w.call(access, "search", q="bridge", limit=100, collapse=False, **cursor)
            hits += found.structured["data"]["data"]
            if not found.structured["data"]["has_more"]:
                break
            cursor = {"cursor": found.structured["data"]["next_cursor"]}
        assert set(keys) < {hit["record_key"] for hit in hits}
        assert {(hit["stream"], hit["connector_key"]) for hit in hits} == {("messages", "mail")}
        assert all(w.connections[hit["display_name"]] == hit["connection_id"] for hit in hits)
        for result in found.structured["results"]:
            opened = await w.call(access, "fetch", id=result["id"])
            assert opened.structured["id"] == result["id"]
            assert opened.structured["metadata"]["connection_id"] == result["connection_id"]
        answer = await w.call(access, "fetch", id="messages:m00001")
        assert (answer.structured["error"]["code"], answer.structured["http_status"]) == (
            "ambiguous_connection",
            409,
        )
        assert len(answer.structured["error"]["available_connections"]) == 2
        chosen = w.connections["Work mail"]
        scoped = await w.call(access, "fetch", id="messages:m00001", connection_id=chosen)
        assert (scoped.structured["id"], scoped.structured["metadata"]["connection_id"]) == (
            "messages:m00001",
            chosen,
        )
        foreign = await w.call(access, "fetch", id=f"{w.connections['Village chat']}/messages:c00001")
        assert foreign.structured["http_status"] == 404

    in_world(work)


@pytest.mark.requirement("S2-32")
def test_every_granted_stream_is_named_with_or_without_records():
    accounts = tuple(StitchedAccount(key, f"{key} {n}", 1) for key in ("mail", "chat") for n in range(12))

    async def work(w: World) -> None:
        names = list(w.connections)
        access = w.access(w.grant(*names[:12]), w.grant(*names[12:], grant_id="grt_2"))
        index = (await w.call(access, "schema")).text
        rows = set(
            re.findall(r'^stream name="(\w+)" connector_key="(\w+)".* records=(\d+)', index, re.MULTILINE)
        )
        assert rows == {("messages", "mail", "12"), ("messages", "chat", "12"), ("channels", "chat", "48")}
        assert 'no records: name="attachments" connector_key="mail"' in index.splitlines()
        for connection in w.connections.values():
            one = (await w.call(access, "schema", connection_id=connection)).text
            assert len(re.findall(r"(?:^stream |[:;] )name=", one, re.MULTILINE)) == 2

    in_world(work, accounts)


@pytest.mark.requirement("S2-34", "S2-36", "S2-38")
def test_arguments_made_from_the_text_alone_are_accepted():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"), w.grant("Village chat", grant_id="grt_2"))
        for key in ("mail", "chat"):
            index = (await w.call(access, "schema")).text
            assert re.search(rf'^stream name="messages" connector_key="{key}" ', index, re.MULTILINE)
            row = re.search(rf'^connector connector_key="{key}".*', index, re.MULTILINE)[0]
            connection = re.search(r"connection_id:([\w-]+)", row)[1]
            text = (await w.call(access, "schema", stream="messages", connection_id=connection)).text
            line = next(line for line in text.splitlines() if line.startswith("stream "))
            await ask_all_of(w, access, {"stream": "messages", "connection_id": connection}, line)

    in_world(work)


async def ask_all_of(w: World, access: Access, place: dict[str, Any], line: str) -> None:
    def part(name: str) -> str:
        return re.search(rf" {name}=(\S+)", line + " ")[1]

    fields = {
        entry.partition("[")[0]: entry.partition("[")[2][:-1].split(",")
        for entry in part("fields").split(";")
    }
    sample = (await w.call(access, "query_records", **place, limit=1)).structured["data"]["data"][0]["data"]
    asked: list[tuple[str, dict[str, Any]]] = [("query_records", {"fields": [name]}) for name in fields]
    asked += [("query_records", {"sort": sort}) for sort in part("sort").split("|")]
    asked += [("query_records", {"count": count}) for count in part("count").split("|")]
    for relation in [] if part("expand") == "none" else part("expand").split("|"):
        name, most = re.match(r"(\w+)\(\d+\.\.(\d+)\)", relation).groups()
        asked.append(("query_records", {"expand": [name], "expand_limit": {name: int(most)}}))
    for name, flags in fields.items():
        if "eq" in flags and name in sample:
            asked.append(("query_records", {"filter": {name: sample[name]}}))
        operators = [flag[2:].split("|") for flag in flags if flag.startswith("r=")]
        asked += [
            ("query_records", {"filter": {name: {one: sample[name]}}}) for ops in operators for one in ops
        ]
    for entry in part("aggregations").split(";"):
        kinds, _, names = entry.partition("=")
        for kind in kinds.split("|"):
            asked += [("aggregate", arguments) for arguments in aggregates(kind, names)]
    assert len(asked) > 25
    for tool, arguments in asked:
        outcome = await w.call(access, tool, **place, **arguments)
        assert not outcome.is_error, (tool, arguments, outcome.text)


def aggregates(kind: str, names: str) -> list[dict[str, Any]]:
    if kind == "count":
        return [{"metric": "count"}]
    by = {"group_by": {}, "group_by_time": {"granularity": "month"}}
    if kind in by:
        return [{"metric": "count", kind: name, **by[kind]} for name in names.split(",")]
    # Distinct values are counted within one connection, which the caller names.
    return [{"metric": kind, "field": name} for name in names.split(",")]


@pytest.mark.requirement("S2-41", "S2-43", "S2-42", "S2-45", "S2-46")
def test_a_full_schema_is_of_one_stream_of_one_connection():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"), w.grant("Village chat", grant_id="grt_2"))
        for several in (access, mail(w)):
            answer = await w.call(several, "schema", stream="messages", detail="full")
            assert answer.structured["error"]["code"] == "ambiguous_schema_detail"
            assert answer.structured["error"]["retry_with"] == "connection_id"
            assert "properties" not in answer.text
        chosen = w.connections["Home mail"]
        full = await w.call(access, "schema", stream="messages", detail="full", connection_id=chosen)
        (connector,) = full.structured["data"]["connectors"]
        (stream,) = connector["streams"]
        assert [one["connection_id"] for one in stream["granted_connections"]] == [chosen]
        assert stream["schema"]["properties"]["subject"]
        assert "streams" not in full.structured["data"]
        assert len(msgspec.json.encode(full.wire())) < 100_000

    in_world(work)


@pytest.mark.requirement("S2-49", "S2-51", "S2-53", "S2-57", "S2-58")
def test_a_limit_is_for_all_connections_together():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"), w.grant("Village chat", grant_id="grt_2"))
        for limit in (1, 4, 30):
            found = await w.call(access, "search", q="garden", limit=limit, collapse=False)
            assert min(limit, 12) <= len(found.structured["results"]) <= limit
        sources = {hit["connection_id"]: hit["display_name"] for hit in found.structured["data"]["data"]}
        assert len(sources) > 1
        assert all(
            re.search(rf'^sources: .*"{name}" \(\w+\) \d', found.text, re.MULTILINE)
            for name in sources.values()
        )
        chosen = w.connections["Village chat"]
        scoped = await w.call(access, "search", q="garden", limit=3, connection_id=chosen)
        assert [hit["connection_id"] for hit in scoped.structured["results"]] == [chosen] * 3
        assert re.search(r'^sources: "Village chat" \(\w+\) 3$', scoped.text, re.MULTILINE)

    in_world(work)


@pytest.mark.requirement("S2-73", "S2-74", "S2-75", "S2-76", "S2-77", "S2-78")
@pytest.mark.parametrize(("tool", "arguments"), [("query_records", {}), ("aggregate", {"metric": "count"})])
def test_a_large_package_answers_ambiguity_from_membership_alone(tool: str, arguments: dict[str, Any]):
    accounts = tuple(StitchedAccount(key, f"{key} {n}", 1) for key in ("mail", "chat") for n in range(20))

    async def work(w: World) -> None:
        names = [list(w.connections)[:20], list(w.connections)[20:]]
        access = w.access(w.grant(*names[0]), w.grant(*names[1], grant_id="grt_2"))
        reads: list[str] = []
        for method in ("page", "aggregate", "summaries", "record"):
            original = getattr(w.store, method)
            setattr(w.read_services.store, method, counting(original, reads))
        answer = await w.call(access, tool, stream="messages", **arguments)
        error = answer.structured["error"]
        assert (error["code"], error["retry_with"]) == ("ambiguous_connection", "connection_id")
        assert len(error["available_connections"]) == 12
        assert all(
            {"grant_id", "connector_key", "connection_id"} <= set(one)
            for one in error["available_connections"]
        )
        assert (error["available_connection_count"], error["available_connections_omitted"]) == (40, 28)
        assert error["available_connections_truncated"] is True
        assert "schema" in answer.text
        assert reads == []
        assert len(answer.text.encode()) < 4000
        again = await w.call(
            access, tool, stream="messages", **arguments, connection_id=next(iter(w.connections.values()))
        )
        assert not again.is_error

    in_world(work, accounts)


def counting(original: Callable[..., Any], reads: list[str]) -> Callable[..., Any]:
    def counted(*given: Any, **named: Any) -> Any:
        reads.append(original.__name__)
        return original(*given, **named)

    return counted


@pytest.mark.requirement("S2-59", "S2-68", "S2-69", "S2-70", "S2-71")
def test_a_field_that_was_not_asked_for_is_nowhere():
    async def work(w: World) -> None:
        await w.add(
            "Home mail",
            "messages",
            {"id": "x1", "subject": "Plain", "body": "CANARY-BODY", "sender": "CANARY-SENDER"},
        )
        access = mail(w)
        record_id = f"{w.connections['Home mail']}/messages:x1"
        opened = await w.call(access, "fetch", id=record_id, fields=["subject"])
        listed = await w.call(access, "query_records", stream="messages", fields=["subject"], limit=100)
        for outcome in (opened, listed):
            assert "CANARY" not in json.dumps(outcome.wire())
        assert set(listed.structured["data"]["data"][0]["data"]) == {"subject"}
        metadata = opened.structured["metadata"]
        assert (metadata["stream"], metadata["connector_key"]) == ("messages", "mail")
        assert len(json.dumps(opened.structured).encode()) < 2500

    in_world(work)


@pytest.mark.requirement("S2-71", "S2-72")
def test_the_members_beside_the_selected_fields_are_declared():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"))
        place = {"stream": "messages", "connection_id": w.connections["Work mail"]}
        asked = {**place, "fields": ["subject"], "limit": 100}
        pages = [
            await w.call(access, "query_records", **asked),
            await w.call(access, "query_records", **asked, expand=["attachments"]),
        ]
        assert re.search(r" expanded attachments=\[work-mail/attachments:\w+\] \| id=", pages[1].text)
        begun = await w.call(access, "query_records", **asked, changes_since="beginning")
        since = begun.structured["data"]["next_changes_since"]
        await w.store.delete_record(w.connections["Work mail"], "messages", "m00003", at=NOW)
        pages += [begun, await w.call(access, "query_records", **asked, changes_since=since)]
        rows = [row for page in pages for row in page.structured["data"]["data"]]
        assert all(set(row.get("data", {})) <= {"subject"} for row in rows)
        sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
        declared = {section.partition("\n")[0].strip("`"): section for section in sections}
        beside = {member for row in rows for member in row} - {"data"}
        assert beside == {*IDENTITY, *OPERATIONAL}
        assert all(re.search(rf"`{member}`", declared["query_records"]) for member in beside)
        opened = await w.call(
            access, "fetch", id=f"{w.connections['Work mail']}/messages:m00005", fields=["subject"]
        )
        facts = set(opened.structured["metadata"])
        assert facts >= {"stream", "connection_id", "connector_key"}
        assert all(re.search(rf"`{fact}`", declared["fetch"]) for fact in facts)

    in_world(work)


@pytest.mark.requirement("S3-01", "S3-28", "S3-29")
def test_an_object_of_any_size_can_be_read_to_its_end_by_the_printed_calls():
    pets = {"pets": [{"name": f"Pet {n}", "kind": "cat"} for n in range(3000)]}

    async def work(w: World) -> None:
        access = w.access(w.grant("Village chat"))
        row = {"id": "big", "channel": "x", "sent_at": "2026-07-01T00:00:00Z", "reactions": pets}
        await w.add("Village chat", "messages", row)
        key = f"{w.connections['Village chat']}/messages:big"
        opened = await w.call(access, "fetch", id=key, fields=["reactions"])
        (rung,) = opened.structured["metadata"]["content_ladder"]["json_fields"]
        window = await w.call(access, rung["read"]["tool"], **rung["read"]["args"])
        assert window.structured["field"]["mime_type"] == "application/json"
        assert window.structured["field"]["text_like"] is False
        linked = await read(w, access, rung["resource_uri"])
        assert unfenced(linked["text"]) == window.structured["window"]["text"]
        read_on = unfenced(window.text)
        while "\nnext read_record_field" in window.text:
            window = await next_window(w, access, key, window)
            read_on += unfenced(window.text)
        assert json.loads(read_on) == pets
        small = await w.call(access, "read_record_field", id=key, field_path="id")
        assert small.structured["field"]["text_like"] is True

    in_world(work)


@pytest.mark.requirement("S3-17", "S3-26", "S3-21", "S3-22", "S3-23", "S3-24")
def test_a_handle_opens_nothing_that_the_token_would_not():
    async def work(w: World) -> None:
        whole = mail(w)
        key = f"{w.connections['Home mail']}/messages:m00000"
        window = await w.call(whole, "read_record_field", id=key, field_path="body")
        cursor, uri = window.structured["window"]["next_cursor"], window.structured["resource"]["uri"]
        for selector, most in (({}, 4096), ({"limit_chars": 1_000_000}, 16_384)):
            by_uri = await read(w, whole, w.handles.window_uri(w.handles.read_id(key), "body", selector))
            assert len(unfenced(by_uri["text"])) <= most
            assert unfenced(by_uri["text"]).startswith(unfenced(window.text))
        since = TimeConstraint("sent_at", since=instant("2026-01-01"))
        narrow = {
            "field_not_granted": mail(w, "Home mail", fields=("id", "subject")),
            "not_found": mail(w, "Home mail", time=since),
            "connection_not_found": mail(w, "Work mail"),
            "grant_stream_not_allowed": w.access(w.grant("Village chat", streams=[chat_channels(w)])),
        }
        for code, access in narrow.items():
            plain = await w.call(access, "read_record_field", id=key, field_path="body")
            assert plain.structured["error"]["code"] == code
            continued = await w.call(access, "read_record_field", id=key, field_path="body", cursor=cursor)
            assert continued.structured["error"]["code"] in {code, "invalid_cursor"}
            with pytest.raises(Exception) as raised:  # noqa: PT011 - its code is looked at
                await read(w, access, uri)
            assert raised.value.code == code

    in_world(work)


def chat_channels(w: World) -> StreamGrant:
    return StreamGrant("channels", (w.connections["Village chat"],), ("id", "name"))


async def read(w: World, access: Access, uri: str) -> dict[str, Any]:
    from headgate.mcp.serve import resources  # noqa: PLC0415 - only here

    return await resources.read(w.reader(access), uri)


@pytest.mark.requirement("S3-09", "S3-18", "S3-19")
def test_a_cursor_goes_forth_and_back_and_ends_when_the_field_changes():
    async def work(w: World) -> None:
        access = mail(w)
        await w.add(
            "Home mail",
            "messages",
            {
                "id": "w1",
                "subject": "s",
                "body": "Straße 👩‍👩‍👧 " * 2000 + "Sought word " * 9,
                "sent_at": "2026-01-01T00:00:00Z",
            },
        )
        key = f"{w.connections['Home mail']}/messages:w1"
        first = await w.call(access, "read_record_field", id=key, field_path="body", limit_chars=500)
        second = await next_window(w, access, key, first)
        back = second.structured["window"]["previous_cursor"]
        again = await w.call(access, "read_record_field", id=key, field_path="body", cursor=back)
        assert again.structured["window"]["text"] == first.structured["window"]["text"]
        assert unfenced(second.text) == second.structured["window"]["text"]
        found = await w.call(
            access, "read_record_field", id=key, field_path="body", q="STRASSE", limit_chars=40
        )
        assert found.structured["window"]["match"]["start_chars"] == 0
        for limit in (1, 8, 40, 400):
            near = await w.call(
                access, "read_record_field", id=key, field_path="body", q="sought word", limit_chars=limit
            )
            match, shown = near.structured["window"]["match"], near.structured["window"]
            assert shown["start_chars"] <= match["start_chars"] < shown["end_chars"]
        await w.add(
            "Home mail",
            "messages",
            {"id": "w1", "subject": "s", "body": "changed " * 900, "sent_at": "2026-01-01T00:00:00Z"},
        )
        stale = await w.call(
            access,
            "read_record_field",
            id=key,
            field_path="body",
            cursor=first.structured["window"]["next_cursor"],
        )
        assert (stale.structured["error"]["code"], stale.structured["http_status"]) == ("cursor_expired", 410)
        assert "beginning" in stale.text

    in_world(work)


async def next_window(w: World, access: Access, key: str, window: Any) -> Any:
    line = re.search(r"^next read_record_field args=(.*)$", window.text, re.MULTILINE)[1]
    arguments = json.loads(line)
    assert arguments["id"] == key
    return await w.call(access, "read_record_field", **arguments)


@pytest.mark.requirement("S3-25")
def test_a_window_into_twenty_megabytes_never_holds_the_whole():
    async def work(w: World) -> None:
        access = mail(w)
        await w.add(
            "Home mail",
            "messages",
            {
                "id": "huge",
                "subject": "s",
                "body": "0123456789" * 2_000_000,
                "sent_at": "2026-01-01T00:00:00Z",
            },
        )
        key = f"{w.connections['Home mail']}/messages:huge"
        await w.call(access, "read_record_field", id=key, field_path="body")
        tracemalloc.start()
        window = await w.call(access, "read_record_field", id=key, field_path="body", offset_chars=15_000_003)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert window.structured["window"]["text"].startswith("3456789012")
        assert window.structured["field"]["size_chars"] == 20_000_000
        assert peak < 2_000_000
        assert w.calls == ["window"]

    in_world(work)


@pytest.mark.requirement("S2-25", "S2-47", "S2-48")
def test_changes_are_followed_by_the_text_alone():
    async def work(w: World) -> None:
        access = mail(w, "Work mail", fields=("id", "subject"))
        asked: dict[str, Any] = {
            "stream": "messages",
            "connection_id": w.connections["Work mail"],
            "limit": 100,
        }
        bookmark, pages = await follow(w, access, {**asked, "limit": 12, "changes_since": "beginning"})
        ids = [printed for page in pages for printed in re.findall(r" id=(\S+)$", page.text, re.MULTILINE)]
        assert (len(pages), len(ids), len(set(ids))) == (4, 40, 40)
        first = await w.call(access, "query_records", **asked, changes_since="beginning")
        await w.add(
            "Work mail",
            "messages",
            {"id": "m00001", "subject": first_subject(first), "body": "hidden change"},
        )
        unseen = await w.call(access, "query_records", **asked, changes_since=bookmark)
        assert unseen.structured["data"]["data"] == []
        await w.add("Work mail", "messages", {"id": "m00002", "subject": "new words"})
        await w.store.delete_record(
            w.connections["Work mail"], "messages", "m00003", at=1_795_000_000_000_000
        )
        seen = await w.call(access, "query_records", **asked, changes_since=bookmark)
        assert "new words" in seen.text
        assert re.search(r'\d\. deleted_at="[^"]+" \| id=[\w-]+/messages:m00003', seen.text)

    in_world(work)


async def follow(w: World, access: Access, asked: dict[str, Any]) -> tuple[str, list[Outcome]]:
    """Page through changes by the printed cursors, up to the bookmark that ends them."""
    pages = [await w.call(access, "query_records", **asked)]
    while "next_changes_since=" not in pages[-1].text.splitlines()[0]:
        cursor = re.search(r'next_cursor="([^"]+)"', pages[-1].text)[1]
        pages.append(await w.call(access, "query_records", **asked, cursor=cursor))
    assert all("has_more=true" in page.text for page in pages[:-1])
    assert "next_cursor" not in pages[-1].text
    return re.search(r'next_changes_since="([^"]+)"', pages[-1].text)[1], pages


def first_subject(page: Any) -> str:
    rows = page.structured["data"]["data"]
    return next(row["data"]["subject"] for row in rows if row["id"] == "m00001")


@pytest.mark.requirement("S3-32", "S3-33", "S3-34")
def test_a_file_is_read_through_its_link():
    async def work(w: World) -> None:
        access = mail(w)
        opened = await w.call(access, "fetch", id=f"{w.connections['Home mail']}/messages:m00001")
        (link,) = opened.links
        (rung,) = opened.structured["metadata"]["content_ladder"]["binary_fields"]
        assert (rung["mime_type"], rung["size_bytes"], len(rung["digest"])) == ("image/png", link["size"], 64)
        content = await read(w, access, link["uri"])
        assert content["blob"].startswith("iVBORw0KGgo")
        without = mail(w, fields=("id", "subject", "body"))
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its code is looked at
            await read(w, without, link["uri"])
        assert raised.value.code == "blob_not_found"

    in_world(work)
