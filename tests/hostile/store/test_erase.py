"""F25: after an erasure no byte of what was erased is in any file of the home."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headgate.errors import CursorExpired, NotFound
from headgate.home import Home
from headgate.model.ids import ConnectionId, RecordId
from headgate.model.plan import ChangesPlan, Reach
from headgate.store.engines import commands
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import writing_store
from headgate.store.sqlite.migrate import backup
from tests.hostile.store.scene import (
    FIELDS,
    MAIL,
    MESSAGES,
    batch,
    connect,
    damages,
    deletion,
    line,
    new_home,
    page,
    search,
    with_store,
)
from tests.schema.declarations import declaration

#: Words of the index are kept without the beginning they share with their neighbours: look for their ends.
WORDS = (
    "zqxkeycanary",
    "zqxsubjectcanary",
    "zqxbodycanary",
    "zqxlongcanary",
    "zqxsendercanary",
    "zqxfilecanary",
)
#: Also in the id of the connection that is erased, and nowhere else.
NAME = "Zqxnamecanary"
ENDS = tuple(word[4:].encode() for word in WORDS)
KEY, SUBJECT, BODY, LONG, SENDER, FILE = WORDS
#: Sent at a time that nothing else has, in microseconds since 1970 as SQLite writes it.
SENT_AT = "2031-07-08T09:10:11.121314Z"
SENT_BYTES = (1_941_354_611_121_314).to_bytes(8, "big")


def traces(home: Home) -> list[str]:
    """Say which files hold an end of which canary."""
    found: list[str] = []
    for path in sorted(home.path.rglob("*")):
        content = path.read_bytes().lower() if path.is_file() else b""
        found += [f"{end.decode()} in {path.name}" for end in ENDS if end in content]
        if path.is_file() and SENT_BYTES in path.read_bytes():
            found.append(f"its time in {path.name}")
    return found


def canary(**values: object) -> bytes:
    body = " ".join([BODY] * 3)
    held = {"subject": f"about {SUBJECT}", "body": body, "sender": SENDER, "sent_at": SENT_AT, **values}
    return line(KEY, **held)


def crowd(seed: int, count: int) -> Iterator[bytes]:
    """Neighbours of all sizes around the canary, so that pages split and merge where it lies."""
    chance = random.Random(seed)
    for _ in range(count):
        key = f"{chance.choice('azqx')}{chance.randrange(10**6)}"
        text = " ".join(
            f"zqx{chance.choice('abcsk')}{chance.randrange(500)}" for _ in range(chance.randrange(60))
        )
        day = f"2026-01-{chance.randrange(1, 29):02}T00:00:00Z"
        yield line(
            key, body=text, size=chance.randrange(9), sender=f"zqxs{chance.randrange(50)}", sent_at=day
        )


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def fill_with_canary(store: SqliteStore, connection_id: ConnectionId, neighbours: int = 400) -> None:
    await store.ingest(batch(connection_id, crowd(1, neighbours)))
    blob_id, _ = await store.put_blob(_pieces(FILE.encode() * 9), "text/plain")
    broken = b'{"data": {"id": "' + KEY.encode() + b'", "size": "' + BODY.encode() + b'\\u0000"}}'
    lines = [canary(headers={"blob_id": blob_id}), broken]
    await store.ingest(batch(connection_id, lines, key=f"batch of {KEY}"))
    await store.ingest(batch(connection_id, crowd(2, neighbours)))


async def _never_touched(store: SqliteStore, connection_id: ConnectionId) -> None:
    await store.ingest(batch(connection_id, crowd(3, 50)))


async def _changed(store: SqliteStore, connection_id: ConnectionId) -> None:
    await store.ingest(batch(connection_id, [canary(size=5), *crowd(4, 50)]))
    await store.ingest(batch(connection_id, [canary(subject="plain"), *crowd(5, 50)]))


async def _long(store: SqliteStore, connection_id: ConnectionId) -> None:
    await store.ingest(batch(connection_id, [canary(body=f"{LONG} " * 20_000)]))


async def _deleted(store: SqliteStore, connection_id: ConnectionId) -> None:
    await store.ingest(batch(connection_id, [deletion(KEY), *crowd(6, 50)]))


async def _declared_anew(store: SqliteStore, connection_id: ConnectionId) -> None:
    document = declaration()
    document["declaration_version"] = "2026-08-12"
    document["streams"][0]["query"]["search"]["lexical_fields"].append("sender")
    await store.declare(MAIL, document)


HISTORIES = [_never_touched, _changed, _long, _deleted, _declared_anew]


def _scene(place: Path, history: object) -> tuple[Home, ConnectionId, ConnectionId]:
    home = new_home(place)

    async def work(store: SqliteStore) -> tuple[ConnectionId, ConnectionId]:
        mine, other = await connect(store, NAME), await connect(store)
        await fill_with_canary(store, mine)
        await store.ingest(batch(other, crowd(7, 100)))
        await history(store, mine)
        return mine, other

    mine, other = with_store(home, work)
    with writing_store(home) as database:
        backup(database, home.path / "records.db.before-0002")
    return home, mine, other


@pytest.mark.parametrize("history", HISTORIES)
def test_an_erased_record_leaves_no_byte(tmp_path: Path, history: object):
    home, mine, other = _scene(tmp_path, history)
    assert traces(home)
    gone = commands.commands_of(home).erase_record(mine, stream=MESSAGES, record_id=RecordId(KEY))
    assert traces(home) == []
    assert (gone.record_count, gone.blob_count, gone.copy_count) == (1, 1, 1)
    assert damages(home) == []

    async def still_works(store: SqliteStore) -> None:
        assert await search(store, mine, SUBJECT) == 0
        assert len(await page(store, mine)) == len(await page(store, other)) == 25
        await store.ingest(batch(mine, [line("afterwards")]))

    with_store(home, still_works)
    assert traces(home) == []


@pytest.mark.parametrize("history", HISTORIES)
def test_an_erased_connection_leaves_no_byte(tmp_path: Path, history: object):
    home, mine, other = _scene(tmp_path, history)
    commands.commands_of(home).erase_connection(mine)
    assert traces(home) == []
    assert mine == NAME.lower()
    assert [path.name for path in home.path.rglob("*") if mine.encode() in _content(path).lower()] == []
    assert damages(home) == []

    async def others_stay(store: SqliteStore) -> None:
        assert [one.id for one in await store.connections()] == [other]
        assert len(await page(store, other)) == 25

    with_store(home, others_stay)


def test_erasing_ends_bookmarks_and_a_record_may_come_back_and_be_erased_again(tmp_path: Path):
    home, mine, _ = _scene(tmp_path, _never_touched)
    reach = Reach(MESSAGES, (mine,), FIELDS)

    async def bookmark(store: SqliteStore) -> int:
        return (await store.changes(ChangesPlan(reach, 25, 0))).horizon

    since = with_store(home, bookmark)
    for _ in range(2):
        commands.commands_of(home).erase_record(mine, stream=MESSAGES, record_id=RecordId(KEY))

        async def again(store: SqliteStore) -> None:
            with pytest.raises(CursorExpired):
                await store.changes(ChangesPlan(reach, 25, since))
            await store.ingest(batch(mine, [canary()]))
            assert await search(store, mine, SUBJECT) == 1

        with_store(home, again)
    assert damages(home) == []


def test_what_is_not_there_cannot_be_erased(tmp_path: Path):
    home, mine, _ = _scene(tmp_path, _never_touched)
    for connection_id, key in ((mine, "nobody"), (ConnectionId("cin_none"), KEY)):
        with pytest.raises(NotFound):
            commands.commands_of(home).erase_record(connection_id, stream=MESSAGES, record_id=RecordId(key))
    with pytest.raises(NotFound):
        commands.commands_of(home).erase_connection(ConnectionId("cin_none"))


def test_the_search_for_traces_finds_what_a_plain_deletion_leaves(tmp_path: Path):
    home, _, _ = _scene(tmp_path, _deleted)
    (home.path / "records.db.before-0002").unlink()
    assert any("in records.db" in trace for trace in traces(home))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
