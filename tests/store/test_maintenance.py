"""What an owner does to a whole store, on each engine: measure, check, erase, back up and restore."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import Conflict, ConnectionNotFound, CursorExpired, NotFound, StorageUnusable
from headgate.home import Home, home_in, open_home, write_private
from headgate.model.hiding import HidingRule, RuleId, RuleKind
from headgate.model.ids import BlobId, ConnectionId, FieldName, RecordId
from headgate.model.instants import instant
from headgate.model.plan import BlobPlan, ChangesPlan, OffsetWindow, WindowPlan
from headgate.store.engines import commands
from headgate.store.maintenance.copied_tables import TABLES
from headgate.store.maintenance.postgres_side import PostgresSide
from headgate.store.maintenance.sqlite_side import SqliteSide, open_new
from headgate.store.postgres.database import PostgresDatabase, connect
from headgate.store.postgres.migrate import make_role, open_place
from headgate.store.sqlite import BLOBS, FILE
from headgate.store.sqlite.blobs import BlobFiles
from tests import postgres
from tests.store.copies import home_of, quiet
from tests.store.declared import DESK, NOTES
from tests.store.engines import ENGINES, NOW, Driven
from tests.store.ledger import Ledger

_MARK = "unmistakable"
_RECORD = {"id": _MARK, "title": f"{_MARK} title", "body": f"{_MARK} " * 5000, "label": _MARK}


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
def ledger(engine: str, tmp_path: Path) -> Ledger:
    """A store with a few records and a file, that its test opens again when it needs to."""
    ledger = Ledger(Driven(engine, tmp_path / "home"), connections=2)
    blob_id, _ = ledger.store.put_blob(_pieces(_MARK.encode()), "text/plain")
    ledger.put({**_RECORD, "file": {"blob_id": blob_id}})
    ledger.put(
        *({"id": f"k{n}", "title": f"t {n}", "at": f"2026-01-0{n}T00:00:00Z"} for n in range(1, 6)), key="b"
    )
    ledger.put({"id": "other"}, connection=1)
    ledger.store.close()
    return ledger


def _home(ledger: Ledger) -> Home:
    return home_of(ledger.store.engine, ledger.store.directory)


def _opened(ledger: Ledger) -> Ledger:
    ledger.store = Driven(ledger.store.engine, ledger.store.directory)
    return ledger


def _side(ledger: Ledger) -> Any:
    """Open what lies under the store, for harm and for a close look."""
    directory = ledger.store.directory
    if ledger.store.engine == "sqlite":
        return SqliteSide(open_new(directory / FILE), BlobFiles(directory / BLOBS))
    return PostgresSide(PostgresDatabase(open_place(postgres.database_url(), str(directory))))


def _everything(ledger: Ledger) -> str:
    """Give all rows of all tables as one text."""
    side = _side(ledger)
    names = [*(table.name for table in TABLES if side.columns(table.name))]
    names += ["typed", "child_key", "blob_part"] if ledger.store.engine == "postgres" else []
    where = " WHERE home=:home" if ledger.store.engine == "postgres" else ""
    try:
        return "".join(str(side.database.all(f"SELECT * FROM {name}{where}")) for name in names)
    finally:
        side.database.finish()


def test_stats_measure_what_is_there(ledger: Ledger):
    found = commands.commands_of(_home(ledger)).stats()
    first, second = found.connections
    notes = next(one for one in first.streams if one.stream == NOTES)
    assert (found.record_count, found.change_number, found.blob_count) == (7, 7, 1)
    assert (notes.record_count, second.streams[0].record_count) == (6, 1)
    assert (notes.oldest, notes.newest) == (instant("2026-01-01"), instant("2026-01-05"))
    assert notes.about_bytes > 50_000
    assert found.database_bytes > 0
    assert found.is_shared == (ledger.store.engine == "postgres")


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        ("UPDATE record SET record_id='k33' WHERE {here} record_id='k3'", "digest"),
        ("UPDATE record SET sort=NULL WHERE {here} record_id='k3'", "place"),
        ("UPDATE chunk SET text=replace(text, 'unmis', 'UNMIS') WHERE {here} n=1", "text"),
        ("DELETE FROM chunk WHERE {here} n=1", "text"),
        ("UPDATE shelf SET live=live+1 WHERE {here} live > 0", "count"),
        ("DELETE FROM word_leaf WHERE {here} lid > 0", "index"),
        ("UPDATE blob SET size_bytes=3 WHERE {here} size_bytes > 0", "blob"),
        ("UPDATE connection SET display_name='another' WHERE {here} id > ''", "catalog"),
        (
            "UPDATE connection SET id='cin_0' WHERE {here} id=(SELECT min(id) FROM connection WHERE {here} 1=1)",
            "catalog",
        ),
        ("UPDATE field SET fid=fid+50 WHERE {here} name='file'", "catalog"),
        ("UPDATE shelf SET hidden=1 WHERE {here} live > 1", "catalog"),
        ("DELETE FROM meta WHERE {here} k='pruned_seq'", "catalog"),
    ],
)
def test_planted_damage_is_found(ledger: Ledger, harm: str, found: str):
    assert commands.commands_of(_home(ledger)).check(quiet).damages == ()
    side = _side(ledger)
    with side.database.writing():
        side.database.run(harm.format(here="home=:home AND" if ledger.store.engine == "postgres" else ""))
    side.database.finish()
    assert found in {damage.kind for damage in commands.commands_of(_home(ledger)).check(quiet).damages}


@pytest.mark.parametrize("changed", ["declaration", "hiding_rule"])
def test_a_document_that_decides_what_is_shown_is_not_changed_unnoticed(ledger: Ledger, changed: str):
    rule = HidingRule(RuleId("rul_1"), RuleKind.WORDS, "secret")
    _opened(ledger).store.add_rule(rule, at=NOW)
    ledger.store.close()
    assert commands.commands_of(_home(ledger)).check(quiet).damages == ()
    side = _side(ledger)
    here = "WHERE home=:home" if ledger.store.engine == "postgres" else ""
    with side.database.writing():
        (document,) = side.database.one(f"SELECT document FROM {changed} {here}")
        # One letter of a name, as a flipped bit would change it.
        other = bytes(document).replace(b"secret", b"secreu").replace(b'"Desk"', b'"Dess"')
        side.database.run(f"UPDATE {changed} SET document=? {here}", (other,))
    side.database.finish()
    assert "catalog" in {one.kind for one in commands.commands_of(_home(ledger)).check(quiet).damages}


def test_an_erased_record_is_in_no_row(ledger: Ledger):
    assert _MARK in _everything(ledger)
    old = _number(_opened(ledger))
    ledger.store.close()
    gone = commands.commands_of(_home(ledger)).erase_record(
        ledger.ids[0], stream=NOTES, record_id=RecordId(_MARK)
    )
    assert (gone.record_count, gone.blob_count) == (1, 1)
    assert _MARK not in _everything(ledger)
    assert commands.commands_of(_home(ledger)).check(quiet).damages == ()
    with pytest.raises(NotFound):
        commands.commands_of(_home(ledger)).erase_record(
            ledger.ids[0], stream=NOTES, record_id=RecordId(_MARK)
        )
    assert sorted(_opened(ledger).keys()) == ["k1", "k2", "k3", "k4", "k5", "other"]
    with pytest.raises(CursorExpired):
        ledger.store.changes(ChangesPlan(ledger.reach(), 10, old))
    ledger.store.close()


def _number(ledger: Ledger) -> int:
    return ledger.store.changes(ChangesPlan(ledger.reach(), 1, 0)).horizon


def test_an_erased_connection_is_in_no_row(ledger: Ledger):
    assert commands.commands_of(_home(ledger)).erase_connection(ledger.ids[0]).record_count == 6
    assert _MARK not in _everything(ledger)
    assert ledger.ids[0] not in _everything(ledger)
    with pytest.raises(ConnectionNotFound):
        commands.commands_of(_home(ledger)).erase_connection(ledger.ids[0])
    assert commands.commands_of(_home(ledger)).stats().record_count == 1


@pytest.mark.skipif("postgres" not in ENGINES, reason="PostgreSQL is not installed")
@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_an_id_is_not_given_again_after_an_erasure_nor_after_a_restore(
    ledger: Ledger, tmp_path: Path, target: str
):
    assert ledger.ids == ("desk-0", "desk-1")
    commands.commands_of(_home(ledger)).erase_connection(ledger.ids[0])
    assert _opened(ledger).store.create_connection(DESK, "Desk 0").id == "desk-0-2"
    ledger.store.delete_connection(ConnectionId("desk-0-2"))
    ledger.store.close()
    assert [commands.commands_of(_home(ledger)).is_gone(name) for name in ledger.ids] == [True, False]
    commands.commands_of(_home(ledger)).back_up(tmp_path / "copy", quiet)
    restored = commands.commands_of(home_of(target, tmp_path / "restored"))
    restored.restore(tmp_path / "copy", quiet, end_at=None)
    store = Driven(target, tmp_path / "restored")
    assert [store.create_connection(DESK, name).id for name in ("Desk 0", "Desk 1")] == [
        "desk-0-3",
        "desk-1-2",
    ]
    store.close()


@pytest.mark.skipif("postgres" not in ENGINES, reason="PostgreSQL is not installed")
@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_a_backup_of_each_engine_is_restored_into_each(ledger: Ledger, tmp_path: Path, target: str):
    expected = _opened(ledger).page().records
    blob_plan = BlobPlan((ledger.reach(),), _blob_id(ledger))
    window = WindowPlan(ledger.reach(), RecordId(_MARK), FieldName("body"), OffsetWindow(9000, 30))
    answers = ledger.store.blobs(blob_plan), ledger.store.window(window)
    ledger.store.close()
    write_private(_home(ledger).keys / "some.key", b"secret")
    copy = tmp_path / "copy"
    made = commands.commands_of(_home(ledger)).back_up(copy, quiet, names=["keys/some.key"])
    assert (made.record_count, made.has_keys) == (7, True)
    assert commands.verify_backup(copy, quiet).record_count == 7
    home = home_of(target, tmp_path / "restored")
    assert commands.commands_of(home).restore(copy, quiet, end_at=None).record_count == 7
    assert (home.path / "keys" / "some.key").read_bytes() == b"secret"
    ledger.store = Driven(target, tmp_path / "restored")
    assert ledger.page().records == expected
    assert (ledger.store.blobs(blob_plan), ledger.store.window(window)) == answers
    ledger.store.close()
    assert commands.commands_of(home).check(quiet).damages == ()
    with pytest.raises(Conflict):
        commands.commands_of(home_of(target, ledger.store.directory)).restore(copy, quiet, end_at=NOW)


def _blob_id(ledger: Ledger) -> Any:
    return BlobId(f"blob_{hashlib.sha256(_MARK.encode()).hexdigest()}")


@pytest.mark.skipif("postgres" not in ENGINES, reason="PostgreSQL is not installed")
def test_an_encrypted_backup_of_a_database_opens_with_its_passphrase(tmp_path: Path):
    ledger = Ledger(Driven("postgres", tmp_path / "home"), connections=1)
    ledger.put({"id": "a"})
    ledger.store.close()
    copy = tmp_path / "copy.age"
    commands.back_up_encrypted(_home(ledger), copy, quiet, passphrase="correct horse")
    assert b"SQLite" not in copy.read_bytes()
    with commands.decrypted_backup(copy, open_home(tmp_path / "other"), "correct horse") as directory:
        assert commands.verify_backup(directory, quiet).record_count == 1


@pytest.mark.skipif("postgres" not in ENGINES, reason="PostgreSQL is not installed")
def test_the_space_of_erased_rows_is_freed_or_the_owner_hears_that_it_is_not(tmp_path: Path):
    ledger = Ledger(Driven("postgres", tmp_path / "home"), connections=2)
    ledger.put(_RECORD)
    ledger.store.close()
    url = postgres.database_url()
    counted = "SELECT pg_stat_get_vacuum_count('record'::regclass)"
    with connect(url) as connection:
        before = connection.execute(counted).fetchone()[0]
        commands.commands_of(_home(ledger)).erase_record(
            ledger.ids[0], stream=NOTES, record_id=RecordId(_MARK)
        )
        assert connection.execute(counted).fetchone()[0] == before + 1
    role = make_role(url, open_place(url, str(tmp_path / "home")), "a password")
    limited = home_in(
        open_home(tmp_path / "home"), postgres.server().url_of("headgate", role), str(tmp_path / "home")
    )
    with pytest.raises(StorageUnusable):
        commands.commands_of(limited).erase_connection(ledger.ids[1])
    assert commands.commands_of(_home(ledger)).stats().connections[0].connection_id == ledger.ids[0]
