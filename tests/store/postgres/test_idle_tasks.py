"""Idle tasks of a home: of several machines one does them, and another takes over when it is gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from headgate.store.changes.writer import Writer
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.database import HomePlace, PostgresDatabase
from headgate.store.postgres.lease import LEASE_US, Lease, LeasedTurn
from headgate.store.postgres.migrate import open_place
from headgate.store.sql.database import Database
from tests import postgres
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


class Clock:
    """A clock that a test moves."""

    at = NOW

    def __call__(self) -> int:
        return self.at


class Steps:
    """A task that is never done; a test waits for its steps, and for it to be asked whether it is due."""

    name = "steps"

    def __init__(self) -> None:
        self.done = 0
        self._asked = 0
        self._changed = threading.Condition()

    def plan(self, database: Database) -> bool:
        del database
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
        return True

    def step(self, database: Database) -> bool:
        del database
        with self._changed:
            self.done += 1
            self._changed.notify_all()
        return True

    def wait_for_steps(self, count: int) -> bool:
        with self._changed:
            wanted = self.done + count
            return self._changed.wait_for(lambda: self.done >= wanted, 30)

    def wait_until_asked(self, count: int) -> bool:
        with self._changed:
            wanted = self._asked + count
            return self._changed.wait_for(lambda: self._asked >= wanted, 30)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def place(tmp_path: Path) -> HomePlace:
    return open_place(postgres.database_url(), str(tmp_path))


Machines = Callable[[], tuple[Writer, Steps]]


@pytest.fixture
def machine(place: HomePlace, clock: Clock) -> Generator[Machines]:
    """Start the writer of a machine, with a task."""
    made: list[Writer] = []

    def make() -> tuple[Writer, Steps]:
        steps, turn = Steps(), LeasedTurn(Lease(place, "idle tasks", clock), clock)
        turn.again_seconds = 0.01
        made.append(Writer(PostgresDatabase(place), idle_tasks=(steps,), turn=turn))
        return made[-1], steps

    yield make
    for writer in made:
        asyncio.run(writer.close())


def test_one_machine_does_the_tasks_and_another_when_it_has_ended(machine: Machines, clock: Clock):
    first, by_first = machine()
    assert by_first.wait_for_steps(2)
    _, by_second = machine()
    assert by_second.wait_until_asked(3)
    # Where half of its time is over the lease is renewed.
    clock.at += LEASE_US * 3 // 4
    assert by_first.wait_for_steps(2)
    clock.at += LEASE_US * 3 // 4
    assert by_first.wait_for_steps(2)
    assert by_second.wait_until_asked(3)
    assert by_second.done == 0
    asyncio.run(first.close())
    assert by_second.wait_for_steps(1)


def test_a_machine_takes_over_when_the_one_before_it_died(machine: Machines, place: HomePlace, clock: Clock):
    dead = Lease(place, "idle tasks", clock)
    assert dead.hold_once()
    _, steps = machine()
    assert steps.wait_until_asked(3)
    assert steps.done == 0
    clock.at += LEASE_US
    assert steps.wait_for_steps(1)


def test_a_store_leaves_its_idle_tasks_to_the_machine_that_has_the_lease(place: HomePlace, clock: Clock):
    other = Lease(place, "idle tasks", clock)
    assert other.hold_once()
    store = Driven("postgres", Path(), PostgresStore(place, clock, connections=1))
    ledger = Ledger(store, connections=1)

    def segments_at_rest() -> int:
        ledger.put({"id": f"last {clock.at}", "title": "canal"})
        while not store.bare.is_settled:
            threading.Event().wait(0.02)
        with psycopg.connect(place.url) as connection:
            count = connection.execute(
                "SELECT count(*) FROM word_segment WHERE home=%s", (place.home,)
            ).fetchone()
        assert count is not None
        return count[0]

    for n in range(5):
        ledger.put({"id": f"n{n}", "title": f"canal {n}"})
    left = segments_at_rest()
    assert left > 2
    clock.at += LEASE_US
    assert segments_at_rest() < left
    store.close()
