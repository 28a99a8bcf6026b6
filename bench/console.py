"""The time that the server takes for each page of the console, over a home of 100 000 records.

`python -m bench console --records 100000`. A page is asked for in this process, without a socket; the figures are
medians of some rounds, after a first one that warms caches up. Every page is to stay under 100 ms of the processor's time of
this process, all threads together: the time by the clock also counts what other programs of the machine do.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from bench.records import HOME, Household, declaration
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.rows import Batch
from tests.console.browsers import Browser, signed_in
from tests.console.clients import Client, approve, open_consent, query_of
from tests.in_process import LocalProgram, local_program

MOST_MS = 100.0
ROUNDS = 7
_BATCH = 2000
_CONNECTIONS = 8


async def fill(program: LocalProgram, records: int) -> list[ConnectionId]:
    """Store the records of the invented household."""
    store = program.services.store
    await store.declare(HOME, declaration())
    connections = [(await store.create_connection(HOME, f"Account {n}")).id for n in range(_CONNECTIONS)]
    waiting: dict[tuple[int, StreamName], list[bytes]] = {}
    for one in Household(connections=_CONNECTIONS).make(records):
        lines = waiting.setdefault((one.connection, one.stream), [])
        lines.append(one.line)
        if len(lines) == _BATCH:
            await store.ingest(Batch(connections[one.connection], one.stream, lines.copy(), program.clock.at))
            lines.clear()
    for (connection, stream), lines in waiting.items():
        await store.ingest(Batch(connections[connection], stream, lines, program.clock.at))
    return connections


async def agent_reads(program: LocalProgram, browser: Browser, connection: ConnectionId) -> str:
    """Let an agent in, and have it read, so that pages about agents have something to show."""
    client = Client(program)
    await client.register(client_name="Study helper")
    sent = query_of(await approve(browser, client, f"{connection}/messages"))
    token = (await client.redeem(sent["code"])).body["access_token"]
    for _ in range(50):
        program.clock.at += 1_000_000
        answer = await program.get(f"/v1/streams/messages/records?connection_id={connection}&limit=50", token)
        assert answer.status == 200, answer.content
    await program.services.pump.flush()
    return client.id


async def pages(program: LocalProgram, browser: Browser, connection: ConnectionId) -> dict[str, str]:
    """List the addresses to measure."""
    agent = await agent_reads(program, browser, connection)
    listed = await program.get(
        f"/v1/streams/messages/records?connection_id={connection}&limit=1", program.owner
    )
    key = quote(listed.body["data"][0]["id"], safe="")
    consent, _ = await open_consent(browser, Client(program, agent))
    (granted,) = await program.services.ledger.grants()
    return {
        "home": "/console",
        "search": "/console/search?q=meeting",
        "data": "/console/data",
        "stream": f"/console/data/{connection}/messages",
        "record": f"/console/records/messages/{key}?connection_id={connection}",
        "agents": "/console/agents",
        "agent": f"/console/agents/{agent}",
        "look": f"/console/agents/{agent}/look",
        "narrow": f"/console/grants/{granted.grant.id}/narrow",
        "activity": "/console/activity",
        "rules": "/console/rules",
        "connect": "/console/connect",
        "add": "/console/add",
        "servers": "/console/servers",
        "settings": "/console/settings",
        "consent": consent,
    }


async def milliseconds(browser: Browser, path: str) -> tuple[float, float]:
    """Measure one page: the time it took, and the processor's time of all threads."""
    taken, worked = list[float](), list[float]()
    for _ in range(ROUNDS + 1):
        started, began = time.perf_counter(), time.process_time()
        shown = await browser.get(path)
        taken.append((time.perf_counter() - started) * 1000)
        worked.append((time.process_time() - began) * 1000)
        assert shown.status == 200, (path, shown.words[:200])
    return statistics.median(taken[1:]), statistics.median(worked[1:])


@asynccontextmanager
async def filled(records: int) -> AsyncIterator[tuple[Browser, dict[str, str]]]:
    """Make the home, and sign in."""
    with tempfile.TemporaryDirectory() as place:
        async with local_program(Path(place)) as program:
            connections = await fill(program, records)
            browser = await signed_in(program)
            yield browser, await pages(program, browser, connections[0])


async def measure(records: int) -> None:
    """Print the time of every page."""
    async with filled(records) as (browser, paths):
        print(f"console: server time of each page, {records} records")
        for name, path in paths.items():
            taken, worked = await milliseconds(browser, path)
            late = "" if worked < MOST_MS else "  over 100 ms"
            print(f"  {name:<10} {worked:5.1f} ms of the processor, {taken:7.1f} ms by the clock{late}")


def main(arguments: Sequence[str] = ()) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="bench console")
    parser.add_argument("--records", type=int, default=100_000)
    asyncio.run(measure(parser.parse_args(arguments).records))
