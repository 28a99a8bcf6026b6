"""Little address space: requests that do not fit are refused, and the process goes on."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Figure
from tests.http_clients import HttpAnswer, keep_alive_client
from tests.on_socket import MAIL, WAIT_SECONDS, ServedProgram, line, owner_of, served_program

#: Without a model for search by meaning, which alone takes more than what is left.
LIMIT_BYTES = 430_000_000
CLIENTS, TIMES = 42, 3
TEXT = "a bridge and a plan " * 50_000
READS = (
    f"{MAIL}?limit=100",
    f"{MAIL}?limit=100&changes_since=beginning",
    f"{MAIL}/m03",
    f"{MAIL}/m04/field-window?field=body&q=plan",
    "/v1/search?q=bridge&limit=100",
)


@pytest.fixture
def filled(tmp_path: Path) -> tuple[str, str, str]:
    """A home with 40 MB of text; gives the owner's token, a client's, and the connection."""
    owner = owner_of(tmp_path)
    with served_program(tmp_path, owner=owner) as served:
        connection = served.connect()
        for number in range(40):
            served.ingest(connection, [line(f"m{number:02}", subject=f"note{number}", body=TEXT)])
        return owner, served.grant(), connection


async def ask_many(served: ServedProgram, client: str, connection: str) -> list[HttpAnswer]:
    """Read and ingest at the same time, as much as many clients can."""
    batch = b"\n".join(line(f"x{number}", body=TEXT[:400_000]) for number in range(40))
    ingest = f"/v1/ingest/messages?connection_id={connection}&on_invalid=keep"
    questions = [("GET", path, client, b"") for path in READS] + [("POST", ingest, served.owner, batch)]
    answers: list[HttpAnswer] = []

    async def one(number: int) -> None:
        async with keep_alive_client(served.address) as caller:
            for turn in range(number, number + TIMES):
                answer = await caller.ask(*questions[turn % len(questions)])
                answers.append(answer)

    await asyncio.gather(*map(one, range(CLIENTS)))
    return answers


def answers_again(served: ServedProgram, client: str) -> bool:
    """Ask everything until it is answered, now that no other client does."""
    end = time.monotonic() + WAIT_SECONDS
    # The search for a word that stands in 40 MB of text two million times may need more than there is.
    left = [*READS[:-1], "/v1/search?q=note7"]
    while left and time.monotonic() < end:
        left = [path for path in left if served.ask("GET", path, client).status != 200]
    return not left


def test_requests_are_refused_before_the_interpreter_runs_out_of_memory(
    tmp_path: Path, filled: tuple[str, str, str], figure: Figure
):
    owner, client, connection = filled
    with served_program(tmp_path, owner=owner, most_bytes=LIMIT_BYTES) as served:
        answers = asyncio.run(ask_many(served, client, connection))
        statuses = Counter(answer.status for answer in answers)
        figure("memory", f"430 MB of address space: {dict(statuses)}")
        assert served.process.poll() is None
        assert len(answers) == CLIENTS * TIMES
        assert statuses.keys() <= {200, 503}
        assert statuses[200]
        for answer in answers:
            if answer.status != 200:
                assert answer.code == "overloaded"
                assert "retry-after" in answer.headers
        assert answers_again(served, client)
