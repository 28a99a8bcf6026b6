"""The records that journeys are made through: four worlds in one home, and what was written into each."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headgate import wiring
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from headgate.model.ids import ConnectorKey
from headgate.model.rows import Batch
from headgate.settings import Settings
from headgate.store.engines.store import Store
from tests.mcp.serve.odd import declaration_of, stream_of
from tests.mcp.serve.world import SMALL
from tests.stitched import fill

WAYS = ("hosted", "stdio", "remote")
Record = dict[str, Any]
Shelf = tuple[str, str]
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
TIME = {"type": "string", "format": "date-time"}
#: The connections of each of the 24 connectors of the crowded world: 175.
CROWD = (80, *[4] * 22, 7)
CONTENT = bytes(range(256)) * 40
LARGE = bytes(range(251)) * 40_000
ENCODED = base64.b64encode(CONTENT * 80).decode()
LINE = "The bridge over the canal holds, and nobody crosses it before noon. "
#: A sentence, and words in it that a search finds.
CJK = "春の橋は川を渡る。世界は広い、そして静かです。"

KEYS: tuple[str, ...] = (
    "plain",
    "UPPER",
    "7",
    "007",
    "-1",
    "two words",
    " leading",
    "trailing ",
    "a/b/c",
    "https://example.com/a?b=c&d=e#f",
    "back\\slash",
    'double"quote',
    "single'quote",
    "100%",
    "%2F",
    "colon:colon",
    "comma,semi;colon",
    "pipe|pipe",
    "[brackets]{braces}",
    '["json","list"]',
    "equals id=other",
    "Ünïcödé",
    "世界の橋",
    "👩‍👩‍👧‍👦🌉",
    "line\nbreak",
    "tab\tstop",
    "null",
    "k" * 1_000,
    "世" * 1_000,
)


@dataclass
class WrittenWorld:
    """One world: the token for it, and what was written under each connection and stream."""

    name: str
    token: str = ""
    #: The names of connections by their ids.
    connections: dict[str, str] = field(default_factory=dict[str, str])
    written: dict[Shelf, list[Record]] = field(default_factory=dict[Shelf, list[Record]])
    #: The declared fields of each stream, by connector and name.
    fields: dict[Shelf, set[str]] = field(default_factory=dict[Shelf, set[str]])

    def records(self, stream: str) -> list[Record]:
        return [record for (_, name), records in self.written.items() if name == stream for record in records]

    @property
    def streams(self) -> set[str]:
        return {name for _, name in self.written}


class _World:
    """Writes one world, and remembers what was written."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.made = WrittenWorld(name)
        self._streams: dict[str, list[str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def declare(self, key: ConnectorKey, document: Mapping[str, Any]) -> Any:
        for stream in document["streams"]:
            self.made.fields[key, stream["name"]] = set(stream["schema"]["properties"])
        self._streams[key] = [stream["name"] for stream in document["streams"]]
        return await self.store.declare(key, document)

    async def create_connection(self, key: ConnectorKey, name: str) -> Any:
        made = await self.store.create_connection(key, name)
        self.made.connections[made.id] = name
        for stream in self._streams[key]:
            self.made.written[made.id, stream] = []
            self.made.fields[made.id, stream] = self.made.fields[key, stream]
        return made

    async def ingest(self, batch: Batch) -> Any:
        report = await self.store.ingest(batch)
        assert report.errors == (), report.errors
        self.made.written[batch.connection_id, batch.stream] += [
            msgspec.json.decode(line)["data"] for line in batch.lines
        ]
        return report

    async def source(self, key: str, *streams: dict[str, Any], names: Sequence[str] = ()) -> list[str]:
        """Declare a source and connect it under each of the names."""
        await self.declare(ConnectorKey(key), declaration_of(key, streams))
        return [(await self.create_connection(ConnectorKey(key), name)).id for name in names or [f"My {key}"]]

    async def write(self, connection: Any, stream: Any, *records: Record) -> None:
        await self.ingest(
            Batch(connection, stream, [json.dumps({"data": one}).encode() for one in records], 1)
        )

    async def file(self, content: bytes, mime_type: str) -> Record:
        async def pieces() -> AsyncIterator[bytes]:
            yield content

        blob, size = await self.store.put_blob(pieces(), mime_type)
        digest = hashlib.sha256(content).hexdigest()
        return {"blob_id": blob, "mime_type": mime_type, "size_bytes": size, "sha256": digest}


async def _stitched(world: _World) -> None:
    await fill(world, SMALL)  # type: ignore[arg-type] - it forwards what it does not record


def _payments() -> dict[str, Any]:
    numbers = {"amount": WHOLE, "payee": TEXT, "paid_at": TIME, "note": TEXT}
    made = stream_of(
        "payments",
        numbers,
        search={"lexical_fields": ["note"]},
        aggregations={
            "count": True,
            "sum": ["amount"],
            "min": ["amount"],
            "max": ["amount"],
            "count_distinct": ["payee"],
            "group_by": ["payee"],
            "group_by_time": ["paid_at"],
        },
        range_filters={"paid_at": ["gte", "lt"]},
    )
    return made | {"cursor_field": "paid_at"}


async def _crowd(world: _World) -> None:
    """24 connectors with 175 connections, all of which have payments; the even ones have one more field."""
    for number, size in enumerate(CROWD):
        payments = _payments()
        if number % 2 == 0:
            payments["schema"]["properties"]["category"] = TEXT
        own = stream_of(f"items_{number}", {"label": TEXT})
        names = [f"Account {at} of bank {number} in the old town by the river" for at in range(size)]
        made = await world.source(f"bank{number}", payments, own, names=names)
        # Batches that wait together share a transaction.
        await asyncio.gather(*(_write_account(world, one, number, at) for at, one in enumerate(made)))


async def _write_account(world: _World, connection: str, number: int, at: int) -> None:
    await asyncio.gather(
        world.write(connection, "payments", *(_payment(number, at, which) for which in range(2))),
        world.write(connection, f"items_{number}", {"id": "only", "label": f"{number} at {at}"}),
    )


def _payment(number: int, at: int, which: int) -> Record:
    month = 1 + (number + at + which) % 12
    return {
        "id": f"p{which}",
        "amount": 100 * number + at + which,
        "payee": f"Payee {(number * 7 + at + which) % 31} at the corner of the market",
        "paid_at": f"2026-{month:02}-03T10:00:00Z",
        "note": f"rent {number} {at} {which}",
    }


async def _wide(world: _World) -> None:
    """120 streams, some with long names."""
    names = [f"stream_{n:03}" + "_with_a_long_name" * (n % 4) for n in range(118)] + ["with space", "日記"]
    (one,) = await world.source("wide", *(stream_of(name, {"label": TEXT, "n": WHOLE}) for name in names))
    rows = {name: [{"id": f"r{m}", "label": f"{name} {m}", "n": m} for m in range(2)] for name in names}
    await asyncio.gather(*(world.write(one, name, *rows[name]) for name in names))


async def _deep(world: _World) -> None:
    """One stream of 400 fields: short, long, nested and absent ones."""
    fields = {
        f"field_{n:03}_of_the_form": (TEXT, WHOLE, {"type": "object"}, {"type": ["string", "null"]})[n % 4]
        for n in range(399)
    }
    (one,) = await world.source("deep", stream_of("forms", fields))
    for row in range(3):
        values = {name: _value(n, row) for n, name in enumerate(fields)}
        present = {name: value for n, (name, value) in enumerate(values.items()) if row < 2 or n % 7 == 0}
        await world.write(one, "forms", {"id": f"form{row}", **present})


def _value(n: int, row: int) -> Any:
    size = (1, 3, 40)[row]
    return (f"{n} " + LINE * size, n * 1_000 + row, {"n": n, "list": [LINE] * size}, None)[n % 4]


async def _keys(world: _World) -> None:
    """Keys of every shape: texts, whole numbers, and several fields."""
    texts = stream_of("texts", {"label": TEXT}, search={"lexical_fields": ["label"]})
    numbers = stream_of("numbers", {"label": TEXT})
    numbers["schema"]["properties"]["id"] = WHOLE
    pairs = stream_of("pairs", {"folder": TEXT, "label": TEXT}) | {"primary_key": ["folder", "id"]}
    pairs["schema"]["properties"]["id"] = WHOLE
    (one,) = await world.source("keys", texts, numbers, pairs, stream_of("log", {"label": TEXT}))
    await world.write(one, "texts", *({"id": key, "label": f"bridge {n}"} for n, key in enumerate(KEYS)))
    await world.write(one, "numbers", *({"id": n, "label": str(n)} for n in (0, 1, -1, 7, 2**53, 1 - 2**63)))
    folders = ("a", "a/b", 'a"b', "a,b", "世界", "x y", "%", "k" * 400)
    log = [*({"id": f"{n:03}", "label": "x"} for n in range(70)), *({"id": f"old-{way}"} for way in WAYS)]
    await world.write(one, "log", *log)
    await world.write(
        one, "pairs", *({"folder": name, "id": n, "label": f"{n}"} for name in folders for n in (1, 10))
    )


async def _cjk(world: _World) -> None:
    diary = stream_of(
        "日記", {"題": TEXT, "本文": TEXT, "年": WHOLE}, search={"lexical_fields": ["題", "本文"]}
    )
    letters = stream_of(
        "letters", {"title": TEXT, "body": TEXT}, search={"lexical_fields": ["title", "body"]}
    )
    (one,) = await world.source("東京", diary, letters, names=["東京の日記帳"])
    for stream, title, body in (("日記", "題", "本文"), ("letters", "title", "body")):
        rows = [
            {"id": f"日{n}", title: f"第{n}日 {CJK}", body: CJK * (1_000 if n == 3 else n + 1)}
            for n in range(60)
        ]
        rows = [row | ({"年": 2_000 + n} if stream == "日記" else {}) for n, row in enumerate(rows)]
        await world.write(one, stream, *rows)


async def _long(world: _World) -> None:
    """Fields of 1 MB: texts, an object, a list, and encoded bytes."""
    nested = {"type": "object"}
    kinds = {"body": TEXT, "tree": nested, "list": {"type": "array"}, "scan": TEXT, "title": TEXT}
    (one,) = await world.source(
        "long", stream_of("papers", kinds, search={"lexical_fields": ["title", "body"]})
    )
    numbered = "".join(f"{n}. {LINE}" for n in range(14_000))
    tree = {f"branch {n}": {"n": n, "leaves": [LINE, {"deep": n}] * 15} for n in range(900)}
    await world.write(
        one,
        "papers",
        {"id": "text", "title": "A long text", "body": numbered},
        {"id": "tree", "title": "A large tree", "tree": tree},
        {"id": "list", "title": "A long list", "list": [{"n": n, "line": LINE} for n in range(3_000)]},
        {"id": "scan", "title": "A scan", "scan": ENCODED},
        {"id": "wide", "title": "漢字", "body": CJK * 15_000},
        {
            "id": "all",
            "title": "All",
            "body": numbered[:60_000],
            "tree": {"a": LINE * 900},
            "scan": ENCODED[:9_000],
        },
    )


async def _files(world: _World) -> None:
    """Files as fields and inside objects, one too large for one read."""
    kinds = {"name": TEXT, "file": {"type": "object"}, "extra": {"type": "object"}}
    (one,) = await world.source("files", stream_of("scans", kinds), names=["Scanner"])
    (other,) = await world.source("more_files", stream_of("scans", kinds), names=["Other scanner"])
    picture, film = await world.file(CONTENT, "image/png"), await world.file(LARGE, "video/mp4")
    await world.write(
        one,
        "scans",
        {"id": "small", "name": "small.png", "file": picture},
        {"id": "large", "name": "large.mp4", "file": film},
        {"id": "more", "name": "more.png", "file": {**picture, "camera": "Old", "place": [LINE] * 30}},
        {"id": "none", "name": "none.png", "extra": {"why": "lost"}},
    )
    await world.write(other, "scans", {"id": "small", "name": "small.png", "file": picture})


async def _shapes(world: _World) -> None:
    """Records of every shape under one token, which opens one session for all of them."""
    for write in (_deep, _keys, _cjk, _long, _files):
        await write(world)


WORLDS = {"stitched": _stitched, "crowd": _crowd, "wide": _wide, "shapes": _shapes}


async def write_worlds(settings: Settings, names: Sequence[str] = tuple(WORLDS)) -> dict[str, WrittenWorld]:
    """Write worlds into a home, with a token for each that grants it whole."""
    made: dict[str, WrittenWorld] = {}
    async with wiring.open_stores(settings) as stores:
        for name in names:
            world = _World(stores.store, name)
            await WORLDS[name](world)
            choice = Choice(connection_ids=tuple(world.made.connections))  # type: ignore[arg-type] - plain ids
            issued = await issue(
                stores.ledger, choice, Conditions("agent"), catalog=await stores.catalog(), now=now()
            )
            world.made.token = issued.access_token
            made[name] = world.made
    return made
