"""The commands about the gateway: what a script can ask of it, and how a program is let in without a page."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.cli.test_ops import invoke
from tests.hostile.server import faulty_server, tool
from tests.in_process import local_program

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@asynccontextmanager
async def gateway(tmp_path, monkeypatch, *tools, away=False):
    """A gateway with a server called city, and a way to run commands on its home."""
    async with faulty_server(tools=list(tools)) as server:
        block = {"city": {"type": "http", "url": server.url}}
        if away:
            block["moon"] = {"type": "http", "url": "http://127.0.0.1:9/mcp?key=secret-1"}
        servers = tmp_path / "servers.json"
        servers.write_text(json.dumps({"mcpServers": block}))
        monkeypatch.setenv("HEADGATE_GATEWAY_SERVERS", str(servers))

        async def run(*arguments):
            home = str(tmp_path / "home")
            return await asyncio.to_thread(invoke, ["--home", home, *arguments])

        yield server, run


async def test_status_shows_each_server_and_its_exit_code_says_what_to_do(tmp_path, monkeypatch):
    async with gateway(tmp_path, monkeypatch, tool("echo")) as (server, run):
        ready = await run("ops", "status", "--json")
        assert (ready.code, ready.json["servers"][0]["state"]) == (0, "ready")
        assert ready.json["servers"][0]["operations"] == 1
        server.tools.append(tool("late"))
        waits = await run("ops", "status")
        assert waits.code == 3
        assert "new       late" in waits.out
    async with gateway(tmp_path, monkeypatch, tool("echo"), away=True) as (_, run):
        away = await run("ops", "status")
        assert away.code == 4
        assert "moon  away: " in away.out
        assert "secret-1" not in (await run("ops", "status", "--json")).out


async def test_check_judges_single_operations_and_calls_none(tmp_path, monkeypatch):
    async with gateway(tmp_path, monkeypatch, tool("echo"), away=True) as (server, run):
        assert (await run("ops", "check", "city/echo", "city")).code == 0
        server.tools.append(tool("late"))
        checked = {
            name: await run("ops", "check", name, "--json")
            for name in ("city/echo", "city/late", "moon/echo", "city/ecko", "sun/echo")
        }
        assert {name: done.code for name, done in checked.items()} == {
            "city/echo": 0,
            "city/late": 3,
            "moon/echo": 4,
            "city/ecko": 6,
            "sun/echo": 6,
        }
        assert checked["city/ecko"].json["checked"][0]["state"] == "there is no such operation; nearest: echo"
        assert (await run("ops", "check", *checked)).code == 6, "the worst decides"
        assert server.calls("tools/call") == []


async def test_without_servers_the_commands_say_what_to_set(tmp_path):
    for command in (("ops", "status"), ("ops", "check", "a/b"), ("clients", "create", "x", "--gateway")):
        done = await asyncio.to_thread(invoke, ["--home", str(tmp_path / "home"), *command])
        assert done.code == 78
        assert "gateway_servers" in done.err


async def test_a_program_is_let_into_the_gateway_from_the_command_line(tmp_path, monkeypatch):
    async with gateway(tmp_path, monkeypatch, tool("echo"), tool("weather")) as (_, run):
        whole = await run("clients", "create", "robot", "--gateway")
        narrow = await run("clients", "create", "script", "--gateway", "--operation", "city/echo", "--json")
        assert (whole.code, narrow.code) == (0, 0)
        assert (await run("clients", "create", "x", "--gateway", "--server", "sun")).code == 1
        assert (await run("clients", "create", "x")).code == 1
        servers = str(tmp_path / "servers.json")
        async with local_program(tmp_path, gateway_servers=servers) as program:
            callers = await program.services.gateway_callers.all()
            assert {caller.name: caller.described for caller in callers} == {
                "robot": ("everything of city",),
                "script": ("city/echo",),
            }
            holder = program.services.gateway_callers.holder
            assert await holder(whole.out.strip()) == "robot"
            assert await holder(narrow.json["access_token"]) == "script"
