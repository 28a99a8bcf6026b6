"""Background loops go on after any failure, say so once, and are shown until they work again."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator

import pytest

from headgate.errors import StorageFull
from headgate.tasks import LAST_PAUSE_SECONDS, Supervisor, stop
from headgate.telemetry import configure_logs

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    out = io.StringIO()
    configure_logs("warning", "json", out)
    yield out
    configure_logs("warning", "json", io.StringIO())


class Sleeper:
    """Notes how long a loop would wait, and lets a test wait until it has waited so many times."""

    def __init__(self, most: int) -> None:
        self.slept: list[float] = []
        self._most = most
        self.done = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self._most:
            self.done.set()
            await asyncio.Event().wait()


async def run_steps(outcomes: list[Exception | float]) -> tuple[Supervisor, list[float]]:
    sleeper, left = Sleeper(len(outcomes)), iter(outcomes)
    supervisor = Supervisor(sleeper)

    async def step() -> float:
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    task = supervisor.start("counting", step)
    await asyncio.wait_for(sleeper.done.wait(), 10)
    await stop(task)
    return supervisor, sleeper.slept


async def test_a_loop_goes_on_after_any_failure_and_waits_longer_each_time(log: io.StringIO):
    supervisor, slept = await run_steps(
        [RuntimeError("x"), KeyError("x"), StorageFull(), 7.0, ValueError(), 8.0]
    )
    assert slept == [5.0, 10.0, 20.0, 7.0, 5.0, 8.0]
    assert supervisor.troubles() == ()
    assert log.getvalue()


async def test_a_loop_that_fails_for_ever_is_tried_every_five_minutes(log: io.StringIO):
    _, slept = await run_steps([RuntimeError("x")] * 40)
    assert slept[-1] == LAST_PAUSE_SECONDS


async def test_a_failure_is_logged_once_with_where_it_came_from_and_without_its_words(log: io.StringIO):
    supervisor, _ = await run_steps(
        [RuntimeError("a secret"), RuntimeError("a secret"), RuntimeError("a secret")]
    )
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert (line["event"], line["loop"], line["code"]) == ("loop_failed", "counting", "unexpected")
    assert "RuntimeError" in line["exception"]
    assert "test_tasks.py" in line["exception"]
    (trouble,) = supervisor.troubles()
    assert (trouble.loop, trouble.count) == ("counting", 3)
    assert "a secret" not in log.getvalue() + trouble.message


async def test_another_failure_is_logged_too_and_ours_keeps_its_words(log: io.StringIO):
    supervisor, _ = await run_steps([RuntimeError("x"), StorageFull()])
    assert [json.loads(line)["code"] for line in log.getvalue().splitlines()] == [
        "unexpected",
        StorageFull.code,
    ]
    assert [one.message for one in supervisor.troubles()] == [StorageFull().message]


async def test_loops_of_one_name_fail_and_work_apart():
    supervisor = Supervisor()
    supervisor.failed("remote servers", RuntimeError(), subject="one")
    supervisor.failed("remote servers", RuntimeError(), subject="two")
    supervisor.worked("remote servers", "one")
    assert [(trouble.loop, trouble.subject) for trouble in supervisor.troubles()] == [
        ("remote servers", "two")
    ]
