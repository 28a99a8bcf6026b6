"""The official conformance suite for clients, both revisions, with ``from_mcp`` as the client."""

import asyncio
import json
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.client import run_scenario
from tests.peers.serving import NODE, PEERS

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
SUITE = PEERS / "conformance" / "dist" / "index.js"
REVISIONS = ("2025-11-25", "2026-07-28")


def expected(revision):
    lines = (HERE / "expected_failures.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return {scenario for found, scenario in pairs if found == revision}


@asynccontextmanager
async def running_scenarios(path):
    """Run the scenario that each started process sends over a socket, and reply with its exit code."""

    at_once = asyncio.Semaphore(4)

    async def answer(reader, writer):
        scenario = json.loads(await reader.readline())
        try:
            async with at_once:
                await run_scenario(scenario)
            exit_code = b"0\n"
        except Exception as error:  # noqa: BLE001 - like a program that ends with an error
            sys.stderr.write(f"{scenario.get('SCENARIO')}: {error!r}\n")
            exit_code = b"1\n"
        writer.write(exit_code)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, path)
    async with server:
        yield


async def run_suite(folder, *which):
    """Run the suite; return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        str(SUITE),
        "client",
        "--command",
        f"{sys.executable} -IS {HERE / 'scenario_process.py'} {folder / 'socket'}",
        *which,
        "--timeout",
        "90000",
        "-o",
        str(folder / "results"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def judged(folder, revision):
    """Run the suite of a revision; return how many scenarios passed, which failed, and its output."""
    async with running_scenarios(str(folder / "socket")):
        _, output = await run_suite(folder, "--requirements", revision)
        _, _, summary = output.partition("SUITE SUMMARY")
        verdicts = re.findall(r"(✓|✗) ([\w/.-]+):", summary)
        failed = {name for mark, name in verdicts if mark == "✗"}
        # All scenarios run at once; on a busy machine one of them may time out, and is run again alone.
        for name in sorted(failed - expected(revision)):
            code, _ = await run_suite(folder, "--scenario", name, "--spec-version", revision)
            if code == 0:
                failed.discard(name)
    return len(verdicts) - len(failed), failed, output


@pytest.mark.skipif(not SUITE.exists(), reason="the Node peers are not installed")
async def test_the_client_suite_fails_where_it_is_expected_to_and_nowhere_else(tmp_path_factory):
    # At the same time, because most of it is waiting.
    folders = [tmp_path_factory.mktemp("suite") for _ in REVISIONS]
    results = await asyncio.gather(*map(judged, folders, REVISIONS))
    for revision, (passed_count, failed, output) in zip(REVISIONS, results, strict=True):
        assert passed_count >= 17, output[-3000:]
        assert failed == expected(revision)
