"""Hostile rows that concern the store: names, keys, repeated batches, records too large."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import IdempotencyConflict, InvalidDeclaration
from headgate.model.ids import ConnectorKey, FieldName, RecordId
from headgate.model.plan import AggregatePlan, PagePlan, Reach, RecordPlan, SearchPlan, SearchReach, Term
from headgate.model.query import ExactFilter, Metric
from headgate.model.rows import IngestReport
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import reading_store
from tests.hostile.store.scene import (
    batch,
    connect,
    damages,
    filled,
    line,
    new_home,
    read,
    search,
    with_store,
)
from tests.schema.declarations import declaration

NAMES = [
    '");drop table record',
    "a.b",
    "$",
    "x' OR 1=1 --",
    "c0",
    "rid",
    "sp ace",
    "é",
    'q"q',
    "(0)",
    "*",
    "\\",
]


def odd_declaration() -> dict[str, Any]:
    document = declaration()
    stream = document["streams"][0]
    stream["schema"]["properties"] |= {name: {"type": "string"} for name in NAMES}
    stream["query"]["search"]["lexical_fields"] += NAMES
    stream["query"]["aggregations"]["group_by"] += NAMES
    return document


def test_row_67_field_names_are_names_and_nothing_else(tmp_path: Path):
    async def work(store: SqliteStore) -> None:
        key = ConnectorKey("odd")
        for unusable in ('"];drop table record', "[0]", "a,b"):
            document = declaration()
            document["streams"][0]["schema"]["properties"][unusable] = {"type": "string"}
            with pytest.raises(InvalidDeclaration):
                await store.declare(key, document)
        await store.declare(key, odd_declaration())
        mine = (await store.create_connection(key, "")).id
        for n, name in enumerate(NAMES):
            await store.ingest(batch(mine, [line(f"k{n}", **{name: f"value{n}"})]))
        for n, name in enumerate(NAMES):
            field = FieldName(name)
            reach = Reach(batch(mine, []).stream, (mine,), (field,))
            plan = PagePlan(reach, 25, filters=(ExactFilter(field, f"value{n}"),))
            (found,) = (await store.page(plan)).records
            assert json.loads(found.body) == {name: f"value{n}"}
            groups = (await store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=field))).groups
            assert groups is not None
            assert {group.key for group in groups} == {f"value{n}", None}
            hits = (
                await store.search(SearchPlan((SearchReach(reach, (field,)),), (Term((f"value{n}",)),), 5))
            ).hits
            assert [hit.record.id for hit in hits] == [f"k{n}"]

    with_store(new_home(tmp_path), work)


def test_row_68_nul_is_refused_with_its_place_and_the_good_lines_stay(tmp_path: Path):
    async def work(store: SqliteStore) -> IngestReport:
        mine = await connect(store)
        bad = b'{"data": {"id": "bad", "headers": {"a": ["x", "\\u0000"]}}}'
        report = await store.ingest(batch(mine, [line("good"), bad, line("better")]))
        assert len(await read(store, mine, "good")) == len(await read(store, mine, "better")) == 1
        return report

    report = with_store(new_home(tmp_path), work)
    assert report.accepted == 2
    assert [(error.index, error.pointer) for error in report.errors] == [(1, "/data/headers/a/1")]


KEYS = [
    "../../etc/passwd",
    "..",
    "/",
    "a/b",
    "a\nb",
    "%00",
    "' OR 1=1 --",
    "é",
    "e\u0301",
    "A",
    "a",
    " a",
    "a ",
    "0",
]


def test_row_69_any_key_is_reached_by_itself_alone_and_makes_no_file(tmp_path: Path):
    home, mine = filled(tmp_path, [line(key, subject=f"s{n}") for n, key in enumerate(KEYS)])

    async def work(store: SqliteStore) -> None:
        for n, key in enumerate(KEYS):
            (found,) = await read(store, mine, key)
            assert (found.id, json.loads(found.body)["subject"]) == (key, f"s{n}")

    with_store(home, work)
    reserves = {"reserve", "reserve-revocation"}
    assert {path.name for path in home.path.iterdir()} == {"records.db", "blobs", "keys", *reserves}
    assert list((home.path / "blobs").iterdir()) == []


def test_row_70_of_two_lines_for_one_record_the_last_counts(tmp_path: Path):
    home, mine = filled(tmp_path, [line("one", size=1), line("one", size=2), line("two")])

    async def work(store: SqliteStore) -> None:
        (found,) = await read(store, mine, "one")
        assert json.loads(found.body)["size"] == 2

    with_store(home, work)
    assert damages(home) == []


def test_rows_71_and_72_a_repeated_batch_is_answered_as_before_and_taken_once(tmp_path: Path):
    home, mine = filled(tmp_path, [])
    lines = [line("one"), b"nonsense", line("two")]

    async def once(store: SqliteStore) -> IngestReport:
        # As if the process had died between the commit and the answer: the next one is asked again.
        return await store.ingest(batch(mine, lines, key="the key"))

    async def many_at_once(store: SqliteStore) -> list[IngestReport]:
        return await asyncio.gather(*(once(store) for _ in range(8)))

    async def another_body(store: SqliteStore) -> None:
        with pytest.raises(IdempotencyConflict):
            await store.ingest(batch(mine, [line("three")], key="the key"))

    first = with_store(home, once)
    assert (first.accepted, first.rejected) == (2, 1)
    assert with_store(home, many_at_once) == [first] * 8
    with_store(home, another_body)
    with reading_store(home) as database:
        assert database.value("SELECT count(*) FROM record") == 2
        assert database.value("SELECT v FROM meta WHERE k='seq'") == 2


def test_row_83_a_record_too_large_is_refused_and_its_neighbours_stay(tmp_path: Path):
    home, mine = filled(tmp_path, [])

    async def work(store: SqliteStore) -> IngestReport:
        huge = line("huge", body="x" * (33 * 1024 * 1024))
        report = await store.ingest(batch(mine, [line("before"), huge, line("after", body="needle")]))
        assert await search(store, mine, "needle") == 1
        return report

    report = with_store(home, work)
    assert report.accepted == 2
    assert [(error.index, error.code) for error in report.errors] == [(1, "resource_limit")]
    assert damages(home) == []


def test_the_largest_record_is_kept_and_given_back_whole(tmp_path: Path):
    text = "largest " * (2 * 1024 * 1024)
    home, mine = filled(tmp_path, [line("large", body=text)])

    async def work(store: SqliteStore) -> None:
        reach = Reach(batch(mine, []).stream, (mine,), (FieldName("body"),))
        (found,) = await store.record(RecordPlan(reach, RecordId("large")))
        assert json.loads(found.body)["body"] == text

    with_store(home, work)
    assert damages(home) == []
