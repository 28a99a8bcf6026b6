"""The client a script uses: three lines, no registry, against servers made with the official SDK."""

import asyncio
import base64
import json
import threading
from contextlib import asynccontextmanager, contextmanager

import mcp.types as mcp_types
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from headgate import CallError, ImportOptions, Limits, Registry, from_mcp, from_mcp_sync, from_servers
from headgate.errors import AdapterConfigInvalid, NotFound
from tests.hostile.server import faulty_server, result_of, sse
from tests.peers.serving import serving

pytestmark = pytest.mark.anyio
PIXEL = b"\x89PNG not really"


class Weather(BaseModel):
    """What a tool below answers with."""

    city: str
    celsius: float


def example():
    server = MCPServer("example")
    waiting = asyncio.Event()

    @server.tool()
    def weather(city: str, unit: str = "celsius") -> Weather:
        return Weather(city=city, celsius=float(len(city)))

    @server.tool(structured_output=False)
    def picture() -> list:
        data = base64.b64encode(PIXEL).decode()
        return ["two parts", mcp_types.ImageContent(data=data, mime_type="image/png")]

    @server.tool(structured_output=False)
    def broken_picture() -> list:
        return [mcp_types.ImageContent(data="no base64!", mime_type="image/png")]

    @server.tool()
    def fails() -> str:
        raise ValueError("on purpose")

    @server.tool()
    async def walks(ctx: Context, steps: int) -> str:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        return "there"

    server.add_tool(lambda: 3, name="count")

    @server.tool()
    async def waits() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            waiting.set()
            raise
        return "late"

    _add_beside_tools(server)
    server.gave_up = waiting
    return server


def _add_beside_tools(server):
    @server.resource("note://one", name="one", mime_type="text/plain")
    def note() -> str:
        return "a note"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Say hello to {name}."


@asynccontextmanager
async def served(server=None):
    async with serving((server or example()).streamable_http_app()) as url:
        yield f"{url}/mcp"


async def test_three_lines_call_a_tool_and_read_its_result():
    async with served() as url, from_mcp(url) as client:
        result = await client.call("weather", city="Oslo")
        assert result.data == {"city": "Oslo", "celsius": 4.0}
        assert result.into(Weather) == Weather(city="Oslo", celsius=4.0)
        assert json.loads(result.text) == result.data
        again = await client.weather(city="Rome")
        assert again.data["city"] == "Rome"
        # A tool that is called like a method of the import, and arguments as a mapping.
        assert (await client.call("count")).text == "3"
        assert (await client.call("weather", {"city": "Bern"})).data["city"] == "Bern"


async def test_an_import_is_awaited_as_before():
    async with served() as url, await from_mcp(url, "ns") as imported:
        assert [tool.id for tool in imported][:2] == ["ns/weather", "ns/picture"]


async def test_text_and_images_of_a_result_are_at_hand():
    async with served() as url, from_mcp(url) as client:
        result = await client.picture()
        assert result.text == "two parts"
        assert [(image.data, image.mime_type) for image in result.images] == [(PIXEL, "image/png")]
        assert [block["type"] for block in result.blocks] == ["text", "image"]
        broken = await client.call("broken_picture")
        with pytest.raises(CallError, match="base64"):
            _ = broken.images


async def test_errors_name_the_tool_and_the_reason_and_mistakes_the_nearest_right_name():
    async with served() as url, from_mcp(url) as client:
        with pytest.raises(CallError) as failed:
            await client.fails()
        assert str(failed.value) == "MCP_TOOL_ERROR (fails): Error executing tool fails"
        with pytest.raises(CallError) as unknown:
            await client.call("wether", city="Oslo")
        assert unknown.value.code == "NOT_FOUND"
        assert "weather" in str(unknown.value)
        with pytest.raises(AttributeError, match="weather"):
            _ = client.wether
        with pytest.raises(CallError) as misspelt:
            await client.weather(citty="Oslo")
        assert str(misspelt.value) == (
            'INVALID_INPUT (weather): weather takes no "citty". Did you mean "city"? It takes: city, unit.'
        )
        result = await client.weather(city="Oslo")
        with pytest.raises(CallError) as unfit:
            result.into(list[int])
        assert unfit.value.code == "INVALID_OUTPUT"


async def test_tools_are_registered_only_under_a_namespace_that_the_program_gave():
    async with served() as url, from_mcp(url) as client:
        assert client.name == "127-0-0-1"
        assert "weather" in client.tool_names
        with pytest.raises(AdapterConfigInvalid, match="namespace"):
            Registry(client)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_callback_gets_the_progress_of_its_own_call_while_the_tool_runs(era):
    seen = {"a": [], "b": []}
    async with served() as url, from_mcp(url, options=ImportOptions(era=era)) as client:

        async def walk(name, steps):
            note = lambda *progress: seen[name].append(progress)  # noqa: E731 - one line says it
            return await client.call("walks", steps=steps, on_progress=note)

        results = await asyncio.gather(walk("a", 3), walk("b", 2))
        assert [result.data for result in results] == [{"result": "there"}] * 2
    assert seen["a"] == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert [progress for progress, _, _ in seen["b"]] == [1, 2]


async def test_a_callback_that_fails_and_progress_that_is_none_leave_the_call_alone():
    def hostile(call):
        token = call.params["_meta"]["progressToken"]
        notes = [
            {"progressToken": token, "progress": "much"},
            {"progressToken": 999, "progress": 1},
            {"progress": 1},
            {"progressToken": token, "progress": 1, "total": "all", "message": {"a": 1}},
        ]
        return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": note} for note in notes]

    async def stream(call, writer):
        body = b"".join(sse(message) for message in [*hostile(call), result_of(call, {"content": []})])
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    seen, faults = [], []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: faults.append(context["exception"])
    )

    def fails(*progress):
        seen.append(progress)
        raise ValueError("mine")

    async with faulty_server(faults={"tools/call": stream}) as server, from_mcp(server.url) as client:
        assert (await client.call("echo", on_progress=fails)).data == []
    assert seen == [(1, None, "")]
    assert [type(fault) for fault in faults] == [ValueError]


async def test_the_server_sees_that_a_call_was_cancelled():
    server = example()
    async with served(server) as url, from_mcp(url) as client:
        call = asyncio.create_task(client.call("waits"))
        async with asyncio.timeout(10):
            while not client.client.first.in_flight:  # noqa: ASYNC110 - the call has no event for it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            call.cancel()
            await server.gave_up.wait()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_hundred_calls_at_once_all_succeed():
    # More than run and wait at a time by the limits: those of one program wait for each other.
    async with served() as url, from_mcp(url) as client:
        results = await asyncio.gather(*(client.weather(city="x" * n) for n in range(1, 101)))
    assert [result.data["celsius"] for result in results] == [float(n) for n in range(1, 101)]


async def test_resources_and_prompts_are_listed_read_and_filled_in():
    async with served() as url, from_mcp(url) as client:
        (resource,) = await client.resources.list()
        assert (resource.uri, resource.name, resource.mime_type) == ("note://one", "one", "text/plain")
        (content,) = await client.resources.read("note://one")
        assert (content.text, content.data) == ("a note", b"a note")
        (prompt,) = await client.prompts.list()
        assert [(argument.name, argument.required) for argument in prompt.arguments] == [("name", True)]
        (message,) = await client.prompts.get("greet", name="Ann")
        assert (message.role, message.block["text"]) == ("user", "Say hello to Ann.")
        with pytest.raises(CallError):
            await client.resources.read("note://two")


@contextmanager
def in_thread():
    """Serve the example beside a thread that has no event loop."""
    urls, done = [], threading.Event()
    started = threading.Event()

    async def serve():
        async with served() as url:
            urls.append(url)
            started.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait(10)
    try:
        yield urls[0]
    finally:
        done.set()
        thread.join()


def test_a_script_without_an_event_loop_calls_tools_too():
    with in_thread() as url, from_mcp_sync(url) as client:
        assert client.call("weather", city="Oslo").data["celsius"] == 4.0
        assert client.weather(city="Rome").data["city"] == "Rome"
        assert "weather" in client.tool_names
        with pytest.raises(AttributeError, match="weather"):
            _ = client.wether


async def test_the_sync_import_says_what_to_use_where_an_event_loop_runs():
    with pytest.raises(AdapterConfigInvalid, match="from_mcp"), from_mcp_sync("http://127.0.0.1:9/mcp"):
        pass


async def test_servers_of_a_file_are_called_by_name_and_one_that_is_down_keeps_no_other_out(tmp_path):
    async with served() as url, faulty_server() as gone:
        await gone.stop()
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": {"good": {"url": url}, "gone": {"url": gone.url}}}))
        async with from_servers(path) as servers:
            assert (await servers["good"].weather(city="Oslo")).data["city"] == "Oslo"
            with pytest.raises(Exception, match="could not be imported"):
                _ = servers["gone"]
            with pytest.raises(NotFound, match="good"):
                _ = servers["goood"]
    with pytest.raises(AdapterConfigInvalid, match="cannot be read"):
        from_servers(tmp_path / "none.json")


async def test_a_call_may_wait_longer_than_the_limits_when_its_caller_names_a_time():
    short = ImportOptions(limits=Limits(total_seconds=0.3, idle_seconds=0.1))
    server = example()

    @server.tool()
    async def slow() -> str:
        await asyncio.sleep(0.6)
        return "done"

    async with served(server) as url, from_mcp(url, options=short) as client:
        with pytest.raises(CallError) as late:
            await client.slow()
        assert late.value.code == "TIMEOUT"
        assert (await client.call("slow", timeout_seconds=20)).data == {"result": "done"}
        with pytest.raises(CallError) as too_long:
            await client.call("slow", timeout_seconds=3601)
        assert too_long.value.code == "INVALID_INPUT"
