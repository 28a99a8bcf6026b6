from __future__ import annotations

import asyncio
import base64
import json

import pytest
from hypothesis import given, strategies as st

from headgate.errors import FieldNotGranted, HeadgateError, InvalidResourceUri, ResourceLimit
from headgate.mcp.serve import resources
from headgate.model.reference import RecordRef
from headgate.text.quote import unfenced
from tests.mcp.serve.prepared import HANDLES, CountingPort, reader, record, run, window

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
    assert f"/v1/blobs/{BLOB}" in raised.value.hint


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
    uri = HANDLES.window_uri(RecordRef("cin_a", "secretstream", "secretkey"), "secretfield", {})
    raw = base64.urlsafe_b64decode(uri.partition("wh1.")[2] + "==")
    assert b"secret" not in raw
