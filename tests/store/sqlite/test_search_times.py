"""The time of a search tells nothing of hidden text: pairs of queries that differ only in what hidden text holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach
from headgate.model.terms import parse_terms
from tests.store.engines import fresh
from tests.store.ledger import Ledger
from tests.store.sqlite.read_work import CountingReader

TITLE = FieldName("title")
TURNS = 600
MOST = 0.55
_BATCH = 10_000
#: The first of each pair is in hidden text, the second nowhere; visible text holds the beginning of neither.
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


def _hidden(count: int, **more: Any) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, count, _BATCH):
        yield [
            {"id": f"h{n}", "title": f"lettuce lettuces lett{n} lettuce soup", **more}
            for n in range(start, min(count, start + _BATCH))
        ]


def area_under_curve(left: list[float], right: list[float]) -> float:
    """Say how well one time tells which of two queries took it: 0.5 not at all, 1 always."""
    every = np.array(left + right)
    ranks = np.empty(len(every))
    ranks[every.argsort(kind="stable")] = np.arange(1, len(every) + 1)
    _, same = np.unique(every, return_inverse=True)
    ranks = (np.bincount(same, ranks) / np.bincount(same))[same]
    area = (ranks[: len(left)].sum() - len(left) * (len(left) + 1) / 2) / (len(left) * len(right))
    return max(area, 1 - area)


def test_the_measure_tells_apart_what_differs_and_nothing_else():
    assert area_under_curve([1, 2, 3], [4, 5, 6]) == area_under_curve([4, 5, 6], [1, 2, 3]) == 1
    assert area_under_curve([1, 1, 1], [1, 1, 1]) == 0.5


def _areas(reader: CountingReader, reach: Any) -> dict[str, float]:
    areas: dict[str, float] = {}
    for pair in PAIRS:
        plans = [SearchPlan((SearchReach(reach, (TITLE,)),), parse_terms(q), 25) for q in pair]
        spent: list[list[float]] = [[], []]
        for turn in range(2 * TURNS):
            start = time.perf_counter_ns()
            reader.plain_search(plans[turn % 2])
            spent[turn % 2].append(time.perf_counter_ns() - start)
        areas[pair[0]] = area_under_curve(*spent)
    return areas


@pytest.mark.soak
@pytest.mark.parametrize("count", [100_000, 1_000_000])
@pytest.mark.parametrize("way", ["another connection", "another field", "another time"])
def test_times_do_not_tell_what_hidden_text_holds(
    way: str, count: int, record_property: pytest.RecordProperty
):
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=2)
        ledger.put(*_visible("lettuce lettuces lettuce soup" if way == "another field" else "plain"))
        more = {"at": "2026-02-01T00:00:00Z"} if way == "another time" else {}
        for batch in _hidden(count, **more):
            ledger.put(*batch, connection=0 if way == "another time" else 1)
        reader = CountingReader(store.directory)
        since = "2026-03-01" if way == "another time" else None
        areas = _areas(reader, ledger.reach(connections=[0], since=since))
        reader.close()
    figures = ", ".join(f"{q} {area:.3f}" for q, area in areas.items())
    record_property("figure", f"search times, {way}, {count} hidden records: {figures}")
    assert max(areas.values()) <= MOST, figures
