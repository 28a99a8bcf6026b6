"""Open the store of a home: a file in the home, or a home of a database."""
# ruff: noqa: PLC0415 - an engine that is not used is not imported, and its extra need not be installed

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headgate.errors import ConfigInvalid
from headgate.home import Home, HomeInDatabase
from headgate.model.sealed import CursorShelf
from headgate.store.engines.sqlite import SqliteLedger, SqliteStore
from headgate.store.engines.store import Store
from headgate.store.ledger.ledger import BudgetCounter, Ledger
from headgate.store.ledger.oauth import OAuthStore
from headgate.store.models.model import MeaningModel
from headgate.store.sqlite import FILE
from headgate.tasks import Supervisor


@dataclass(frozen=True, slots=True)
class OpenedStores:
    """What a home's records and grants are read and written through."""

    store: Store
    ledger: Ledger
    oauth: OAuthStore
    #: Counts for daily limits where several machines share a home; None: files of the home count.
    counter: BudgetCounter | None = None
    #: Keeps cursors where several machines share a home; None: files of the home keep them.
    shelf: CursorShelf | None = None
    #: Says whether this machine, of those that share a home, fetches from accounts; None: no others share it.
    has_turn: Callable[[], Awaitable[bool]] | None = None


def open_engine(
    home: Home,
    now: Callable[[], int],
    model: MeaningModel | None = None,
    *,
    supervisor: Supervisor | None = None,
) -> OpenedStores:
    """Open the store and the ledger of a home, wherever its records are.

    What fails in the background is noted with the supervisor.
    """
    if not isinstance(home, HomeInDatabase):
        store = SqliteStore(home, now, model, supervisor=supervisor)
        ledger = SqliteLedger(home, store.writer)
        return OpenedStores(store, ledger, OAuthStore(ledger))
    try:
        from headgate.store.engines.postgres import PostgresLedger, PostgresStore
        from headgate.store.postgres.lease import Lease
        from headgate.store.postgres.migrate import open_place
    except ImportError as error:
        raise ConfigInvalid(
            "store_url names a PostgreSQL database, and its driver is not installed.",
            hint="Install headgate[postgres].",
        ) from error
    place = open_place(home.url, home.name)
    shared = PostgresLedger(place)
    return OpenedStores(
        PostgresStore(place, now, model, supervisor=supervisor),
        shared,
        OAuthStore(shared),
        counter=shared,
        shelf=shared.shelf(now),
        has_turn=Lease(place, "sources", now).hold_soon,
    )


def may_have_log(home: Home) -> bool:
    """Return whether a home may have a log of disclosures already, wherever its records are."""
    if not isinstance(home, HomeInDatabase):
        return (home.path / FILE).exists()
    try:
        from headgate.store.engines.postgres import has_log
        from headgate.store.postgres.migrate import open_place
    except ImportError:
        # Opening the store reports it.
        return False
    return has_log(open_place(home.url, home.name))
