"""What machines let each other know of their limits, through a real database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

from headgate.auth.limits import TokenBuckets
from headgate.auth.rounds import SharedLimits
from headgate.errors import StorageUnusable
from headgate.store.postgres.database import HomePlace
from headgate.store.postgres.migrate import open_place
from headgate.store.postgres.sharing import PostgresSharing
from tests import postgres

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


class Machine:
    """A machine that has one kind of limit: ten a second, twenty at once."""

    def __init__(self, sharing: PostgresSharing) -> None:
        self.at = 0.0
        self.buckets = TokenBuckets(10, 20, lambda: self.at)
        self._shared = SharedLimits(sharing, {"requests": self.buckets})

    def take(self, name: bytes, count: int) -> int:
        return sum(self.buckets.take(name) for _ in range(count))

    async def exchange(self) -> None:
        await self._shared.exchange()


@pytest.fixture
def place(tmp_path: Path) -> HomePlace:
    return open_place(postgres.database_url(), str(tmp_path))


def with_machines(place: HomePlace, work: Callable[[Machine, Machine], Awaitable[None]]) -> None:
    async def run() -> None:
        sharing = [PostgresSharing(place) for _ in range(2)]
        try:
            await work(*map(Machine, sharing))
        finally:
            for one in sharing:
                await one.close()

    asyncio.run(run())


def shared_names(place: HomePlace) -> int:
    with psycopg.connect(place.url) as connection:
        count = connection.execute("SELECT count(*) FROM limit_use WHERE home=%s", (place.home,)).fetchone()
    assert count is not None
    return count[0]


async def both_know_of_each_other(one: Machine, two: Machine) -> None:
    """Each uses five of 'a'. The second does not know of those of the first, which came before it asked."""
    assert (one.take(b"a", 5), two.take(b"a", 5)) == (5, 5)
    for machine in (one, two, one):
        await machine.exchange()


def test_what_one_machine_used_is_subtracted_at_the_other(place: HomePlace):
    async def work(one: Machine, two: Machine) -> None:
        await both_know_of_each_other(one, two)
        assert two.take(b"a", 6) == 6
        await two.exchange()
        await one.exchange()
        assert one.take(b"a", 20) == 20 - 5 - 5 - 6
        assert one.take(b"b", 20) == 20

    with_machines(place, work)


def test_what_was_used_beyond_the_limit_is_waited_for(place: HomePlace):
    async def work(one: Machine, two: Machine) -> None:
        await both_know_of_each_other(one, two)
        assert (one.take(b"a", 99), two.take(b"a", 99)) == (10, 15)
        for machine in (one, two, one):
            await machine.exchange()
        # Together they took 35 of 20: the first waits until 15 have come, and for one more to take.
        one.at = 1.55
        assert one.take(b"a", 5) == 0
        one.at = 1.65
        assert one.take(b"a", 5) == 1

    with_machines(place, work)


def test_any_number_of_names_is_shared_up_to_a_limit_the_most_used_first(place: HomePlace):
    async def work(one: Machine, two: Machine) -> None:
        two.take(b"client", 2)
        await two.exchange()
        for n in range(3000):
            one.take(f"guess {n}".encode(), 1)
        one.take(b"client", 10)
        await one.exchange()
        assert shared_names(place) <= 1000
        two.take(b"client", 1)
        await two.exchange()
        assert two.take(b"client", 20) == 20 - 2 - 1 - 10

    with_machines(place, work)


def test_what_could_not_be_shared_is_shared_by_a_later_round(place: HomePlace):
    async def work(one: Machine, two: Machine) -> None:
        await both_know_of_each_other(one, two)
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute("ALTER TABLE limit_use RENAME TO limit_use_away")
            try:
                assert one.take(b"a", 7) == 7
                with pytest.raises(StorageUnusable):
                    await one.exchange()
            finally:
                connection.execute("ALTER TABLE limit_use_away RENAME TO limit_use")
        await one.exchange()
        await two.exchange()
        assert two.take(b"a", 20) == 20 - 5 - 7

    with_machines(place, work)
