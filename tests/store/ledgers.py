"""The ledgers under test, each opened over a home; a second engine is one more line here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from headgate.home import Home
from headgate.store.engines.postgres import PostgresLedger
from headgate.store.engines.sqlite import SqliteLedger, SqliteStore
from headgate.store.ledger.ledger import Ledger
from headgate.store.ledger.oauth import OAuthStore
from headgate.store.postgres.migrate import open_place
from tests import postgres

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpenLedger:
    """The ledger of a home, and the documents of its authorization server."""

    ledger: Ledger
    oauth: OAuthStore


OpenOver = Callable[[Home], AbstractAsyncContextManager[OpenLedger]]


@asynccontextmanager
async def _sqlite(home: Home) -> AsyncGenerator[OpenLedger]:
    store = SqliteStore(home, lambda: 0)
    ledger = SqliteLedger(home, store.writer)
    try:
        yield OpenLedger(ledger, OAuthStore(ledger))
    finally:
        await ledger.close()
        await store.close()


@asynccontextmanager
async def _postgres(home: Home) -> AsyncGenerator[OpenLedger]:
    ledger = PostgresLedger(open_place(postgres.database_url(), str(home.path)), connections=1)
    try:
        yield OpenLedger(ledger, OAuthStore(ledger))
    finally:
        await ledger.close()


#: What takes one of these as a parameter runs with every engine.
LEDGERS: Mapping[str, OpenOver] = {
    "sqlite": _sqlite,
    **({"postgres": _postgres} if postgres.programs() else {}),
}


@dataclass(frozen=True, slots=True)
class LedgerHome:
    """A home, and the engine that its ledger is opened with."""

    home: Home
    open_over: OpenOver

    def opened(self) -> AbstractAsyncContextManager[OpenLedger]:
        """Open the ledger, as a process would."""
        return self.open_over(self.home)

    def run(self, work: Callable[[Ledger], Awaitable[_T]]) -> _T:
        """Run some work on the ledger, in a loop that ends with it."""

        async def run() -> _T:
            async with self.opened() as opened:
                return await work(opened.ledger)

        return asyncio.run(run())
