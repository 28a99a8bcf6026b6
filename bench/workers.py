"""REST on a home in PostgreSQL with 1, 2 and 4 workers: requests a second, and whose processor time they take.

`python -m bench workers --records 30000` fills a home, copies it into the server of the benchmarks, and serves it as
`headgate serve --workers N` does, one server for each N, asked in turns. The client, the workers and the
database share the processors of this machine; so the table also has what each of them takes for a request, from
which follows where a machine with more of them stops growing.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench import rest
from bench.database import copied, postmaster, running
from bench.load import SETTLED_SECONDS, load, tree_cpu_seconds
from headgate.settings import Settings

WORKERS = (1, 2, 4)
KINDS = (rest.SINGLE, "page of 25, one connection")
_CLIENTS = 32


@dataclass(frozen=True, slots=True)
class Taken:
    """How many requests were answered in a second, and the processor time of one in microseconds."""

    per_second: float
    headgate_us: float
    database_us: float
    client_us: float

    @property
    def cores(self) -> float:
        """How many processors were busy."""
        return self.per_second * (self.headgate_us + self.database_us + self.client_us) / 1e6

    @property
    def of_a_worker(self) -> float:
        """How many requests a second fill the processor of one worker: Python runs on one at a time."""
        return 1e6 / self.headgate_us

    @property
    def of_a_database_core(self) -> float:
        """How many requests a second fill one processor of the database."""
        return 1e6 / self.database_us


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is measured."""

    workers: int
    pid: int
    port: int
    database: int


def main(arguments: Sequence[str] = ()) -> None:
    """Fill a home, serve it in three ways, and print the table."""
    parser = argparse.ArgumentParser(prog="bench workers")
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place, running() as server, ExitStack() as stack:
        filled = asyncio.run(rest.fill(Path(place), asked.records))
        there = copied(server, filled.home, -1, "bench_workers")
        settings = dataclasses.replace(filled.settings, store_url=there.url)
        served = [_serve(stack, settings, workers, postmaster(server)) for workers in WORKERS]
        found = uvloop.run(_measure(served, rest.requests_for(filled), asked))
    print(f"\nREST on PostgreSQL, {asked.records} records, {_CLIENTS} clients, {os.cpu_count()} processors")
    print(shown(found))


def _serve(stack: ExitStack, settings: Settings, workers: int, database: int) -> Served:
    process, port = rest.started(rest.serve_home, dataclasses.replace(settings, workers=workers))
    stack.callback(process.join)
    stack.callback(process.terminate)
    return Served(workers, process.pid, port, database)


async def _measure(
    served: Sequence[Served], requests: Mapping[str, list[bytes]], asked: argparse.Namespace
) -> dict[tuple[str, int], Taken]:
    found: dict[tuple[str, int], Taken] = {}
    for one in served:
        for kind in KINDS:
            await load(one.port, requests[kind], lanes=_CLIENTS, seconds=asked.seconds / 2, spins=False)
    for _ in range(asked.turns):
        for kind in KINDS:
            for one in served:
                taken = await _turn(one, requests[kind], asked.seconds)
                best = found.get((kind, one.workers))
                if best is None or taken.per_second > best.per_second:
                    found[kind, one.workers] = taken
    return found


async def _turn(served: Served, requests: list[bytes], seconds: float) -> Taken:
    await asyncio.sleep(SETTLED_SECONDS)
    before = _spent(served)
    mine = time.process_time()
    took, rate, _ = await load(served.port, requests, lanes=_CLIENTS, seconds=seconds, spins=False)
    mine = time.process_time() - mine
    # What a request leaves to be done later belongs to it.
    await asyncio.sleep(SETTLED_SECONDS)
    headgate, database = (after - then for after, then in zip(_spent(served), before, strict=True))
    return Taken(rate, *(1e6 * part / len(took) for part in (headgate, database, mine)))


def _spent(served: Served) -> tuple[float, float]:
    return tree_cpu_seconds(served.pid), tree_cpu_seconds(served.database)


def shown(found: Mapping[tuple[str, int], Taken]) -> str:
    """Write the table, and what follows from it."""
    head = (
        f"{'':28}{'workers':>8}{'req/s':>8}{'headgate us':>13}{'database us':>13}{'client us':>11}{'busy':>7}"
    )
    lines = [
        f"{kind:28}{workers:>8}{one.per_second:>8.0f}{one.headgate_us:>13.0f}{one.database_us:>13.0f}"
        f"{one.client_us:>11.0f}{one.cores:>7.2f}"
        for (kind, workers), one in sorted(
            found.items(), key=lambda item: (KINDS.index(item[0][0]), item[0][1])
        )
    ]
    return "\n".join([head, *lines, *(_verdict(found, kind) for kind in KINDS)])


def _verdict(found: Mapping[tuple[str, int], Taken], kind: str) -> str:
    """Say where it stops growing: on this machine, and where no other program needs the processors."""
    rates: Any = {workers: one.per_second for (name, workers), one in found.items() if name == kind}
    best = max(rates, key=rates.get)
    one = found[kind, min(rates)]
    return (
        f"{kind}: most with {best} workers here, {found[kind, best].cores:.1f} of {os.cpu_count()} processors busy. "
        f"With processors enough: {one.of_a_worker:.0f}/s a worker, {one.of_a_database_core:.0f}/s for each of the "
        f"database's, so {one.of_a_database_core / one.of_a_worker:.1f} workers fill one of them."
    )
