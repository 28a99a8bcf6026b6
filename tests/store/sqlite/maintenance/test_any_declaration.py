"""Every declaration that is accepted survives all that is done with a home, whatever its fields are called."""

from __future__ import annotations

import csv
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from headgate.errors import InvalidDeclaration
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId, FieldName, RecordId
from headgate.model.plan import PagePlan, Reach
from headgate.model.rows import Batch
from headgate.sources.exporting import ExportFormat, export_connection
from headgate.store.engines.commands import commands_of
from headgate.store.engines.sqlite import SqliteStore
from tests.hostile.store.scene import MAIL, MESSAGES, NOW, damages, filled, line, with_store

_CHARACTERS = st.sampled_from(
    list("\"\\'`$.[]/~{}%? \t\n\r\x01\x7f\x85\u2028\ufeffé名🜁a0_-")
) | st.characters(codec="utf-8")
_NAMES = st.lists(st.text(_CHARACTERS, max_size=6), min_size=1, max_size=5, unique=True)
_TYPES: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, "a text"),
    ({"type": "string"}, "long " * 8000),
    ({"type": "integer"}, 7),
    ({"type": "number"}, 1.5),
    ({"type": "number"}, 1e300),
    ({"type": "boolean"}, True),
    ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z"),
    ({"type": "object"}, {"inner": [1]}),
]


def _declaration(fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    texts = [name for name, schema in fields.items() if schema == {"type": "string"}]
    stream = {
        "name": MESSAGES,
        "semantics": "mutable_state",
        "schema": {"type": "object", "properties": {"id": {"type": "string"}, **fields}},
        "primary_key": ["id"],
        "selection": {"fields": True, "resources": True},
        "query": {"search": {"lexical_fields": texts}, "aggregations": {"group_by": texts}},
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://any.example/connector"},
        "declaration_version": "1",
        "publisher": {"id": "https://any.example"},
        "display": {"name": "Any"},
        "streams": [stream],
    }


def _quiet(_done: int, _total: int) -> None:
    """Show no progress."""


def _fill(home: Home, document: dict[str, Any], values: dict[str, Any]) -> ConnectionId | None:
    """Declare and ingest two records; None for a declaration that is refused."""

    async def work(store: SqliteStore) -> ConnectionId | None:
        try:
            await store.declare(MAIL, document)
        except InvalidDeclaration:
            return None
        connection = await store.create_connection(MAIL, "")
        lines = [json.dumps({"data": {**values, "id": key}}).encode() for key in ("a", "b")]
        report = await store.ingest(Batch(connection.id, MESSAGES, lines, NOW))
        assert (report.accepted, report.errors) == (2, ())
        return connection.id

    return with_store(home, work)


def _bodies(home: Home, connection_id: ConnectionId, fields: tuple[FieldName, ...]) -> dict[str, Any]:
    async def work(store: SqliteStore) -> dict[str, Any]:
        page = await store.page(PagePlan(Reach(MESSAGES, (connection_id,), fields), 10))
        return {record.id: json.loads(record.body) for record in page.records}

    return with_store(home, work)


def _export(home: Home, place: Path, fields: set[str]) -> None:
    """Write the records in every form that takes any record; each form holds every field."""

    async def work(store: SqliteStore) -> None:
        (connection,) = await store.connections()
        for how in (ExportFormat.JSONL, ExportFormat.CSV, ExportFormat.SQLITE):
            report = await export_connection(store, connection, place / how, how, now=0)
            assert report.records == {MESSAGES: 2}

    with_store(home, work)
    for written in (place / "jsonl" / f"{MESSAGES}.jsonl").read_bytes().splitlines():
        assert json.loads(written).keys() <= fields
    with (place / "csv" / f"{MESSAGES}.csv").open(encoding="utf-8", newline="") as file:
        assert [len(row) for row in csv.reader(file)] == [len(fields)] * 3
    with closing(sqlite3.connect(place / "sqlite" / "records.db")) as database:
        rows = database.execute(f"SELECT * FROM {MESSAGES}").fetchall()
    assert [len(row) for row in rows] == [len(fields)] * 2


@given(_NAMES, st.data())
@example(['we"ird\\u0041', "\\", '"', "a\nb", ""], None)
@example(["Name", "name", "name_2", "NAME", "rowid"], None)
@settings(max_examples=25, deadline=None)
def test_every_declaration_that_is_accepted_survives_backup_restore_check_erasure_and_export(
    names: list[str], data: st.DataObject | None
):
    chosen = [
        _TYPES[n % len(_TYPES)] if data is None else data.draw(st.sampled_from(_TYPES))
        for n in range(len(names))
    ]
    fields = {name: schema for name, (schema, _) in zip(names, chosen, strict=True) if name != "id"}
    values = {name: value for name, (_, value) in zip(names, chosen, strict=True) if name != "id"}
    with tempfile.TemporaryDirectory() as place:
        home, other = open_home(Path(place) / "home"), open_home(Path(place) / "other")
        connection_id = _fill(home, _declaration(fields), values)
        if connection_id is None:
            return
        assert damages(home) == []
        commands_of(home).back_up(Path(place) / "copy", _quiet)
        assert commands_of(other).restore(Path(place) / "copy", _quiet, end_at=None).record_count == 2
        assert damages(other) == []
        _export(home, Path(place), {*fields, "id"})
        everything = tuple(map(FieldName, ("id", *fields)))
        expected = {key: {**values, "id": key} for key in ("a", "b")}
        assert (
            _bodies(home, connection_id, everything) == _bodies(other, connection_id, everything) == expected
        )
        commands_of(other).erase_record(connection_id, stream=MESSAGES, record_id=RecordId("a"))
        assert damages(other) == []
        assert _bodies(other, connection_id, everything) == {"b": expected["b"]}


def test_the_marks_of_an_invalid_record_are_erased_with_it(tmp_path: Path):
    home, connection_id = filled(tmp_path, [line("a", size="big"), line("b", size="huge")])
    commands_of(home).erase_record(connection_id, stream=MESSAGES, record_id=RecordId("a"))

    async def marked(store: SqliteStore) -> list[str]:
        return [one.id for one in (await store.marked(connection_id, MESSAGES, after=0, limit=10)).records]

    assert with_store(home, marked) == ["b"]


@pytest.mark.parametrize("versions", [[range(1_200)], [range(600), range(600, 1_200)]])
def test_a_stream_has_no_more_fields_than_a_record_even_over_all_its_versions(
    tmp_path: Path, versions: list[range]
):
    *accepted, refused = [
        {**_declaration({f"f{n}": {"type": "integer"} for n in numbers}), "declaration_version": str(at)}
        for at, numbers in enumerate(versions)
    ]

    async def work(store: SqliteStore) -> None:
        for document in accepted:
            await store.declare(MAIL, document)
        with pytest.raises(InvalidDeclaration):
            await store.declare(MAIL, refused)
        assert len(await store.declarations()) == len(accepted)

    with_store(open_home(tmp_path / "home"), work)
