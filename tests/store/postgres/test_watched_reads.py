"""Reads without a transaction: their statements see one state, or the read is done again in a transaction."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headgate.errors import FieldNotFound, QueryTimeout
from headgate.store.engines import postgres_readers as readers
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.postgres_readers import PostgresReader
from headgate.store.postgres.migrate import open_place
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from tests import postgres
from tests.store.declared import DESK, document
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_LIVE = "SELECT sum(live)::bigint FROM shelf WHERE home=:home"
_ROWS = "SELECT count(*) FROM record WHERE home=:home"
_STATUS = "SELECT current_setting('transaction_isolation') WHERE :home > 0"


class Scene:
    """A store that writes, and a reader that has seen its catalog."""

    def __init__(self, place: Path) -> None:
        found = open_place(postgres.database_url(), str(place))
        self.store = Driven("postgres", place, PostgresStore(found, lambda: NOW))
        self.ledger = Ledger(self.store, connections=1)
        self.ledger.put({"id": "first"})
        self.reader = PostgresReader(found)
        self.reader.read(lambda database, _: database.value(_ROWS))
        self.runs = 0

    def read(self, between: Callable[[], Any] = lambda: None, second: str = _ROWS) -> tuple[Any, Any, str]:
        """Do a read of two statements; something else happens between them when it is run first."""

        def work(database: Database, catalog: Catalog) -> tuple[Any, Any, str]:
            del catalog
            self.runs += 1
            live = database.value(_LIVE)
            if self.runs == 1:
                between()
            return live, database.value(second), database.value(_STATUS)

        return self.reader.read(work)


@pytest.fixture
def scene(tmp_path: Path) -> Generator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.reader.database.finish()
    made.store.close()


def test_a_read_during_which_nothing_is_written_needs_no_transaction(scene: Scene):
    assert scene.read() == (1, 1, "read committed")
    assert scene.runs == 1


def test_a_read_during_which_another_process_writes_is_done_again_in_a_transaction(scene: Scene):
    assert scene.read(lambda: scene.ledger.put({"id": "second"})) == (2, 2, "repeatable read")
    assert scene.runs == 2


def test_a_statement_that_finds_nothing_sees_a_state_too(scene: Scene):
    nothing = "SELECT count(*) FROM record WHERE home=:home AND deleted HAVING count(*) > 0"

    def work(database: Database, catalog: Catalog) -> tuple[int, Any]:
        del catalog
        scene.runs += 1
        assert database.one(nothing) is None
        if scene.runs == 1:
            scene.ledger.put({"id": "second"})
        return scene.runs, database.value(_ROWS)

    assert scene.reader.read(work) == (2, 2)


def test_a_read_with_an_old_catalog_is_done_again_with_the_new_one(scene: Scene):
    made = scene.store.create_connection(DESK, "Another")
    seen = scene.reader.read(lambda database, catalog: (database.value(_ROWS), set(catalog.connections)))
    assert seen == (1, {*scene.ledger.ids, made.id})


def test_a_read_that_asks_nothing_has_the_newest_catalog(scene: Scene):
    scene.store.declare(DESK, {**document(), "declaration_version": "2027-01-01"})
    versions = scene.reader.read(lambda _, catalog: [one.version for one in catalog.versions[DESK]])
    assert versions[-1] == "2027-01-01"


def test_a_failure_before_the_first_statement_may_be_that_of_an_old_catalog(scene: Scene):
    made = scene.store.create_connection(DESK, "Another")

    def work(database: Database, catalog: Catalog) -> Any:
        return database.value(_ROWS), catalog.connections[made.id].display_name

    assert scene.reader.read(work) == (1, "Another")


def test_a_failure_in_a_known_state_is_not_tried_again(scene: Scene):
    def work(database: Database, catalog: Catalog) -> None:
        del catalog
        scene.runs += 1
        database.value(_ROWS)
        raise FieldNotFound

    with pytest.raises(FieldNotFound):
        scene.reader.read(work)
    assert scene.runs == 1


def test_a_connection_that_is_lost_between_statements_is_made_again(scene: Scene):
    process = scene.reader.database.value("SELECT pg_backend_pid()")
    with psycopg.connect(postgres.database_url()) as other:
        assert scene.read(lambda: other.execute("SELECT pg_terminate_backend(%s)", (process,))) == (
            1,
            1,
            "repeatable read",
        )


def test_rows_one_by_one_come_from_a_transaction(scene: Scene):
    scene.ledger.put(*({"id": f"more-{number}"} for number in range(100)))
    statement = "SELECT record_id FROM record WHERE home=:home"
    assert len(scene.reader.read(lambda database, _: list(database.each(statement)))) == 101


def test_a_statement_without_a_transaction_has_a_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(readers, "QUERY_SECONDS", 0.05)
    found = open_place(postgres.database_url(), str(tmp_path))
    reader = PostgresReader(found)
    reader.read(lambda database, _: database.value(_ROWS))
    endless = "SELECT count(*) FROM pg_sleep(60) WHERE :home > 0"
    runs: list[int] = []
    with pytest.raises(QueryTimeout):
        reader.read(lambda database, _: (runs.append(database.value(_ROWS)), database.value(endless)))
    assert runs == [0]
    reader.database.finish()
