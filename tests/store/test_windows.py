from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, strategies as st

from headgate.errors import FieldNotFound, FieldNotText, QueryNotFound
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import MatchWindow, OffsetWindow, WindowPlan
from headgate.model.rows import FieldWindow
from headgate.store.queries.windows import find_folded
from tests.store.ledger import Ledger

BODY = FieldName("body")
#: Long enough to lie in pieces, with characters of one to four bytes, and no two places alike.
LONG = "".join(f"{n:05}é🎉" for n in range(20_000))


def _windows(ledger: Ledger, window: OffsetWindow | MatchWindow, field: str = "body", **narrowed: object):
    plan = WindowPlan(ledger.reach(**narrowed), RecordId("a"), FieldName(field), window)
    return ledger.store.window(plan)


def _window(ledger: Ledger, offset: int, limit: int) -> FieldWindow:
    (found,) = _windows(ledger, OffsetWindow(offset, limit))
    return found


@pytest.mark.parametrize("text", ["short é🎉 text", "x", "", LONG, "é" * 32_768, "é" * 32_769])
def test_a_window_is_a_slice_of_the_text(ledger: Ledger, text: str):
    ledger.put({"id": "a", "body": text})
    digest = hashlib.sha256(text.encode()).hexdigest()
    places = {0, 1, 8191, 8192, 8193, 16_383, 100_000, len(text) - 1, len(text), len(text) + 5}
    for offset in sorted(place for place in places if place >= 0):
        for limit in (1, 4096, 16_384):
            found = _window(ledger, offset, limit)
            start = min(offset, len(text))
            assert found == FieldWindow(ledger.ids[0], text[start : start + limit], start, len(text), digest)
            assert found.end_chars == start + len(found.text)


def test_windows_put_side_by_side_give_the_whole_text(ledger: Ledger):
    ledger.put({"id": "a", "body": LONG})
    at, pieces = 0, []
    while at < len(LONG):
        pieces.append(_window(ledger, at, 7001).text)
        at += 7001
    assert "".join(pieces) == LONG


@pytest.mark.parametrize(
    ("text", "q", "start", "end"),
    [
        ("the Bridge plan", "bRIDGE", 4, 10),
        ("eine STRASSE hier", "straße", 5, 12),
        ("eine Straße hier", "STRASSE", 5, 11),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς", 0, 8),
        ("İstanbul", "i̇STANBUL", 0, 8),
        ("ﬃx efficient", "FFIX", 0, 2),
        ("a.b*c", "B*C", 2, 5),
        ("x" * 8190 + "Straße", "SSE", 8194, 8196),
        ("x" * 40_000 + "Straße", "strasse", 40_000, 40_006),
        ("x" * 8189 + "Straße" + "x" * 40_000, "strasse", 8189, 8195),
        ("ß" * 40_000 + "end", "ssend", 39_999, 40_003),
    ],
)
def test_the_first_match_is_found_whatever_its_case_and_wherever_it_lies(
    ledger: Ledger, text: str, q: str, start: int, end: int
):
    ledger.put({"id": "a", "body": text})
    (found,) = _windows(ledger, MatchWindow(q, 2, 10))
    begin = max(0, start - 2)
    assert (found.match_start_chars, found.match_end_chars) == (start, end)
    assert (found.start_chars, found.text, found.total_chars) == (begin, text[begin : begin + 10], len(text))


def test_a_text_that_is_not_there_is_not_found(ledger: Ledger):
    ledger.put({"id": "a", "body": "x" * 50_000, "title": "y"})
    for field in ("body", "title"):
        with pytest.raises(QueryNotFound):
            _windows(ledger, MatchWindow("nothing", 5, 5), field)


def test_what_is_no_text_has_no_windows(ledger: Ledger):
    ledger.put({"id": "a", "size": 3, "extra": ["x"], "file": {"a": 1}, "label": None})
    for field in ("size", "extra", "file"):
        with pytest.raises(FieldNotText):
            _windows(ledger, OffsetWindow(0, 5), field)
    for field in ("label", "title"):
        with pytest.raises(FieldNotFound):
            _windows(ledger, OffsetWindow(0, 5), field)


def test_an_object_has_windows_into_its_json_when_that_is_asked(ledger: Ledger):
    ledger.put({"id": "a", "size": 3, "extra": ["x", {"é": 1}]})
    text = '["x",{"é":1}]'
    for window, part in ((OffsetWindow(1, 4), '"x",'), (MatchWindow("É", 0, 2), "é")):
        plan = WindowPlan(ledger.reach(), RecordId("a"), FieldName("extra"), window, as_json=True)
        (found,) = ledger.store.window(plan)
        assert (found.is_json, found.total_chars) == (True, len(text))
        assert text.index(found.text) == found.start_chars
        assert found.text.startswith(part)
    with pytest.raises(FieldNotText):
        ledger.store.window(
            WindowPlan(ledger.reach(), RecordId("a"), FieldName("size"), OffsetWindow(0, 5), as_json=True)
        )


def test_a_record_outside_the_reach_has_no_windows(ledger: Ledger):
    ledger.put({"id": "a", "body": "x", "at": "2026-01-01T00:00:00Z"})
    assert _windows(ledger, OffsetWindow(0, 5), resources=["b"]) == ()
    assert _windows(ledger, OffsetWindow(0, 5), since="2026-01-02") == ()
    assert _windows(ledger, OffsetWindow(0, 5), connections=[1]) == ()
    ledger.remove("a")
    assert _windows(ledger, OffsetWindow(0, 5)) == ()


def test_every_connection_that_has_the_record_gives_a_window(ledger: Ledger):
    ledger.put({"id": "a", "body": "one"})
    ledger.put({"id": "a"}, connection=1)
    found = {one.connection_id: one.text for one in _windows(ledger, OffsetWindow(0, 5))}
    assert found == {ledger.ids[0]: "one", ledger.ids[1]: ""}


_LETTERS = st.text(st.sampled_from("aAsSßẞﬃfFiİ\u0131é\u0307"), max_size=12)


@given(_LETTERS, _LETTERS.filter(bool), st.integers(1, 4))
def test_a_match_is_the_same_however_the_text_is_cut(text: str, sought: str, size: int):
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    expected = next(
        (
            (start, end)
            for start in range(len(text) + 1)
            for end in range(start, len(text) + 1)
            if text[start:end].casefold() == sought.casefold()
        ),
        None,
    )
    assert find_folded(pieces, sought) == expected
