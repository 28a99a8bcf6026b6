"""How PostgreSQL writes what differs between engines; implements `sql.database.Dialect`.

A statement is written with ``?`` for its values and ``:home`` for the home, as in the files of ``sql/``; `numbered` turns
it into PostgreSQL's form. Typed values lie in three arrays, so that a declaration changes no table.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from headgate.model.query import Scalar
from headgate.store.format.columns import Column, ColumnKind, TypedColumn, bindable
from headgate.store.sql.database import Database
from headgate.store.sql.statements import statements_of

#: How the macros of shared statements are written here.
_MACROS = {
    r"(\w+\.)?\{home\}": r"\1home=:home AND",
    r"\{home_column\}": "home, ",
    r"\{home_value\}": ":home, ",
    r"(\w+\.)?\{live\}": r"NOT \1deleted",
    r"\s\{index \S+\}": "",
}
SQL: Mapping[str, str] = statements_of("headgate.store.postgres", _MACROS)
_ARRAYS = {
    ColumnKind.WORD: "words",
    ColumnKind.HASH: "ints",
    ColumnKind.INTEGER: "ints",
    ColumnKind.NUMBER: "floats",
    ColumnKind.BOOLEAN: "ints",
    ColumnKind.TIME: "ints",
    # Beside the float of the same number.
    ColumnKind.SCALED: "ints",
}
_NAMES = ("ints", "floats", "words")
_MARK = re.compile(r":home\b|\?(\d+|~)?")
_SIGN = 1 << 63
_FLOAT_EXACT = 1 << 53
#: The first byte of a stored place: numbers come before texts, as in SQLite.
_NUMBER, _TEXT = b"\x01", b"\x02"


@lru_cache(maxsize=4096)
def numbered(sql: str) -> str:
    """Number the values of a statement: the home is the first, ``?~`` is the last one once more."""
    total = len(re.findall(r"\?(?!\d|~)", sql))
    count = 0

    def number(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] == ":home":
            return "$1"
        if match[1] == "~":
            return f"${total + 1}"
        if match[1]:
            return f"${int(match[1]) + 1}"
        count += 1
        return f"${count + 1}"

    return _MARK.sub(number, sql)


class PostgresDialect:
    """Typed values of all streams are in one table."""

    __slots__ = ()

    @property
    def sql(self) -> Mapping[str, str]:
        return SQL

    def typed_table(self, stid: int) -> str:
        del stid
        return "typed"

    def make_typed_table(self, database: Database, stid: int) -> None:
        """Do nothing: all streams share one table."""

    def add_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Do nothing: an array grows with its values."""

    def index_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Note the values that a column holds already as keys of other records; later ones are noted as they come."""
        rows = database.all(SQL["typed_values"].format(column=self.typed_column(column)), (stid,))
        keys = [(stid, column.number, key_bytes(column.kind, value), rid) for rid, value in rows]
        if keys:
            database.many(SQL["put_child_keys"], keys)

    def typed_tables(self, stid: int) -> tuple[str, ...]:
        del stid
        return "typed", "child_key"

    def put_typed(
        self, database: Database, stid: int, columns: Sequence[TypedColumn], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Store typed rows in place of older ones, and which keys of other records they hold."""
        places = [(_NAMES.index(_ARRAYS[column.kind]), column.number) for column, _ in columns]
        sizes = [
            max((number for at, number in places if at == which), default=0) for which in range(len(_NAMES))
        ]
        database.many(SQL["put_typed_row"], [_arrays(row, places, sizes) for row in rows])
        keyed = [(place, column) for place, (column, is_key) in enumerate(columns, 1) if is_key]
        if keyed:
            database.many(SQL["delete_child_keys"], [(row[0],) for row in rows])
            database.many(SQL["put_child_keys"], list(_keys(stid, keyed, rows)))

    def typed_column(self, column: Column) -> str:
        return f"t.{_ARRAYS[column.kind]}[{column.number}]"

    def comparison(self, column: Column, operator: str, value: Scalar) -> tuple[str, Any]:
        name, bound = self.typed_column(column), bindable(value)
        if column.kind is ColumnKind.WORD:
            # A text is smaller than another; a number is smaller than every text.
            return (
                (f"{name} {operator} ?", bound)
                if isinstance(bound, str)
                else (_any_or_none(name, operator), 0)
            )
        if isinstance(bound, str):
            return (
                f"{name} IS NOT NULL AND ?::text IS NOT NULL AND {'true' if operator in '<=' else 'false'}",
                bound,
            )
        if column.kind is ColumnKind.NUMBER:
            return f"{name} {operator} ?", _float_bound(bound, operator)
        return f"{name} {operator} ?::numeric", bound

    def key_comparison(self, stid: int, column: Column, value: Any) -> tuple[str, tuple[Any, ...]]:
        return f"t.stid = {stid} AND t.col = {column.number} AND t.value = ?", (
            key_bytes(column.kind, value),
        )

    def sort_value(self, value: Any) -> bytes | None:
        """Write a place in a stream's order as bytes that compare like it."""
        return None if value is None else _sort_bytes(value)

    def shown_sort(self, stored: bytes | None) -> Any:
        if stored is None:
            return None
        if stored[:1] == _TEXT:
            return stored[1:].decode()
        (whole,) = struct.unpack(">Q", stored[9:17])
        if stored[17:] == b"i":
            return whole - _SIGN
        return _float_from(stored[1:9])


def _any_or_none(name: str, operator: str) -> str:
    return f"{name} IS NOT NULL AND ?::bigint = 0 AND {'true' if operator in {'>', '>='} else 'false'}"


def _arrays(row: Sequence[Any], places: Sequence[tuple[int, int]], sizes: Sequence[int]) -> tuple[Any, ...]:
    arrays: list[list[Any]] = [[None] * size for size in sizes]
    for (which, number), value in zip(places, row[1:], strict=True):
        arrays[which][number - 1] = value
    return (row[0], *(array_text(array) if array else None for array in arrays))


def array_text(values: Sequence[Any]) -> str:
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def _keys(
    stid: int, keyed: Sequence[tuple[int, Column]], rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, int, bytes, int]]:
    for row in rows:
        for place, column in keyed:
            if row[place] is not None:
                yield stid, column.number, key_bytes(column.kind, row[place]), row[0]


def key_bytes(kind: ColumnKind, value: Any) -> bytes:
    """Write a typed value as it is looked up among keys of other records."""
    if kind is ColumnKind.WORD:
        return sha256(value.encode()).digest()
    if kind is ColumnKind.NUMBER:
        return struct.pack(">d", value)
    return struct.pack(">q", value)


def _sort_bytes(value: float | str) -> bytes:
    """Write numbers by their nearest float first, then exactly, so that integers and floats compare with each other."""
    if isinstance(value, str):
        return _TEXT + value.encode()
    if isinstance(value, float):
        # The largest integer is near a float that is larger.
        return _NUMBER + _float_bytes(value) + _whole_bytes(value) + (b"f" if value < _SIGN else b"j")
    return _NUMBER + _float_bytes(float(value)) + struct.pack(">Q", int(value) + _SIGN) + b"i"


def _whole_bytes(value: float) -> bytes:
    whole = int(value) if math.isfinite(value) else 0
    return struct.pack(">Q", min(max(whole, -_SIGN), _SIGN - 1) + _SIGN)


def _float_bytes(value: float) -> bytes:
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return struct.pack(">Q", bits ^ (_SIGN if not bits & _SIGN else (1 << 64) - 1))


def _float_from(stored: bytes) -> float:
    (bits,) = struct.unpack(">Q", stored)
    (value,) = struct.unpack(">d", struct.pack(">Q", bits ^ (_SIGN if bits & _SIGN else (1 << 64) - 1)))
    return value


def _float_bound(value: float, operator: str) -> float:
    """Return the float that stands for a whole number in a comparison with floats."""
    near = float(value)
    if isinstance(value, float) or int(near) == value:
        return near
    is_below = int(near) < value
    if operator in {">=", "<"}:
        return math.nextafter(near, math.inf) if is_below else near
    if operator in {">", "<="}:
        return near if is_below else math.nextafter(near, -math.inf)
    return math.nan


DIALECT = PostgresDialect()
