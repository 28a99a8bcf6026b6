"""Accounts: live sources with the settings that the owner gave once, fetched on request and by a server when they are due.

Of several processes that serve one home the one that holds a lock fetches; when it ends another one takes over.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from headgate.errors import HeadgateError, InvalidRequest, NotFound, UpstreamUnreachable
from headgate.home import Home
from headgate.model.ids import ConnectionId, connector_key
from headgate.model.record import Connection, Freshness, freshness_in, with_freshness
from headgate.sources.importing import (
    Importer,
    ImportJob,
    ImportProgress,
    ImportReport,
    connection_of,
    raw_state,
)
from headgate.sources.parts import ImportPart, renamed
from headgate.sources.protocol import Item, LiveSource, plain_row
from headgate.sources.secrets import FORMS, check_reference
from headgate.system import lock, open_private
from headgate.tasks import Supervisor, stop
from headgate.telemetry import get_logger

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

_OPTIONAL = "(optional)"


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """What an import noted about a connection."""

    #: When the last import ended, as RFC 3339; None if none has.
    finished_at: str | None
    #: Whether an import was interrupted and would go on.
    is_interrupted: bool
    #: The live source and its settings; None if the connection came from files.
    live_source: str | None
    settings: Mapping[str, str]
    #: How often the server fetches it, in seconds; 0: never, None: as often as the server's settings say.
    every_seconds: int | None = None
    #: When it was fetched, and how that went; None if it never was.
    freshness: Freshness | None = None


async def state_of(store: Store, connection: Connection) -> ConnectionState:
    state = await raw_state(store, connection)
    imported: dict[str, Any] = state.get("import") or {}
    account: dict[str, Any] = state.get("sync") or {}
    finished = imported.get("finished_at")
    return ConnectionState(
        finished,
        is_interrupted=finished is None and bool(imported.get("resume")),
        live_source=account.get("source"),
        settings=account.get("settings") or {},
        every_seconds=account.get("every_seconds"),
        freshness=freshness_in(state),
    )


def account_job(
    source: LiveSource,
    settings: Mapping[str, str],
    name: str | None = None,
    *,
    every_seconds: int | None = None,
) -> ImportJob:
    """Plan the fetching of what is new in an account."""
    known = source.settings
    for unknown in settings.keys() - known.keys():
        raise InvalidRequest(f"There is no setting '{unknown}'.", hint=f"Settings are {', '.join(known)}.")
    for needed, about in known.items():
        if not about.rstrip(".").endswith(_OPTIONAL) and not settings.get(needed):
            raise InvalidRequest(f"The setting '{needed}' is missing.", hint=f"{needed}: {about}")
        if FORMS in about and settings.get(needed):
            check_reference(settings[needed])
    settings = source.prepared(settings)
    key = "-".join(filter(None, (source.name, source.variant(settings))))

    def read(state: Mapping[str, Any], form: int) -> Iterator[Item | ImportPart]:
        items = source.sync(settings, state)
        return renamed(items, plain_row) if 0 < source.plain_form <= form else items

    return ImportJob(
        connector_key(key),
        name or source.label(settings),
        source.declare(settings),
        read,
        form=source.plain_form or 1,
        notes={"sync": {"source": source.name, "settings": dict(settings), "every_seconds": every_seconds}},
    )


async def add_account(store: Store, job: ImportJob) -> Connection:
    """Store the settings of an account; nothing is fetched yet. The same name again changes them."""
    await store.declare(job.connector_key, job.document)
    known = await connection_of(store, job)
    connection = known or await store.create_connection(job.connector_key, job.display_name)
    state = await raw_state(store, connection)
    # The form of keys is fixed when a connection is made.
    form = {"form": job.form} if known is None else {}
    await store.put_state(connection.id, msgspec.json.encode({**state, **form, **job.notes}))
    return connection


LOCK = "sync.lock"
LOOP = "accounts"
#: How many accounts are fetched at the same time.
_AT_ONCE = 4
#: Between two checks of what is due.
_CHECK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Accounts:
    store: Store
    #: The live sources by their names.
    sources: Mapping[str, LiveSource]
    clock: Callable[[], int]
    #: How often an account is fetched that was added without a pause, in seconds; 0: only when the owner asks.
    every_seconds: int

    async def fetch(
        self, connection: Connection, show: Callable[[ImportProgress], None] | None = None
    ) -> ImportReport:
        """Fetch what is new, and note when that was and how it went.

        Raises:
            HeadgateError: the account cannot be used, or the store fails.
        """
        state = await state_of(self.store, connection)
        source = self.sources.get(state.live_source or "")
        if source is None:
            raise NotFound("This connection has no account to fetch from.", hint="Import its files again.")
        pause = self._pause(state)
        try:
            job = account_job(
                source, state.settings, connection.display_name, every_seconds=state.every_seconds
            )
            report = await Importer(self.store, clock=self.clock).run(_bounded(job), show)
        except HeadgateError as error:
            await self._note(connection, error.message, pause)
            raise
        except Exception as error:
            await self._note(
                connection, f"Headgate failed ({type(error).__name__}); its log has more.", pause
            )
            raise
        await self._note(connection, report.failure, pause)
        return report

    async def due(self) -> list[Connection]:
        """List the accounts whose time has come; one that was never fetched is due at once."""
        now = self.clock()
        states = [
            (connection, await state_of(self.store, connection))
            for connection in await self.store.connections()
        ]
        return [account for account, state in states if self._is_due(state, now)]

    def _is_due(self, state: ConnectionState, now: int) -> bool:
        if state.live_source is None or not self._pause(state):
            return False
        noted = state.freshness
        # One that was fetched by hand while no server fetched has no next time.
        return noted is None or noted.next_at is None or noted.next_at <= now

    def _pause(self, state: ConnectionState) -> int:
        return self.every_seconds if state.every_seconds is None else state.every_seconds

    async def _note(self, connection: Connection, error: str, every_seconds: int) -> None:
        state = await raw_state(self.store, connection)
        noted = (freshness_in(state) or Freshness()).after(self.clock(), error, every_seconds)
        await self.store.put_state(connection.id, msgspec.json.encode(with_freshness(state, noted)))


def _bounded(job: ImportJob) -> ImportJob:
    def read(marks: Mapping[str, Any], form: int) -> Iterator[Item | ImportPart]:
        return until_deadline(job.read(marks, form))

    return replace(job, read=read)


@asynccontextmanager
async def scheduled(
    home: Home,
    accounts: Accounts,
    supervisor: Supervisor,
    has_turn: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[None]:
    """Fetch the accounts that are due until the end of the block, in one of all processes that do so.

    A lock of the home chooses among the processes of this machine, ``has_turn`` among machines that share a home.
    """
    schedule = _Schedule(home, accounts, supervisor, has_turn)
    task = supervisor.start(LOOP, schedule.start_due)
    try:
        yield
    finally:
        await stop(task)
        await schedule.close()


class _Schedule:
    """Starts what is due; a few accounts are fetched at once, so that a slow one holds up no other."""

    def __init__(
        self,
        home: Home,
        accounts: Accounts,
        supervisor: Supervisor,
        has_turn: Callable[[], Awaitable[bool]] | None,
    ) -> None:
        self._home = home
        self._accounts = accounts
        self._supervisor = supervisor
        self._has_turn = has_turn
        self._file: int | None = None
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._fetches: dict[ConnectionId, asyncio.Task[None]] = {}

    async def start_due(self) -> float:
        """Begin to fetch what is due and is not being fetched already."""
        self._file = _locked(self._home) if self._file is None else self._file
        if self._file is not None and (self._has_turn is None or await self._has_turn()):
            for connection in await self._accounts.due():
                if connection.id not in self._fetches:
                    self._fetches[connection.id] = asyncio.create_task(self._fetch(connection))
        return _CHECK_SECONDS

    async def close(self) -> None:
        """End what is being fetched; the next process goes on from the stored marks."""
        for task in list(self._fetches.values()):
            await stop(task)
        if self._file is not None:
            os.close(self._file)

    async def _fetch(self, connection: Connection) -> None:
        """Fetch one account; a failure is noted with its connection and hinders no other."""
        log = get_logger().bind(connection_id=connection.id)
        try:
            async with self._at_once:
                report = await self._accounts.fetch(connection)
        except HeadgateError as error:
            log.warning("source_not_synced", code=error.code)
        except Exception as error:  # noqa: BLE001 - a source may come from elsewhere and raise anything
            self._supervisor.failed(LOOP, error, subject=connection.id)
        else:
            self._supervisor.worked(LOOP, connection.id)
            log.info(
                "source_synced", count=report.accepted, status="incomplete" if report.failure else "done"
            )
        finally:
            del self._fetches[connection.id]


def _locked(home: Home) -> int | None:
    """Take the lock of the home; None while another process has it, or the home cannot be written."""
    try:
        file = open_private(home.path / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError:
        return None
    try:
        lock(file)
    except OSError:
        os.close(file)
        return None
    return file


_T = TypeVar("_T")

ACCOUNT_SECONDS = 1800.0


def until_deadline(items: Iterator[_T]) -> Iterator[_T]:
    """Pass items on until the time of an account is over."""
    end = time.monotonic() + ACCOUNT_SECONDS
    for item in items:
        yield item
        if time.monotonic() > end:
            raise UpstreamUnreachable(
                f"The server was not done within {ACCOUNT_SECONDS / 60:.0f} minutes; the rest is fetched next time."
            )


class Connections:
    """The connections to one server; all are shut down when the time of an account is over, so that no read waits longer."""

    def __init__(self) -> None:
        self._handles: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_over = False

    def add(self, connection: socket.socket) -> None:
        """Watch a connection, also after TLS has taken it over."""
        handle = socket.fromfd(connection.fileno(), connection.family, connection.type)
        with self._lock:
            self._handles.append(handle)
            if self._is_over:
                _shut_down(handle)

    def cut(self) -> None:
        """Shut all of them down, and those that are added later."""
        with self._lock:
            self._is_over = True
            for handle in self._handles:
                _shut_down(handle)

    def forget(self) -> None:
        """Watch none of them any more."""
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()


def _shut_down(handle: socket.socket) -> None:
    # One that the server has ended already is not connected.
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


@contextmanager
def cut_at_deadline() -> Generator[Connections]:
    connections = Connections()
    timer = threading.Timer(ACCOUNT_SECONDS, connections.cut)
    timer.daemon = True
    timer.start()
    try:
        yield connections
    finally:
        timer.cancel()
        connections.forget()
