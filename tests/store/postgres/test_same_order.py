"""Pages come in the same order from both engines, where an index holds only the beginning of a key or a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from headgate.model.ids import StreamName
from headgate.model.plan import PagePlan
from headgate.model.query import Order
from tests import postgres
from tests.store.declared import LOOSE, PAGES
from tests.store.engines import ENGINES, fresh
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")

_LONG = "x" * 256
_KEYS = [
    "a",
    "Z",
    "ж",
    "日本",
    "😀",
    "\ufffd",
    _LONG,
    f"{_LONG}b",
    f"{_LONG}a",
    f"{_LONG}é",
    "ж" * 256 + "д",
    "ж" * 256 + "ё",
]
_SLUG = "y" * 511
_SLUGS = [
    None,
    "",
    "a",
    "Д",
    "д",
    "日",
    "😀",
    "\ufffd",
    _SLUG,
    f"{_SLUG}b",
    f"{_SLUG}a",
    "日" * 200 + "b",
    "日" * 200 + "a",
    _SLUG,
]


def _walk(ledger: Ledger, stream: StreamName, order: Order, limit: int) -> list[str]:
    plan = PagePlan(ledger.reach(stream), limit, order)
    found: list[str] = []
    for _ in range(100):
        page = ledger.store.page(plan)
        found += [record.id for record in page.records]
        if page.next is None:
            return found
        plan = replace(plan, after=page.next)
    raise AssertionError("the pages never end")


def _keys(ledger: Ledger) -> StreamName:
    ledger.put(*({"id": key} for key in _KEYS), stream=LOOSE)
    ledger.put(*({"id": key} for key in _KEYS[::2]), stream=LOOSE, connection=1)
    return LOOSE


def _texts(ledger: Ledger) -> StreamName:
    ledger.put(*({"id": n, "slug": slug} for n, slug in enumerate(_SLUGS)), stream=PAGES)
    ledger.put(*({"id": n, "slug": slug} for n, slug in enumerate(_SLUGS[::3])), stream=PAGES, connection=1)
    return PAGES


@pytest.mark.parametrize("fill", [_keys, _texts])
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_pages_have_the_same_order(fill: Callable[[Ledger], Any], order: Order, limit: int):
    answers: list[list[str]] = []
    for engine in ENGINES:
        with fresh(engine) as store:
            ledger = Ledger(store, connections=2)
            answers.append(_walk(ledger, fill(ledger), order, limit))
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert len(answers[0]) > 15
