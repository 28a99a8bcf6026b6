"""``headgate ops``, run as a program against a server on this machine."""

import asyncio
import contextlib
import io
import json
import re
import sys
from unittest import mock

import pytest

from headgate.cli import main
from tests.hostile.server import LEGACY, MODERN, answers, faulty_server, hangs, http, replies, result_of, tool
from tests.on_socket import headgate

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


def invoke(arguments):
    """Run the command in this process; it brings its own event loop, so it needs a separate thread."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["headgate", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main.run()
    return Done(ended.value.code, out.getvalue(), err.getvalue())


@contextlib.asynccontextmanager
async def program(tmp_path, **how):
    """A server, and the command to use it with."""
    async with faulty_server(**how) as server:

        async def run(command, *arguments):
            home = str(tmp_path / "home")
            return await asyncio.to_thread(invoke, ["--home", home, "ops", command, *arguments])

        yield server, run


async def test_the_program_itself_works_and_says_so(tmp_path):
    async with faulty_server() as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headgate",
            "ops",
            "probe",
            server.url,
            "--json",
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert [found["tool"] for found in json.loads(out)["tools"]] == ["echo", "other"]


async def test_probe_says_what_a_server_offers_and_keeps_nothing(tmp_path):
    tools = [tool("find", inputSchema=SCHEMA), {"name": "bad"}]
    async with program(tmp_path, tools=tools, era=MODERN) as (server, run):
        as_text = await run("probe", server.url)
        as_json = await run("probe", server.url, "--json")
    assert as_text.code == as_json.code == 0
    assert "find (content blocks)" in as_text.out
    assert "skipped" in as_text.out
    assert as_json.json["protocolVersion"] == MODERN
    assert [found["tool"] for found in as_json.json["tools"]] == ["find"]
    assert not (tmp_path / "home").exists()


async def test_list_schema_and_call(tmp_path):
    async with program(tmp_path, tools=[tool("find", inputSchema=SCHEMA)]) as (server, run):
        listed = await run("list", server.url, "--namespace", "git")
        assert listed.out == "git/find  Does find.\n"
        assert (await run("list", server.url, "--json")).json["operations"][0]["id"] == "remote/find"
        shown = await run("schema", server.url, "find", "--json")
        assert shown.json["input_schema"] == SCHEMA
        called = await run("call", server.url, "remote/find", "--input", '{"q": "ü"}')
        assert json.loads(called.json[0]["text"]) == {"q": "ü"}
        envelope = (await run("call", server.url, "find", "--input", '{"q": "x"}', "--json")).json
        assert envelope["meta"]["source"] == "mcp"


async def test_failures_are_one_line_and_have_an_exit_code(tmp_path):
    failing = {"find": {"content": [{"type": "text", "text": "No\x1b[31m such thing."}], "isError": True}}
    tools = [tool("find", inputSchema=SCHEMA)]
    async with program(tmp_path, tools=tools, results=failing) as (server, run):
        outcomes = [
            (await run("call", server.url, "find", "--input", '{"q": "x"}'), 5),
            (await run("call", server.url, "find", "--input", "{}"), 1),
            (await run("call", server.url, "find", "--input", "{"), 1),
            (await run("call", server.url, "nothing"), 1),
            (await run("call", "http://example.com/mcp", "find"), 1),
            (await run("probe", "http://127.0.0.1:1/mcp"), 1),
            (await run("probe", server.url, "--token-file", str(tmp_path / "none")), 78),
            (await run("probe"), 64),
        ]
        server.faults["server/discover"] = answers(http(401))
        outcomes.append((await run("probe", server.url), 1))
    assert "is not there" in outcomes[6][0].err
    assert "wants a token" in outcomes[-1][0].err
    assert "--token-file" in outcomes[-1][0].err
    for done, code in outcomes:
        assert done.code == code, done.err
        assert done.err.startswith("headgate: ")
        assert done.err.count("\n") == 1
        assert "Traceback" not in done.err
        assert "\x1b" not in done.err + done.out


async def test_a_call_that_takes_too_long_ends(tmp_path):
    async with program(tmp_path, faults={"tools/call": hangs}) as (server, run):
        done = await run("call", server.url, "echo", "--timeout", "0.3")
    assert done.code == 1
    assert "Traceback" not in done.err


async def test_the_token_comes_from_a_private_file_and_is_never_printed(tmp_path):
    path = tmp_path / "token"
    path.write_text("canary-token-1\n")
    path.chmod(0o644)
    async with program(tmp_path, token="canary-token-1") as (server, run):
        opened = await run("probe", server.url, "--token-file", str(path))
        assert opened.code == 78
        path.chmod(0o600)
        done = await run("list", server.url, "--token-file", str(path), "--json")
        assert done.code == 0
        assert "canary" not in done.out + done.err + opened.out + opened.err
    assert b"canary" not in (tmp_path / "home" / "pins.json").read_bytes()


async def test_pins_are_kept_compared_and_approved(tmp_path):
    async with program(tmp_path) as (server, run):
        assert (await run("pins", "--json")).json == {"servers": {}}
        assert "Nothing is pinned yet" in (await run("pins")).out
        assert (await run("pins", server.url)).out == "pinned    echo\npinned    other\n"
        server.tools = [tool("echo", description="Other words."), tool("new")]
        waiting = await run("pins", server.url, "--json")
        assert waiting.code == 3
        assert [(c["tool"], c["grade"]) for c in waiting.json["blocked"]] == [
            ("echo", "wording"),
            ("new", "new"),
        ]
        assert waiting.json["vanished"] == ["other"]
        refused = await run("call", server.url, "echo")
        assert refused.code == 1
        assert re.search(f"headgate --home .* ops pins {re.escape(server.url)}", refused.err)
        shown = await run("pins", server.url)
        assert shown.out.splitlines() == [
            "wording   echo",
            "          /description  the text is another",
            "new       new",
            "vanished  other",
            "Blocked until you approve: add --approve TOOL for one of them, --approve-all for all.",
        ]
        assert (await run("pins", server.url, "--approve", "echo")).code == 3
        assert (await run("call", server.url, "echo")).code == 0
        assert (await run("pins", server.url, "--approve-all")).code == 0
        assert (await run("pins")).out == f"{server.url}  2 pinned\n"


async def test_stubs_are_written_as_a_module(tmp_path):
    async with program(tmp_path, tools=[tool("find", inputSchema=SCHEMA)]) as (server, run):
        done = await run("stubs", server.url, "--namespace", "git")
        assert (await run("stubs", server.url, "--namespace", "git", "--json")).json["module"] == done.out
    namespace = {}
    exec(compile(done.out, "generated", "exec"), namespace)
    assert callable(namespace["find"])


def no_tools(seen):
    who = {"name": "bare", "version": "1"}
    return result_of(seen, {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": who})


@pytest.mark.parametrize("command", ["probe", "list", "pins", "stubs"])
async def test_with_json_nothing_but_json_is_printed_for_a_server_without_tools(tmp_path, command):
    async with faulty_server(faults={"initialize": replies(no_tools)}) as server:
        words = ("--home", "home", "ops", command, server.url, "--json")
        # A separate process, because a log line may go to the standard output that the process started with.
        done = await asyncio.to_thread(headgate, tmp_path, *words)
    assert done.code == 0, done.err
    assert isinstance(json.loads(done.out), dict)


@pytest.mark.parametrize("number", ["1e999", "-1e400", "1" + "0" * 400 + ".0", "9" * 5000])
async def test_with_json_a_number_that_json_has_not_is_never_printed(tmp_path, number):
    async def huge(seen, writer):
        body = f'{{"jsonrpc":"2.0","id":{seen.id},"result":{{"structuredContent":{{"n":{number}}}}}}}'
        writer.write(http(200, body.encode()))

    async with program(tmp_path, faults={"tools/call": huge}) as (server, run):
        done = await run("call", server.url, "echo", "--json")
    assert done.code != 0
    assert done.err.startswith("headgate: The server's answer")
    assert done.out == ""
