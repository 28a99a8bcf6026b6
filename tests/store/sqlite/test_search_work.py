"""The work of a search depends on visible text alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from tests.store.engines import fresh
from tests.store.ledger import Ledger
from tests.store.sqlite.read_work import CountingReader, Work

TITLE = FieldName("title")
VISIBLE = tuple(
    {
        "id": f"v{n:03}",
        "title": f"visible letter {n} about soup",
        "body": "plain",
        "at": f"2026-03-{n % 28 + 1:02}T00:00:00Z",
    }
    for n in range(120)
)
#: Words, beginnings, phrases, forms, typing errors, several words, and words left out.
QUERIES = (
    "lettuce",
    "lett*",
    '"lettuce soup"',
    "lettuces",
    "lettcue",
    "lettuce soup letter",
    "soup -lettuce",
    "lettuce OR letter",
    "visible letters",
    "1.234,50",
)


def hidden(word: str, *, count: int, field: str = "title", **more: Any) -> list[dict[str, Any]]:
    """Give records with a word; another word of the same length makes a store of the same size."""
    return [
        {"id": f"h{n:05}", field: f"{word} {word}s{n:05} soup 1.234,50".replace("1.234", word[:1]), **more}
        for n in range(count)
    ]


@contextmanager
def reader(way: str, word: str) -> Iterator[tuple[CountingReader, Any]]:
    """Open a store whose hidden text holds a word, and give the part of it that may be seen."""
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=2)
        narrowed: dict[str, Any] = {"connections": [0]}
        if way == "another connection":
            ledger.put(*VISIBLE)
            ledger.put(*hidden(word, count=400), connection=1)
        elif way == "another field":
            ledger.put(*({**one, "body": f"{word} {word}s{n:05}"} for n, one in enumerate(VISIBLE)))
        elif way == "another time":
            ledger.put(*VISIBLE, *hidden(word, count=400, at="2026-02-01T00:00:00Z"))
            narrowed["since"] = "2026-03-01"
        else:
            ledger.put(*VISIBLE, *hidden(word, count=400))
            narrowed["resources"] = [one["id"] for one in VISIBLE[::2]]
        opened = CountingReader(store.directory)
        try:
            yield opened, ledger.reach(**narrowed)
        finally:
            opened.close()


def works(way: str, word: str) -> dict[str, tuple[Any, Work]]:
    """Give answer and work of every query."""
    with reader(way, word) as (opened, reach):
        found: dict[str, tuple[Any, Work]] = {}
        for q in QUERIES:
            page, work = opened.search(SearchPlan((SearchReach(reach, (TITLE,)),), parse_terms(q), 10))
            hits = [(hit.record.id, hit.missing, hit.snippets) for hit in page.hits]
            found[q] = ((hits, page.count, page.partial_count, page.understood), work)
        return found


@pytest.mark.parametrize("way", ["another connection", "another field", "another time", "another record"])
def test_hidden_text_changes_neither_the_answer_nor_the_work_of_a_search(way: str):
    with_matches, without = works(way, "lettuce"), works(way, "zettuce")
    for q in QUERIES:
        assert with_matches[q][0] == without[q][0]
        assert with_matches[q][1] == without[q][1], q
    # Otherwise the test would prove nothing.
    assert with_matches["visible letters"][0][1] > 0


def test_visible_text_does_change_the_work(monkeypatch: pytest.MonkeyPatch):
    """The counts would show a difference."""
    shown = [{**one, "title": f"{one['title']} lettuce{n}"} for n, one in enumerate(VISIBLE)]
    before = works("another connection", "lettuce")
    monkeypatch.setitem(globals(), "VISIBLE", tuple(shown))
    after = works("another connection", "lettuce")
    assert before["lett*"][1] != after["lett*"][1]
