"""The chain of disclosures of one home under many processes, on a durable PostgreSQL server on this machine.

`python -m bench chain --seconds 10` lets 1, 4, 16 and 64 processes append blocks to one chain: first as fast as they can,
which gives the blocks a second that the chain takes, then each of them once a second, as servers do, which gives how
long an append takes while the others wait for the same row.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import msgspec

from headgate.audit.chain import seal_block
from headgate.audit.journal import ANSWERED, Disclosed, Disclosure
from headgate.model.ids import ConnectionId, FieldName, GrantId, RecordId, RequestId, StreamName
from headgate.store.engines.postgres import PostgresLedger
from headgate.store.postgres.migrate import open_place
from tests import postgres

_PROCESSES = (1, 4, 16, 64)
_KEY = b"k" * 32
#: Of one block: what a server that answers 20 requests a second shows in that second.
_READS = 20
_STARTING_SECONDS = 3.0


class Home(NamedTuple):
    """A home of a database."""

    url: str
    name: str


def main(arguments: Sequence[str] = ()) -> None:
    """Start a server, and print the table."""
    parser = argparse.ArgumentParser(prog="bench chain")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    seconds = parser.parse_args(list(arguments)).seconds
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    server = postgres.Server(folder, ("shared_buffers=64MB", "max_connections=200"))
    server.make()
    server.start()
    try:
        _print_table(server.url, seconds)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _print_table(url: str, seconds: float) -> None:
    print(f"\nblocks of {_READS} reads appended to the chain of one home; an append in ms")
    print(
        f"{'processes':>10} {'a second at most':>17} {'p50':>7} {'p99':>7}   {'once a second: p50':>18} {'p99':>7}"
    )
    for count in _PROCESSES:
        fast = _measure(Home(url, f"fast {count}"), count, seconds, pause=0.0)
        calm = _measure(Home(url, f"calm {count}"), count, seconds, pause=1.0)
        print(
            f"{count:10} {len(fast) / seconds:17.0f} {_part(fast, 50):7.1f} {_part(fast, 99):7.1f}"
            f"   {_part(calm, 50):18.1f} {_part(calm, 99):7.1f}"
        )


def _part(times: Sequence[float], percent: int) -> float:
    return quantiles(times, n=100)[percent - 1] * 1000


def _measure(home: Home, count: int, seconds: float, pause: float) -> list[float]:
    """Give how long each append of all processes took."""
    open_place(*home)
    start = time.monotonic() + _STARTING_SECONDS
    with get_context("fork").Pool(count) as pool:
        work = partial(_run, home, start, seconds, pause)
        return [one for times in pool.map(work, range(count), chunksize=1) for one in times]


def _run(home: Home, start: float, seconds: float, pause: float, number: int) -> list[float]:
    return asyncio.run(_append_blocks(home, start, start + seconds, pause, number))


async def _append_blocks(home: Home, start: float, end: float, pause: float, number: int) -> list[float]:
    ledger = PostgresLedger(open_place(*home), connections=1)
    lines, taken, times = _lines(number), 0, list[float]()
    # The first connects and prepares, before the clock starts.
    for _ in range(3):
        await ledger.append(f"{number}", taken, lines, partial(seal_block, _KEY))
        taken += len(lines)
    await asyncio.sleep(start - time.monotonic() + pause * random.random())
    while (began := time.monotonic()) < end:
        await ledger.append(f"{number}", taken, lines, partial(seal_block, _KEY))
        taken += len(lines)
        times.append(time.monotonic() - began)
        await asyncio.sleep(max(began + pause - time.monotonic(), 0))
    await ledger.close()
    return times


def _lines(number: int) -> bytes:
    part = Disclosed(
        ConnectionId("cin_0123456789abcdef01234567"), StreamName("messages"),
        tuple(map(FieldName, ("id", "subject", "sender", "sent_at"))),
        tuple(RecordId(f"message-{number}-{n}") for n in range(10)),
    )  # fmt: skip
    event = Disclosure(
        1_790_000_000_000_000, RequestId("req_0123456789abcdef"), "client", None, (GrantId(f"grt_{number}"),), None,
        "mcp:query_records", ANSWERED, 9_000, (part,),
    )  # fmt: skip
    return (msgspec.json.encode(event) + b"\n") * _READS
