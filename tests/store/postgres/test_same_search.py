"""A query gives the same records in the same order from both engines, page by page."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest
from msgspec.structs import replace

from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchSort
from headgate.store.changes.word_index import WordMerging
from headgate.store.sql.database import Database
from tests import postgres
from tests.store.declared import MARKS, NOTES, PAGES
from tests.store.engines import fresh
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")

_WORDS = [
    "invoice",
    "invoices",
    "bridge",
    "bridges",
    "plan",
    "planned",
    "canal",
    "kanal",
    "Straße",
    "strasse",
    "café",
    "cafe",
    "naïve",
    "Rechnung",
    "Rechnungen",
    "счет",
    "счета",
    "東京都",
    "東京",
    "日本語",
    "don't",
    "x1",
    "2026",
    "over",
    "under",
    "gate",
    "gates",
    "gated",
    "headgate",
    "the",
    "and",
    "of",
    "a",
    "river",
    "rivers",
]
_QUERIES = (
    "invoice", "invoices bridge", "plan canal gate", "inv*", "ri* ga*", '"canal bridge"', '"the river"', "brigde",
    "invoce canal", "headgat", "cafe", "strasse", "Rechnung", "счет", "東京", "日本", "invoice -canal",
    "gate OR river", '"東京都" plan', "nothing", "2026 x1",
)  # fmt: skip
_FIELDS = {NOTES: ("title", "body"), MARKS: ("text", "hidden"), PAGES: ("text",)}
_DAYS = [f"2026-{month:02}-{day:02}T10:00:00Z" for month in (1, 5) for day in (1, 2, 2, 9)]


def _text(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randint(0, most)))


def _fill(ledger: Ledger, seed: int) -> None:
    """Put records in, change and remove some: in many batches, so that there are many segments."""
    chance = random.Random(seed)
    for _ in range(12):
        notes = [
            {
                "id": f"n{chance.randint(0, 80)}",
                "title": _text(chance, 4),
                "body": _text(chance, 30),
                "at": chance.choice(_DAYS),
            }
            for _ in range(chance.randint(1, 14))
        ]
        ledger.put(*notes, connection=chance.randint(0, 1))
        marks = [{"note": f"n{n}", "n": chance.randint(0, 3), "text": _text(chance, 6)} for n in range(5)]
        ledger.put(*marks, stream=MARKS, connection=chance.randint(0, 1))
        ledger.put({"id": chance.randint(1, 9), "text": _text(chance, 50)}, stream=PAGES)
        ledger.remove(f"n{chance.randint(0, 80)}")


@pytest.fixture
def both() -> Generator[tuple[Ledger, Ledger]]:
    with fresh("sqlite") as one, fresh("postgres") as other:
        yield Ledger(one, connections=2), Ledger(other, connections=2)


def _found(ledger: Ledger, q: str, sort: SearchSort, limit: int) -> list[Any]:
    reaches = tuple(
        SearchReach(ledger.reach(stream), tuple(map(FieldName, fields))) for stream, fields in _FIELDS.items()
    )
    plan = SearchPlan(reaches, parse_terms(q), limit, sort=sort)
    found: list[Any] = []
    for _ in range(100):
        page = ledger.store.search(plan)
        found.append((page.count, page.partial_count, page.understood))
        for hit in page.hits:
            where = ledger.ids.index(hit.record.connection_id), hit.record.stream, hit.record.id
            found.append((*where, hit.matched_fields, hit.missing, hit.snippets))
        if page.next is None:
            return found
        plan = replace(plan, after=page.next)
    raise AssertionError("the pages never end")


def _merge_all(database: Database) -> None:
    while WordMerging().step(database):
        pass


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_query_gives_the_same_records_in_the_same_order(both: tuple[Ledger, Ledger], seed: int):
    for ledger in both:
        _fill(ledger, seed)
        # Which forms of words are found depends on the languages of segments, and so on which of them are one already.
        ledger.store.run(ledger.store.bare._writer.run(_merge_all, in_transaction=False))
    hits = 0
    for q in _QUERIES:
        for sort in SearchSort:
            one, other = (_found(ledger, q, sort, 7) for ledger in both)
            assert (q, sort, one) == (q, sort, other)
            hits += len(one)
    assert hits > 500
