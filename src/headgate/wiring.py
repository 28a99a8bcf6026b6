"""Build the objects of a process from settings.

What only the HTTP server needs is imported when it is first used, and put together in `headgate.hosting`: commands
and servers over stdio do not import the web libraries.
"""
# ruff: noqa: PLC0415 - what a process does not use is not imported

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headgate import __version__, memory
from headgate.audit.budget import DailyBudgets, FileCounter
from headgate.audit.chain import load_audit_key
from headgate.audit.journal import ANSWERED, Called, Disclosure, Journal, owner_event
from headgate.audit.pruning import PruneReport, prune, verify_file
from headgate.audit.pump import Pump, take_over
from headgate.auth.admission import Admission
from headgate.auth.clock import LatestTime, now
from headgate.auth.keys import HomeSealer
from headgate.auth.limits import ServerLimits, StoredAttempts, limits_of
from headgate.errors import AdapterConfigInvalid, ConfigInvalid, StorageFull, StorageReadOnly, StorageUnusable
from headgate.home import Home, home_in, open_home, small_files
from headgate.model.grant import TokenKind
from headgate.model.ids import ClientId, GrantId, RequestId
from headgate.policy.allowance import SourceCatalog
from headgate.policy.capability import Rules
from headgate.reading.home import ReadableHome, ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.settings import DEFAULT_HOME, Settings
from headgate.sources.protocol import LiveSource
from headgate.sources.reading_note import READING_NOTES
from headgate.store.engines.opening import open_engine
from headgate.store.engines.store import Store
from headgate.store.ledger.ledger import Ledger
from headgate.store.models.choice import chosen_model, what_leaves
from headgate.store.models.model import MeaningModel
from headgate.store.quick import has_model
from headgate.system import lock, open_private
from headgate.tasks import Supervisor, stop
from headgate.telemetry import Metrics, configure_logs, get_logger

if TYPE_CHECKING:
    from headgate.audit.activity import Activity
    from headgate.auth.clients import Clients
    from headgate.auth.gateway import GatewayCallers
    from headgate.auth.oauth.entries import TokenFamily
    from headgate.auth.oauth.service import AuthorizationService
    from headgate.auth.sessions import OwnerSessions
    from headgate.mcp.client.pins import FilePins
    from headgate.mcp.client.servers import ServerEntry
    from headgate.mcp.gateway.answers import NotedCall
    from headgate.mcp.gateway.hosted import HostedGateway, ImportServer
    from headgate.mcp.serve.server import HostedMcp
    from headgate.reading.preview import StreamSpans
    from headgate.sources.intake import Intake
    from headgate.sources.uploads import Uploads

#: The file of the home with the address of the server that runs on it.
_ADDRESS = "address"
_MAX_ADDRESS_BYTES = 1024
#: What making a key of a passphrase takes.
_PASSPHRASE_BYTES = 256 * 1024 * 1024


def prepare(settings: Settings) -> Home:
    """Configure the logs and open the home directory, which every command on a home does first."""
    configure_logs(settings.log_level, settings.log_format, sys.stderr)
    return open_home(Path(settings.home))


class Services:
    """The opened store of a home, and every long-lived object that a process builds on it.

    Each part is built when it is first used, and its libraries are imported then: a command that runs and ends
    builds few of them, a server over stdio some, and a server over HTTP all.
    """

    def __init__(
        self,
        settings: Settings,
        home: Home,
        *,
        clock: Callable[[], int],
        seconds: Callable[[], float],
        model: MeaningModel | None = None,
    ) -> None:
        opened = open_engine(place_of(settings, home), clock, model, supervisor=(supervisor := Supervisor()))
        self.settings = settings
        #: The address the owner set for this server; empty when it is whatever the caller used.
        self.public_url = settings.public_url
        self.home = home
        self.store: Store = opened.store
        self.ledger: Ledger = opened.ledger
        self.oauth_store = opened.oauth
        #: Says whether this machine, of those that share a home, fetches from accounts; None: no others share it.
        self.has_turn = opened.has_turn
        #: Gives the time in microseconds since 1970.
        self.clock = clock
        self.supervisor = supervisor
        self.latest = LatestTime(home, opened.ledger, steady=seconds)
        self.metrics = Metrics()
        self.version = __version__
        self._counter = opened.counter
        self._shelf = opened.shelf
        self._seconds = seconds

    @property
    def mcp_url(self) -> str:
        """The address that agents connect to."""
        return mcp_url(self.settings)

    @property
    def home_path(self) -> str:
        """The home as commands have to name it; empty if they take it by themselves."""
        home = self.settings.home
        return "" if home == Path(DEFAULT_HOME) else str(home.resolve())

    @cached_property
    def home_mark(self) -> str:
        """What tells the cookies of this home from those of others on the same machine."""
        settings = self.settings
        # In a database the home has a name, under which several machines may serve it.
        in_database = f"{settings.store_url}#{settings.store_home}"
        place = in_database if settings.store_url else str(settings.home.resolve())
        return hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:8]

    @property
    def meaning(self) -> str:
        """Whether there is search by meaning, and what leaves this machine for it."""
        return what_leaves(self.settings.semantic_model)

    @cached_property
    def journal(self) -> Journal:
        """Where disclosures are written."""
        return Journal(self.home)

    @cached_property
    def budgets(self) -> DailyBudgets:
        """What counts the records of each grant's day."""

        async def logged(grant_id: GrantId, day: int) -> int:
            return await self.ledger.spent(grant_id, day) + self.journal.unwritten(grant_id)

        return DailyBudgets(self._counter or FileCounter(self.home, logged), clock=self.clock)

    @cached_property
    def reads(self) -> ReadableHome:
        """What all reads share."""
        return ReadableHome(
            self.store,
            sealer=HomeSealer(self.home, self._shelf),
            discloser=self.journal,
            budgets=self.budgets,
            clock=self.clock,
            rules=Rules(
                strict_core=self.settings.strict_core, has_meaning=has_model(self.settings.semantic_model)
            ),
            logs_queries=self.settings.log_queries,
        )

    @cached_property
    def admission(self) -> Admission:
        """What finds out for whom a token reads."""
        return Admission(
            self.ledger, clock=self.clock, latest=self.latest, budgets=self.budgets, discloser=self.journal
        )

    @cached_property
    def limits(self) -> ServerLimits:
        """How often may be asked and guessed."""
        attempts = StoredAttempts(
            self.oauth_store, self.clock, certain=lambda: self.latest.certain(self.clock())
        )
        return limits_of(self.settings.rate_limit, self._seconds, attempts)

    @cached_property
    def pump(self) -> Pump:
        """What moves the journal into the chain."""
        key = load_audit_key(place_of(self.settings, self.home))
        return Pump(self.home, self.journal, self.ledger, key=key, supervisor=self.supervisor)

    @cached_property
    def clients(self) -> Clients:
        """The owner's view of clients and tokens."""
        from headgate.auth.clients import Clients, client_names

        names = partial(client_names, self.oauth_store)
        return Clients(self.ledger, clock=self.clock, latest=self.latest, names=names)

    @cached_property
    def sessions(self) -> OwnerSessions:
        """What signs the owner in."""
        from headgate.auth.passkeys import Passkeys, passkey_names
        from headgate.auth.sessions import OwnerSessions

        owner, clock, latest = self.ledger.owner, self.clock, self.latest
        names = passkey_names(self.settings.public_url, self.settings.host, self.settings.port)
        passkeys = Passkeys(owner, sealer=self.reads.sealer, clock=clock, latest=latest, names=names)
        return OwnerSessions(owner, passkeys, clock=clock, latest=latest, limits=self.limits.sign_ins)

    @cached_property
    def authorization(self) -> AuthorizationService:
        """The authorization server."""
        from headgate.auth.oauth.client_documents import ClientDocuments
        from headgate.auth.oauth.service import AuthorizationService
        from headgate.mcp.client.documents import fetch_document

        return AuthorizationService(
            self.oauth_store,
            now=self.judged_at,
            certain=lambda: self.latest.certain(self.clock()),
            documents=ClientDocuments(fetch_document, self.clock),
            reuse_window_seconds=self.settings.refresh_window,
            on_reuse=self._log_reuse,
            limits=self.limits.registrations,
        )

    @cached_property
    def intake(self) -> Intake:
        """What takes in the owner's records."""
        from headgate.sources.intake import Intake

        return Intake(self.store, self.clock)

    @cached_property
    def uploads(self) -> Uploads:
        """The files that the owner uploads."""
        from headgate.sources.uploads import Uploads

        return Uploads(self.home.path, self.store, clock=self.clock, supervisor=self.supervisor)

    @cached_property
    def activity(self) -> Activity:
        """The disclosure log as pages show it."""
        from headgate.audit.activity import Activity

        return Activity(self.ledger, self.home)

    @cached_property
    def spans(self) -> StreamSpans:
        """From when to when the records of streams are."""
        from headgate.reading.preview import StreamSpans

        return StreamSpans(self.reads)

    @cached_property
    def mcp(self) -> HostedMcp:
        """The MCP server that is hosted over HTTP."""
        from headgate.mcp.serve.reader import HandleMaker
        from headgate.mcp.serve.results import ServerIdentity
        from headgate.mcp.serve.server import HostedMcp
        from headgate.mcp.serve.tools import surface_of

        identity = ServerIdentity(__version__, icon=f"{self.mcp_url.removesuffix('/mcp')}/icon.svg")
        surface = surface_of(has_meaning=self.reads.rules.has_meaning)
        return HostedMcp(HandleMaker(self.reads.sealer), identity, surface=surface)

    @cached_property
    def gateway_callers(self) -> GatewayCallers:
        from headgate.auth.gateway import GatewayCallers

        return GatewayCallers(self.oauth_store, self.settings.gateway_clients, self.clock)

    @cached_property
    def gateway(self) -> HostedGateway | None:
        """The gateway over the servers of a file; None if the settings name none.

        Raises:
            ConfigInvalid: the file cannot be read.
        """
        if self.settings.gateway_servers is None:
            return None
        from headgate.mcp.client.pins import FilePins
        from headgate.mcp.gateway.hosted import HostedGateway
        from headgate.mcp.gateway.stored import StoredCalls

        pins = FilePins(self.home.pins)
        return HostedGateway(
            gateway_entries(self.settings),
            server_importer(pins),
            __version__,
            pins_stamp=pins.stamp,
            supervisor=self.supervisor,
            calls=StoredCalls(self.home.calls, lambda: self.clock() / 1_000_000),
            note=self._log_call,
        )

    def _log_call(self, call: NotedCall) -> None:
        """Log a call of a remote tool: before it is sent, and when it has ended."""
        self.journal.write(
            Disclosure(
                at=self.clock(),
                request_id=RequestId(call.handle),
                token_kind=TokenKind.CLIENT.value,
                client_id=None if call.caller is None else ClientId(call.caller),
                grant_ids=(),
                package_id=None,
                via=f"call {call.operation}",
                outcome=call.outcome,
                size_bytes=call.size_bytes,
                called=Called(call.operation, call.digest),
            )
        )

    def judged_at(self) -> int:
        """Return the time by which admission judges whether a grant has expired."""
        return self.latest.raise_to(self.clock())

    def log_owner(self, via: str, outcome: str = ANSWERED, request_id: RequestId | None = None) -> None:
        """Log what the owner did that shows no records by itself."""
        self.journal.write(owner_event(self.clock(), request_id or fresh_request_id(), via, outcome=outcome))

    def log_command(self, name: str) -> None:
        """Log what the owner did with a command that changes who is let in; the next process moves it into the chain."""
        self.log_owner(name)
        self.journal.leave()

    def _log_reuse(self, family: TokenFamily) -> None:
        """Log that the tokens of a client were revoked because one of them was used twice."""
        get_logger().warning("refresh_token_reused", client_id=family.client_id)
        self.journal.write(
            Disclosure(
                at=self.clock(),
                request_id=fresh_request_id(),
                token_kind=family.kind.value,
                client_id=ClientId(family.client_id),
                grant_ids=family.grant_ids,
                package_id=family.package_id,
                via="POST /oauth/token",
                outcome="refresh_token_reused",
            )
        )

    async def own_look(self, via: str = "console") -> ReadContext:
        """Return the context of a read of the owner."""
        return ReadContext(await self.admission.owner_access(), fresh_request_id(), via)

    async def own_records(self) -> LocalResourceServer:
        """Read as the owner; it is logged as the owner's look."""
        return LocalResourceServer(self.reads, await self.own_look())

    def make_backup(self, passphrase: str) -> IO[bytes]:
        """Make a backup that a passphrase opens, as an open file that is gone when it is closed."""
        from headgate.store.engines.commands import backup_to_send

        # Keys are made of passphrases with much memory, so that guessing is slow.
        memory.require(_PASSPHRASE_BYTES)
        home = place_of(self.settings, self.home)
        return backup_to_send(home, passphrase, names=small_files(home))

    async def prune_log(self, before: int, path: Path) -> PruneReport:
        """Move what the log has of before a time to a new file."""
        key = load_audit_key(self.home)
        return await prune(self.home, self.ledger, key, before=before, path=path, now=self.clock())

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
    async def running(self) -> AsyncGenerator[None]:
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
            await self.close()

    async def close(self) -> None:
        """Close the files of the store."""
        await self.ledger.close()
        await self.store.close()


def place_of(settings: Settings, home: Home) -> Home:
    """Return where the records of a home are: in it, or in the database that the settings name."""
    return home_in(home, settings.store_url, settings.store_home)


def fresh_request_id() -> RequestId:
    """Make the id of something that no request names."""
    return RequestId(f"req_{secrets.token_hex(8)}")


def gateway_entries(settings: Settings) -> list[ServerEntry]:
    """Read the servers that the gateway offers; one that cannot be used is left out, and the log says so.

    Raises:
        ConfigInvalid: the settings name no file, or it cannot be read.
    """
    from headgate.mcp.client.servers import read_servers

    servers = settings.gateway_servers
    if servers is None:
        raise ConfigInvalid(
            "There is no gateway.", hint="Set gateway_servers to a file of servers.", param="gateway_servers"
        )
    try:
        entries, problems = read_servers(json.loads(servers.read_bytes()))
    except (OSError, ValueError, AdapterConfigInvalid) as error:
        raise ConfigInvalid(
            f"{servers} cannot be used: {error}.",
            hint="Give a JSON file with an mcpServers object, or set no gateway_servers.",
            param="gateway_servers",
        ) from error
    for name, problem in problems.items():
        get_logger().warning("server_left_out", server=name, reason=problem.message)
    return entries


def server_importer(pins: FilePins) -> ImportServer:
    """Return what imports a server of the gateway, with the token that its entry refers to."""
    from headgate.mcp.client.from_mcp import FromMCP, ImportOptions
    from headgate.mcp.client.servers import import_entry
    from headgate.sources.secrets import Secrets

    secrets_of = Secrets()
    adapter = partial(FromMCP, pins=pins, options=ImportOptions(on_bad_tool="skip"))
    return lambda entry: import_entry(entry, secrets_of, adapter)


def build_services(
    settings: Settings,
    home: Home,
    *,
    clock: Callable[[], int] = now,
    seconds: Callable[[], float] = time.monotonic,
    makes_vectors: bool = True,
) -> Services:
    """Open the home's files for a process that serves, without starting anything.

    Raises:
        LogUnverifiable: there is a log, and its key is lost.
        StorageReadOnly: there is no key yet, and none can be written.
    """
    # Before the store is opened, which makes one that is not there.
    load_audit_key(place_of(settings, home))
    model = chosen_model(settings.semantic_model, settings.semantic_key_file) if makes_vectors else None
    return Services(settings, home, clock=clock, seconds=seconds, model=model)


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncGenerator[Services]:
    """Open a home for a command that runs and ends, and close it after."""
    home = prepare(settings)
    key: bytes | None = None
    with contextlib.suppress(StorageReadOnly):
        key = load_audit_key(place_of(settings, home))
    services = Services(settings, home, clock=now, seconds=time.monotonic)
    try:
        if key is not None:
            with contextlib.suppress(StorageReadOnly, StorageFull):
                await take_over(home, services.ledger, key)
        yield services
    finally:
        await services.close()


def live_sources(home: Path, environment: Mapping[str, str]) -> dict[str, LiveSource]:
    """Return every live source by its name: those of the registry, and those that call servers through the client.

    Secrets that settings name as variables are found in `environment`.
    """
    # The parsers of the sources and the client are slow to import, and a server that serves needs neither.
    from headgate.mcp.client.pins import FilePins
    from headgate.mcp.client.servers import opened_operation
    from headgate.sources import registry
    from headgate.sources.calendar.account import CalendarAccount
    from headgate.sources.contacts_account import ContactsAccount
    from headgate.sources.mail.imap import ImapSource
    from headgate.sources.remote import RemoteSource
    from headgate.sources.secrets import Secrets

    secrets, notes = Secrets(environment), home / READING_NOTES
    built_in: tuple[LiveSource, ...] = (
        ImapSource(notes, secrets),
        CalendarAccount(now, notes, secrets),
        ContactsAccount(now, notes, secrets),
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
