"""Read stored records whole, for work over all records of a shelf; it goes around damaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from headgate.store.format.columns import (
    EXACT_BELOW,
    MAX_SCALE,
    Column,
    ColumnKind,
    TypedColumn,
    scale_for,
    scaled,
)
from headgate.store.format.records import long_notes, shelf_rows
from headgate.store.format.streams import StreamTable
from headgate.store.sql.database import Database, Dialect

_AT_ONCE = 1000


_VALUES = msgspec.json.Decoder(dict[str, Any])


def stored_rows(
    database: Database, stream: StreamTable, sid: int
) -> Iterator[list[tuple[int, int | None, Mapping[str, Any] | None]]]:
    """Return the live records of a shelf in portions: row number, time, and what `values_of` reads."""
    after, end = shelf_rows(sid)
    while rows := database.all(database.sql["live_records"], (after, end, _AT_ONCE)):
        yield [(rid, ts, values_of(database, stream, rid, long, body)) for rid, ts, long, body in rows]
        after = rows[-1][0]


def values_of(
    database: Database, stream: StreamTable, rid: int, long: bytes | None, body: bytes | None
) -> Mapping[str, Any] | None:
    """Return the values of a stored record, its long texts put back in; None: it is damaged, and is never shown.

    Work over many records goes around a damaged one: it costs itself, and not the others.
    """
    if body is None:
        return None
    try:
        values = _VALUES.decode(body)
        for name in long_notes(long):
            values[name] = whole_text(database, rid, stream.fids[name])
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, *database.damage):
        return None
    return values


def whole_text(database: Database, rid: int, fid: int) -> str:
    """Put a long text together again."""
    pieces = database.all(database.sql["long_text"], (rid, fid))
    return "".join(piece for (piece,) in pieces)


_Row = tuple[Any, ...]


def scales_of(database: Database, stream: StreamTable) -> dict[int, int]:
    """Return the scale of each column that has exact values; it is read each time, as any batch may raise it."""
    if all(column.kind is not ColumnKind.NUMBER for column in stream.columns.values()):
        return {}
    return dict(database.all(database.sql["column_scales"], (stream.stid,)))


def added(
    database: Database, stream: StreamTable, rows: Sequence[_Row]
) -> tuple[Sequence[TypedColumn], Sequence[_Row]]:
    """Return the columns of exact values, and typed rows with those values at their ends; raises scales where needed."""
    scales = scales_of(database, stream)
    columns: list[TypedColumn] = []
    places: list[tuple[int, int]] = []
    for place, column in enumerate(stream.columns.values(), 1):
        if column.number in scales:
            scale = scale_for((row[place] for row in rows), scales[column.number])
            if scale > scales[column.number]:
                fill(database, stream.stid, column, scale)
            columns.append(TypedColumn(column.scaled, is_key=False))
            places.append((place, scale))
    if not places:
        return (), rows
    return columns, [
        (*row, *[None if row[place] is None else scaled(row[place], scale) for place, scale in places])
        for row in rows
    ]


def fill(database: Database, stid: int, column: Column, scale: int) -> None:
    """Compute all exact values of a column in a scale, inside a writer's transaction."""
    dialect = database.dialect
    sql = database.sql["fill_exact_values"].format(
        table=dialect.typed_table(stid),
        target=dialect.typed_column(column.scaled).removeprefix("t."),
        value=exact_value(dialect, column, scale),
    )
    for (sid,) in database.all(database.sql["shelves_of_stream"], (stid,)):
        database.run(sql, shelf_rows(sid))
    database.run(database.sql["set_column_scale"], (scale, stid, column.number))


def exact_value(dialect: Dialect, column: Column, scale: int) -> str:
    """Write `column_values.scaled` in SQL."""
    power = 10.0**scale
    return dialect.sql["exact_value"].format(
        number=dialect.typed_column(column), power=power, below=EXACT_BELOW / power
    )


class ExactFilling:
    """An idle task: gives the columns of a store of an older version their exact values, a column at a time."""

    name = "exact values"

    def plan(self, database: Database) -> bool:
        with database.reading(float("inf")):
            return bool(database.all(database.sql["columns_without_scale"]))

    def step(self, database: Database) -> bool:
        """Fill one column; returns whether there may be more."""
        with database.writing():
            rows = database.all(database.sql["columns_without_scale"])
            for stid, number in rows[:1]:
                column = Column(number, ColumnKind.NUMBER)
                fill(database, stid, column, _scale_of_stored(database, stid, column))
        return len(rows) > 1


def _scale_of_stored(database: Database, stid: int, column: Column) -> int:
    """Return the smallest scale that gives every stored number an exact value which has one in any scale."""
    dialect = database.dialect
    shelves = database.all(database.sql["shelves_of_stream"], (stid,))
    finest = exact_value(dialect, column, MAX_SCALE)
    for scale in range(MAX_SCALE):
        sql = database.sql["inexact_row"].format(
            table=dialect.typed_table(stid), value=exact_value(dialect, column, scale), finest=finest
        )
        if all(database.one(sql, shelf_rows(sid)) is None for (sid,) in shelves):
            return scale
    return MAX_SCALE


def put_typed_rows(database: Database, stream: StreamTable, rows: Sequence[tuple[Any, ...]]) -> None:
    """Store such rows, in place of older ones, with the exact values of their numbers."""
    if rows:
        columns = [
            TypedColumn(column, name in stream.foreign_keys) for name, column in stream.columns.items()
        ]
        exact_columns, exact_rows = added(database, stream, rows)
        database.dialect.put_typed(database, stream.stid, [*columns, *exact_columns], exact_rows)
