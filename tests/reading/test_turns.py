"""Long reads take turns by client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.errors import RateLimited
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId
from headgate.reading.turns import AT_ONCE, MOST_WAITING, FairTurns
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
EXCESS = 5
#: Only a queue without a bound takes as long.
WAIT_SECONDS = 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def access(client: str) -> Access:
    return Access(TokenKind.CLIENT, "me", client, ())


async def run(turns: FairTurns, client: str, order: list[str]) -> None:
    async with turns.of(access(client)):
        order.append(client)
        await asyncio.sleep(0)


async def test_reads_that_their_callers_left_do_not_count_among_those_that_wait():
    turns, order = FairTurns(), list[str]()
    held = [turns.of(access("a")) for _ in range(AT_ONCE)]
    for one in held:
        await one.__aenter__()
    for _ in range(2):
        waiting = [asyncio.create_task(run(turns, "a", order)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)
    last = asyncio.create_task(run(turns, "a", order))
    await asyncio.sleep(0)
    for one in held:
        await one.__aexit__(None, None, None)
    await last
    assert order == ["a"]


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=60).filter(
        lambda asked: max(map(asked.count, "abcd")) < MOST_WAITING
    )
)
def test_every_read_gets_its_turn_and_each_waiting_client_one_before_any_gets_a_second(asked: list[str]):
    order: list[str] = []

    async def go() -> None:
        turns = FairTurns()
        await asyncio.gather(*(run(turns, client, order) for client in asked))
        # Nothing is left behind: a next one runs at once.
        await asyncio.wait_for(run(turns, "e", order), 1)

    asyncio.run(go())
    assert sorted(order[:-1]) == sorted(asked)
    waited = asked[AT_ONCE:]
    rounds: list[str] = []
    for turn in range(len(waited)):
        rounds += [client for client in dict.fromkeys(waited) if waited.count(client) > turn]
    assert order[AT_ONCE:-1] == rounds


async def test_a_read_that_is_given_up_while_it_waits_holds_no_turn():
    turns, order = FairTurns(), list[str]()
    gates = [asyncio.Event() for _ in range(AT_ONCE)]

    async def hold(gate: asyncio.Event) -> None:
        async with turns.of(access("a")):
            await gate.wait()

    holding = [asyncio.create_task(hold(gate)) for gate in gates]
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(run(turns, "b", order)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    for gate in gates:
        gate.set()
    # Given in the same moment in which it is given up.
    waiting[1].cancel()
    await asyncio.gather(*holding, *waiting, return_exceptions=True)
    assert order == ["b"]
    for _ in range(AT_ONCE + 1):
        await asyncio.wait_for(run(turns, "c", order), 1)


async def test_one_client_cannot_fill_the_queue_and_others_are_taken_meanwhile(
    tmp_path: Path, monkeypatch: Any
):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(
            connection, "messages", [record("a", subject="roof", sent_at="2026-03-01T00:00:00Z")]
        )
        mail = (ConnectionId(connection),)
        token = await program.grant(grant(stream_grant("messages", "id", "subject", connections=mail)))
        store = program.services.reads.store
        gate, refused, answered, search = asyncio.Event(), asyncio.Event(), list[str](), store.search

        async def slow(plan: Any) -> Any:
            await gate.wait()
            return await search(plan)

        monkeypatch.setattr(type(store), "search", lambda _self, plan: slow(plan))

        async def ask(name: str, token: str) -> int:
            status = (await program.get("/v1/search?q=roof", token)).status
            answered.append(name)
            if len(answered) == EXCESS:
                refused.set()
            return status

        greedy = [asyncio.create_task(ask("greedy", token)) for _ in range(MOST_WAITING + AT_ONCE + EXCESS)]
        await asyncio.wait_for(refused.wait(), WAIT_SECONDS)
        other = asyncio.create_task(ask("other", program.owner))
        gate.set()
        assert await other == 200
        # Those that had their turn already, and one that was next.
        assert answered.count("greedy") <= EXCESS + 2 * AT_ONCE
        statuses = await asyncio.gather(*greedy)
        assert (statuses.count(429), statuses.count(200)) == (EXCESS, MOST_WAITING + AT_ONCE)


async def test_too_many_waiting_reads_are_refused_with_what_to_do():
    turns = FairTurns()
    for _ in range(AT_ONCE):
        await turns.take("a")
    waiting = [asyncio.create_task(turns.take("a")) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited) as refused:
        await asyncio.wait_for(turns.take("a"), WAIT_SECONDS)
    assert "Wait for their answers" in refused.value.hint
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
