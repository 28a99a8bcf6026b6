from __future__ import annotations

import msgspec
import pytest

from headgate.errors import IntegrityBroken
from headgate.store.format.records import ALL_FIELDS, ChangeMark, change_marks, emitted_at_of, with_change


def test_a_reader_gets_the_time_of_the_last_change_of_a_field_that_it_sees():
    changed = with_change(None, ["title"], ChangeMark(7, 700))
    changed = with_change(changed, ["secret"], ChangeMark(9, 900))
    marks = change_marks(changed)
    assert emitted_at_of(marks, ("id", "title"), 100) == 700
    assert emitted_at_of(marks, ("id",), 100) == 100
    assert emitted_at_of(marks, None, 100) == 900


def test_the_last_change_counts_and_not_the_latest_time():
    changed = with_change(None, ["title"], ChangeMark(7, 900))
    marks = change_marks(with_change(changed, ["id"], ChangeMark(8, 500)))
    assert emitted_at_of(marks, ("id", "title"), 100) == 500


def test_a_record_that_came_back_has_the_time_of_its_return():
    marks = change_marks(with_change(None, [ALL_FIELDS], ChangeMark(7, 700)))
    assert emitted_at_of(marks, ("title",), 100) == 700


def test_marks_from_before_they_had_times_stand_for_the_time_of_the_record():
    older = msgspec.msgpack.encode({"title": 7})
    assert change_marks(older) == {"title": ChangeMark(7, None)}
    assert emitted_at_of(change_marks(older), ("title",), 100) == 100
    marks = change_marks(with_change(older, ["secret"], ChangeMark(9, 900)))
    assert emitted_at_of(marks, ("title",), 100) == 100


@pytest.mark.parametrize("changed", [b"", b"\xc1", b"\x81\xa1\xff\x07", b"\x81\xa1a\xa1b"])
def test_damaged_marks_are_a_typed_error(changed: bytes):
    with pytest.raises(IntegrityBroken):
        change_marks(changed)
