"""F1: kill a process that takes records in, again and again, and look at what it left.

Run as a separate program: it forks, and nothing else may be going on in a process that does.
``python -m tests.hostile.store.killed PLACE KILLS SEED`` prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headgate.home import Home
from headgate.model.ids import ConnectionId
from headgate.store.maintenance.sqlite_home import writing_store
from headgate.store.sqlite import database as databases
from tests.hostile.store.scene import batch, connect, damages, line, new_home, open_store, with_store

LINES = 12
WRITERS = 3
CHECK_EVERY = 20
#: A home is left after so many kills: otherwise every look would have more to look at than the one before.
KILLS_A_HOME = 200


@dataclass
class Figures:
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    torn: int = 0
    unsound: list[str] = field(default_factory=list)
    slowest_restart_ms: float = 0.0


def lines_of(number: int) -> list[bytes]:
    long = {"body": f"long text {number} " * 4000} if number % 7 == 0 else {}
    return [line(f"{number}/{n}", size=number, **long) for n in range(LINES)] + [line("newest", size=number)]


async def take_until_killed(home: Home, connection_id: ConnectionId, first: int, pipe: int) -> None:
    """Take batches in from several sides, tell each that was acknowledged, and restart now and then."""
    numbers = iter(range(first, first + 10_000))
    while True:
        store = open_store(home)

        async def side(store=store) -> None:
            for _ in range(4):
                number = next(numbers)
                await store.ingest(batch(connection_id, lines_of(number), key=f"batch {number}"))
                os.write(pipe, f"{number}\n".encode())

        await asyncio.gather(*(side() for _ in range(WRITERS)))
        await store.close()


def kill_once(home: Home, connection_id: ConnectionId, first: int, chance: random.Random) -> set[int]:
    """Let a child work, kill it at some moment, and give the batches that were acknowledged to it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        asyncio.run(take_until_killed(home, connection_id, first, writing))
        os._exit(1)
    os.close(writing)
    text = b""
    for _ in range(chance.randrange(6)):
        text += os.read(reading, 4096)
    select.select([], [], [], chance.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    while piece := os.read(reading, 4096):
        text += piece
    os.close(reading)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself"
    return {int(word) for word in text.split()}


def look(home: Home, safe: set[int], figures: Figures) -> int:
    """Open the store as the next process would, and compare; gives the next batch number."""
    started = time.monotonic()
    with writing_store(home) as database:
        figures.slowest_restart_ms = max(figures.slowest_restart_ms, (time.monotonic() - started) * 1000)
        keys = [key for (key,) in database.all("SELECT record_id FROM record WHERE deleted=0")]
        ((newest,),) = database.all("SELECT body FROM record WHERE record_id='newest'") or ((b"{}",),)
    held = Counter(int(key.partition("/")[0]) for key in keys if "/" in key)
    figures.lost += sum(held[number] == 0 for number in safe)
    figures.torn += sum(count != LINES for count in held.values())
    if held and json.loads(newest).get("size") not in held:
        figures.torn += 1
    return max(held, default=0) + 1


def run_home(home: Home, kills: int, chance: random.Random, figures: Figures) -> None:
    """Kill again and again in one home, and see that nothing is missed at any time."""
    connection_id = with_store(home, connect)
    safe: set[int] = set()
    first = 1
    for number in range(1, kills + 1):
        safe |= kill_once(home, connection_id, first, chance)
        first = look(home, safe, figures)
        if number % CHECK_EVERY == 0:
            figures.unsound += [f"{kind} {record_id}" for kind, record_id in damages(home)]
        figures.kills += 1
    figures.acknowledged += len(safe)


def run(place: Path, kills: int, seed: int) -> Figures:
    databases.WAL_BYTES = 256 * 1024
    chance, figures = random.Random(seed), Figures()
    for done in range(0, kills, KILLS_A_HOME):
        home = new_home(place / str(done))
        run_home(home, min(KILLS_A_HOME, kills - done), chance, figures)
        shutil.rmtree(place / str(done))
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))) + "\n")
