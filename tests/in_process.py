"""The whole program in this process, called without a socket: the same application, store and log over a new home."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from headgate.auth.grants import OWNER, issue_owner_token
from headgate.auth.keys import digest_of
from headgate.home import open_home
from headgate.hosting import running_all, web_app
from headgate.model.grant import Grant, TokenKind
from headgate.model.ids import ConnectorKey, PackageId
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.settings import Settings, resolve
from headgate.telemetry import Metrics, configure_logs
from headgate.wiring import Services, build_services
from tests.http_clients import HttpAnswer

NOW = 1_800_000_000_000_000
_COUNTER = itertools.count()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = NOW
        #: By how much it shows too much; the time that passes is not wrong by that.
        self.wrong_by = 0

    def __call__(self) -> int:
        return self.at + self.wrong_by


class LocalProgram:
    """The program, its application, a clock that a test moves, and an owner's token."""

    def __init__(self, services: Services, app: Any, clock: Clock, owner: str, metrics: Metrics) -> None:
        self.metrics = metrics
        self.services = services
        self.app = app
        self.clock = clock
        self.owner = owner

    async def ask(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        params: Any = (),
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        client: str = "127.0.0.1",
    ) -> HttpAnswer:
        raw, _, query = path.partition("?")
        if params:
            query = urlencode(params)
        named = [*headers]
        if not any(name == "host" for name, _ in named):
            named.append(("host", "127.0.0.1"))
        if token is not None:
            named.append(("authorization", f"Bearer {token}"))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": raw, "raw_path": raw.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in named],
            "client": (client, 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        pieces = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            if not pieces:
                await asyncio.Event().wait()
            return pieces.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        return HttpAnswer(sent[0]["status"], found, content)

    async def get(self, path: str, token: str | None = None, **more: Any) -> HttpAnswer:
        return await self.ask("GET", path, token, **more)

    async def declare(self, key: str, document: Any) -> None:
        await self.services.store.declare(ConnectorKey(key), document)

    async def connect(self, key: str, name: str = "") -> str:
        return (await self.services.store.create_connection(ConnectorKey(key), name)).id

    async def ingest(self, connection: str, stream: str, lines: Iterable[Any]) -> Any:
        content = b"\n".join(json.dumps(line).encode() for line in lines)
        # What breaks the schema is kept, so that reads meet values of every type.
        path = f"/v1/ingest/{quote(stream, safe='')}?connection_id={connection}&on_invalid=keep"
        answer = await self.ask("POST", path, self.owner, body=content)
        assert answer.status == 200, answer.content
        return answer.body

    async def grant(
        self, *grants: Grant, expires_at: int | None = None, daily_records: int | None = None
    ) -> str:
        token = f"hg_test_{next(_COUNTER)}"
        package = PackageId("pkg_" + grants[0].id) if len(grants) > 1 else None
        await self.services.ledger.issue(
            [IssuedGrant(one, package, daily_records=daily_records) for one in grants],
            IssuedToken(
                digest=digest_of(token),
                kind=TokenKind.CLIENT if package is None else TokenKind.MCP_PACKAGE,
                subject_id=OWNER,
                issued_at=self.clock.at,
                client_id=grants[0].client_id,
                grant_id=grants[0].id if package is None else None,
                package_id=package,
                expires_at=expires_at,
            ),
        )
        return token


def settings_for(place: Path, **flags: str) -> Settings:
    # Without a model, unless a test is about search by meaning: making vectors takes far longer than most tests.
    own = {"home": str(place / "home"), "rate_limit": "0", "semantic_model": "off"}
    return resolve({**own, **flags}, {}, {}, Path("none")).settings


@asynccontextmanager
async def _in_one_task(running: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
    """Enter and leave in one task, as the MCP sessions demand; a fixture's two halves may run in two."""
    ready, end = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with running:
            ready.set()
            await end.wait()

    task = asyncio.create_task(run())
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield
    finally:
        end.set()
        await task


@asynccontextmanager
async def local_program(place: Path, **flags: str) -> AsyncIterator[LocalProgram]:
    settings = settings_for(place, **flags)
    configure_logs("warning", "json", io.StringIO())
    clock = Clock()
    services = build_services(
        settings, open_home(settings.home), clock=clock, seconds=lambda: clock.at / 1_000_000
    )
    app = web_app(services)
    async with _in_one_task(running_all(services)):
        owner = await issue_owner_token(services.ledger, now=clock.at)
        yield LocalProgram(services, app, clock, owner, services.metrics)


def record(key: str, emitted_at: str = "2026-03-01T00:00:00Z", **data: Any) -> dict[str, Any]:
    return {"key": key, "data": {"id": key, **data}, "emitted_at": emitted_at}
