"""The tutorial on importing a server, and its examples, do what they say."""

import ast
import asyncio
import importlib.util
import json
import re
from pathlib import Path

import pytest
from mcp.server import MCPServer

import headgate
from tests.hostile.server import MODERN, faulty_server, replies, result_of, tool
from tests.peers.serving import serving

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "import-a-server.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
WEATHER = tool("weather", outputSchema={"type": "object", "properties": {"celsius": {"type": "number"}}})
SERVER = {
    "tools": [WEATHER, tool("fails"), tool("echo")],
    "results": {
        "weather": {"structuredContent": {"celsius": 4.5}, "content": []},
        "fails": {"content": [{"type": "text", "text": "No such city."}], "isError": True},
        "echo": {"content": [{"type": "text", "text": "hello"}]},
    },
}


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def defined(name):
    """Run the one block that defines a function, with what the blocks above it import, and return the function."""
    (block,) = [block for block in BLOCKS if f"def {name}(" in block]
    names = {
        public: getattr(headgate, public) for public in ("CallError", "FilePins", "Registry", "from_mcp")
    }
    names |= {
        public: getattr(headgate, public) for public in ("AccessControl", "expose", "Question", "Reply")
    }
    exec(compile(block, "tutorial", "exec"), names := {**names, "Path": Path})
    return names[name]


async def test_the_three_lines_work(capsys):
    async with faulty_server(**SERVER) as server:
        lines = BLOCKS[0].replace("https://example.com/mcp", server.url)
        code = compile(lines, "tutorial", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        await eval(code, {"from_mcp": headgate.from_mcp, "token": None})
    assert capsys.readouterr().out == "{'celsius': 4.5}\n"


async def test_tools_are_called_by_their_names(capsys):
    async with faulty_server(**SERVER) as server:
        await defined("main")(server.url, None)
        await defined("wait_for_it")(server.url)
        # The loop of the test runs here, and a script has none.
        await asyncio.to_thread(defined("script"), server.url)
    assert capsys.readouterr().out.splitlines() == [
        "{'celsius': 4.5} {\"celsius\":4.5}",
        "{'celsius': 4.5}",
        "{'celsius': 4.5}",
    ]


async def test_resources_are_read(capsys):
    server = MCPServer("example")
    server.resource("note://one", name="one")(lambda: "a note")
    server.prompt("greet", description="Say hello.")(lambda: "Say hello.")
    async with serving(server.streamable_http_app()) as url:
        await defined("read_resources")(f"{url}/mcp")
    assert capsys.readouterr().out.splitlines() == ["note://one a note", "greet Say hello."]


async def test_operations_are_registered_and_their_failures_are_read(capsys):
    async with faulty_server(**SERVER) as server:
        await defined("register")(server.url, None)
        async with headgate.from_mcp(server.url, "example") as imported:
            registry = headgate.Registry(
                headgate.expose(item, access_control=headgate.AccessControl()) for item in imported
            )
            await defined("ask")(registry)
    assert capsys.readouterr().out.splitlines() == [
        "True {'celsius': 4.5}",
        "True MCP_TOOL_ERROR No such city.",
        "MCP_TOOL_ERROR [{'type': 'text', 'text': 'No such city.'}]",
    ]


async def test_servers_of_a_file_are_called(tmp_path, capsys):
    async with faulty_server(**SERVER) as server:
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": {"weather": {"url": server.url}}}))
        await defined("ask_both")(path)
    assert capsys.readouterr().out.splitlines() == ["{}", "{'celsius': 4.5}"]


async def test_changes_are_seen_and_approved(tmp_path, capsys):
    pinned = defined("import_pinned")
    async with faulty_server(**{**SERVER, "tools": list(SERVER["tools"])}) as server:
        await pinned(server.url, tmp_path / "pins.json")
        server.tools[0] = {**WEATHER, "description": "Other words."}
        await pinned(server.url, tmp_path / "pins.json")
        await pinned(server.url, tmp_path / "pins.json")
    assert capsys.readouterr().out == "weather wording\n"


async def test_a_question_is_answered(capsys):
    def answered(seen):
        if "inputResponses" in seen.params:
            return result_of(seen, {"structuredContent": seen.params["inputResponses"], "content": []})
        form = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}}
        question = {"message": "Really?", "requestedSchema": form}
        asked = {"q": {"method": "elicitation/create", "params": question}}
        return result_of(seen, {"resultType": "input_required", "inputRequests": asked})

    how = {"era": MODERN, "tools": [tool("delete")], "faults": {"tools/call": replies(answered)}}
    async with faulty_server(**how) as server:
        await defined("import_and_answer")(server.url)
    assert capsys.readouterr().out.splitlines() == [
        "example Really? ['confirmed']",
        "{'q': {'action': 'accept', 'content': {'confirmed': True}}}",
    ]


def test_every_block_of_the_page_was_run():
    tests = Path(__file__).read_text(encoding="utf-8")
    functions = [re.findall(r"def (\w+)\(", block) for block in BLOCKS[1:]]
    assert all(functions)
    assert [name for names in functions for name in names if f'defined("{name}")' not in tests] == ["answer"]


async def test_two_servers_stand_behind_one_registry(tmp_path, capsys):
    block = json.loads(
        re.search(r"```json title=\"servers.json\"\n(.*?)```", PAGE, flags=re.DOTALL).group(1)
    )["mcpServers"]
    token = tmp_path / "token"
    token.write_text("file-token-1")
    token.chmod(0o600)
    async with (
        faulty_server(**SERVER, token="file-token-1") as one,
        faulty_server(tools=[tool("rain")]) as two,
    ):
        block["github"]["url"], block["weather"] = one.url, {"url": two.url}
        block["github"]["headers"]["Authorization"] = f"Bearer ${{file:{token}}}"
        block["local"] = {"command": "npx"}
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": block}))
        await example("two_servers").main(path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("local: The server 'local' is refused: it starts a program")
    assert lines[1:] == [
        "weather/rain: Does rain.",
        "github/weather: Does weather.",
        "github/fails: Does fails.",
        "github/echo: Does echo.",
    ]


async def test_a_local_operation_is_made_of_a_remote_one(capsys):
    async with faulty_server(**SERVER) as server:
        await example("composed").main(server.url)
        assert server.calls("tools/call")[0].params["arguments"] == {"message": "hello"}
    assert capsys.readouterr().out == "HELLO!\n"


def test_every_example_is_run_here_or_by_the_page():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {"composed", "server", "two_servers"}
