"""The PostgreSQL store: the shared store over connections to one home of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.store.postgres.blobs import ServedBlobRows, remove_parts
from headgate.store.postgres.database import HomePlace, PostgresDatabase
from headgate.store.postgres.lease import Lease, LeasedTurn
from headgate.store.postgres.readers import PostgresReaders, scan
from headgate.store.postgres.statistics import Statistics
from headgate.store.relational.catalog import Catalog
from headgate.store.relational.database import Database
from headgate.store.relational.maintenance.retention import ChangeRetention
from headgate.store.relational.maintenance.unused_files import UnusedFiles
from headgate.store.relational.store import Store
from headgate.store.relational.write.rule_comparison import RuleComparison
from headgate.store.relational.write.word_index import WordFilling
from headgate.store.relational.writer import Writer
from headgate.store.semantic.models import MeaningModel
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
        super().__init__(readers, writer, ServedBlobRows(place, readers), now, meaning, supervisor)
