"""F1 for maintenance: kill `headgate store backup`, `restore` and `erase` at each step they take, and look.

A step is a statement sent to the store, or a file opened, made, named or removed; some kills come at any moment.
Run as a separate program, because it forks: ``python -m tests.hostile.store.stopped PLACE COMMAND STEPS TIMES``
kills at no more than STEPS steps and TIMES moments, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import apsw

from headgate.cli import main
from headgate.errors import HeadgateError
from headgate.home import Home, open_home
from headgate.store.engines.commands import commands_of
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.backup import shelf_digests, verify
from headgate.store.maintenance.sqlite_home import reading_store
from headgate.store.sqlite import FILE
from tests.hostile.store.scene import MESSAGES, batch, connect, damages, new_home, with_store
from tests.hostile.store.test_erase import KEY, crowd, fill_with_canary, traces

_FILE_EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod"}


def quiet(_done: int, _total: int) -> None:
    """Do nothing."""


@dataclass
class Figures:
    steps: int = 0
    kills: int = 0
    old: int = 0
    new: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StoppedCommand:
    """A command in a place, what it leaves when it is done, and whether a place is as one or the other."""

    words: Callable[[Path], list[str]]
    #: Says old or new, or what is wrong.
    state: Callable[[Path], str]
    #: Says what is wrong after the command was given again.
    rest: Callable[[Path], list[Any]]


def die_at(step: int) -> Callable[[], int]:
    """Count the steps of this process, and end it at one of them."""
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def count_event(event: str, args: tuple[Any, ...]) -> None:
        if event in _FILE_EVENTS and not str(args[0]).endswith((".py", ".pyc")):
            tick()

    def traced(connection: Any) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda _event: tick())

    sys.addaudithook(count_event)
    apsw.connection_hooks.append(traced)
    return lambda: count


def start(words: list[str], step: int, pipe: int) -> int:
    """Start a command in a child that dies at a step; the child tells how many steps it took."""
    child = os.fork()
    if child:
        return child
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.argv[:] = ["headgate", *words]
    counted = die_at(step)
    try:
        main.run()
    except SystemExit as end:
        os.write(pipe, f"{counted()} {end.code}".encode())
    os._exit(0)


def run_command(words: list[str], *, step: int = 0, after: float | None = None) -> tuple[int, int] | None:
    """Run a command, perhaps not to its end; gives its steps and exit code, or None if it was killed."""
    reading, writing = os.pipe()
    child = start(words, step, writing)
    os.close(writing)
    if after is not None:
        select.select([reading], [], [], after)
        os.kill(child, signal.SIGKILL)
    text = os.read(reading, 64)
    os.close(reading)
    os.waitpid(child, 0)
    if not text:
        return None
    steps, code = text.split()
    return int(steps), int(code)


def run(place: Path, command: StoppedCommand, most_steps: int, times: int) -> Figures:
    figures, chance, base = Figures(), random.Random(5), place / "base"
    whole = _fresh(base, place / "whole")
    started = time.monotonic()
    done = run_command(command.words(whole))
    seconds = time.monotonic() - started
    assert done is not None
    assert done[1] == 0, "the command fails by itself"
    figures.steps = done[0]
    stride = max(1, -(-figures.steps // most_steps))
    kills: list[dict[str, Any]] = [{"step": step} for step in range(1, figures.steps + 1, stride)]
    kills += [{"after": chance.uniform(0, seconds)} for _ in range(times)]
    for kill in kills:
        _kill_once(base, place / "copy", command, kill, figures)
    return figures


def _kill_once(
    base: Path, copy: Path, command: StoppedCommand, kill: dict[str, Any], figures: Figures
) -> None:
    ended = run_command(command.words(_fresh(base, copy)), **kill)
    if ended is not None and "step" in kill:
        # Threads beside the command decide how many steps a run has: this one ended before, so its last step is taken.
        kill = {"step": ended[0]}
        ended = run_command(command.words(_fresh(base, copy)), **kill)
    figures.kills += ended is None
    state = command.state(copy)
    figures.old += state == "old"
    figures.new += state == "new"
    if state not in {"old", "new"}:
        figures.wrong.append(f"{kill}: {state}")
    again = run_command(command.words(copy))
    if state == "old" and (again is None or again[1] != 0):
        figures.wrong.append(f"{kill}: given again it ended with {again}")
    if state == "new" and (again is None or again[1] not in {0, _already(command, copy)}):
        figures.wrong.append(f"{kill}: it was done, but given again it ended with {again}")
    figures.wrong += [f"{kill}: afterwards {wrong}" for wrong in command.rest(copy)]


def _already(command: StoppedCommand, copy: Path) -> int:
    """Give the exit code that says there is nothing left to do: it must be the same however often one asks."""
    ended = run_command(command.words(copy))
    assert ended is not None
    return ended[1]


def _fresh(base: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(base, copy)
    return copy


def digests(home: Path) -> dict[str, str]:
    with reading_store(Home(home)) as database, database.reading(float("inf")):
        return shelf_digests(database)


def leftovers(place: Path) -> list[str]:
    """Name what was not put in place. A key that was never written opens nothing."""
    return [str(path.relative_to(place)) for path in place.rglob(".*") if path.parent.name != "keys"]


# Each command


def backup_command(place: Path) -> StoppedCommand:
    before = digests(place / "base" / "home")

    def state(copy: Path) -> str:
        if damages(Home(copy / "home")) or digests(copy / "home") != before:
            return "the store has changed"
        return _good_backup(copy / "made") if (copy / "made").exists() else "old"

    def rest(copy: Path) -> list[Any]:
        good = _good_backup(copy / "made")
        return [*leftovers(copy), *([] if good == "new" else [good])]

    return StoppedCommand(
        lambda copy: ["--home", str(copy / "home"), "store", "backup", str(copy / "made")], state, rest
    )


def _good_backup(made: Path) -> str:
    try:
        verify(made, quiet)
    except HeadgateError as error:
        return error.message
    return "new"


def restore_command(place: Path) -> StoppedCommand:
    before = digests(place / "base" / "home")
    commands_of(Home(place / "base" / "home")).back_up(place / "base" / "made", quiet)
    shutil.rmtree(place / "base" / "home")
    open_home(place / "base" / "home")

    def state(copy: Path) -> str:
        if not (copy / "home" / FILE).exists():
            return "old"
        # Looking at it opens it, which is to use it: so a copy is looked at.
        seen = _fresh(copy / "home", copy.with_name("seen"))
        found = damages(Home(seen))
        return "new" if digests(seen) == before and not found else f"not what was backed up {found}"

    def rest(copy: Path) -> list[Any]:
        found = state(copy)
        return [*leftovers(copy), *([] if found == "new" else [found])]

    return StoppedCommand(
        lambda copy: ["--home", str(copy / "home"), "store", "restore", str(copy / "made")], state, rest
    )


def erase_command(place: Path, words: list[str]) -> StoppedCommand:
    before = digests(place / "base" / "home")

    def state(copy: Path) -> str:
        home = Home(copy / "home")
        if found := damages(home):
            return str(found)
        return "old" if digests(home.path) == before else "new"

    def rest(copy: Path) -> list[Any]:
        home = Home(copy / "home")
        return [*traces(home), *damages(home), *leftovers(copy)]

    return StoppedCommand(
        lambda copy: ["--home", str(copy / "home"), "store", "erase", "--yes", *words], state, rest
    )


def make_base(place: Path) -> str:
    """Fill a home with what can be recognised: two connections, a record with a file, a copy in passing."""
    home = new_home(place / "base")

    async def work(store: SqliteStore) -> str:
        mine, other = await connect(store), await connect(store)
        await fill_with_canary(store, mine, neighbours=60)
        await store.ingest(batch(other, crowd(7, 20)))
        return mine

    mine: str = with_store(home, work)
    shutil.copy(home.path / FILE, home.path / f"{FILE}.before-0002")
    return mine


def command_of(name: str, place: Path) -> StoppedCommand:
    mine = make_base(place)
    return {
        "backup": lambda: backup_command(place),
        "restore": lambda: restore_command(place),
        "erase-record": lambda: erase_command(place, [mine, MESSAGES, KEY]),
        "erase-connection": lambda: erase_command(place, [mine]),
    }[name]()


if __name__ == "__main__":
    root = Path(sys.argv[1])
    found = run(root, command_of(sys.argv[2], root), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(asdict(found)) + "\n")
