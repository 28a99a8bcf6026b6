"""The homes that benchmarks read: so many records over 20 connections, made once and kept in .cache/bench."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.records import HOME, Household, Made, declaration
from headgate.home import open_home
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.rows import Batch
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.engines.store import Store
from headgate.store.sqlite import FILE

CONNECTIONS = 20
CACHE = Path(".cache/bench")
NOW = 1_790_000_000_000_000
#: How many files of 5 MB there are.
BIG = 4
_CHUNK = 20_000
_AT_ONCE = 128
_RATE_OVER = 100_000
#: The fields that searches look in.
SEARCHED = {
    "messages": ("subject", "text"),
    "transactions": ("merchant", "description"),
    "events": ("title", "location", "description"),
    "files": ("name", "content"),
    "activities": ("title", "artist"),
}


class Built(msgspec.Struct):
    """What is known about a home that was made."""

    records: int
    json_bytes: int
    first_rate: float
    last_rate: float
    bare_rate: float
    file_bytes: int
    figures: dict[str, float] = {}


def read_built(directory: Path) -> Built | None:
    """Read what is known about a home that was made before."""
    file = directory / "built.json"
    return msgspec.json.decode(file.read_bytes(), type=Built) if file.exists() else None


def write_built(directory: Path, built: Built) -> None:
    (directory / "built.json").write_bytes(msgspec.json.encode(built))


async def build_home(directory: Path, records: int) -> Built:
    """Make a home with so many records, and note what that took."""
    print(f"making a home with {records} records in {directory} (once)")
    home = directory / "home"
    # One that was left half made is made anew.
    shutil.rmtree(directory, ignore_errors=True)
    home.mkdir(parents=True, mode=0o700)
    store = SqliteStore(open_home(home), lambda: NOW)
    await store.declare(HOME, declaration())
    ids = [(await store.create_connection(HOME, f"Person {n}")).id for n in range(CONNECTIONS)]
    household, spent, size, bare = Household(connections=CONNECTIONS), list[tuple[int, float]](), 0, 0.0
    stream = household.make(records)
    while chunk := list(itertools.islice(stream, _CHUNK)):
        if not spent:
            bare = len(chunk) / _bare_insert(directory, chunk)
        spent.append((len(chunk), await ingest(store, ids, chunk)))
        size += sum(len(made.line) for made in chunk)
        print(f"  {sum(n for n, _ in spent)} records, {spent[-1][0] / spent[-1][1]:.0f}/s")
    for number in range(BIG):
        made = household.big_file(number)
        size += len(made.line)
        await ingest(store, ids, [made])
    await store.close()
    several = max(1, _RATE_OVER // _CHUNK)
    on_disk = (home / FILE).stat().st_size
    built = Built(records, size, _rate(spent[:several]), _rate(spent[-several:]), bare, on_disk)
    write_built(directory, built)
    return built


def _rate(spent: Sequence[tuple[int, float]]) -> float:
    return sum(count for count, _ in spent) / sum(seconds for _, seconds in spent)


async def ingest(store: Store, ids: Sequence[ConnectionId], chunk: Iterable[Made]) -> float:
    """Take records in, each stream of each connection as one batch; gives the seconds it took."""
    shelves: dict[tuple[int, StreamName], list[bytes]] = defaultdict(list)
    for made in chunk:
        shelves[made.connection, made.stream].append(made.line)
    batches = [Batch(ids[number], stream, lines, NOW) for (number, stream), lines in shelves.items()]
    start = time.perf_counter()
    for some in _in_parts(batches):
        for report in await asyncio.gather(*map(store.ingest, some)):
            assert not report.errors
    return time.perf_counter() - start


def _in_parts(batches: Sequence[Batch]) -> Iterable[Sequence[Batch]]:
    return (batches[at : at + _AT_ONCE] for at in range(0, len(batches), _AT_ONCE))


def _bare_insert(directory: Path, chunk: Sequence[Made]) -> float:
    """Time the same texts written bare: one table, one key, one durable commit."""
    file = directory / "bare.db"
    db = apsw.Connection(str(file))
    set_up = "PRAGMA journal_mode=wal; PRAGMA synchronous=FULL; CREATE TABLE t(k TEXT PRIMARY KEY, v BLOB)"
    db.execute(set_up).fetchall()
    start = time.perf_counter()
    with db:
        db.executemany("INSERT INTO t VALUES(?, ?)", ((str(n), made.line) for n, made in enumerate(chunk)))
    seconds = time.perf_counter() - start
    db.close()
    file.unlink()
    return seconds


async def settled(store: Any) -> None:
    """Wait until the idle tasks are done: blocks of columns are written in idle time."""
    while not store.is_settled:  # noqa: ASYNC110 - nothing tells when
        await asyncio.sleep(0.1)
