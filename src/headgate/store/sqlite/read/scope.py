"""Scopes: a plan's reach and filters as conditions of a statement. Names are ours, values are bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from headgate.errors import AmbiguousConnection, UnknownField
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.plan import Reach
from headgate.model.query import ExactFilter, Filter, Order, Scalar
from headgate.store.lines import MAX_INTEGER
from headgate.store.projection import text_in
from headgate.store.sqlite.catalog import Catalog, Column, Shelf, StreamTable
from headgate.store.sqlite.column_values import ColumnKind, text_hash
from headgate.store.sqlite.database import Database

_OPERATORS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


class PageShape(NamedTuple):
    """What the text of a page's statement depends on, beside the scope."""

    columns: str
    condition: str
    order: Order
    #: How many values the place has from which the page goes on; 0: it starts at the beginning.
    place_size: int


@dataclass(frozen=True, slots=True)
class SqlScope:
    """Which rows a statement may see: conditions on ``r`` (record) and ``t`` (typed), and their values."""

    stream: StreamTable
    shelves: tuple[Shelf, ...]
    conditions: tuple[str, ...]
    values: tuple[Any, ...]
    uses_typed: bool
    #: The statements of pages that were written for it.
    statements: dict[PageShape, str] = field(default_factory=dict[PageShape, str], compare=False, repr=False)

    @property
    def sids(self) -> str:
        """The shelves, as a list for SQL."""
        return ",".join(str(shelf.sid) for shelf in self.shelves)

    @property
    def where(self) -> str:
        """The conditions, to follow after others."""
        return "".join(f" AND {condition}" for condition in self.conditions)

    @property
    def join(self) -> str:
        """The typed table, if a condition needs it."""
        return f" JOIN {self.stream.table} t ON t.rid = r.rid" if self.uses_typed else ""

    @property
    def is_whole(self) -> bool:
        """The scope is all that its shelves hold."""
        return not self.conditions


def scope_of(catalog: Catalog, reach: Reach, filters: Sequence[Filter] = ()) -> SqlScope | None:
    """Give the scope of a reach; without filters it is remembered, as a client sends the same reach with every read."""
    if filters:
        return _scope(catalog, reach, filters)
    scopes = catalog.memo.scopes
    return scopes[reach] if reach in scopes else scopes.remember(reach, _scope(catalog, reach, ()))


def _scope(catalog: Catalog, reach: Reach, filters: Sequence[Filter]) -> SqlScope | None:
    """Turn a reach into a scope; None when it covers no shelf that holds anything.

    Raises:
        AmbiguousConnection: it spans streams of several connectors, which have no common order.
    """
    shelves = tuple(catalog.shelves_of(reach))
    if not shelves:
        return None
    stream = shelves[0].stream
    if any(shelf.stream.stid != stream.stid for shelf in shelves):
        raise AmbiguousConnection
    conditions: list[str] = []
    values: list[Any] = []
    _bound_time(stream, reach, conditions, values)
    if reach.resources is not None:
        conditions.append("r.record_id IN (SELECT value FROM json_each(?))")
        values.append(msgspec.json.encode(sorted(reach.resources)).decode())
    for one in filters:
        _filter(stream, one, conditions, values)
    return SqlScope(stream, shelves, tuple(conditions), tuple(values), uses_typed=bool(filters))


def passing(
    database: Database,
    catalog: Catalog,
    shelves: Iterable[Shelf],
    filters: Sequence[Filter],
    rids: Sequence[int],
) -> list[int]:
    """Give those of some live records of these shelves, by row number, that pass the filters."""
    by_stream: dict[StreamName, list[ConnectionId]] = {}
    for shelf in shelves:
        by_stream.setdefault(shelf.name, []).append(shelf.connection_id)
    asked = msgspec.json.encode(rids).decode()
    found: list[int] = []
    for stream, connections in by_stream.items():
        scope = scope_of(catalog, Reach(stream, tuple(connections), ()), filters)
        assert scope is not None, stream
        sql = f"SELECT r.rid FROM json_each(?) j JOIN record r ON r.rid = j.value{scope.join} WHERE r.deleted = 0"
        found += [rid for (rid,) in database.all(sql + scope.where, (asked, *scope.values))]
    return found


def column_of(stream: StreamTable, name: FieldName) -> Column:
    """Find the column that holds a field's values.

    Raises:
        UnknownField: values of the field do not compare.
    """
    column = stream.columns.get(name)
    if column is None:
        raise UnknownField(f"'{name}' holds no values that compare.", param=name)
    return column


def _bound_time(stream: StreamTable, reach: Reach, conditions: list[str], values: list[Any]) -> None:
    if reach.time is None:
        return
    # Where pages are ordered by the same time, the index can stop at the bound.
    column = "r.sort" if stream.declaration.cursor_field == reach.time.field else "r.ts"
    if reach.time.since is not None:
        conditions.append(f"{column} >= ?")
        values.append(reach.time.since)
    if reach.time.until is not None:
        conditions.append(f"{column} < ?")
        values.append(reach.time.until)


def _filter(stream: StreamTable, one: Filter, conditions: list[str], values: list[Any]) -> None:
    column = column_of(stream, one.field)
    if not isinstance(one, ExactFilter):
        conditions.append(f"t.{column.name} {_OPERATORS[one.operator]} ?")
        values.append(bindable(one.value))
    elif column.kind is ColumnKind.HASH:
        text = str(one.value)
        conditions.append(f"t.{column.name} = ? AND field_text(r.body, ?) = ?")
        values.extend([text_hash(text), one.field, text])
    else:
        conditions.append(f"t.{column.name} = ?")
        values.append(bindable(one.value))


def bindable(value: Scalar) -> Scalar:
    """Give a value that columns compare with: an integer that fits no column lies beyond all that do."""
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return math.inf if value > 0 else -math.inf
    return int(value) if isinstance(value, bool) else value


def register(connection: Any) -> None:
    """Add the SQL function that reads one field's text out of a body."""
    connection.create_scalar_function("field_text", text_in, 2, deterministic=True)
