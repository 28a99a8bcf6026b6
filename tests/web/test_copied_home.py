"""A home that was copied into a database is served as before: the same bytes for many generated requests."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from headgate.home import home_in
from headgate.store.engines.commands import copy_store
from tests import postgres
from tests.in_process import local_program
from tests.web.test_noninterference import questions
from tests.web.twins import Twin, build_twin, transcript

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


async def _compare(place: Path, journeys: int) -> int:
    """Serve a home from its file and from its copy, ask both the same, and count the requests."""
    url = postgres.database_url()
    async with local_program(place / "file") as before:
        served = await build_twin(before, 1, 2)
        home = before.services.home
        await asyncio.to_thread(copy_store, home, home_in(home, url, str(place)), lambda _done, _total: None)
        shutil.copytree(home.keys, place / "copy" / "home" / "keys")
        (place / "copy" / "home").chmod(0o700)
        async with local_program(place / "copy", store_url=url, store_home=str(place)) as after:
            after.clock.at = before.clock.at
            copied = Twin(after, served.tokens)
            count = 0
            for _, steps, who in questions(journeys):
                first, second = [await transcript(one, steps, who) for one in (served, copied)]
                assert first == second, steps
                count += len(steps)
            return count


@pytest.mark.parametrize(
    ("journeys", "requests"), [(60, 100), pytest.param(600, 1000, marks=pytest.mark.soak)]
)
def test_a_copy_in_postgresql_answers_requests_as_the_file_does(tmp_path: Path, journeys: int, requests: int):
    assert asyncio.run(_compare(tmp_path, journeys)) >= requests
