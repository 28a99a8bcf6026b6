"""Vectors in backups, under a check and after an erasure."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
import pytest

from headgate.home import open_home
from headgate.model.ids import RecordId
from headgate.model.maintenance import CheckReport
from headgate.store.engines.commands import commands_of
from headgate.store.format.vectors import quantised
from headgate.store.sqlite import FILE
from tests.store.declared import NOTES
from tests.store.ledger import Ledger
from tests.store.semantic.meaning import (
    WAIT_SECONDS,
    MeaningHome,
    WordEmbedder,
    find,
    keys,
    made,
    meaning_ledger,
    opened,
    words_model,
)

_ERASED = "purple elephant singing quietly tonight somewhere"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three records that have their vectors."""
    place = tmp_path / "home"
    with meaning_ledger(MeaningHome(place), words_model(), connections=1) as ledger:
        ledger.put(
            {"id": "a", "title": "green apple", "at": "2026-01-01T00:00:00Z"},
            {"id": "b", "title": _ERASED, "body": _ERASED},
            {"id": "c", "title": "red car"},
        )
        made(ledger)
    return place


def _checked(home: Path) -> CheckReport:
    return commands_of(open_home(home)).check(lambda _done, _total: None)


def _change(home: Path, sql: str) -> None:
    with apsw.Connection(str(home / FILE)) as file:
        file.execute(sql)


def _blocks(home: Path) -> list[int]:
    with apsw.Connection(str(home / FILE), flags=apsw.SQLITE_OPEN_READONLY) as file:
        return [bid for (bid,) in file.execute("SELECT bid FROM vector_block ORDER BY bid")]


def _connection(home: Path) -> str:
    with apsw.Connection(str(home / FILE), flags=apsw.SQLITE_OPEN_READONLY) as file:
        return file.execute("SELECT connection_id FROM shelf").fetchone()[0]


def test_a_whole_store_has_no_damage(home: Path):
    assert _checked(home).damages == ()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE vector_block SET vectors=zeroblob(length(vectors))",
        "UPDATE vector_block SET numbers=x''",
        "UPDATE vector_block SET starts=ends",
    ],
)
def test_a_block_that_was_changed_is_damage(home: Path, sql: str):
    _change(home, sql)
    assert {damage.kind for damage in _checked(home).damages} == {"index"}


def test_vectors_with_another_time_than_their_record_are_damage(home: Path):
    _change(home, "UPDATE record SET ts=5 WHERE record_id='a'")
    found = [damage for damage in _checked(home).damages if "vectors" in damage.detail]
    assert {damage.record_id for damage in found} == {"a"}


def test_an_erasure_leaves_no_byte_of_the_vectors(home: Path):
    (vector,) = quantised(WordEmbedder().embed([_ERASED]))
    assert np.count_nonzero(vector) > 4
    assert vector.tobytes() in (home / FILE).read_bytes()
    commands_of(open_home(home)).erase_record(_connection(home), stream=NOTES, record_id=RecordId("b"))
    for file in home.rglob("*"):
        if file.is_file():
            assert vector.tobytes() not in file.read_bytes(), file.name
    assert _checked(home).damages == ()


def test_a_backup_holds_the_vectors(home: Path, tmp_path: Path):
    commands_of(open_home(home)).back_up(tmp_path / "copy", lambda _done, _total: None)
    second = tmp_path / "second"
    commands_of(open_home(second)).restore(tmp_path / "copy", lambda _done, _total: None, end_at=None)
    assert _checked(second).damages == ()
    blocks = _blocks(second)
    store = opened(MeaningHome(second), words_model())
    try:
        assert store.wait_for_vectors(WAIT_SECONDS)
        ledger = Ledger.__new__(Ledger)
        ledger.store, ledger.ids = store, tuple(one.id for one in store.connections())
        assert keys(find(ledger, "green apple")) == ["a"]
        # None was made anew.
        assert _blocks(second) == blocks
    finally:
        store.close()
