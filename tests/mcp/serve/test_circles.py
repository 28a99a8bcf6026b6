"""Following the printed calls of a record comes to an end, whatever the resource server reads in windows."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from headgate.errors import FieldNotText, QueryNotFound, RemoteRefused
from headgate.mcp.serve.call import call
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import Outcome
from headgate.model.query import WindowQuery
from headgate.reading.remote import RemoteResourceServer, http_client
from headgate.text.ladder import Windows
from tests.mcp.serve.prepared import HANDLES, page, record
from tests.mcp.serve.provider import Provider, provider

ID = "cin_a/messages:m1"
LONG = "A sentence about the bridge. "
BYTES = base64.b64encode(bytes(range(256)) * 90).decode()
DATA: dict[str, Any] = {
    "text": LONG * 2_000,
    "tree": {"list": [{"n": n, "words": LONG} for n in range(900)]},
    "pack": {"scan": BYTES, "name": "scan.png"},
    "both": [BYTES, {"words": [LONG] * 900}],
    "small": {"a": 1},
}
NOT_TEXT = {"type": "invalid_request_error", "code": FieldNotText.code, "message": "Metadata only."}


class TextServer(Provider):
    """A server that reads only texts in windows, and answers with the fields that were asked for."""

    def answer_to(self, path: str, params: dict[str, str]) -> tuple[int, Any]:
        if path == "/v1/streams/messages/records":
            return 200, page(record(**DATA))
        if path == "/v1/streams/messages/records/m1":
            names = params["fields"].split(",") if "fields" in params else list(DATA)
            return 200, record(**{name: DATA[name] for name in names if name in DATA})
        if path.endswith("/field-window") and self.has_windows:
            return self._window(params)
        return self._body(path)

    def _window(self, params: dict[str, str]) -> tuple[int, Any]:
        text = DATA.get(params.get("field", ""))
        if not isinstance(text, str):
            return 422, {"error": NOT_TEXT}
        start, limit = int(params.get("offset_chars", 0)), int(params.get("limit_chars", 4096))
        end = min(start + limit, len(text))
        place = {"start_chars": start, "end_chars": end, "limit_chars": limit, "complete": False}
        more = {"next_offset_chars": end if end < len(text) else None, "total_chars": len(text)}
        window = {"text": text[start:end], **place, **more}
        return 200, {"object": "field_window", "stream": "messages", "record_id": "m1", "window": window}


def rungs(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ladder = document["metadata"].get("content_ladder", {})
    yield from (one for kind in ladder.values() if isinstance(kind, list) for one in kind)


def after(outcome: Outcome, tool: str) -> list[dict[str, Any]]:
    """Give the calls that an answer offers."""
    seen = msgspec.json.decode(msgspec.json.encode(outcome.structured))
    if tool == "fetch":
        return [one["read"] for one in rungs(seen) if "read" in one]
    window = seen["window"]
    if window["end_chars"] >= seen["field"]["size_chars"]:
        return []
    args = {"id": seen["record"]["id"], "field_path": seen["field"]["path"]}
    return [{"tool": tool, "args": {**args, "offset_chars": window["end_chars"]}}]


async def follow(reader: Reader) -> tuple[dict[str, str], dict[str, Any]]:
    """Make every call that is offered once; give the texts of windows by field, and the last documents."""
    texts: dict[str, str] = {}
    documents: dict[str, Any] = {}
    waiting = [{"tool": "fetch", "args": {"id": ID}}]
    made: list[str] = []
    while waiting:
        offered = waiting.pop(0)
        assert json.dumps(offered) not in made, offered
        made.append(json.dumps(offered))
        outcome = await call(offered["tool"], offered["args"], reader)
        assert not outcome.is_error, outcome.text
        seen = msgspec.json.decode(msgspec.json.encode(outcome.structured))
        if offered["tool"] == "fetch":
            documents[",".join(offered["args"].get("fields", ["*"]))] = seen
        else:
            path = offered["args"]["field_path"]
            texts[path] = texts.get(path, "") + seen["window"]["text"]
        waiting += after(outcome, offered["tool"])
    return texts, documents


def with_server(work: Any, windows: Windows) -> Any:
    async def go(address: str) -> Any:
        async with http_client("tok") as client:
            port = RemoteResourceServer(address, client)
            assert await port.windows() is windows
            return await work(Reader(port, HANDLES, address, windows=windows))

    with provider(has_windows=bool(windows), kind=TextServer) as made:
        return asyncio.run(go(made.address))


@pytest.mark.requirement("S3-27", "S3-30")
def test_objects_are_read_to_their_end_on_a_server_that_reads_only_texts_in_windows():
    texts, _ = with_server(follow, Windows.TEXT)
    assert texts.pop("text").endswith(DATA["text"][-4_000:])
    assert set(texts) == {"tree", "pack", "both"}
    for path, text in texts.items():
        assert json.loads(text) == DATA[path]


def test_on_a_server_without_windows_no_call_is_offered_that_gives_the_same_again():
    texts, documents = with_server(follow, Windows.NONE)
    assert texts == {}
    for path in ("text", "tree", "pack", "both"):
        (rung,) = [one for one in rungs(documents[path]) if one["field_path"] == path]
        assert "read" not in rung
        assert "cannot be read here" in rung["rest"]


def test_a_match_in_an_object_is_found_and_what_is_neither_is_refused_as_the_server_does():
    async def work(reader: Reader) -> None:
        place = ("messages", "m1")
        found = await reader.port.window(
            WindowQuery(*place, "tree", q='"N":500,', limit_chars=99, as_json=True)
        )
        window = found.body()["window"]
        assert '"n":500,' in window["text"]
        at = window["match_start_chars"] - window["start_chars"]
        assert window["text"][at:].startswith('"n":500,')
        with pytest.raises(QueryNotFound):
            await reader.port.window(WindowQuery(*place, "tree", q="absent", as_json=True))
        for query in (
            WindowQuery(*place, "absent", as_json=True),
            WindowQuery(*place, "tree"),
            WindowQuery(*place, "tree", cursor="x", as_json=True),
        ):
            with pytest.raises(RemoteRefused) as raised:
                await reader.port.window(query)
            assert raised.value.code == FieldNotText.code

    with_server(work, Windows.TEXT)
