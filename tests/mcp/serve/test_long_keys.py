"""Ids too long to print: a handle stands for one, and any process of the home opens it, inside the grant."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headgate.auth.credentials import home_credential_path, write_token
from headgate.auth.keys import KeyRing, RingSealer, SealKey
from headgate.errors import InvalidResultId
from headgate.mcp.serve.reader import HandleMaker, KnownKeys
from headgate.model.grant import StreamGrant, TimeConstraint
from headgate.model.ids import RecordId, RecordRef
from headgate.model.instants import instant
from headgate.model.sealed import Kind
from tests.http_clients import ask_once
from tests.mcp.serve.test_bytes import in_two_accounts, message
from tests.mcp.serve.test_paging import ids_in, walked
from tests.mcp.serve.test_world import mail, read
from tests.mcp.serve.world import World
from tests.on_socket import COMMAND, WAIT_SECONDS, ServedProgram, environment, line, owner_of, served_program

KEYS = ("k" * 1_000, "https://example.com/" + "世" * 1_000, "\U0010ffff" * 200, "two\nlines " * 40)
PRINTED = (("query_records", {"stream": "messages"}), ("search", {"q": "bridge"}))


@pytest.mark.parametrize("key", KEYS)
def test_a_long_key_is_printed_as_a_short_handle_that_opens_it_after_a_restart(key: str):
    async def work(w: World) -> None:
        # Keys with the same beginning, before and after it.
        near = [key[:-1], key + "x", key[:-1] + "!"]
        await w.add("Home mail", "messages", message(key, "The bridge is long. " * 300))
        await w.add("Home mail", "messages", *(message(one, "Nothing here.", subject="x") for one in near))
        for tool, arguments in PRINTED:
            printed = set(await walked(w, tool, 10, **arguments))
            assert all(one.startswith("pdpp://record/") and len(one) <= 160 for one in printed)
            w.handles = HandleMaker(w.read_services.sealer)
            opened = {one: await w.call(mail(w), "fetch", id=one) for one in printed}
            keys = {one.structured["metadata"]["record_id"]: name for name, one in opened.items()}
            assert len(keys) == len(printed) == (4 if tool == "query_records" else 1)
            assert opened[keys[key]].structured["id"] == keys[key]
            await read_on(w, keys[key], key)

    in_two_accounts(work)


async def read_on(w: World, handle: str, key: str) -> None:
    """Read a long field of a record by its handle, and by the URI of a window, in a new process each time."""
    first = await w.call(mail(w), "read_record_field", id=handle, field_path="body")
    assert (first.structured["record"]["record_id"], first.structured["record"]["id"]) == (key, handle)
    cursor = first.structured["window"]["next_cursor"]
    w.handles = HandleMaker(w.read_services.sealer)
    following = await w.call(mail(w), "read_record_field", id=handle, field_path="body", cursor=cursor)
    assert following.structured["window"]["start_chars"] == first.structured["window"]["end_chars"]
    uri = first.structured["resource"]["next_uri"]
    assert len(uri) <= 600
    assert following.structured["window"]["text"] in (await read(w, mail(w), uri))["text"]
    assert json.loads((await read(w, mail(w), handle))["text"])["id"] == handle


def test_a_handle_of_a_hidden_record_is_answered_like_an_unknown_id():
    key, other = KEYS[0], KEYS[0] + "x"

    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message(key, "The bridge."), message(other, "The bridge."))
        home = w.connections["Home mail"]
        handle = w.handles.result_id(RecordRef(home, "messages", key))
        since = TimeConstraint("sent_at", since=instant("2027-01-01"))
        narrow = {
            "not_found": [
                mail(w, "Home mail", time=since),
                mail(w, "Home mail", resources=frozenset({RecordId(other)})),
            ],
            "field_not_granted": [mail(w, "Home mail", fields=("id", "subject"))],
            "connection_not_found": [mail(w, "Work mail")],
            "grant_stream_not_allowed": [w.access(w.grant("Home mail", streams=[attachments(w)]))],
        }
        for code, accesses in narrow.items():
            for access in accesses:
                for tool, more in (
                    ("fetch", {"fields": ["body"]}),
                    ("read_record_field", {"field_path": "body"}),
                ):
                    hidden, *unknown = [
                        await w.call(access, tool, id=one, **more)
                        for one in (
                            handle,
                            w.handles.result_id(RecordRef(home, "messages", "k" * 999)),
                            f"{home}/messages:nothing",
                        )
                    ]
                    assert hidden.structured["error"]["code"] == code
                    assert [hidden, hidden] == unknown

    in_two_accounts(work)


def attachments(w: World) -> StreamGrant:
    return StreamGrant("attachments", (w.connections["Home mail"],), ("id", "name"))


def test_a_deleted_record_is_not_opened_by_its_handle():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message(KEYS[0], "The bridge."))
        home = w.connections["Home mail"]
        handle = w.handles.result_id(RecordRef(home, "messages", KEYS[0]))
        assert not (await w.call(mail(w), "fetch", id=handle)).is_error
        # Each of these is a beginning of the key, and is not opened in its place.
        await w.add("Home mail", "messages", *(message("k" * n, "Another.") for n in range(1, 65)))
        await w.store.delete_record(home, "messages", KEYS[0], at=1)
        assert (await w.call(mail(w), "fetch", id=handle)).structured["error"]["code"] == "not_found"

    in_two_accounts(work)


def test_a_handle_of_another_layout_is_refused_and_not_a_failure():
    async def work(w: World) -> None:
        sealer = w.read_services.sealer
        for payload in (b'["c","s","r"]', b"\x91\xa1x", b"\x90", b"\x95\x01\x02\x03\x04\x05"):
            for prefix, kind in (
                ("pdpp://record/", Kind.RECORD_HANDLE),
                ("pdpp://field-window/", Kind.WINDOW_HANDLE),
                ("pdpp://blob/", Kind.BLOB_HANDLE),
            ):
                uri = prefix + sealer.seal(kind, payload)
                with pytest.raises(Exception) as raised:  # noqa: PT011 - its code is looked at
                    await read(w, mail(w), uri)
                assert raised.value.code == "invalid_resource_uri"

    in_two_accounts(work)


def test_on_another_server_only_the_keys_that_were_printed_last_are_remembered():
    sealer = RingSealer(KeyRing(SealKey(b"k" * 64)))
    handles = HandleMaker(sealer, KnownKeys(limit=2))
    refs = [RecordRef("c", "s", f"{n}" * 300) for n in range(3)]
    printed = [handles.result_id(ref) for ref in refs]
    assert [handles.read_id(one) for one in printed[1:]] == refs[1:]
    for forgetful, one in ((handles, printed[0]), (HandleMaker(sealer, KnownKeys()), printed[1])):
        with pytest.raises(InvalidResultId, match="repeat the search or the query"):
            forgetful.read_id(one)


def mcp_message(tool: str, **arguments: Any) -> bytes:
    params = {
        "name": tool,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        },
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def over_http(served: ServedProgram, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    sent = mcp_message(tool, **arguments)
    return ask_once(served.address, "POST", "/mcp", token, body=sent, headers=headers).body["result"]


def over_stdio(place: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    done = subprocess.run(
        [*COMMAND, "--home", str(place / "home"), "mcp", "--cache-root", str(place / "credentials")],
        cwd=place,
        env=environment(place, {}),
        input=mcp_message(tool, **arguments) + b"\n",
        capture_output=True,
        timeout=30,
        check=False,
    )
    answer = json.loads(done.stdout)
    assert "result" in answer, (answer, done.stderr)
    return answer["result"]


def test_a_handle_that_one_process_printed_is_opened_by_others(tmp_path: Path):
    key, owner = "k" * 1_000, owner_of(tmp_path)
    with served_program(tmp_path, owner=owner) as served:
        served.ingest(served.connect(), [line(key, subject="Bridge", body="The bridge is long. " * 300)])
        token = served.grant()
        text = over_http(served, token, "query_records", stream="messages")["content"][0]["text"]
        (handle,) = ids_in("query_records", text)
        assert re.search(r'…"\[\+\d+ from \d+\] \| id=', text)
        path = home_credential_path(tmp_path / "credentials", tmp_path / "home")
        write_token(path, served.address, {"access_token": token}, created_at="2026-01-01T00:00:00Z")
        assert over_stdio(tmp_path, "fetch", id=handle)["structuredContent"]["metadata"]["record_id"] == key
    with served_program(tmp_path, "--workers", "2", owner=owner) as served:
        for _ in range(4):
            read = over_http(served, token, "read_record_field", id=handle, field_path="body")
            assert read["structuredContent"]["record"]["record_id"] == key
        # The workers end with the process that started them only if that process is asked to end.
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=WAIT_SECONDS)
