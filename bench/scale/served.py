"""What a process that serves a home takes from the database: connections, memory, round trips for each request.

Connections are counted by the server while requests of every kind are answered; round trips are the lines that the
server logs, because one message may hold several statements.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

from bench import rest
from bench.database import copied
from bench.load import SETTLED_SECONDS, ask, family, load
from bench.scale.server_costs import wal_position
from tests.postgres import Server

_DATABASE = "bench_served"
_CLIENTS = 16
_CHUNKS = 6
_IN_A_CHUNK = 10
_IDLE_SECONDS = 2
_MB = 1024


@dataclass(frozen=True, slots=True)
class Process:
    """What one process that serves one home takes."""

    #: Connections right after the start, and when requests of every kind came at once.
    connections_idle: int
    connections_busy: int
    #: Memory that a process shares with no other, in MB.
    backend_mb: float
    headgate_mb: float
    #: Round trips to the database for each request by its kind.
    round_trips: Mapping[str, float]
    #: Bytes of write-ahead log for a request that reads one record: the log of disclosures.
    wal_of_read: float


def measure(server: Server, records: int) -> Process:
    """Fill a home, serve it by one process, and ask it for everything."""
    with tempfile.TemporaryDirectory() as place:
        filled = asyncio.run(rest.fill(Path(place), records))
        there = copied(server, filled.home, -1, _DATABASE)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {_DATABASE} SET log_statement = 'all'")
        settings = dataclasses.replace(filled.settings, store_url=there.url)
        process, port = rest.started(rest.serve_home, settings)
        try:
            time.sleep(_IDLE_SECONDS)
            idle = len(_backends(there.url))
            requests = rest.requests_for(filled)
            for asked in requests.values():
                asyncio.run(load(port, asked, lanes=_CLIENTS, seconds=0.5, spins=False))
            backends = _backends(there.url)
            trips = {kind: asyncio.run(_round_trips(server, port, asked)) for kind, asked in requests.items()}
            return Process(
                idle,
                len(backends),
                median(map(private_mb, backends)),
                sum(map(private_mb, family(process.pid))),
                trips,
                asyncio.run(_wal_of_read(there.url, port, requests[rest.SINGLE])),
            )
        finally:
            process.terminate()
            process.join()


def _backends(url: str) -> list[int]:
    """Give the server's processes that work for us."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'headgate'"
        )
        return [pid for (pid,) in rows]


def private_mb(pid: int) -> float:
    """Give the memory of a process that no other shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / _MB


async def _round_trips(server: Server, port: int, requests: list[bytes]) -> float:
    """Count what the server logs for each of some requests; the fewest, because other tasks send statements too."""
    log, found = server.folder / "log", list[float]()
    asked = itertools.cycle(requests)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(_CHUNKS):
        before = log.stat().st_size
        for _ in range(_IN_A_CHUNK):
            await ask(reader, writer, next(asked))
        with log.open("rb") as file:
            file.seek(before)
            found.append(logged_statements(file.read()) / _IN_A_CHUNK)
    writer.close()
    return min(found)


def logged_statements(text: bytes) -> int:
    """Count the messages with statements in a part of the server's log."""
    return text.count(b"LOG:  statement: ") + text.count(b"LOG:  execute ")


async def _wal_of_read(url: str, port: int, requests: list[bytes]) -> float:
    await asyncio.sleep(SETTLED_SECONDS)
    before = wal_position(url)
    took, _, _ = await load(port, requests, lanes=_CLIENTS, seconds=2, spins=False)
    await asyncio.sleep(SETTLED_SECONDS)
    return (wal_position(url) - before) / len(took)
