"""Open the store of a home: a file in the home, or a home of a database."""
# ruff: noqa: PLC0415 - an engine that is not used is not imported, and its extra need not be installed

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headgate.errors import ConfigInvalid
from headgate.home import Home
from headgate.store.budget import BudgetCounter
from headgate.store.ledger import Ledger
from headgate.store.oauth import OAuthStore
from headgate.store.places import HomeInDatabase
from headgate.store.protocol import Store
from headgate.store.relational.oauth import RelationalOAuthStore
from headgate.store.semantic.models import MeaningModel
from headgate.store.sharing import MachineSharing
from headgate.store.sqlite.engine import SqliteStore
from headgate.store.sqlite.ledger import SqliteLedger
from headgate.store.sqlite.paths import FILE
from headgate.tasks import Supervisor


@dataclass(frozen=True, slots=True)
class OpenedStores:
    """What a home's records and grants are read and written through."""

    store: Store
    ledger: Ledger
    oauth: OAuthStore
    #: Counts for daily limits where several machines share a home; None: files of the home count.
    counter: BudgetCounter | None = None
    #: Says whether this machine, of those that share a home, fetches from accounts; None: no others share it.
    has_turn: Callable[[], Awaitable[bool]] | None = None
    #: Where machines that share a home meet; None: no others share it.
    sharing: MachineSharing | None = None


def open_engine(
    home: Home,
    now: Callable[[], int],
    model: MeaningModel | None = None,
    *,
    replica_url: str = "",
    supervisor: Supervisor | None = None,
) -> OpenedStores:
    """Open the store and the ledger of a home, wherever its records are; with a replica, reads that allow it go there.

    What fails in the background is noted with the supervisor.

    Raises:
        ConfigInvalid: a database is named, and the extra for it is not installed; or a replica of no database.
        StorageUnusable: the file or the database cannot be used.
    """
    if not isinstance(home, HomeInDatabase):
        _refuse_replica(replica_url)
        store = SqliteStore(home, now, model, supervisor=supervisor)
        ledger = SqliteLedger(home, supervisor=supervisor)
        return OpenedStores(store, ledger, RelationalOAuthStore(ledger))
    try:
        from headgate.store.postgres.engine import PostgresStore
        from headgate.store.postgres.lease import Lease
        from headgate.store.postgres.ledger import PostgresLedger
        from headgate.store.postgres.migrate import open_place
        from headgate.store.postgres.replica import Replica
        from headgate.store.postgres.sharing import PostgresSharing
    except ImportError as error:
        raise ConfigInvalid(
            "store_url names a PostgreSQL database, and its driver is not installed.",
            hint="Install headgate[postgres].",
        ) from error
    place = open_place(home.url, home.name)
    shared = PostgresLedger(place)
    replica = Replica(place, replica_url) if replica_url else None
    return OpenedStores(
        PostgresStore(place, now, model, replica=replica, supervisor=supervisor),
        shared,
        RelationalOAuthStore(shared),
        counter=shared,
        has_turn=Lease(place, "sources", now).hold_soon,
        sharing=PostgresSharing(place, replica),
    )


def may_have_log(home: Home) -> bool:
    """Say whether a home may have a log of disclosures already, wherever its records are.

    Raises:
        StorageUnusable: the database cannot be used.
    """
    if not isinstance(home, HomeInDatabase):
        return (home.path / FILE).exists()
    try:
        from headgate.store.postgres.ledger import has_log
        from headgate.store.postgres.migrate import open_place
    except ImportError:
        # Opening the store reports it.
        return False
    return has_log(open_place(home.url, home.name))


def _refuse_replica(url: str) -> None:
    if url:
        raise ConfigInvalid(
            "replica_url names a replica, and the records are in a file.",
            hint="Set store_url to the primary database, or remove replica_url.",
            param="replica_url",
        )
