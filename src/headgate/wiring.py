"""Build the objects of a process from settings; the only module that reads the clock.

What only the HTTP server needs is built in `headgate.hosting`, so that commands do not import the web libraries.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.audit.budget import DailyBudgets, FileCounter
from headgate.audit.chain import load_audit_key
from headgate.audit.journal import Journal
from headgate.audit.pruning import PruneReport, prune, verify_file
from headgate.audit.pump import Pump, take_over
from headgate.auth.admission import Admission
from headgate.auth.grants import Choice, Conditions, issue
from headgate.auth.keys import HomeSealer
from headgate.auth.latest_time import LatestTime
from headgate.auth.limits import ServerLimits, StoredAttempts, limits_of
from headgate.auth.tokens import digest_of
from headgate.errors import OwnerCredentialRefused, StorageFull, StorageReadOnly, StorageUnusable
from headgate.home import Home, home_in, open_home
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.stdio import StdioSession
from headgate.model.disclosure import ANSWERED, Disclosure
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId, GrantId, RequestId, client_id
from headgate.policy.allowance import SourceCatalog
from headgate.policy.capability import Rules
from headgate.reading.elsewhere import LocalWithoutModel
from headgate.reading.local import LocalResourceServer, ReadContext
from headgate.reading.services import ReadServices
from headgate.settings import Settings
from headgate.sources.protocol import LiveSource
from headgate.sources.reading_note import READING_NOTES
from headgate.store.engines import open_engine
from headgate.store.ledger import Ledger
from headgate.store.oauth import OAuthStore
from headgate.store.quick import has_model
from headgate.store.relational.store import Store
from headgate.store.semantic.choice import chosen_model
from headgate.system import lock, open_private
from headgate.tasks import Supervisor, stop
from headgate.telemetry import configure_logs

if TYPE_CHECKING:
    from headgate.auth.clients import Clients

#: The file of the home with the address of the server that runs on it.
_ADDRESS = "address"
_MAX_ADDRESS_BYTES = 1024
_DEMO_DAYS = 30


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
    latest: LatestTime
    oauth: OAuthStore

    def judged_at(self) -> int:
        """Return the time by which admission judges whether a grant has expired."""
        return self.latest.raise_to(now())

    def log_command(self, name: str) -> None:
        """Log what the owner did with a command that changes who is let in; the next process moves it into the chain."""
        journal = Journal(self.home)
        journal.write(
            Disclosure(
                at=now(),
                request_id=RequestId(f"req_{secrets.token_hex(8)}"),
                token_kind=TokenKind.OWNER.value,
                client_id=None,
                grant_ids=(),
                package_id=None,
                via=name,
                outcome=ANSWERED,
            )
        )
        journal.leave()

    def clients(self) -> Clients:
        """Return the owner's view of clients and tokens."""
        from headgate.auth.clients import Clients  # noqa: PLC0415 - Authlib is slow to import

        return Clients(self.ledger, clock=now, latest=self.latest)

    async def prune_log(self, before: int, path: Path) -> PruneReport:
        """Move what the log has of before a time to a new file."""
        return await prune(
            self.home, self.ledger, load_audit_key(self.home), before=before, path=path, now=now()
        )

    async def verify_pruned(self, path: Path) -> PruneReport:
        """Check a file of pruned entries against the log."""
        return await verify_file(self.ledger, load_audit_key(self.home), path)

    async def catalog(self) -> SourceCatalog:
        """Read the declarations and connections of the store."""
        connections = await self.store.connections()
        return SourceCatalog(
            await self.store.declarations(), {connection.id: connection for connection in connections}
        )


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncGenerator[HomeStores]:
    """Open a home's store and ledger for a command, and close them after it."""
    home = prepare(settings)
    key: bytes | None = None
    with contextlib.suppress(StorageReadOnly):
        key = load_audit_key(_place(settings, home))
    opened = open_engine(_place(settings, home), now)
    try:
        if key is not None:
            with contextlib.suppress(StorageReadOnly, StorageFull):
                await take_over(home, opened.ledger, key)
        yield HomeStores(home, opened.store, opened.ledger, LatestTime(home, opened.ledger), opened.oauth)
    finally:
        await opened.ledger.close()
        await opened.store.close()


def _place(settings: Settings, home: Home) -> Home:
    return home_in(home, settings.store_url, settings.store_home)


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
    latest: LatestTime
    oauth_store: OAuthStore
    #: Says whether this machine, of those that share a home, fetches from accounts; None: no others share it.
    has_turn: Callable[[], Awaitable[bool]] | None
    limits: ServerLimits
    supervisor: Supervisor

    def clients(self) -> Clients:
        """Return the owner's view of clients and tokens."""
        from headgate.auth.clients import Clients, client_names  # noqa: PLC0415 - Authlib is slow to import

        names = partial(client_names, self.oauth_store)
        return Clients(self.ledger, clock=self.clock, latest=self.latest, names=names)

    @asynccontextmanager
    async def running(self, _app: Any = None) -> AsyncGenerator[None]:
        """Move disclosures to the ledger in the background; on exit flush them and close the files."""
        await self.pump.start()
        sharing = self.latest.start_sharing(self.supervisor)
        try:
            yield
        finally:
            await stop(sharing)
            with suppress(StorageUnusable):
                self.admission.refusals.log_rest()
            await self.pump.stop()
            await self.ledger.close()
            await self.store.close()


def build_services(
    settings: Settings,
    home: Home,
    *,
    clock: Callable[[], int] = now,
    seconds: Callable[[], float] = time.monotonic,
    makes_vectors: bool = True,
) -> AppServices:
    """Open the home's files and construct the services, without starting anything."""
    key = load_audit_key(_place(settings, home))
    model = chosen_model(settings.semantic_model, settings.semantic_key_file) if makes_vectors else None
    supervisor, journal = Supervisor(), Journal(home)
    opened = open_engine(_place(settings, home), clock, model, supervisor=supervisor)
    ledger = opened.ledger

    async def logged(grant_id: GrantId, day: int) -> int:
        return await ledger.spent(grant_id, day) + journal.unwritten(grant_id)

    budgets = DailyBudgets(opened.counter or FileCounter(home, logged), clock=clock)
    read_services = ReadServices(
        opened.store,
        sealer=HomeSealer(home),
        discloser=journal,
        budgets=budgets,
        clock=clock,
        rules=Rules(strict_core=settings.strict_core, has_meaning=has_model(settings.semantic_model)),
        logs_queries=settings.log_queries,
    )
    latest = LatestTime(home, ledger, steady=seconds)
    attempts = StoredAttempts(opened.oauth, clock, certain=lambda: latest.certain(clock()))
    limits = limits_of(settings.rate_limit, seconds, attempts)
    admission = Admission(ledger, clock=clock, latest=latest, budgets=budgets, discloser=journal)
    pump = Pump(home, journal, ledger, key=key, supervisor=supervisor)
    return AppServices(
        home,
        opened.store,
        ledger,
        read_services,
        admission,
        pump,
        clock,
        latest,
        opened.oauth,
        opened.has_turn,
        limits,
        supervisor,
    )


def live_sources(home: Path, environment: Mapping[str, str]) -> dict[str, LiveSource]:
    """Return every live source by its name: those of the registry, and those that call servers through the client.

    Secrets that settings name as variables are found in `environment`.
    """
    # The parsers of the sources and the client are slow to import, and a server that serves needs neither.
    from headgate.mcp.client.calling import opened_operation  # noqa: PLC0415
    from headgate.mcp.client.pins import FilePins  # noqa: PLC0415
    from headgate.sources import registry  # noqa: PLC0415
    from headgate.sources.calendar.account import CalendarAccount  # noqa: PLC0415
    from headgate.sources.mail.imap import ImapSource  # noqa: PLC0415
    from headgate.sources.remote import RemoteSource  # noqa: PLC0415
    from headgate.sources.secrets import Secrets  # noqa: PLC0415

    secrets, notes = Secrets(environment), home / READING_NOTES
    built_in: tuple[LiveSource, ...] = (
        ImapSource(notes, secrets),
        CalendarAccount(now, notes, secrets),
        RemoteSource(partial(opened_operation, pins=FilePins(home / "pins.json")), secrets),
    )
    return {**registry.live_sources(), **{source.name: source for source in built_in}}


def mcp_url(settings: Settings) -> str:
    """Return the address that agents connect to: the public one, that of the server that runs, or the configured one."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    served = settings.public_url or served_address(settings.home)
    return f"{served or f'http://{host}:{settings.port}'}/mcp"


def server_address(settings: Settings) -> str:
    """Return where agents find the server: the public address, or that of the server that runs; empty without one."""
    return settings.public_url or served_address(settings.home) or ""


def welcome_url(address: str, link: str) -> str:
    """Return the address of the page on which the owner sets a password by a link."""
    return f"{address}/console/welcome/{link}"


@contextlib.contextmanager
def serving_on(home: Home, address: str) -> Generator[None]:
    """Let other processes of the home know the address while this one and its workers run.

    The file is locked for that long, so that one which a killed server left behind is not believed.
    """
    try:
        file = open_private(home.path / _ADDRESS, os.O_RDWR | os.O_CREAT)
    except OSError:
        # A home that cannot be written is served all the same.
        yield
        return
    try:
        with contextlib.suppress(OSError):
            # Another server of the same home has it, and its address stays the known one; or the disk is full.
            lock(file)
            os.ftruncate(file, 0)
            os.write(file, address.encode())
        yield
    finally:
        os.close(file)


def served_address(home: Path) -> str | None:
    """Return the address of the server that runs on a home; None if there is none."""
    try:
        file = open_private(home / _ADDRESS, os.O_RDONLY)
    except OSError:
        return None
    try:
        lock(file, shared=True)
    except BlockingIOError:
        return os.read(file, _MAX_ADDRESS_BYTES).decode() or None
    else:
        return None
    finally:
        os.close(file)


def kind_of_token(settings: Settings, token: str) -> str | None:
    """Look up the kind of a token in the opened store; None if it is not known."""

    async def look_up() -> str | None:
        async with open_stores(settings) as stores:
            holder = await stores.ledger.holder(digest_of(token))
            return None if holder is None else holder.token.kind.value

    chosen_model(settings.semantic_model, settings.semantic_key_file)
    return asyncio.run(look_up())


def serve_session(settings: Settings, token: str, session: StdioSession) -> None:
    """Serve a session on standard input and output that has begun, under the grants of a token."""
    home = prepare(settings)

    async def run() -> None:
        services = build_services(settings, home, makes_vectors=False)
        handles = HandleMaker(services.read_services.sealer)
        address = mcp_url(settings).removesuffix("/mcp")
        served = partial(served_address, settings.home)

        async def reader_of(via: str) -> Reader:
            # Admitted at every call, so that a revocation takes effect on the next one.
            access = await services.admission.admit(token)
            if access.is_owner:
                raise OwnerCredentialRefused
            context = ReadContext(access, RequestId(f"req_{secrets.token_hex(8)}"), via)
            if not has_model(settings.semantic_model):
                port = LocalResourceServer(services.read_services, context)
            else:
                port = LocalWithoutModel(services.read_services, context, token, served)
            return Reader(port, handles, address, context.request_id)

        async with services.running():
            await session.serve(reader_of)

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Demo:
    """The token of the demonstration's one client, its connections by name, and how many records they have."""

    token: str
    records: int
    connections: Mapping[str, ConnectionId]


def make_demo(settings: Settings, show: Callable[[int, int], None] = lambda _done, _total: None) -> Demo:
    """Fill an empty home with an invented person's records, and grant all of them to one client for 30 days."""
    from headgate.sources.demo.filling import fill  # noqa: PLC0415 - only the demonstration needs it

    async def make() -> Demo:
        async with open_stores(settings) as stores:
            connections, records = await fill(stores.store, show)
            conditions = Conditions(client_id("demo-agent"), days=_DEMO_DAYS)
            issued = await issue(
                stores.ledger, Choice(), conditions, catalog=await stores.catalog(), now=now()
            )
            return Demo(issued.access_token, records, connections)

    return asyncio.run(make())
