"""F3, F4 and F5: no room, no permission, a disk that fails. A batch is there whole or not at all."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from headgate.errors import StorageFull, StorageReadOnly, StorageUnusable
from headgate.model.ids import ConnectionId
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.sqlite.database import open_reader, open_writer, translate_errors
from tests.hostile.store.disks import Disk, watched
from tests.hostile.store.scene import (
    batch,
    damages,
    filled,
    lay_out,
    line,
    page,
    read,
    search,
    take,
    with_store,
)

ROOT = Path(__file__).parents[3]


def large(count: int = 200) -> list[bytes]:
    return [line(f"large{n}", body="many words " * 800) for n in range(count)]


@pytest.fixture
def opened() -> Iterator[list[apsw.Connection]]:
    """Every SQLite connection that is opened from now on."""
    connections: list[apsw.Connection] = []
    apsw.connection_hooks.append(connections.append)
    yield connections
    apsw.connection_hooks.remove(connections.append)


def writer_of(opened: list[apsw.Connection]) -> apsw.Connection:
    """Find the one connection of the open store that may write."""
    (writer,) = filter(_may_write, opened)
    return writer


def _may_write(connection: apsw.Connection) -> bool:
    try:
        return not connection.pragma("query_only")
    except apsw.ConnectionClosedError:
        return False


def limit_pages(writer: apsw.Connection, spare: int) -> None:
    writer.pragma("max_page_count", writer.pragma("page_count") + spare)


def test_a_batch_that_finds_no_room_is_absent_as_a_whole_and_reads_go_on(
    tmp_path: Path, opened: list[apsw.Connection]
):
    home, connection_id = filled(tmp_path, [line(f"k{n}") for n in range(30)])

    async def work(store: SqliteStore) -> None:
        limit_pages(writer_of(opened), 4)
        with pytest.raises(StorageFull):
            await store.ingest(batch(connection_id, large(), key="once"))
        assert await read(store, connection_id, "large0") == ()
        assert len(await page(store, connection_id)) == 25
        assert await search(store, connection_id, "many") == 0
        limit_pages(writer_of(opened), 100_000)
        assert (await store.ingest(batch(connection_id, large(), key="once"))).accepted == 200
        assert await search(store, connection_id, "many") == 25

    with_store(home, work)
    assert damages(home) == []


def test_a_batch_that_finds_no_room_takes_none_of_those_beside_it_along(
    tmp_path: Path, opened: list[apsw.Connection]
):
    home, connection_id = filled(tmp_path, [line(f"k{n}") for n in range(30)])

    async def work(store: SqliteStore) -> tuple[int, int]:
        limit_pages(writer_of(opened), 120)
        small = [batch(connection_id, [line(f"small{n}/{i}") for i in range(5)]) for n in range(20)]
        asked = [*small[:10], batch(connection_id, large()), *small[10:]]
        outcomes = await asyncio.gather(*(store.ingest(one) for one in asked), return_exceptions=True)
        assert all(isinstance(one, StorageFull) for one in outcomes if isinstance(one, BaseException))
        assert isinstance(outcomes[10], StorageFull)
        del asked[10], outcomes[10]
        for number, outcome in enumerate(outcomes):
            held = [len(await read(store, connection_id, f"small{number}/{i}")) for i in range(5)]
            assert held == ([0] * 5 if isinstance(outcome, StorageFull) else [1] * 5)
        return len(outcomes), sum(isinstance(one, StorageFull) for one in outcomes)

    print("F3: of", with_store(home, work), "small batches failed beside one too large")  # noqa: T201 - a figure
    assert damages(home) == []


CHILD = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from headgate.errors import StorageFull, StorageUnusable
from headgate.home import Home
from tests.hostile.store.scene import batch, line, open_store, page, read
from tests.hostile.store.test_full import large

async def work(home, connection_id):
    store = open_store(home)
    size = (home.path / "records.db").stat().st_size
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 65536, hard))
    told = {}
    try:
        await store.ingest(batch(connection_id, large()))
    except StorageUnusable as error:
        told["failure"] = error.code
    told["held"] = len(await read(store, connection_id, "large0"))
    told["page"] = len(await page(store, connection_id))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    told["accepted"] = (await store.ingest(batch(connection_id, large()))).accepted
    await store.close()
    print(json.dumps(told))

asyncio.run(work(Home(Path(sys.argv[1])), sys.argv[2]))
"""


def test_a_file_that_may_not_grow_is_reported_as_no_space_and_recovers_without_a_restart(tmp_path: Path):
    home, connection_id = filled(tmp_path, [line(f"k{n}") for n in range(30)])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(home.path), connection_id],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"failure": "storage_full", "held": 0, "page": 25, "accepted": 200}
    assert damages(home) == []


# F4


def test_a_connection_that_may_not_write_says_so_and_reads(tmp_path: Path, opened: list[apsw.Connection]):
    home, connection_id = filled(tmp_path, [line(f"k{n}") for n in range(30)])

    async def work(store: SqliteStore) -> None:
        writer = writer_of(opened)
        writer.pragma("query_only", 1)
        with pytest.raises(StorageReadOnly):
            await store.ingest(batch(connection_id, [line("new")]))
        assert len(await page(store, connection_id)) == 25
        writer.pragma("query_only", 0)
        assert (await store.ingest(batch(connection_id, [line("new")]))).accepted == 1

    with_store(home, work)
    assert damages(home) == []


OPENER = """
import asyncio, importlib.metadata, os, sys
import numpy
from pathlib import Path
from headgate.errors import HeadgateError
from headgate.home import Home
from headgate.store.sqlite.migrate import all_migrations
from tests.hostile.store.scene import batch, line, open_store, page
# Modules that are only now asked for may not be readable to anybody else.
all_migrations()
# The superuser may write everything.
if os.geteuid() == 0:
    os.setuid(65534)
async def work(store, connection_id):
    print(len(await page(store, connection_id)))
    try:
        await store.ingest(batch(connection_id, [line("new")]))
    except HeadgateError as error:
        print(error.code)
    await store.close()
asyncio.run(work(open_store(Home(Path(sys.argv[1]))), sys.argv[2]))
"""


def test_a_home_that_may_not_be_written_is_read_and_left_alone():
    with tempfile.TemporaryDirectory() as place:
        home, connection_id = filled(Path(place), [line(f"k{n}") for n in range(30)])
        before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
        for path in (Path(place), home.path, home.path / "blobs", home.path / "records.db"):
            path.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", OPENER, str(home.path), connection_id],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("25\nstorage_read_only\n", "")
        assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before
        for path in (Path(place), home.path, home.path / "blobs"):
            path.chmod(0o755)


# F5


def laid_out(path: Path) -> ConnectionId:
    """Make a store with one batch in it."""
    database = open_writer(path)
    connection_id = lay_out(database)
    take(database, connection_id, [line(f"0/{n}") for n in range(5)])
    database.db.close()
    return connection_id


def failing_at(
    path: Path, connection_id: ConnectionId, call: int | None, *, for_good: bool
) -> tuple[int, int]:
    """Take two batches in on a disk that fails at one call; gives the calls made and batches acknowledged."""
    disk = Disk(fails_for_good=for_good)
    done = 0
    with watched(disk) as vfs:
        database = open_writer(path, vfs=vfs)
        take(database, connection_id, [line("warm")])
        disk.calls, disk.fail_at = 0, call
        for number in (1, 2):
            try:
                with translate_errors():
                    take(
                        database, connection_id, [line(f"{number}/{n}", body="word " * 900) for n in range(5)]
                    )
                    done = number if done == number - 1 else done
                    database.db.wal_checkpoint()
            except StorageUnusable:
                # Any other error is no report of a failing disk.
                continue
        calls, disk.fail_at = disk.calls, None
        database.db.close()
    return calls, done


@pytest.mark.parametrize("for_good", [False, True])
def test_a_disk_that_fails_at_any_call_never_tears_a_batch(tmp_path: Path, *, for_good: bool):
    connection_id = laid_out(tmp_path / "base.db")
    shutil.copy(tmp_path / "base.db", tmp_path / "records.db")
    calls, _ = failing_at(tmp_path / "records.db", connection_id, None, for_good=for_good)
    failures = 0
    for call in range(1, calls + 1):
        place = tmp_path / str(call)
        place.mkdir()
        shutil.copy(tmp_path / "base.db", place / "records.db")
        _, done = failing_at(place / "records.db", connection_id, call, for_good=for_good)
        failures += done < 2
        database = open_reader(place / "records.db")
        held = [
            database.value("SELECT count(*) FROM record WHERE record_id LIKE ?", (f"{number}/%",))
            for number in (0, 1, 2)
        ]
        assert held[0] == 5
        assert set(held) <= {0, 5}, (call, held)
        assert all(held[number] == 5 for number in range(done + 1)), (call, held, done)
        assert database.all("PRAGMA quick_check") == [("ok",)]
        database.db.close()
    print(f"F5: failed at each of {calls} calls; {failures} times a batch was refused, none was torn")  # noqa: T201
    assert failures > 0
