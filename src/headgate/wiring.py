"""Build the objects of a process from settings; the only module that reads the clock.

What only the HTTP server needs is built in `headgate.hosting`, so that commands do not import the web libraries.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.audit.chain import load_audit_key
from headgate.audit.journal import Journal
from headgate.audit.pump import Pump, take_over
from headgate.auth.admission import Admission
from headgate.auth.grants import Choice, Conditions, issue
from headgate.auth.keys import load_ring
from headgate.errors import OwnerCredentialRefused, StorageReadOnly
from headgate.home import Home, open_home
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.stdio import serve_stdio
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId, RequestId, client_id
from headgate.model.sealed import Sealer
from headgate.policy.allowance import SourceCatalog
from headgate.policy.capability import Rules
from headgate.reading.local import LocalResourceServer, ReadContext
from headgate.reading.services import ReadServices
from headgate.settings import Settings
from headgate.sources.demo import fill
from headgate.store.ledger import Ledger
from headgate.store.protocol import Store
from headgate.store.sqlite.engine import SqliteStore
from headgate.store.sqlite.ledger import SqliteLedger
from headgate.telemetry import configure_logs, get_logger


def now() -> int:
    """Read the clock: microseconds since 1970."""
    return time.time_ns() // 1000


def prepare(settings: Settings) -> Home:
    """Configure the logs and open the home directory, which every command on a home does first."""
    configure_logs(settings.log_level, settings.log_format, sys.stderr)
    return open_home(Path(settings.home))


@dataclass(frozen=True, slots=True)
class HomeStores:
    """The open store and ledger of a home: what a command that runs and ends works on."""

    home: Home
    store: Store
    ledger: Ledger

    async def catalog(self) -> SourceCatalog:
        """Read the declarations and connections of the store."""
        connections = await self.store.connections()
        return SourceCatalog(await self.store.declarations(), {one.id: one for one in connections})


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncGenerator[HomeStores]:
    """Open a home's store and ledger for a command, and close them after it."""
    home = prepare(settings)
    store = SqliteStore(home, now)
    ledger = SqliteLedger(home)
    try:
        with contextlib.suppress(StorageReadOnly):
            await take_over(home, ledger, load_audit_key(home))
        yield HomeStores(home, store, ledger)
    finally:
        await ledger.close()
        await store.close()


@dataclass(frozen=True, slots=True)
class AppServices:
    """Every long-lived object of a process that serves, over HTTP or stdio; started by `running`."""

    home: Home
    store: Store
    ledger: Ledger
    read_services: ReadServices
    admission: Admission
    pump: Pump
    clock: Callable[[], int]

    @asynccontextmanager
    async def running(self, _app: Any = None) -> AsyncGenerator[None]:
        """Move disclosures to the ledger in the background; on exit flush them and close the files."""
        await self.pump.start()
        try:
            yield
        finally:
            await self.pump.stop()
            await self.ledger.close()
            await self.store.close()


def build_services(settings: Settings, home: Home, *, clock: Callable[[], int] = now) -> AppServices:
    """Open the home's files and construct the services, without starting anything."""
    store = SqliteStore(home, clock)
    ledger = SqliteLedger(home)
    journal = Journal(home)
    read_services = ReadServices(
        store,
        sealer=Sealer(load_ring(home)),
        discloser=journal,
        clock=clock,
        rules=Rules(strict_core=settings.strict_core),
    )
    admission = Admission(ledger, clock=clock, unwritten=journal.unwritten, discloser=journal)
    pump = Pump(home, journal, ledger, on_trouble=_log_trouble)
    return AppServices(home, store, ledger, read_services, admission, pump, clock)


def mcp_url(settings: Settings) -> str:
    """Return the address that agents connect to."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{settings.public_url or f'http://{host}:{settings.port}'}/mcp"


def run_stdio(settings: Settings, token: str, identity: ServerIdentity) -> None:
    """Serve a home to one agent on standard input and output, under the grants of its token.

    Raises:
        OwnerCredentialRefused: the token is an owner's.
    """
    home = prepare(settings)

    async def run() -> None:
        services = build_services(settings, home)
        handles = HandleMaker(services.read_services.sealer)
        address = mcp_url(settings).removesuffix("/mcp")

        def reader_of(via: str) -> Reader:
            # Admitted at every call, so that a revocation takes effect on the next one.
            access = services.admission.admit(token)
            if access.is_owner:
                raise OwnerCredentialRefused
            context = ReadContext(access, RequestId(f"req_{secrets.token_hex(8)}"), via)
            return Reader(LocalResourceServer(services.read_services, context), handles, address)

        async with services.running():
            # Before the client is answered: an agent never reads with an owner's token.
            issued = services.admission.look_up(token)
            if issued is not None and issued.kind is TokenKind.OWNER:
                raise OwnerCredentialRefused
            await serve_stdio(reader_of, identity)

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Demo:
    """The token of the demonstration's one client, and its connections by name."""

    token: str
    connections: Mapping[str, ConnectionId]


def make_demo(settings: Settings) -> Demo:
    """Fill an empty home with an invented person's records, and grant all of them to one client."""

    async def make() -> Demo:
        async with open_stores(settings) as stores:
            connections = await fill(stores.store)
            conditions = Conditions(client_id("demo-agent"))
            issued = await issue(
                stores.ledger, Choice(), conditions, catalog=await stores.catalog(), now=now()
            )
            return Demo(issued.access_token, connections)

    return asyncio.run(make())


def _log_trouble(trouble: Exception) -> None:
    get_logger().warning("disclosures wait in the journal", exc_info=trouble)
