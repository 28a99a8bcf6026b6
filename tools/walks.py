"""Count the modules and functions of ours that one request walks through; prints the table of the architecture page.

Counted is every call of a function of ours, in the thread of the event loop and in the threads of the store; a
comprehension or a lambda is part of its function. Each request is counted after a first one like it, which fills what is
remembered between requests. What threads do beside the request (idle tasks of the writer, the log) is not counted.
Of a search only `headgate.store` is counted, and of that what the search runs: neither the ledger nor the writer.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

import headgate
from headgate import hosting, wiring
from headgate.cli.demonstration import make_demo
from headgate.home import open_home
from headgate.settings import Settings, resolve

_OURS = str(Path(headgate.__file__).parent)
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
#: Threads that work beside requests.
_BESIDE = {"headgate-writer"}
#: What each walk may be: its unit, and how many at most.
_MOST = {
    "a REST page": ("modules", 30),
    "its part in the store": ("modules", 8),
    "a tool call": ("modules", 34),
    "a search": ("functions", 28),
}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        flags = {
            "home": f"{directory}/home",
            "log_level": "error",
            "semantic_model": "off",
            "rate_limit": "0",
        }
        settings = resolve(flags, {}, {}, Path("none")).settings
        demo = make_demo(settings)
        walks = asyncio.run(_walk_all(settings, demo.token, next(iter(demo.connections.values()))))
    print("| walk | calls | functions | modules | limit |\n|---|---|---|---|---|")
    for name, codes in walks.items():
        unit, most = _MOST[name]
        functions, modules = set(codes), {code.co_filename for code in codes}
        print(f"| {name} | {len(codes)} | {len(functions)} | {len(modules)} | {most} {unit} |")
        if "-v" in sys.argv:
            print(
                "\n".join(
                    sorted(
                        f"  {Path(code.co_filename).relative_to(_OURS)} {code.co_name}" for code in functions
                    )
                )
            )


async def _walk_all(settings: Settings, token: str, connection: str) -> dict[str, list[CodeType]]:
    notes = _Notes()
    program = wiring.build_services(settings, open_home(settings.home))
    app = hosting.web_app(program)
    call = {
        "name": "query_records",
        "arguments": {"stream": "messages", "connection_id": connection},
        "_meta": _META,
    }
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    requests = {
        "a REST page": ("GET", f"/v1/streams/messages/records?connection_id={connection}", b""),
        "a tool call": ("POST", "/mcp", body),
        "a search": ("GET", "/v1/search?q=coffee", b""),
    }
    walks: dict[str, list[CodeType]] = {}
    async with hosting.running_all(program):
        for name, (method, path, content) in requests.items():
            # The first request fills what is remembered between requests.
            await _ask(app, token, method, path, content)
            with notes.into(walks.setdefault(name, [])):
                await _ask(app, token, method, path, content)
    page, call, search = walks.values()
    return {
        "a REST page": page,
        "its part in the store": [code for code in page if _folders(code)[0] == "store"],
        "a tool call": call,
        "a search": [
            code for code in search if _folders(code)[0] == "store" and _folders(code)[1] != "ledger"
        ],
    }


def _folders(code: CodeType) -> tuple[str, ...]:
    return Path(code.co_filename).relative_to(_OURS).parts


class _Notes:
    """Notes calls while a walk is on. It is installed before any thread starts: Python 3.11 cannot add it to one that runs."""

    def __init__(self) -> None:
        self._codes: list[CodeType] | None = None
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    @contextmanager
    def into(self, codes: list[CodeType]) -> Iterator[None]:
        self._codes = codes
        try:
            yield
        finally:
            self._codes = None

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        codes, code = self._codes, frame.f_code
        if codes is None or event != "call" or threading.current_thread().name in _BESIDE:
            return
        if code.co_filename.startswith(_OURS) and not code.co_name.startswith("<"):
            codes.append(code)


async def _ask(app: Any, token: str, method: str, path: str, content: bytes) -> None:
    address, _, query = path.partition("?")
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        **({"content-type": "application/json", "content-length": str(len(content))} if content else {}),
        **(
            {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "query_records"}
            if content
            else {}
        ),
    }
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", HTTPStatus.OK) == HTTPStatus.OK, message

    await app(scope, receive, send)


if __name__ == "__main__":
    main()
