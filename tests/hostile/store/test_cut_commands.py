"""The connection to the database is cut at each statement of a command: erase, copy and backup are done, or can be done again."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from headgate.errors import Conflict, HeadgateError, NotFound, StorageUnusable
from headgate.home import Home, home_in, open_home
from headgate.model.ids import RecordId
from headgate.model.plan import RecordPlan
from headgate.store.changes import writer
from headgate.store.engines import commands
from headgate.store.postgres.database import PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.conftest import Figure
from tests.hostile.store.cut_scene import attempts, url_through
from tests.postgres_proxy import Cut, CuttingProxy, cutting_proxy
from tests.store.copies import home_of, quiet
from tests.store.declared import NOTES
from tests.store.engines import Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
KEYS = [f"k{n}" for n in range(8)]


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.soak)], ids=["some", "all"])
def is_long(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Generator[CuttingProxy]:
    monkeypatch.setattr(writer, "IDLE_SECONDS", 3600.0)
    postgres.database_url()
    with cutting_proxy(postgres.server().folder) as made:
        yield made


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[Ledger]:
    """A home of the database with records in it, which are read past the proxy."""
    store = Driven("postgres", tmp_path / "home")
    made = Ledger(store, connections=1)
    made.put(*({"id": key, "title": "canal", "body": "gloves " * 500} for key in KEYS))
    yield made
    store.close()


def through(proxy: CuttingProxy, directory: Path) -> Home:
    """Give a home as a command sees it whose connections can be cut."""
    return home_in(open_home(directory), url_through(proxy), str(directory))


def test_a_record_is_erased_or_can_be_erased_again_wherever_the_connection_is_cut(
    ledger: Ledger, proxy: CuttingProxy, figure: Figure, *, is_long: bool
):
    home, count = through(proxy, ledger.store.directory), 0
    for attempt in attempts(proxy, 1 if is_long else 9):
        ledger.put({"id": attempt.name, "title": "secret"})
        with attempt.cut():
            is_done = _erase(home, ledger, attempt.name)
        assert is_done or attempt.was_cut
        if not is_done:
            # The rows may be gone and only their space be left: then there is nothing to erase.
            _erase(home, ledger, attempt.name)
        assert sorted(ledger.keys(limit=100)) == KEYS
        count += 1
    assert commands.commands_of(home).check(quiet).damages == ()
    figure("cut", f"erase: {count} cuts")


def _erase(home: commands.Home, ledger: Ledger, key: str) -> bool:
    try:
        commands.commands_of(home).erase_record(ledger.ids[0], stream=NOTES, record_id=RecordId(key))
    except NotFound:
        return True
    except StorageUnusable:
        return False
    return True


def test_a_copy_goes_on_after_every_cut_and_is_whole_at_its_end(
    ledger: Ledger, proxy: CuttingProxy, tmp_path: Path, figure: Figure, *, is_long: bool
):
    source, count = home_of("postgres", ledger.store.directory), 0
    for attempt in attempts(proxy, 11 if is_long else 240):
        directory = tmp_path / attempt.name
        target = through(proxy, directory)
        with attempt.cut():
            is_done = _copy(source, target)
        assert is_done or attempt.was_cut
        if not is_done:
            assert _copy(source, target)
        copy = Driven("postgres", directory)
        found = [copy.record(RecordPlan(ledger.reach(), RecordId(key))) for key in KEYS]
        assert [len(one) for one in found] == [1] * len(KEYS)
        copy.close()
        assert commands.commands_of(home_of("postgres", directory)).check(quiet).damages == ()
        count += 1
    figure("cut", f"copy: {count} cuts")


def _copy(source: commands.Home, target: commands.Home) -> bool:
    try:
        commands.copy_store(source, target, quiet)
    except Conflict:
        # It was complete, and the answer to its last statement was lost.
        return True
    except StorageUnusable:
        return False
    return True


def test_a_backup_is_whole_or_refused_wherever_the_connection_is_cut(
    ledger: Ledger, proxy: CuttingProxy, tmp_path: Path, figure: Figure, *, is_long: bool
):
    home, count = through(proxy, ledger.store.directory), 0
    for attempt in attempts(proxy, 11 if is_long else 240):
        place = tmp_path / f"backup-{attempt.name}"
        with attempt.cut():
            is_done = _back_up(home, place)
        assert is_done or attempt.was_cut
        if is_done:
            assert commands.verify_backup(place, quiet).record_count == len(KEYS)
            shutil.rmtree(place)
        else:
            # What is left of it does not pass for a backup, and does not stand in the way of the next.
            with pytest.raises((HeadgateError, FileNotFoundError)):
                commands.verify_backup(place, quiet)
            assert _back_up(home, place)
        count += 1
    figure("cut", f"backup: {count} cuts")


def _back_up(home: commands.Home, place: Path) -> bool:
    try:
        commands.commands_of(home).back_up(place, quiet)
    except StorageUnusable:
        return False
    return True


def test_nothing_is_done_on_another_connection_once_that_of_a_transaction_is_lost(
    ledger: Ledger, proxy: CuttingProxy
):
    place = open_place(url_through(proxy), str(ledger.store.directory))
    database = PostgresDatabase(place)

    def change_after_a_loss() -> None:
        rows = database.each(SQL["facts"])
        next(rows)
        proxy.cut_at(1, Cut.BEFORE)
        # The rows are not read to their end, and the failure of ending them is not seen.
        with pytest.raises(Exception, match="closed"):
            rows.close()  # type: ignore[attr-defined]
        database.run(SQL["put_fact"], ("planted", 1))

    with pytest.raises(StorageUnusable), translated(), database.writing():
        change_after_a_loss()
    assert "planted" not in dict(database.all(SQL["facts"]))
    database.finish()
