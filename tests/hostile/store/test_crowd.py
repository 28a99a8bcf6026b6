"""F9, F10 and F24: many writers, two processes, long readers, and a backup in the middle of it all."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.errors import QueryTimeout
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId
from headgate.store.engines.commands import commands_of
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.backup import restore
from headgate.store.maintenance.sqlite_home import reading_store
from headgate.store.sqlite import FILE, database as databases
from headgate.store.sqlite.database import open_reader, translate_errors
from tests.hostile.store.scene import batch, damages, filled, line, page, search, with_store

ROOT = Path(__file__).parents[3]
LINES = 3


async def write(store: SqliteStore, connection_id: ConnectionId, name: str, count: int) -> list[float]:
    """Take batches in one after the other; gives how long each took, in milliseconds."""
    took: list[float] = []
    for number in range(count):
        started = time.monotonic()
        lines = [line(f"{name}/{number}/{n}", body=f"from {name}") for n in range(LINES)]
        assert (await store.ingest(batch(connection_id, lines))).accepted == LINES
        took.append((time.monotonic() - started) * 1000)
    return took


async def write_from_many(store: SqliteStore, connection_id: ConnectionId, name: str) -> list[float]:
    took = await asyncio.gather(*(write(store, connection_id, f"{name}{n}", 12) for n in range(16)))
    return [one for several in took for one in several]


CHILD = """
import asyncio, json, sys
from pathlib import Path
from headgate.home import Home
from tests.hostile.store.scene import with_store
from tests.hostile.store.test_crowd import write_from_many
took = with_store(Home(Path(sys.argv[1])), lambda store: write_from_many(store, sys.argv[2], "child"))
print(json.dumps(took))
"""


def test_sixteen_writers_in_each_of_two_processes_and_a_long_reader_meet_no_error(tmp_path: Path):
    home, connection_id = filled(tmp_path, [line("first")])
    reader = open_reader(home.path / FILE)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home.path), connection_id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with reader.reading(float("inf")):
        assert reader.value("SELECT count(*) FROM record") == 1
        took = with_store(home, lambda store: write_from_many(store, connection_id, "parent"))
        out, err = child.communicate()
        assert reader.value("SELECT count(*) FROM record") == 1
    reader.db.close()
    assert child.returncode == 0, err
    took += json.loads(out)
    with reading_store(home) as database:
        assert database.value("SELECT count(*) FROM record") == 1 + 2 * 16 * 12 * LINES
        assert database.value("SELECT count(DISTINCT seq) FROM record") == 1 + 2 * 16 * 12 * LINES
    assert damages(home) == []
    figures = statistics.quantiles(took, n=100)
    print(f"F9: {len(took)} commits, 0 errors, median {figures[49]:.0f} ms, p99 {figures[98]:.0f} ms")  # noqa: T201


# F10


def test_the_log_stays_short_while_readers_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(databases, "WAL_BYTES", 1 << 20)
    monkeypatch.setattr(databases, "WAL_BYTES_MOST", 3 << 19)
    home, connection_id = filled(tmp_path, [line("first")])
    log = home.path / f"{FILE}-wal"
    longest = written = 0

    async def read_on(store: SqliteStore, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            await search(store, connection_id, "text")
            await page(store, connection_id)
            await asyncio.sleep(0)

    async def work(store: SqliteStore) -> None:
        nonlocal longest, written
        is_over = asyncio.Event()
        readers = [asyncio.create_task(read_on(store, is_over)) for _ in range(4)]
        for number in range(80):
            lines = [line(f"{number}/{n}", body=f"text {number} " * 200) for n in range(40)]
            await store.ingest(batch(connection_id, lines))
            written += sum(map(len, lines))
            longest = max(longest, log.stat().st_size)
        is_over.set()
        await asyncio.gather(*readers)

    with_store(home, work)
    print(f"F10: log at most {longest >> 10} KiB of {3 << 9} KiB allowed, {written >> 10} KiB taken in")  # noqa: T201
    assert longest < 4 << 20
    assert written > 4 << 20
    assert not log.exists() or log.stat().st_size == 0


def test_a_reader_that_holds_on_stops_no_writer_and_the_log_is_cut_once_it_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(databases, "WAL_BYTES", 1 << 20)
    monkeypatch.setattr(databases, "WAL_BYTES_MOST", 3 << 19)
    monkeypatch.setattr(databases, "_WAL_WAIT_MS", 10)
    home, connection_id = filled(tmp_path, [line("first")])
    log = home.path / f"{FILE}-wal"
    reader = open_reader(home.path / FILE)

    async def work(store: SqliteStore) -> None:
        with reader.reading(float("inf")):
            assert reader.value("SELECT count(*) FROM record") == 1
            for number in range(12):
                lines = [line(f"{number}/{n}", body=f"text {number} " * 200) for n in range(40)]
                assert (await store.ingest(batch(connection_id, lines))).accepted == 40
            assert log.stat().st_size > 3 << 19
        held = log.stat().st_size
        for number in range(4):
            await store.ingest(batch(connection_id, [line(f"after{number}")]))
        # The log starts again at its beginning: it grows no further.
        assert log.stat().st_size <= held + 65536

    with_store(home, work)
    reader.db.close()
    assert not log.exists() or log.stat().st_size == 0


def test_no_query_of_ours_holds_on_longer_than_its_deadline(tmp_path: Path):
    home, _ = filled(tmp_path, [line("first")])
    reader = open_reader(home.path / FILE)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(QueryTimeout), translate_errors(), reader.reading(0.05):
        reader.run(endless)
    assert not reader.db.in_transaction
    assert reader.value("SELECT count(*) FROM record") == 1
    reader.db.close()


# F24


def rows_of(home: Home, newest: int) -> list[tuple[object, ...]]:
    with reading_store(home) as database:
        return database.all(
            "SELECT rid, record_id, seq, digest FROM record WHERE seq <= ? ORDER BY rid", (newest,)
        )


def test_a_backup_under_load_is_the_store_at_one_commit(tmp_path: Path):
    home, connection_id = filled(tmp_path, [line(f"first/{n}") for n in range(2000)])

    async def work(store: SqliteStore) -> list[int]:
        writers = [asyncio.create_task(write(store, connection_id, f"w{n}", 40)) for n in range(4)]
        made: list[int] = []
        while not all(task.done() for task in writers):
            copy = tmp_path / f"copy{len(made)}"
            done = await asyncio.to_thread(commands_of(home).back_up, copy, lambda _done, _total: None)
            made.append(done.change_number)
        await asyncio.gather(*writers)
        return made

    made = with_store(home, work)
    for number, newest in enumerate(made):
        other = open_home(tmp_path / f"restored{number}")
        restore(tmp_path / f"copy{number}", other, lambda _done, _total: None, end_at=None)
        assert damages(other) == []
        held = rows_of(other, 2**62)
        assert held == rows_of(home, newest)
        assert len(held) == newest
        # Every batch has three records: a commit lies between two of them, never inside one.
        assert (newest - 2000) % LINES == 0
    assert any(2000 < newest < 2000 + 4 * 40 * LINES for newest in made)
    print(f"F24: {len(made)} backups under load, each equal to the store at its commit: {made}")  # noqa: T201
