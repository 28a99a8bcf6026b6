"""The time of a search tells nothing of hidden text: the same queries where hidden text holds their words and not.

Two stores are alike but for the words of their hidden text, and each query of a pair matches in one of them: what
a query or a store costs by itself does not count, and what hidden matches cost does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from tests.store.engines import fresh
from tests.store.ledger import Ledger
from tests.store.sqlite.read_work import CountingReader

TITLE = FieldName("title")
TURNS = 600
MOST = 0.55
_BATCH = 10_000
#: The first of each pair is in the hidden text of one store, the second in that of the other; visible text holds the
#: beginning of neither.
PAIRS = (
    ("lettuce", "luttace"),
    ("lett*", "lutt*"),
    ('"lettuce soup"', '"luttace soup"'),
    ("lettuces", "luttaces"),
    ("lettcue", "luttcae"),
)


def _visible(body: str) -> list[dict[str, Any]]:
    return [
        {"id": f"v{n}", "title": f"common soup note {n}", "body": body, "at": "2026-03-05T00:00:00Z"}
        for n in range(300)
    ]


def _hidden(count: int, word: str, **more: Any) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, count, _BATCH):
        yield [
            {"id": f"h{n}", "title": f"{word} {word}s {word[:4]}{n} {word} soup", **more}
            for n in range(start, min(count, start + _BATCH))
        ]


def area_under_curve(left: list[float], right: list[float]) -> float:
    """Say how often a time of the left is the longer one: 0.5 if both are alike."""
    every = np.array(left + right)
    ranks = np.empty(len(every))
    ranks[every.argsort(kind="stable")] = np.arange(1, len(every) + 1)
    _, same = np.unique(every, return_inverse=True)
    ranks = (np.bincount(same, ranks) / np.bincount(same))[same]
    return (ranks[: len(left)].sum() - len(left) * (len(left) + 1) / 2) / (len(left) * len(right))


def test_the_measure_tells_apart_what_differs_and_nothing_else():
    assert (area_under_curve([1, 2, 3], [4, 5, 6]), area_under_curve([4, 5, 6], [1, 2, 3])) == (0, 1)
    assert area_under_curve([1, 1, 1], [1, 1, 1]) == 0.5


def _opened(stack: ExitStack, way: str, count: int, word: str) -> tuple[CountingReader, Any]:
    """Open a store whose hidden text holds a word, and give the part of it that may be seen."""
    store = stack.enter_context(fresh("sqlite"))
    ledger = Ledger(store, connections=2)
    ledger.put(*_visible(f"{word} {word}s {word} soup" if way == "another field" else "plain"))
    more = {"at": "2026-02-01T00:00:00Z"} if way == "another time" else {}
    for batch in _hidden(count, word, **more):
        ledger.put(*batch, connection=0 if way == "another time" else 1)
    reader = CountingReader(store.directory)
    stack.callback(reader.close)
    return reader, ledger.reach(connections=[0], since="2026-03-01" if way == "another time" else None)


def _times(stores: list[tuple[CountingReader, Any]], pair: tuple[str, str]) -> list[list[list[float]]]:
    """Give the times of both queries in both stores, all of them in turns."""
    plans = [
        [SearchPlan((SearchReach(reach, (TITLE,)),), parse_terms(q), 25) for q in pair] for _, reach in stores
    ]
    spent: list[list[list[float]]] = [[[], []], [[], []]]
    for turn in range(4 * TURNS):
        at, asked = turn // 2 % 2, turn % 2
        start = time.perf_counter_ns()
        stores[at][0].plain_search(plans[at][asked])
        spent[at][asked].append(time.perf_counter_ns() - start)
    return spent


def _area(stores: list[tuple[CountingReader, Any]], pair: tuple[str, str]) -> float:
    """Say how well a time tells whether hidden text matched: 0.5 not at all, 1 always."""
    spent = _times(stores, pair)
    first = area_under_curve(spent[0][0], spent[1][0])
    second = area_under_curve(spent[1][1], spent[0][1])
    area = (first + second) / 2
    return max(area, 1 - area)


@pytest.mark.soak
@pytest.mark.parametrize("count", [100_000, 1_000_000])
@pytest.mark.parametrize("way", ["another connection", "another field", "another time"])
def test_times_do_not_tell_what_hidden_text_holds(
    way: str, count: int, record_property: pytest.RecordProperty
):
    with ExitStack() as stack:
        stores = [_opened(stack, way, count, word) for word in ("lettuce", "luttace")]
        areas = {pair[0]: _area(stores, pair) for pair in PAIRS}
    figures = ", ".join(f"{q} {area:.3f}" for q, area in areas.items())
    record_property("figure", f"search times, {way}, {count} hidden records: {figures}")
    assert max(areas.values()) <= MOST, figures
