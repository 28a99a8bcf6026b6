"""A home with a store in it, filled with lines that can be counted and recognised."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, RecordId, StreamName
from headgate.model.plan import PagePlan, Reach, RecordPlan, SearchPlan, SearchReach, Term
from headgate.model.record import Record
from headgate.model.rows import Batch, IngestReport, OnInvalid
from headgate.store.changes import accounts, declare, ingest
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.fsck import check_store
from headgate.store.maintenance.sqlite_home import blob_files, reading_store
from headgate.store.sql.catalog import current
from headgate.store.sqlite.database import SqliteDatabase
from headgate.store.sqlite.migrate import all_migrations, migrate
from tests.schema.declarations import declaration

MAIL = ConnectorKey("mail")
MESSAGES = StreamName("messages")
FIELDS = tuple(FieldName(name) for name in ("id", "subject", "body", "sent_at", "size"))
#: Microseconds since 1970: when everything in these tests happens.
NOW = 1_800_000_000_000_000


def new_home(place: Path) -> Home:
    return open_home(place / "home")


def open_store(home: Home) -> SqliteStore:
    return SqliteStore(home, lambda: NOW)


def line(key: str, **values: Any) -> bytes:
    data = {"id": key, "subject": f"subject of {key}", "sent_at": "2026-01-02T03:04:05Z", **values}
    return json.dumps({"data": data}).encode()


def deletion(key: str) -> bytes:
    return json.dumps({"key": [key], "op": "delete"}).encode()


def batch(connection_id: ConnectionId, lines: Iterable[bytes], key: str | None = None) -> Batch:
    return Batch(connection_id, MESSAGES, list(lines), NOW, key, OnInvalid.KEEP)


async def connect(store: SqliteStore, name: str = "") -> ConnectionId:
    await store.declare(MAIL, declaration())
    return (await store.create_connection(MAIL, name)).id


def with_store(home: Home, work: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
    """Open the store, do the work, and close it as a program that ends well does."""

    async def run() -> Any:
        store = open_store(home)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def filled(place: Path, lines: Iterable[bytes]) -> tuple[Home, ConnectionId]:
    """Make a home whose store holds these lines."""
    home = new_home(place)

    async def work(store: SqliteStore) -> ConnectionId:
        connection_id = await connect(store)
        await store.ingest(batch(connection_id, lines))
        return connection_id

    return home, with_store(home, work)


async def read(store: SqliteStore, connection_id: ConnectionId, key: str) -> tuple[Record, ...]:
    return await store.record(RecordPlan(Reach(MESSAGES, (connection_id,), FIELDS), RecordId(key)))


async def page(store: SqliteStore, connection_id: ConnectionId, limit: int = 25) -> tuple[Record, ...]:
    return (await store.page(PagePlan(Reach(MESSAGES, (connection_id,), FIELDS), limit))).records


async def search(store: SqliteStore, connection_id: ConnectionId, word: str) -> int:
    reach = SearchReach(Reach(MESSAGES, (connection_id,), FIELDS), (FIELDS[1], FIELDS[2]))
    return len((await store.search(SearchPlan((reach,), (Term((word,)),), 25))).hits)


def damages(home: Home) -> list[tuple[str, str | None]]:
    """Say what fsck finds: kinds and records."""
    with reading_store(home) as database:
        found = check_store(database, blob_files(home), lambda _done, _total: None)
    return [(damage.kind, damage.record_id) for damage in found.damages]


def lay_out(database: SqliteDatabase) -> ConnectionId:
    """Bring a bare file to the newest schema, and connect one account, without the store's threads."""
    migrate(database, all_migrations())
    with database.writing():
        declare.declare(database, MAIL, declaration())
        return accounts.create(database, MAIL, "", at=NOW).id


def take(database: SqliteDatabase, connection_id: ConnectionId, lines: Iterable[bytes]) -> IngestReport:
    """Take a batch in, without the store's threads."""
    with database.writing():
        catalog = current(database)
        return ingest.take(database, ingest.check(batch(connection_id, lines), catalog))
