"""F22: a client that hangs up in the middle leaves no open transaction, no half write and no lost handle behind."""

from __future__ import annotations

import asyncio
import random
import re
import time
from pathlib import Path

import pytest

from tests.conftest import Figure
from tests.http_clients import KeepAliveClient, keep_alive_client
from tests.on_socket import MAIL, WAIT_SECONDS, ServedProgram, headgate, line, served_program
from tests.web.test_load import files_settle_at

BATCH = 40


def _question(dice: random.Random, number: int, connection: str) -> tuple[str, str, bytes]:
    body = b"\n".join(line(f"c{number}-{n}", subject=f"{number} {n}", size=number) for n in range(BATCH))
    return dice.choice(
        [
            ("POST", f"/v1/ingest/messages?connection_id={connection}", body),
            ("POST", f"/v1/ingest/messages?connection_id={connection}", body),
            ("POST", "/v1/blobs", b"x" * 200_000),
            ("GET", f"{MAIL}?limit=100&count=exact", b""),
            ("GET", "/v1/search?q=bridge&limit=100", b""),
            ("GET", "/v1/streams/messages/aggregate?metric=count&group_by=sender", b""),
            ("DELETE", f"{MAIL}/m{number % 50}?connection_id={connection}", b""),
        ]
    )


async def _break_off(
    served: ServedProgram, client: KeepAliveClient, dice: random.Random, asked: tuple[str, str, bytes]
) -> int:
    """Ask, and hang up at some moment: before the answer, in it, or after it. Gives how many answered it."""
    method, path, body = asked
    answer = asyncio.create_task(client.ask(method, path, served.owner, body))
    done, _ = await asyncio.wait([answer], timeout=dice.choice([0.0, 0.001, 0.005, 0.02, 2.0]))
    client.abort()
    if not done:
        answer.cancel()
    ended = await asyncio.gather(answer, return_exceptions=True)
    return int(not isinstance(ended[0], BaseException))


async def _break_off_often(served: ServedProgram, connection: str, times: int, seed: int) -> int:
    dice, answered = random.Random(seed), 0

    async def side(first: int) -> None:
        nonlocal answered
        for number in range(first, times, 8):
            async with keep_alive_client(served.address) as client:
                answered += await _break_off(served, client, dice, _question(dice, number, connection))

    await asyncio.gather(*(side(first) for first in range(8)))
    return answered


def under_way(served: ServedProgram) -> int:
    text = served.ask("GET", "/metrics", served.owner).content.decode()
    found = re.search(r"^headgate_requests_under_way (\d+)$", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def is_done_soon(served: ServedProgram) -> bool:
    """Say whether nothing is under way after a while but the question how much is."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if under_way(served) == 1:
            return True
    return False


def whole_batches(served: ServedProgram, connection: str) -> tuple[int, int]:
    """Read every record of the broken batches; gives how many batches are there, and how many are torn."""
    found: dict[str, int] = {}
    path: str | None = f"{MAIL}?limit=100&connection_id={connection}"
    while path is not None:
        page = served.ask("GET", path, served.owner).body
        for row in page["data"]:
            name, _, at = row["id"].partition("-")
            if name.startswith("c"):
                assert row["data"]["subject"] == f"{name[1:]} {at}"
                found[name] = found.get(name, 0) + 1
        path = page["links"]["next"]
    return len(found), sum(count != BATCH for count in found.values())


def abort(place: Path, times: int, figure: Figure) -> None:
    with served_program(place, HEADGATE_LOG_LEVEL="warning") as served:
        connection = served.connect()
        served.ingest(connection, [line(f"m{n}", subject=f"bridge {n}") for n in range(200)])
        # The first cursor opens the file in which cursors are kept.
        served.ask("GET", "/v1/streams/messages/records?limit=1", served.grant())
        assert files_settle_at(served, served.open_files())
        files = served.open_files()
        answered = asyncio.run(_break_off_often(served, connection, times, times))
        assert files_settle_at(served, files)
        assert is_done_soon(served)
        served.ingest(connection, [line("after")])
        batches, torn = whole_batches(served, connection)
        figure("F22", f"{times} calls, {times - answered} broken off; {batches} batches there, {torn} torn")
        assert torn == 0
        assert 0 < answered < times
        assert served.log.read_text(encoding="utf-8") == ""
    checked = headgate(place, "--home", "home", "store", "fsck")
    assert checked.code == 0, checked


def test_calls_that_are_broken_off_leave_nothing_half_done(tmp_path: Path, figure: Figure):
    abort(tmp_path, 200, figure)


@pytest.mark.soak
def test_two_thousand_calls_that_are_broken_off_leave_nothing_half_done(tmp_path: Path, figure: Figure):
    abort(tmp_path, 2000, figure)
