"""The whole program: a home with invented records, served on a real socket, with tokens."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from headgate import hosting, wiring
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue, issue_owner_token
from headgate.home import open_home
from headgate.model.grant import GrantState
from headgate.settings import Settings, resolve
from tests.mcp.serve.hosting import serving
from tests.mcp.serve.world import SMALL
from tests.stitched import fill


@dataclass(frozen=True)
class Product:
    """The address of the program, its parts, and the tokens for it."""

    address: str
    settings: Settings
    program: wiring.Services
    connections: dict[str, str]
    #: A package over mail and chat; one grant on both mail accounts; the owner's own.
    package: str
    mail: str
    owner: str

    @property
    def url(self) -> str:
        return f"{self.address}/mcp"

    def revoke(self, token: str) -> None:
        asyncio.run(self._revoke(token))

    async def _revoke(self, token: str) -> None:
        held = await self.program.admission.look_up(token)
        assert held is not None
        for one in held.grants:
            assert one.state(0) is GrantState.ACTIVE
            await self.program.ledger.revoke(one.grant.id, 1)


def settings_for(home: Path, **flags: str) -> Settings:
    return resolve(
        {"home": str(home), "log_level": "error", "semantic_model": "off", **flags}, {}, {}, Path("none")
    ).settings


@contextmanager
def product_app(**flags: str) -> Iterator[tuple[ASGIApp, dict[str, Any]]]:
    """Give the application, not yet served, and what was prepared for it."""
    with tempfile.TemporaryDirectory() as directory:
        settings = settings_for(Path(directory) / "home", **flags)
        tokens = asyncio.run(_prepare(settings))
        program = wiring.build_services(settings, open_home(settings.home))
        app = hosting.web_app(program)
        yield app, {**tokens, "settings": settings, "program": program}


@contextmanager
def product(**flags: str) -> Iterator[Product]:
    with product_app(**flags) as (app, prepared):
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        with serving(app, taken):
            yield Product(f"http://127.0.0.1:{taken.getsockname()[1]}", **prepared)


async def _prepare(settings: Settings) -> dict[str, Any]:
    async with wiring.open_stores(settings) as stores:
        connections = dict(await fill(stores.store, SMALL))
        catalog = await stores.catalog()
        mail = tuple(connections[name] for name in ("Home mail", "Work mail"))

        async def grant(choice: Choice) -> str:
            issued = await issue(stores.ledger, choice, Conditions("agent"), catalog=catalog, now=now())
            return issued.access_token

        return {
            "connections": connections,
            "package": await grant(Choice()),
            "mail": await grant(Choice(connection_ids=mail)),
            "owner": await issue_owner_token(stores.ledger, now=now()),
        }
