from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.plan import ChangesPlan, Reach
from headgate.model.record import Record, Tombstone
from headgate.store.queries import changes
from tests.store.declared import NOTES
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger, body
from tests.store.plans import batches

JANUARY, FEBRUARY = "2026-01-15T00:00:00Z", "2026-02-15T00:00:00Z"


class _Reader:
    """A client that keeps a copy by asking for changes again and again."""

    def __init__(self, ledger: Ledger, reach: Reach) -> None:
        self._ledger = ledger
        self._reach = reach
        self._since = 0
        self.copy: dict[tuple[str, str], dict[str, Any]] = {}

    def read(self, limit: int = 100) -> list[Record | Tombstone]:
        """Read one session to its end."""
        entries: list[Record | Tombstone] = []
        plan = ChangesPlan(self._reach, limit, self._since)
        while True:
            page = self._ledger.store.changes(plan)
            entries += page.entries
            if page.next is None:
                break
            plan = replace(plan, horizon=page.horizon, after=page.next)
        self._since = page.horizon
        for entry in entries:
            if isinstance(entry, Record):
                self.copy[entry.connection_id, entry.id] = body(entry)
            else:
                self.copy.pop((entry.connection_id, entry.id), None)
        return entries

    def keys(self) -> list[tuple[str, bool]]:
        """Give what one session gives: keys, and whether the record is still there."""
        return [(entry.id, isinstance(entry, Record)) for entry in self.read()]


def _reader(ledger: Ledger, fields: Sequence[str] = ("id", "title"), **narrowed: Any) -> _Reader:
    reader = _Reader(ledger, ledger.reach(fields=fields, **narrowed))
    reader.read()
    return reader


def test_the_first_session_gives_everything_that_is_there_and_no_tombstones(ledger: Ledger):
    ledger.put({"id": "a", "title": "1"}, {"id": "b"}, {"id": "c"})
    ledger.remove("b")
    reader = _Reader(ledger, ledger.reach(fields=["title"]))
    assert reader.keys() == [("a", True), ("c", True)]
    assert reader.keys() == []


def test_a_change_of_a_visible_field_gives_the_whole_record(ledger: Ledger):
    ledger.put({"id": "a", "title": "1"}, {"id": "b", "title": "1"})
    reader = _reader(ledger)
    ledger.put({"id": "a", "title": "2", "size": 5})
    (entry,) = reader.read()
    assert isinstance(entry, Record)
    assert body(entry) == {"id": "a", "title": "2"}


@pytest.mark.parametrize("hidden", ["size", "extra", "undeclared", "", "body"])
def test_a_change_of_a_hidden_field_is_no_change(ledger: Ledger, hidden: str):
    ledger.put({"id": "a", "title": "1"})
    reader = _reader(ledger)
    for value in ("x", "y" * 40_000, None, "z"):
        ledger.put({"id": "a", "title": "1", hidden: value})
        assert reader.keys() == []
    ledger.put({"id": "a", "title": "1"})
    assert reader.keys() == []


def test_another_spelling_of_the_same_value_is_no_change(ledger: Ledger):
    ledger.send(b'{"data":{"id":"a","title":"\\u0061","extra":{"x":1,"y":2}}}')
    reader = _reader(ledger, ["title", "extra"])
    ledger.send(b'{"data": {"extra": {"y": 2, "x": 1}, "title": "a", "id": "a"}}')
    assert reader.keys() == []


def test_a_field_that_comes_or_goes_is_a_change(ledger: Ledger):
    ledger.put({"id": "a"})
    reader = _reader(ledger)
    for record in (
        {"id": "a", "title": None},
        {"id": "a"},
        {"id": "a", "title": "x" * 50_000},
        {"id": "a", "title": "y"},
    ):
        ledger.put(record)
        assert reader.keys() == [("a", True)]
        assert list(reader.copy.values()) == [record]


def test_a_deletion_is_reported_once_and_only_to_readers_that_saw_the_record(ledger: Ledger):
    ledger.put({"id": "a", "at": JANUARY}, {"id": "b", "at": JANUARY})
    saw, narrow, late = _reader(ledger), _reader(ledger, resources=["b"]), _reader(ledger, since="2026-02-01")
    ledger.send(b'{"op":"delete","key":"a","emitted_at":"2026-03-01T00:00:00Z"}')
    (tombstone,) = saw.read()
    at = 1_772_323_200_000_000
    assert tombstone == Tombstone(ledger.ids[0], NOTES, "a", at, at)
    assert saw.keys() == narrow.keys() == late.keys() == []


def test_what_came_and_went_between_two_sessions_was_never_there(ledger: Ledger):
    reader = _reader(ledger)
    ledger.put({"id": "a"})
    ledger.remove("a")
    assert reader.keys() == []


def test_a_record_that_leaves_the_scope_leaves_a_tombstone_and_may_come_back(ledger: Ledger):
    ledger.put({"id": "a", "at": JANUARY, "title": "t"})
    reader = _reader(ledger, until="2026-02-01")
    ledger.put({"id": "a", "at": FEBRUARY, "title": "t"}, received_at=NOW + 5)
    (tombstone,) = reader.read()
    assert tombstone == Tombstone(ledger.ids[0], NOTES, "a", NOW + 5, NOW + 5)
    ledger.put({"id": "a", "at": FEBRUARY, "title": "changed outside"})
    assert reader.keys() == []
    ledger.put({"id": "a", "at": JANUARY, "title": "changed outside"})
    assert reader.keys() == [("a", True)]
    assert list(reader.copy.values()) == [{"id": "a", "title": "changed outside"}]


def test_what_happens_to_a_record_out_of_sight_is_not_reported(ledger: Ledger):
    ledger.put({"id": "a", "at": JANUARY})
    reader = _reader(ledger, until="2026-02-01")
    ledger.put({"id": "a", "at": "2026-01-20T00:00:00Z"}, received_at=NOW + 1)
    ledger.put({"id": "a", "at": FEBRUARY}, received_at=NOW + 2)
    ledger.put({"id": "a", "at": "2026-03-01T00:00:00Z"}, received_at=NOW + 3)
    ledger.send(b'{"op":"delete","key":"a","emitted_at":"2026-03-01T00:00:00Z"}', received_at=NOW + 4)
    (tombstone,) = reader.read()
    assert tombstone == Tombstone(ledger.ids[0], NOTES, "a", NOW + 2, NOW + 2)


def test_a_time_without_a_reader_moves_nothing_when_it_stays_in_scope(ledger: Ledger):
    ledger.put({"id": "a", "at": JANUARY, "title": "t"})
    reader = _reader(ledger, until="2026-02-01")
    ledger.put({"id": "a", "at": "2026-01-20T00:00:00Z", "title": "t"})
    assert reader.keys() == []


def test_a_record_deleted_and_made_again_is_reported_as_it_is_now(ledger: Ledger):
    ledger.put({"id": "a", "title": "old"})
    reader, other = _reader(ledger), _reader(ledger)
    ledger.remove("a")
    assert other.keys() == [("a", False)]
    ledger.put({"id": "a", "title": "new"})
    for one in (reader, other):
        assert one.keys() == [("a", True)]
        assert list(one.copy.values()) == [{"id": "a", "title": "new"}]
    ledger.put({"id": "a", "title": "new", "size": 3})
    assert reader.keys() == []


def test_pages_of_a_session_end_at_the_horizon_of_its_first_page(ledger: Ledger):
    ledger.put(*({"id": f"{n}"} for n in range(6)))
    plan = ChangesPlan(ledger.reach(), 4, 0)
    first = ledger.store.changes(plan)
    ledger.put({"id": "late"}, {"id": "5", "title": "later"})
    second = ledger.store.changes(replace(plan, horizon=first.horizon, after=first.next))
    assert [entry.id for entry in (*first.entries, *second.entries)] == ["0", "1", "2", "3", "4", "5"]
    assert (second.horizon, second.next) == (first.horizon, None)
    third = ledger.store.changes(ChangesPlan(ledger.reach(), 9, first.horizon))
    assert [entry.id for entry in third.entries] == ["5", "late"]


def test_a_bookmark_from_the_future_has_expired(ledger: Ledger):
    ledger.put({"id": "a"})
    now = ledger.store.changes(ChangesPlan(ledger.reach(), 9, 0)).horizon
    for plan in (ChangesPlan(ledger.reach(), 9, now + 1), ChangesPlan(ledger.reach(), 9, 0, horizon=now + 1)):
        with pytest.raises(CursorExpired):
            ledger.store.changes(plan)


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_reader_that_only_hears_of_changes_ends_with_what_is_there(store: Driven, data: st.DataObject):
    ledger = Ledger(store, connections=2)
    fields = data.draw(st.sampled_from([["id"], ["title", "size"], ["at", ""], ["extra", "undeclared"]]))
    reach = ledger.reach(
        fields=fields, since=data.draw(st.sampled_from([None, "2026-01-01", "2026-03-29T01:00:00Z"]))
    )
    reader = _Reader(ledger, reach)
    for connection, stream, lines in data.draw(st.lists(batches(2, NOTES), min_size=2, max_size=8)):
        ledger.send(*(_line(line) for line in lines), stream=stream, connection=connection)
        if data.draw(st.booleans()):
            reader.read(data.draw(st.integers(1, 4)))
    reader.read()
    there = {(record.connection_id, record.id): body(record) for record in ledger.page(reach).records}
    assert reader.copy == there


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode()


def _many(ledger: Ledger, count: int = 400) -> None:
    """Fill a stream of which a narrow reader sees three records: two early ones, and the last."""
    seen = {0, 7, count - 1}
    ledger.put(
        *(
            {"id": f"n{n:04}", "title": f"t{n}", "at": FEBRUARY if n in seen else JANUARY}
            for n in range(count)
        )
    )


@pytest.mark.parametrize("is_by_key", [False, True])
def test_a_request_looks_at_so_much_and_the_next_one_goes_on_from_there(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, is_by_key: bool
):
    monkeypatch.setattr(changes, "_WORK_MOST", 60)
    monkeypatch.setattr(changes, "_LOOP_WORK", 1)
    monkeypatch.setattr(changes, "_AT_ONCE", 2)
    _many(ledger)
    keys = ["n0000", "n0007", "n0399"]
    reach = ledger.reach(resources=keys) if is_by_key else ledger.reach(since="2026-02-01T00:00:00Z")
    plan = ChangesPlan(reach, 100, 0)
    pages: list[list[str]] = []
    while True:
        page = ledger.store.changes(plan)
        pages.append([entry.id for entry in page.entries])
        if page.next is None:
            break
        plan = replace(plan, horizon=page.horizon, after=page.next)
    assert [key for page in pages for key in page] == keys
    # What a key names is found by the key; what time hides is passed over, so much by each request.
    assert len(pages) <= 3 if is_by_key else [] in pages[1:-1]


def test_a_reader_hears_of_what_left_its_time_however_little_a_request_looks_at(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    _many(ledger)
    reader = _Reader(ledger, ledger.reach(since="2026-02-01T00:00:00Z"))
    reader.read()
    ledger.put(*({"id": f"n{n:04}", "title": "other", "at": JANUARY} for n in range(400)))
    monkeypatch.setattr(changes, "_MANY", 1)
    monkeypatch.setattr(changes, "_WORK_MOST", 60)
    assert [(type(entry), entry.id) for entry in reader.read()] == [
        (Tombstone, key) for key in ("n0000", "n0007", "n0399")
    ]
