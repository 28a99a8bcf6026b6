"""What rules hide is looked after like everything else: counted, checked, backed up, erased."""

from __future__ import annotations

from pathlib import Path

from headgate.home import open_home
from headgate.model.hiding import HidingRule, RuleId, RuleKind
from headgate.model.ids import RecordId
from headgate.store.engines import commands
from tests.store.declared import NOTES
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

SECRET = "quetzalcoatl"


def progress(_done: int, _total: int) -> None:
    """Show nothing."""


def filled(place: Path) -> Ledger:
    """A record that came in hidden, one that a rule hid later, and one that it did not."""
    ledger = Ledger(Driven("sqlite", place), connections=1)
    ledger.put({"id": "late", "body": SECRET}, {"id": "open", "body": "roof"})
    ledger.store.add_rule(HidingRule(RuleId("rul_1"), RuleKind.WORDS, SECRET), at=NOW)
    ledger.put({"id": "early", "body": SECRET, "at": "2026-01-01T00:00:00Z"})
    ledger.store.close()
    return ledger


def test_hidden_records_are_counted_checked_and_backed_up(tmp_path: Path):
    filled(tmp_path / "home")
    home = open_home(tmp_path / "home")
    (connection,) = commands.commands_of(home).stats().connections
    assert {one.stream: one.record_count for one in connection.streams if one.record_count} == {NOTES: 3}
    found = commands.commands_of(home).check(progress)
    assert (found.record_count, list(found.damages)) == (3, [])
    copied = commands.commands_of(home).back_up(tmp_path / "backup", progress)
    assert copied == commands.verify_backup(tmp_path / "backup", progress)
    commands.commands_of(open_home(tmp_path / "other")).restore(tmp_path / "backup", progress, end_at=None)
    ledger = Ledger.__new__(Ledger)
    ledger.store = Driven("sqlite", tmp_path / "other")
    ledger.ids = (connection.connection_id,)
    try:
        assert ledger.keys() == ["open"]
        assert [one.id for one in ledger.store.rules()] == ["rul_1"]
    finally:
        ledger.store.close()


def test_a_hidden_record_is_erased_with_the_tombstone_that_it_left(tmp_path: Path):
    (connection,) = filled(tmp_path / "home").ids
    home = open_home(tmp_path / "home")
    for key in ("late", "early"):
        erased = commands.commands_of(home).erase_record(connection, stream=NOTES, record_id=RecordId(key))
        assert erased.record_count == 1
    content = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    assert b"late" not in content.replace(b"latest", b"")
    assert commands.commands_of(home).check(progress).damages == ()
