"""Fetch what is new in accounts: one when the owner asks, and inside a server all of them when they are due.

Of several processes that serve one home the one that holds a lock fetches; when it ends another one takes over.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec

from headgate.errors import HeadgateError, NotFound
from headgate.home import Home
from headgate.model.freshness import Freshness, freshness_in, with_freshness
from headgate.model.record import Connection
from headgate.sources.accounts import ConnectionState, account_job, raw_state, state_of
from headgate.sources.importing import Importer, ImportProgress, ImportReport
from headgate.sources.protocol import LiveSource
from headgate.store.protocol import Store
from headgate.system import lock, open_private
from headgate.telemetry import get_logger

LOCK = "sync.lock"
#: Between two looks at what is due.
_LOOK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a home."""

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
            NotFound: the connection has no account.
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
            report = await Importer(self.store, clock=self.clock).run(job, show)
        except HeadgateError as error:
            await self._note(connection, error.message, pause)
            raise
        await self._note(connection, report.failure, pause)
        return report

    async def due(self) -> list[Connection]:
        """List the accounts whose time has come; one that was never fetched is due at once."""
        now = self.clock()
        states = [(one, await state_of(self.store, one)) for one in await self.store.connections()]
        return [one for one, state in states if self._is_due(state, now)]

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


@asynccontextmanager
async def scheduled(
    home: Home,
    accounts: Accounts,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    has_turn: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[None]:
    """Fetch the accounts that are due until the end of the block, in one of all processes that do so.

    A lock of the home chooses among the processes of this machine, ``has_turn`` among machines that share a home.
    """
    task = asyncio.create_task(_fetch_for_ever(home, accounts, sleep, has_turn))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _fetch_for_ever(
    home: Home,
    accounts: Accounts,
    sleep: Callable[[float], Awaitable[None]],
    has_turn: Callable[[], Awaitable[bool]] | None,
) -> None:
    file: int | None = None
    try:
        while True:
            file = _locked(home) if file is None else file
            if file is not None and (has_turn is None or await _is_chosen(has_turn)):
                await _fetch_due(accounts)
            await sleep(_LOOK_SECONDS)
    finally:
        if file is not None:
            os.close(file)


async def _fetch_due(accounts: Accounts) -> None:
    """Fetch one account after the other; a failure is noted with its connection and hinders no other."""
    log = get_logger()
    try:
        for one in await accounts.due():
            try:
                report = await accounts.fetch(one)
            except HeadgateError as error:
                log.warning("source_not_synced", connection_id=one.id, code=error.code)
            else:
                status = "incomplete" if report.failure else "done"
                log.info("source_synced", connection_id=one.id, count=report.accepted, status=status)
    except HeadgateError as error:
        # The store, not an account.
        log.warning("sources_not_synced", code=error.code)


async def _is_chosen(has_turn: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await has_turn()
    except HeadgateError as error:
        get_logger().warning("sources_not_synced", code=error.code)
        return False


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
