"""Daily budgets under requests that run at the same time, in one process and in several."""

from __future__ import annotations

import asyncio
import fcntl
import json
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.audit import budget
from headgate.audit.budget import DailyBudgets, FileCounter
from headgate.errors import RateLimited, StorageReadOnly
from headgate.home import Home
from headgate.model.grant import Access, TokenKind
from headgate.model.instants import DAY_US, iso
from tests.in_process import LocalProgram, local_program, record
from tests.on_socket import MAIL, WAIT_SECONDS, line, served_program
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
LIMIT, PAGE = 40, 7
ACCESS = Access(TokenKind.CLIENT, "me", "agent", (), daily_records=(("grt_1", LIMIT),))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def budgets(place: Path, *, at: int = 0, logged: int = 0) -> DailyBudgets:
    async def in_the_log(_grant: str, _day: int) -> int:
        return logged

    return DailyBudgets(FileCounter(Home(place), in_the_log), clock=lambda: at)


def settle_many(place: Path, shown: object) -> None:
    """Show pages until nothing is left, as one process of several."""
    counted = 0
    try:
        while True:
            counted += asyncio.run(budgets(place).take(ACCESS, PAGE))
    except RateLimited:
        shown.put(counted)


def test_processes_that_count_at_the_same_time_show_the_limit_and_no_more(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    shown = context.Queue()
    workers = [context.Process(target=settle_many, args=(tmp_path, shown)) for _ in range(4)]
    for worker in workers:
        worker.start()
    total = sum(shown.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert total == LIMIT


async def test_no_other_process_counts_between_the_reading_and_the_writing_of_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    refused: list[bool] = []
    read = budget._read

    def between(handle: int, day: int) -> int | None:
        (path,) = (tmp_path / "budgets").iterdir()
        with path.open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        refused.append(True)
        return read(handle, day)

    monkeypatch.setattr(budget, "_read", between)
    await budgets(tmp_path).take(ACCESS, PAGE)
    assert refused


async def test_the_log_is_asked_while_no_count_is_locked(tmp_path: Path):
    """A look-up may wait; another request of the process that wanted the lock would then stop them both."""
    asked: list[str] = []

    async def in_the_log(grant: str, _day: int) -> int:
        (path,) = (tmp_path / "budgets").iterdir()
        with path.open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        asked.append(grant)
        return LIMIT

    counted = DailyBudgets(FileCounter(Home(tmp_path), in_the_log), clock=lambda: 0)
    with pytest.raises(RateLimited):
        await counted.left(ACCESS)
    assert asked == ["grt_1"]


async def test_a_new_day_begins_with_what_is_in_the_log(tmp_path: Path):
    await budgets(tmp_path).take(ACCESS, LIMIT)
    with pytest.raises(RateLimited, match="40 records"):
        await budgets(tmp_path).left(ACCESS)
    with pytest.raises(RateLimited):
        await budgets(tmp_path, at=DAY_US, logged=LIMIT).left(ACCESS)
    await budgets(tmp_path, at=DAY_US, logged=LIMIT - 1).take(ACCESS, 1)
    with pytest.raises(RateLimited):
        await budgets(tmp_path, at=DAY_US).left(ACCESS)
    # Another grant has its own count.
    await budgets(tmp_path).left(replace(ACCESS, daily_records=(("grt_2", LIMIT),)))


async def test_a_count_that_cannot_be_written_lets_nothing_out(tmp_path: Path):
    (tmp_path / "budgets").write_text("in the way")
    with pytest.raises(StorageReadOnly):
        await budgets(tmp_path).take(ACCESS, 1)


@pytest.mark.parametrize("damage", [b"", b"x" * 31, b"7 0", b"0000000000 99999999999999999999999\n"])
async def test_a_damaged_count_falls_back_to_the_log(tmp_path: Path, damage: bytes):
    await budgets(tmp_path).take(ACCESS, 1)
    (path,) = (tmp_path / "budgets").iterdir()
    path.write_bytes(damage)
    try:
        await budgets(tmp_path, logged=LIMIT).left(ACCESS)
    except RateLimited:
        return
    raise AssertionError


async def test_requests_at_the_same_time_cannot_pass_under_the_same_rest(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        mail = await program.connect("mail")
        lines = [record(f"m{n}", subject="roof", sent_at="2026-03-01T00:00:00Z") for n in range(60)]
        await program.ingest(mail, "messages", lines)
        allowed = grant(stream_grant("messages", "id", "subject", connections=(mail,)))
        token = await program.grant(allowed, daily_records=LIMIT)
        # Searches wait in a thread, so that all of them are admitted before the first one is counted.
        asked = (program.get(f"/v1/search?q=roof&limit={PAGE}", token) for _ in range(20))
        answers = await asyncio.gather(*asked)
        shown = sum(len(one.body["data"]) for one in answers if one.status == 200)
        assert shown == LIMIT
        assert {one.status for one in answers} == {200, 429}
        await program.services.pump.flush()
        refused = [
            json.loads(one.event)["outcome"] for one in await program.services.ledger.newest(None, 100)
        ]
        assert refused.count("rate_limit_exceeded") == sum(one.status == 429 for one in answers)


async def test_an_agent_reads_in_the_answer_of_its_tool_that_the_day_is_used_up(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        mail = await program.connect("mail")
        await program.ingest(mail, "messages", [record("m1", subject="roof", sent_at="2026-03-01T00:00:00Z")])
        allowed = grant(stream_grant("messages", "id", "subject", connections=(mail,)))
        token = await program.grant(allowed, daily_records=1)
        ids = (f"{mail}/messages:m1", f"{mail}/messages:absent")
        shown = await over_mcp(program, token, "tools/call", {"name": "fetch", "arguments": {"id": ids[0]}})
        assert "roof" in shown["content"][0]["text"]
        # A client lists the tools after a call too: that is no read.
        assert (await over_mcp(program, token, "tools/list", {}))["tools"]
        # What there is cannot be found out by asking on.
        for one in ids:
            spent = await over_mcp(program, token, "tools/call", {"name": "fetch", "arguments": {"id": one}})
            text = spent["content"][0]["text"]
            assert "The 1 records that this grant allows in a day are used up" in text
            assert iso((program.clock.at // DAY_US + 1) * DAY_US) in text
            assert '"retry_after_seconds":' in text


async def over_mcp(
    program: LocalProgram, token: str, method: str, params: dict[str, object]
) -> dict[str, Any]:
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
        ("content-length", str(len(content))),
    ]
    answer = await program.ask("POST", "/mcp", token, body=content, headers=headers)
    assert answer.status == 200, answer.content
    return answer.body["result"]


def test_workers_share_the_budget(tmp_path: Path):
    with served_program(tmp_path, "--workers", "2") as served:
        try:
            served.ingest(served.connect(), [line(f"m{n}") for n in range(60)])
            token = served.grant("--budget", f"{LIMIT}/day")
            with ThreadPoolExecutor(8) as pool:
                answers = list(
                    pool.map(lambda _: served.ask("GET", f"{MAIL}?limit={PAGE}", token), range(30))
                )
        finally:
            # The workers end with their parent, if it may tell them.
            served.process.terminate()
            served.process.wait(WAIT_SECONDS)
        shown = sum(len(one.body["data"]) for one in answers if one.status == 200)
        assert shown == LIMIT


async def test_a_package_shows_what_the_smallest_of_its_budgets_leaves_and_counts_no_more(tmp_path: Path):
    of_two = replace(ACCESS, daily_records=(("grt_1", LIMIT), ("grt_2", 5)))
    assert await budgets(tmp_path).left(of_two) == 5
    assert await budgets(tmp_path).take(of_two, 7) == 5
    assert await budgets(tmp_path).left(ACCESS) == LIMIT - 5
    with pytest.raises(RateLimited):
        await budgets(tmp_path).take(of_two, 1)
    assert await budgets(tmp_path).left(ACCESS) == LIMIT - 5
