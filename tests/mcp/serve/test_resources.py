from __future__ import annotations

import asyncio
import base64
import json
import re

import httpx2
import pytest
from hypothesis import given, strategies as st
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from headgate.errors import FieldNotGranted, HeadgateError, InvalidResourceUri, ResourceLimit
from headgate.mcp.serve import resources
from headgate.model.ids import RecordRef
from headgate.text.writing import unfenced
from tests.mcp.serve.prepared import HANDLES, PROVIDER, CountingPort, reader, record, run, window
from tests.mcp.serve.product import Product, product

REF = RecordRef("cin_a", "messages", "m1")
BLOB = "blob_" + "0" * 64


def read(port: CountingPort, uri: str) -> dict[str, object]:
    return asyncio.run(resources.read(reader(port), uri))


@pytest.mark.requirement("S3-18", "S3-19")
def test_a_linked_window_is_the_tools_window_with_uris_to_go_on():
    port = CountingPort(window=window("y" * 100, start=4096))
    outcome = run(port, "read_record_field", id="cin_a/messages:m1", field_path="text", offset_chars=4096)
    content = read(port, outcome.structured["resource"]["uri"])
    assert content["mimeType"] == "text/plain"
    assert content["text"].splitlines()[1:] == outcome.text.splitlines()[1:]
    assert unfenced(content["text"]) == outcome.structured["window"]["text"]
    header = json.loads(content["text"].splitlines()[0])
    for side in ("next_uri", "previous_uri"):
        assert header[side] == content["_meta"][side] == outcome.structured["resource"][side]
    assert HANDLES.read_window_uri(header["next_uri"]).cursor == "fw1.next"


def test_a_record_is_the_document_of_fetch():
    port = CountingPort(record=record())
    content = read(port, HANDLES.record_uri(REF))
    assert json.loads(content["text"]) == run(port, "fetch", id="cin_a/messages:m1").structured


def test_a_stream_is_described():
    port = CountingPort(stream={"object": "stream_metadata", "name": "odd name"})
    content = read(port, "pdpp://stream/odd%20name?connection_id=cin_a")
    assert port.calls == [("stream", ("odd name", "cin_a"))]
    assert json.loads(content["text"])["name"] == "odd name"


@pytest.mark.requirement("S3-33")
def test_a_file_is_given_as_bytes():
    port = CountingPort(blob={"content": b"\x89PNG\r\n"})
    content = read(port, HANDLES.blob_uri(BLOB, "cin_a"))
    assert base64.b64decode(content["blob"]) == b"\x89PNG\r\n"
    assert content["mimeType"] == "image/png"


def test_a_file_that_is_too_large_says_where_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resources, "BLOB_BYTES", 4)
    with pytest.raises(ResourceLimit) as raised:
        read(CountingPort(blob={"content": b"12345"}), HANDLES.blob_uri(BLOB, "cin_a"))
    for text in (raised.value.message, raised.value.hint):
        assert f"{PROVIDER}/v1/blobs/{BLOB}?connection_id=cin_a" in text


@pytest.mark.parametrize("size", [5, 8, 11])
def test_a_file_that_is_too_large_is_read_in_parts(monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(resources, "BLOB_BYTES", 4)
    content = bytes(range(size))
    port = CountingPort(blob={"content": content})
    with pytest.raises(ResourceLimit) as raised:
        read(port, HANDLES.blob_uri(BLOB, "cin_a"))
    uri = re.search(r"pdpp://blob/[^ ,]+", raised.value.message)[0]
    whole = b""
    while uri:
        part = read(port, uri)
        whole += base64.b64decode(part["blob"])
        assert part["_meta"]["end_bytes"] == len(whole)
        uri = part["_meta"].get("next_uri")
    assert whole == content


@pytest.mark.parametrize("part", ["x", "1", "-", "1-", "1-2-3", "1-2 "])
def test_a_range_that_is_none_is_refused(part: str):
    with pytest.raises(InvalidResourceUri):
        read(CountingPort(), f"{HANDLES.blob_uri(BLOB, 'cin_a')}?bytes={part}")


@pytest.mark.parametrize("kind", ["package", "mail"])
def test_the_printed_address_of_a_large_file_and_its_parts_are_read_with_the_token_of_the_agent(
    monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setattr(resources, "BLOB_BYTES", 50)

    async def go(made: Product) -> None:
        token = getattr(made, kind)
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(made.url, http_client=http)) as client,
        ):
            asked = {"stream": "attachments", "connection_id": made.connections["Home mail"]}
            page = await client.call_tool("query_records", asked)
            uri = next(one.uri for one in page.content if one.type == "resource_link")
            with pytest.raises(MCPError) as raised:
                await client.read_resource(str(uri))
            message = raised.value.error.message
            address, part = (re.search(rf"{start}[^ ,]+", message)[0] for start in ("http://", "pdpp://"))
            whole = await http.get(
                f"{made.address}{address.partition('/v1')[1]}{address.partition('/v1')[2]}"
            )
            assert whole.status_code == 200
            read_parts = b""
            while part:
                answer = await client.read_resource(part)
                read_parts += base64.b64decode(answer.contents[0].blob)
                part = (answer.contents[0].meta or {}).get("next_uri")
            assert read_parts == whole.content
            assert len(read_parts) > 50

    with product() as made:
        asyncio.run(go(made))


@pytest.mark.requirement("S3-17", "S3-23")
def test_a_window_outside_the_grant_fails_as_the_tool_does():
    port = CountingPort(window=FieldNotGranted())
    outcome = run(port, "read_record_field", id="cin_a/messages:m1", field_path="text")
    with pytest.raises(HeadgateError) as raised:
        read(port, HANDLES.window_uri(REF, "text", {}))
    assert raised.value.code == outcome.structured["error"]["code"] == "field_not_granted"


@pytest.mark.requirement("S3-20", "S3-24")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "pdpp://",
        "file:///etc/passwd",
        "pdpp://record/../../x",
        "pdpp://record/%2e%2e%2fx:y",
        "pdpp://record/a%00b:c",
        "pdpp://field-window/" + "A" * 9000,
        "pdpp://field-window/eyJ2IjoxfQ",
        "pdpp://stream/",
        "pdpp://stream/x?y=z",
        "pdpp://blob/" + BLOB,
        "pdpp://other/x",
        "pdpp://field-window/" + HANDLES.record_uri(REF).removeprefix("pdpp://record/"),
        "pdpp://record/" + HANDLES.window_uri(REF, "text", {}).removeprefix("pdpp://field-window/"),
    ],
)
def test_a_uri_that_was_not_given_is_refused_without_a_read(uri: str):
    port = CountingPort()
    with pytest.raises(InvalidResourceUri):
        read(port, uri)
    assert port.calls == []


@pytest.mark.requirement("S3-24")
@given(st.data())
def test_a_handle_with_a_changed_character_is_refused(data: st.DataObject):
    uri = HANDLES.window_uri(REF, "text", {"offset_chars": 0})
    at = data.draw(st.integers(len("pdpp://field-window/"), len(uri) - 1))
    other = data.draw(st.sampled_from("ABCxyz019-_"))
    changed = uri[:at] + other + uri[at + 1 :]
    if changed != uri:
        with pytest.raises(InvalidResourceUri):
            read(CountingPort(), changed)


@pytest.mark.requirement("S3-20")
def test_a_handle_says_nothing_of_what_it_names():
    for ref in (
        RecordRef("cin_secret", "secretstream", "secret key "),
        RecordRef("cin_a", "s", "secret" * 60),
    ):
        for uri in (
            HANDLES.window_uri(ref, "secretfield", {}),
            HANDLES.record_uri(ref),
            HANDLES.result_id(ref),
            HANDLES.blob_uri("blob_secret", ref.connection_id),
        ):
            kind, _, sealed = uri.rpartition("/")[2].partition("1.")
            assert kind in {"wh", "rh", "bh"}
            assert b"secret" not in base64.urlsafe_b64decode(sealed + "==")
