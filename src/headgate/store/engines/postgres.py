"""The PostgreSQL store: the shared store over connections to one home of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.store.changes.hiding import RuleComparison
from headgate.store.changes.retention import ChangeRetention, UnusedFiles
from headgate.store.changes.word_index import WordFilling
from headgate.store.changes.writer import Writer
from headgate.store.engines.postgres_readers import PostgresReaders, scan
from headgate.store.engines.store import Store
from headgate.store.models.model import MeaningModel
from headgate.store.postgres.blobs import ServedBlobRows, remove_parts
from headgate.store.postgres.database import HomePlace, PostgresDatabase
from headgate.store.postgres.dialect import SQL
from headgate.store.postgres.lease import Lease, LeasedTurn
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.tasks import Supervisor

#: How many short reads one process does at once.
CONNECTIONS = 4


class _PostgresVectors:
    """What the thread that makes vectors needs; of several processes, the one that holds the lease makes them."""

    def __init__(self, place: HomePlace, writer: Writer, now: Callable[[], int]) -> None:
        self._place = place
        self._writer = writer
        self._lease = Lease(place, "vectors", now)

    def scan(self, work: Callable[[Database, Catalog], Any]) -> Any:
        return scan(self._place, work)

    async def change(self, work: Callable[[Database], None]) -> None:
        await self._writer.run(work)

    def has_turn(self) -> bool:
        return self._lease.hold()

    def end_turn(self) -> None:
        self._lease.release()


class PostgresStore(Store):
    """A store in a database; with a model, it can be searched by meaning."""

    def __init__(
        self,
        place: HomePlace,
        now: Callable[[], int],
        model: MeaningModel | None = None,
        *,
        connections: int = CONNECTIONS,
        supervisor: Supervisor | None = None,
    ) -> None:
        turn = LeasedTurn(Lease(place, "idle tasks", now), now)
        unused = UnusedFiles(now, remove_parts)
        tasks = (WordFilling(), RuleComparison(now), Statistics(), ChangeRetention(now), unused)
        writer = Writer(PostgresDatabase(place), idle_tasks=tasks, turn=turn, supervisor=supervisor)
        meaning = None if model is None else (model, _PostgresVectors(place, writer, now))
        readers = PostgresReaders(place, connections)
        super().__init__(readers, writer, ServedBlobRows(place, readers.short), now, meaning, supervisor)


#: A table that has grown by so much since it was last counted is counted again.
_TIMES_LARGER = 4


class Statistics:
    """An idle task: let the server count what the tables hold, so that it chooses the right index.

    Servers do this themselves about once a minute. A large import into new tables would be read badly until then. Only
    the owner of the tables can ask for it; for a role that serves one home the server's own rhythm must do.
    """

    name = "statistics"

    def __init__(self) -> None:
        #: How large the tables were when this process last had them counted.
        self._pages = 0

    def plan(self, database: Database) -> bool:
        """Return whether the tables have grown enough since they were last counted."""
        pages, counted = database.all(SQL["table_size"])[0]
        return pages > _TIMES_LARGER * max(self._pages, counted)

    def step(self, database: Database) -> bool:
        """Count them; returns whether more is left to do."""
        self._pages = database.all(SQL["table_size"])[0][0]
        database.run(SQL["gather_statistics"])
        return False
