"""The same call over hosted MCP, stdio on the home and stdio on the address gives the same text, byte for byte.

What differs by its nature is left out: cursors and handles, which hold when they end and by whom they are read,
ids of requests, and the address under which a client knows the server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from headgate import wiring
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from headgate.model.ids import ConnectionId
from headgate.model.rows import Batch
from tests.mcp.serve.product import Product, product
from tests.parity.test_reads import clients
from tests.schema.declarations import declaration

BYTES = base64.b64encode(bytes(range(256)) * 40).decode()
#: Longer than what is read of a text for a page.
LONG_BYTES = base64.b64encode(bytes(range(256)) * 120).decode()
LONG = "A sentence about the bridge, and über all of it. "
DEEP: Any = {"x-list": [{"n": n, "words": LONG} for n in range(900)]}
LONG_KEY = "letter-" + "k" * 900
RECORDS: list[dict[str, Any]] = [
    {"id": "short", "subject": "Bridge", "sender": "Ines", "body": "The bridge."},
    {"id": "long", "subject": "Bridge plan", "sender": "Ines", "body": LONG * 900, "size": 7},
    {"id": "untitled", "sender": "Aiko Mori", "body": LONG * 90, "headers": {"a": [1, {"b": None}]}},
    {"id": "nested", "subject": "Bridge tree", "sender": "Sam", "headers": DEEP, "weight": 2.5},
    {"id": "middle", "subject": "Bridge list", "body": LONG * 30, "anything": [LONG] * 60, "is_read": True},
    {"id": "binary", "subject": "Bridge scan", "body": "The bridge.", "headers": {"scan": BYTES}},
    {"id": "raw", "subject": "Bridge raw", "anything": BYTES, "body": LONG_BYTES},
    {"id": LONG_KEY, "subject": "Bridge far away", "body": LONG * 40},
    {"id": "odd \n key", "subject": "世界 Bridge \u202e", "body": "世界 bridge " * 900},
]
OPAQUE = re.compile(
    r"pdpp://[a-z-]+/[\w.%-]+|\b(?:pg|ch|se|fw|rh|wh|bh)1\.[\w-]+|\bc\.[\w-]{22}|req_[0-9a-f]+|http://127\.0\.0\.1:\d+"
)


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield asyncio.run(_extended(made))


async def _extended(made: Product) -> Product:
    """Add a connection with long, nested and encoded values, and grant all there is."""
    async with wiring.open_stores(made.settings) as stores:
        await stores.store.declare("archive", declaration())
        archive = (await stores.store.create_connection("archive", "Archive")).id
        lines = [
            json.dumps({"data": {"sent_at": f"2026-03-0{n + 1}T00:00:00Z", **record}}).encode()
            for n, record in enumerate(RECORDS)
        ]
        report = await stores.store.ingest(Batch(archive, "messages", lines, 1))
        assert report.accepted == len(RECORDS), report
        rows = [json.dumps({"data": {"message_id": "short", "id": str(n)}}).encode() for n in range(5)]
        await stores.store.ingest(Batch(archive, "attachments", rows, 1))
        issued = await issue(
            stores.ledger, Choice(), Conditions("agent"), catalog=await stores.catalog(), now=now()
        )
        connections = {**made.connections, "Archive": archive}
        return Product(
            made.address,
            made.settings,
            made.program,
            connections,
            made.package,
            issued.access_token,
            made.owner,
        )


def calls(archive: ConnectionId, home: ConnectionId) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give calls of all six tools; the connection of the archive has what is long, nested and encoded."""
    here = {"stream": "messages", "connection_id": archive}
    for arguments in (
        {},
        {"stream": "messages"},
        {"stream": "nothing"},
        here,
        {**here, "detail": "full"},
        {"connector_key": "mail"},
        {"stream": "messages", "detail": "full"},
    ):
        yield "schema", arguments
    for arguments in (
        here,
        *({**here, "limit": limit} for limit in (1, 3, 100)),
        {**here, "order": "asc", "count": "exact"},
        {**here, "fields": ["subject", "body"]},
        {**here, "filter": {"sender": "Ines"}},
        {**here, "filter": {"sent_at": {"gte": "2026-03-04T00:00:00Z"}}},
        {**here, "filter": {"headers": "x"}},
        {**here, "expand": ["attachments"]},
        {**here, "changes_since": "beginning"},
        {**here, "view": "subjects"},
        {"stream": "messages", "connector_key": "mail", "limit": 100},
        {"stream": "messages"},
        {"stream": "nothing"},
        {**here, "cursor": "pg1.wrong"},
    ):
        yield "query_records", arguments
    for arguments in (
        {"metric": "count"},
        {"metric": "count", "group_by": "sender"},
        {"metric": "sum", "field": "size", "group_by_time": "sent_at", "granularity": "month"},
        {"metric": "max", "field": "sent_at"},
        {"metric": "sum", "field": "subject"},
    ):
        yield "aggregate", {**here, **arguments}
    yield from searches(archive, home)
    for record in RECORDS:
        if " " not in record["id"]:
            yield "fetch", {"id": f"{archive}/messages:{record['id']}"}
            for field in ("body", "headers", "anything", "subject"):
                place = {**here, "record_id": record["id"], "field_path": field}
                yield "read_record_field", place
                yield "read_record_field", {**place, "offset_chars": 30, "limit_chars": 50}
                yield "fetch", {"id": f"{archive}/messages:{record['id']}", "fields": [field]}
    yield "fetch", {"id": f"{archive}/messages:short", "expand": ["attachments"]}
    yield "fetch", {"id": "messages:m00001"}
    yield "fetch", {"id": f"{archive}/messages:absent"}
    yield "fetch", {"id": f"{home}/messages:m00000"}
    yield "read_record_field", {**here, "record_id": "long", "field_path": "body", "q": "über"}
    yield "read_record_field", {**here, "record_id": "long", "field_path": "body", "q": "absent"}


def searches(archive: ConnectionId, home: ConnectionId) -> Iterator[tuple[str, dict[str, Any]]]:
    for limit in (1, 2, 25, 60, 100):
        yield "search", {"q": "bridge", "limit": limit}
    for arguments in (
        {"q": "bridge", "connection_id": archive},
        {"q": "bridge", "connection_id": home, "limit": 4},
        {"q": "世界"},
        {"q": "absent"},
        {"q": "bridge", "streams": ["messages"], "connector_key": "mail"},
        {"q": "bridge", "mode": "semantic"},
    ):
        yield "search", arguments


def masked(result: Any) -> list[str]:
    return [OPAQUE.sub("…", part.text) for part in result.content if part.type == "text"]


def first_difference(texts: dict[str, list[str]]) -> str:
    """Show where texts begin to differ."""
    joined = {way: "\n".join(text) for way, text in texts.items()}
    pairs = enumerate(zip(*joined.values(), strict=False))
    same = next((at for at, several in pairs if len(set(several)) > 1), min(map(len, joined.values())))
    return "\n".join(f"  {way}: {text[max(0, same - 40) : same + 120]!r}" for way, text in joined.items())


def test_every_text_is_the_same_over_all_three_ways(shipped: Product, tmp_path: Path):
    different: list[str] = []

    async def go() -> None:
        async with AsyncExitStack() as stack:
            made = await clients(shipped, tmp_path, stack)
            archive, home = shipped.connections["Archive"], shipped.connections["Home mail"]
            for tool, arguments in calls(archive, home):
                texts = {way: masked(await client.call_tool(tool, arguments)) for way, client in made.items()}
                if len({tuple(text) for text in texts.values()}) > 1:
                    different.append(f"{tool} {arguments}\n{first_difference(texts)}")

    asyncio.run(go())
    assert not different, "\n".join(different)
