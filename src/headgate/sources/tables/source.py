"""Tables as a source: each file is a connection, and each of its tables a stream."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, Any, cast

from headgate.errors import InvalidRequest
from headgate.sources.declaring import TEXT, StreamSpec, declaration
from headgate.sources.file_source import CountedContent, read_each
from headgate.sources.formats.values import MADE_KEY, RowKeys, digest_of
from headgate.sources.inputs.tree import InputFile, InputTree, bare_label
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row, Source
from headgate.sources.tables.binary_tables import binary_tables
from headgate.sources.tables.columns import (
    SCHEMAS,
    ColumnFacts,
    RawTable,
    TableColumn,
    column_of,
    hash_of,
    repeated,
)
from headgate.sources.tables.sheets import is_workbook
from headgate.sources.tables.text_kinds import FORM
from headgate.sources.tables.text_tables import json_form, json_tables, text_table
from headgate.sources.unknown import is_about_picture

#: Some banks call a table of text ``.xls``.
_TEXT_SUFFIXES = frozenset({".csv", ".tsv", ".tab", ".xls"})
_JSON_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
_BINARY_HEADS = (b"SQLite format 3\x00", b"PAR1")
_BIRTH = re.compile(r"birth|geburt|naissance|nacimiento|nascita", re.IGNORECASE)
_TIME_WORDS = ("created", "date", "time", "timestamp", "at", "when", "day")
_TITLE_WORDS = ("title", "name", "subject", "label", "headline", "full_name")
_MEMBERS = frozenset({"key", "time", "title", "search", "groups", "types"})
_MOST_PRESENT = 0.9


@dataclass(frozen=True)
class UnderstoodTable:
    """A table with the types of its columns, and what they are used for."""

    stream: str
    raw: RawTable
    columns: Sequence[TableColumn]
    key: Sequence[str]
    time: str | None
    title: str | None
    words: Sequence[str]
    groups: Sequence[str]
    row_count: int
    #: Hashes of rows that occur more than once, if rows have no key.
    repeated: frozenset[int]
    #: Whether older connections have other columns or types of it.
    is_new: bool

    @cached_property
    def row_key(self) -> str | None:
        """The field for the key of rows that have none; None if a column is the key."""
        if self.key:
            return None
        name = MADE_KEY
        while any(column.name == name for column in self.columns):
            name += "_"
        return name

    def spec(self) -> StreamSpec:
        fields = {column.name: SCHEMAS[column.kind] for column in self.columns}
        made_key = {self.row_key: TEXT} if self.row_key else {}
        label = self.raw.name.replace("_", " ").strip().capitalize() or "Rows"
        return StreamSpec(
            name=self.stream,
            label=label,
            detail=f"A row of the table {self.raw.name}.",
            fields={**made_key, **fields},
            key=self.key or tuple(made_key),
            time=self.time,
            title=self.title,
            words=self.words,
            groups=self.groups,
        )


def understand(raw: RawTable, stream: str, form: int) -> UnderstoodTable:
    facts = [ColumnFacts(name, raw.kinds) for name in raw.columns]
    hashes, count = array("Q"), 0
    with raw.rows() as rows:
        for row in rows:
            if isinstance(row, Reject):
                continue
            count += 1
            hashes.append(hash_of(row[1]))
            for column_facts, value in zip(facts, row[1], strict=True):
                column_facts.add(value)
    columns = [column_of(fact, form) for fact in facts]
    key = list(raw.key) or [fact.name for fact in facts if fact.is_unique(count)][:1]
    texts = [column.name for column in columns if column.kind == "text"]
    return UnderstoodTable(
        stream,
        raw,
        columns,
        key,
        _time_of(facts, count, form),
        next((text for word in _TITLE_WORDS for text in texts if text.lower() == word), None),
        [
            fact.name
            for fact in facts
            if fact.kind_in(form) == "text" and fact.present and fact.hashes is None
        ],
        [fact.name for fact in facts if fact.is_grouping(count, form)],
        count,
        frozenset() if key else repeated(hashes),
        form == FORM
        and (
            raw.is_new
            or bare_label(raw.name) != raw.name
            or _time_of(facts, count, FORM) != _time_of(facts, count, FORM - 1)
            or any(fact.kind_in(FORM) != fact.kind_in(FORM - 1) for fact in facts)
        ),
    )


def _time_of(facts: Sequence[ColumnFacts], count: int, form: int) -> str | None:
    """Choose the column that orders rows: one that nearly all rows have, by its name and then by its place."""
    times = [
        fact.name
        for fact in facts
        if fact.kind_in(form) in {"date", "date-time"} and fact.present >= max(count * _MOST_PRESENT, 1)
    ]

    def rank(name: str) -> int:
        words = re.split(r"[^a-z]+", name.lower())
        # A birthday says nothing of when the row was written.
        is_late = form == FORM and _BIRTH.search(name) is not None
        return next((at for at, word in enumerate(_TIME_WORDS) if word in words), len(_TIME_WORDS) + is_late)

    return min(times, key=rank, default=None)


class FileTables:
    """The tables of one file, looked at when they are needed."""

    def __init__(
        self, file: InputFile, corrections: Mapping[str, Any] | None = None, form: int = FORM
    ) -> None:
        self.file = file
        self._corrections = corrections or {}
        self._form = form

    @cached_property
    def older(self) -> FileTables:
        """The same as connections have them that were made before the last form."""
        is_new = self._form == FORM and any(table.is_new for table in self.understood)
        return FileTables(self.file, self._corrections, FORM - 1) if is_new else self

    @cached_property
    def understood(self) -> Sequence[UnderstoodTable]:
        names: set[str] = set()
        tables = [
            understand(
                raw, _stream_name(bare_label(raw.name) if self._form == FORM else raw.name, names), self._form
            )
            for raw in tables_of(self.file, self._form)
        ]
        if not tables:
            raise InvalidRequest(f"{self.file.name} holds no table.")
        unknown = self._corrections.keys() - names
        if unknown:
            raise _wrong(f"there is no stream '{min(unknown)}'; streams are {', '.join(sorted(names))}")
        return [
            correct(table, self._corrections[table.stream]) if table.stream in self._corrections else table
            for table in tables
        ]

    def corrected(self, corrections: Mapping[str, Any]) -> FileTables:
        return FileTables(self.file, corrections)


def tables_of(file: InputFile, form: int = FORM) -> Sequence[RawTable]:
    if file.suffix in _TEXT_SUFFIXES and not is_workbook(file):
        table = text_table(file, form)
        return [] if table is None else [table]
    return json_tables(file) if file.suffix in _JSON_SUFFIXES else binary_tables(file, form)


def correct(table: UnderstoodTable, chosen: Any) -> UnderstoodTable:
    """Apply a person's corrections to a table."""
    corrections: dict[str, Any] = cast("dict[str, Any]", chosen) if isinstance(chosen, dict) else {"": None}
    if corrections.keys() - _MEMBERS:
        raise _wrong(f"a stream may have {', '.join(sorted(_MEMBERS))}")
    names = [column.name for column in table.columns]
    types: dict[str, str] = corrections.get("types", {})
    for name, kind in types.items():
        if name not in names or kind not in SCHEMAS:
            raise _wrong(f"'{name}' must be a column, and its type one of {', '.join(SCHEMAS)}")
    for member in ("key", "search", "groups", "time", "title"):
        value: Any = corrections.get(member) or []
        for name in [value] if isinstance(value, str) else value:
            if name not in names:
                raise _wrong(f"'{name}' is no column of '{table.stream}'; columns are {', '.join(names)}")
    return replace(
        table,
        columns=[
            TableColumn(known.name, types[known.name]) if known.name in types else known
            for known in table.columns
        ],
        key=corrections.get("key", table.key),
        time=corrections.get("time", table.time) or None,
        title=corrections.get("title", table.title) or None,
        words=corrections.get("search", table.words),
        groups=corrections.get("groups", table.groups),
    )


def _wrong(problem: str) -> InvalidRequest:
    return InvalidRequest(f"The corrections do not fit: {problem}.", hint="See the preview with --dry-run.")


def _stream_name(name: str, taken: set[str]) -> str:
    base = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:60] or "rows"
    unique, count = base, 1
    while unique in taken:
        count += 1
        unique = f"{base}_{count}"
    taken.add(unique)
    return unique


class TablesSource(Source):
    """CSV, TSV, JSON, JSON lines, Parquet, Excel, OpenDocument and SQLite files."""

    name = "tables"
    title = "Tables"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        recognised: list[Recognised] = []
        for file in tree.files:
            if _looks_like_table(file):
                is_alone = len(tree.files) == 1
                older = file.stem if is_alone else f"{tree.label}: {file.stem}"
                name = bare_label(file.stem)
                recognised.append(
                    Recognised(
                        self.name,
                        name if is_alone else f"{bare_label(tree.label)}: {name}",
                        [file],
                        Certainty.GENERIC,
                        {"tables": FileTables(file)},
                        older_titles=(older,),
                        form=FORM,
                    )
                )
        return recognised

    def prepared(self, recognised: Recognised) -> Recognised:
        stem = recognised.files[0].stem
        tables: FileTables = recognised.facts["tables"]
        variant = f"{_slug(bare_label(stem))}-{_digest(tables)}"
        with suppress(InvalidRequest):
            older = f"{_slug(stem)}-{_digest(tables.older)}"
            return replace(recognised, variant=variant, older_variant=older if older != variant else "")
        return replace(recognised, variant=variant)

    def corrected(self, recognised: Recognised, corrections: Mapping[str, Any]) -> Recognised:
        return replace(recognised, facts={"tables": recognised.facts["tables"].corrected(corrections)})

    def declare(self, recognised: Recognised) -> Mapping[str, Any]:
        source = "-".join(part for part in (self.name, recognised.variant) if part)
        return declaration(source, recognised.title, [table.spec() for table in _tables(recognised)])

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, lambda file, content: _read(file, content, _tables(recognised)))


def _tables(recognised: Recognised) -> Sequence[UnderstoodTable]:
    tables: FileTables = recognised.facts["tables"]
    return (tables if recognised.form >= FORM else tables.older).understood


def _slug(stem: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40] or "table"


def _digest(tables: FileTables) -> str:
    specs = [table.spec() for table in tables.understood]
    described = [[s.name, sorted((n, v) for n, v in s.fields.items()), s.key, s.time] for s in specs]
    return digest_of(described)[:6]


def _looks_like_table(file: InputFile) -> bool:
    if file.suffix in _TEXT_SUFFIXES and not is_workbook(file):
        return text_table(file) is not None
    if file.suffix in _JSON_SUFFIXES:
        return not is_about_picture(file) and json_form(file) is not None
    return file.head.startswith(_BINARY_HEADS) or is_workbook(file)


def _read(file: InputFile, content: IO[bytes], tables: Sequence[UnderstoodTable]) -> Iterator[Row | Reject]:
    """Read through the tables, which open the file themselves; of the content only the progress is noted."""
    progress = cast("CountedContent", content)
    total = max(sum(table.row_count for table in tables), 1)
    number = 0
    for table in tables:
        row_of = _row_maker(file, table)
        with table.raw.rows() as rows:
            for raw in rows:
                number += 1
                progress.done_bytes = min(file.size_bytes * number // total, file.size_bytes)
                if isinstance(raw, Reject):
                    yield Reject(f"{file.name} {raw.place}", raw.reason)
                else:
                    yield row_of(raw[0], raw[1])


def _row_maker(file: InputFile, table: UnderstoodTable) -> Callable[[str, Sequence[Any]], Row | Reject]:
    """Make the function for a table's rows; identical ones are numbered, so that all of them stay."""
    keys = RowKeys()

    def row_of(where: str, values: Sequence[Any]) -> Row | Reject:
        place = f"{file.name} {where}"
        try:
            data = {
                column.name: value
                for column, raw in zip(table.columns, values, strict=True)
                if (value := column.value(raw)) is not None
            }
        except ValueError as error:
            return Reject(place, str(error))
        if table.row_key:
            is_repeated = bool(table.repeated) and hash_of(values) in table.repeated
            data = {table.row_key: keys.key(values) if is_repeated else digest_of(values), **data}
        return Row(table.stream, data, place=place)

    return row_of


TABLES = TablesSource()
