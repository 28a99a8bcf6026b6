"""A real MCP server on this machine that has tasks, and a mapping of them."""

import asyncio
import threading
from contextlib import contextmanager

import fastmcp

from tests.peers.serving import serving

MAPPING = """
server = "{server}/mcp"
tool = "list_tasks"
stream = "tasks"
label = "My tasks"
items = "tasks"
key = "id"
time = "updated_at"
title = "name"
{more}

[arguments]
status = "open"

[page]
argument = "cursor"
next = "next"

[fields]
id = "text"
name = "text"
effort = "number"
updated_at = {{ type = "date-time", from = "times.updated" }}
"""


def tasks(*numbers: int) -> list[dict]:
    return [
        {"id": n, "name": f"Task {n}", "effort": n / 2, "times": {"updated": f"2026-03-{n:02d}T08:00:00Z"}}
        for n in numbers
    ]


class Tasks:
    """What the server has, and how it was asked."""

    def __init__(self) -> None:
        self.tasks = tasks(1, 2, 3)
        self.asked: list[tuple] = []
        self.fails = False
        self.url = ""

    def page(self, status: str, cursor: str | None, since: str | None) -> dict:
        self.asked.append((status, cursor, since))
        if self.fails:
            raise ValueError("out of order")
        left = [one for one in self.tasks if since is None or one["times"]["updated"] > since]
        at = int(cursor or 0)
        return {"tasks": left[at : at + 2], "next": str(at + 2) if at + 2 < len(left) else None}


def app_of(held: Tasks, *, is_marked: bool = True, detail: str = "List tasks."):
    server = fastmcp.FastMCP("tasks")

    @server.tool(annotations={"readOnlyHint": True} if is_marked else None, description=detail)
    def list_tasks(status: str, cursor: str | None = None, since: str | None = None) -> dict:
        return held.page(status, cursor, since)

    return server.http_app()


@contextmanager
def on_loopback(app):
    """Serve an app from a thread: the source has an event loop in another one."""
    ready, stop = threading.Event(), threading.Event()
    found: list[str] = []

    async def run() -> None:
        async with serving(app) as url:
            found.append(url)
            ready.set()
            while not stop.is_set():  # noqa: ASYNC110 - the event is of another thread
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(20)
        yield found[0]
    finally:
        stop.set()
        thread.join(20)
