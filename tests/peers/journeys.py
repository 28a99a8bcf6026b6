"""What an agent does, written for any client: by the text alone, by structure alone, by resources alone."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.text.writing import unfenced

NAMES = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]


@dataclass(frozen=True)
class PeerResult:
    """What a client learnt from one call."""

    text: str
    structured: dict[str, Any]
    is_error: bool
    links: tuple[str, ...] = ()


class Peer(Protocol):
    """A client at work."""

    async def tools(self) -> list[str]: ...
    async def call(self, tool: str, **arguments: Any) -> PeerResult: ...
    async def read(self, uri: str) -> str: ...


async def lists_exactly_six(peer: Peer) -> None:
    assert await peer.tools() == NAMES


async def calls_all_six(peer: Peer) -> None:
    """Call every tool once, each with values of an earlier answer."""
    index = (await peer.call("schema")).structured["data"]
    (connector,) = [one for one in index["connectors"] if one["connector_key"] == "mail"]
    place = {
        "stream": connector["streams"][0]["name"],
        "connection_id": connector["granted_connections"][0]["connection_id"],
    }
    page = await peer.call("query_records", **place, limit=2)
    counted = await peer.call("aggregate", **place, metric="count")
    found = await peer.call("search", query="minutes", limit=1)
    opened = await peer.call("fetch", id=found.structured["results"][0]["id"])
    window = await peer.call(
        "read_record_field", id=opened.structured["id"], field_path="body", q="agreed", limit_chars=50
    )
    for result in (page, counted, found, opened, window):
        assert not result.is_error, result.text
    assert len(page.structured["data"]["data"]) == 2
    assert counted.structured["data"]["value"] > 2
    assert json.loads(opened.text) == opened.structured
    assert "agreed" in window.structured["window"]["text"]


async def pages_by_text(peer: Peer) -> None:
    """From the index to a stream, and through all its pages, with nothing but the text."""
    index = (await peer.call("schema")).text
    connection = re.search(r'connector connector_key="mail".*?connection_id:([\w-]+)', index)[1]
    scoped = (await peer.call("schema", stream="messages", connection_id=connection)).text
    fields = re.search(r" fields=(\S+) ", scoped)[1]
    names = [entry.partition("[")[0] for entry in fields.split(";")]
    asked: dict[str, Any] = {
        "stream": "messages",
        "connection_id": connection,
        "fields": names[:2],
        "limit": 60,
    }
    first = (await peer.call("query_records", **asked, count="exact")).text
    total = int(re.search(r"count=exact:(\d+)", first)[1])
    seen, text = 0, first
    while True:
        seen += int(re.search(r"(\d+) record\(s\)", text)[1])
        cursor = re.search(r'next_cursor="([^"]+)"', text)
        if cursor is None:
            break
        text = (await peer.call("query_records", **asked, cursor=cursor[1], count="exact")).text
    assert seen == total > 60


async def reads_a_long_field_by_text(peer: Peer) -> None:
    """Find a record, open it, and read its long field whole, with nothing but the text."""
    found = (await peer.call("search", query="minutes")).text
    record_id = re.search(r"^   id=(.*)$", found, re.MULTILINE)[1]
    opened = await peer.call("fetch", id=record_id)
    document = json.loads(opened.text)
    rung = document["metadata"]["content_ladder"]["field_windows"][0]
    arguments: dict[str, Any] | None = {**rung["read"]["args"], "limit_chars": 9000}
    # The call reads on where the document stops.
    pieces = [document["text"].removesuffix("…")]
    while arguments is not None:
        text = (await peer.call("read_record_field", **arguments)).text
        pieces.append(unfenced(text))
        going = re.search(r"^next read_record_field args=(.*)$", text, re.MULTILINE)
        arguments = json.loads(going[1]) if going else None
    assert_whole("".join(pieces), rung["size_chars"], document["text"])


async def reads_a_long_field_by_structure(peer: Peer) -> None:
    found = (await peer.call("search", query="minutes")).structured
    result = found["results"][0]
    tool = found["content_ladder"]["read_tool"]
    document = (await peer.call("fetch", id=result["id"])).structured
    place = {"id": result["id"], "field_path": result["match_windows"][0]["read"]["args"]["field_path"]}
    part = (await peer.call(tool, **place)).structured
    pieces = [part["window"]["text"]]
    while part["window"]["next_cursor"]:
        part = (await peer.call(tool, **place, cursor=part["window"]["next_cursor"])).structured
        pieces.append(part["window"]["text"])
    assert_whole("".join(pieces), part["field"]["size_chars"], document["text"])


async def reads_a_long_field_by_resources(peer: Peer) -> None:
    found = (await peer.call("search", query="minutes")).structured
    document = (await peer.call("fetch", id=found["results"][0]["id"])).structured
    rung = document["metadata"]["content_ladder"]["field_windows"][0]
    uri: str | None = rung["resource_uri"]
    pieces: list[str] = []
    while uri is not None:
        text = await peer.read(uri)
        pieces.append(unfenced(text))
        uri = json.loads(text.splitlines()[0]).get("next_uri")
    assert_whole("".join(pieces), rung["size_chars"], document["text"])


async def finds_its_way_out_of_ambiguity(peer: Peer) -> None:
    """Call without naming the source, read the error, and call again."""
    result = await peer.call("aggregate", stream="messages", metric="count")
    assert result.is_error
    error = json.loads(result.text)["error"]
    assert (error["code"], error["retry_with"]) == ("ambiguous_connection", "connection_id")
    one = error["available_connections"][0]
    assert {"grant_id", "connector_key", "connection_id"} <= set(one)
    again = await peer.call(
        "aggregate", stream="messages", metric="count", connection_id=one["connection_id"]
    )
    assert not again.is_error
    assert "count of messages: " in again.text


def assert_whole(text: str, size: int, begun: str) -> None:
    assert len(text) == size > 16384
    assert text.startswith(begun.removesuffix("…")[:16000])
    assert text.endswith("So agreed.")


Journey = Callable[[Peer], Awaitable[None]]
JOURNEYS: tuple[Journey, ...] = (
    lists_exactly_six,
    calls_all_six,
    pages_by_text,
    reads_a_long_field_by_text,
    reads_a_long_field_by_structure,
    reads_a_long_field_by_resources,
    finds_its_way_out_of_ambiguity,
)
