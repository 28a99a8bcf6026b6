"""Scopes: a plan's reach and filters as conditions of a statement. Names are ours, values are bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from headgate.errors import AmbiguousConnection, UnknownField
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.plan import Reach
from headgate.model.query import ExactFilter, Filter, Order
from headgate.store.format.columns import Column, ColumnKind, text_hash
from headgate.store.format.records import RID_SHIFT
from headgate.store.format.streams import Shelf, StreamTable
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database, Dialect

_OPERATORS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


class PageShape(NamedTuple):
    """What the text of a page's statement depends on, beside the scope."""

    #: The name of the statement, and of the part that says where the page goes on; None: it starts at the beginning.
    statement: str
    start: str | None
    order: Order
    #: It gives the records as well as their keys.
    with_rows: bool = False


@dataclass(frozen=True, slots=True)
class SqlScope:
    """Which rows a statement may see: conditions on ``r`` (record) and ``t`` (typed), and their values."""

    dialect: Dialect
    stream: StreamTable
    shelves: tuple[Shelf, ...]
    conditions: tuple[str, ...]
    values: tuple[Any, ...]
    uses_typed: bool
    #: Only records of some keys: they are found by these.
    is_by_key: bool = False
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
        """What follows the record table: how it is searched, if by key, and the typed table, if a condition needs it."""
        return self.joined(with_typed=self.uses_typed)

    def joined(self, *, with_typed: bool) -> str:
        """Write the same, with the typed table or without."""
        index = f" {self.dialect.sql['by_key']}" if self.is_by_key else ""
        return f"{index} {typed_join(self.dialect, self.stream)}" if with_typed else index

    @property
    def is_whole(self) -> bool:
        """The scope is all that its shelves hold."""
        return not self.conditions


def scope_of(catalog: Catalog, reach: Reach, filters: Sequence[Filter] = ()) -> SqlScope | None:
    """Return the scope of a reach; without filters it is remembered, as a client sends the same reach with every read."""
    if filters:
        return _scope(catalog, reach, filters)
    scopes = catalog.memo.scopes
    return scopes[reach] if reach in scopes else scopes.remember(reach, _scope(catalog, reach, ()))


def _scope(catalog: Catalog, reach: Reach, filters: Sequence[Filter]) -> SqlScope | None:
    """Turn a reach into a scope; None when it covers no shelf that holds anything."""
    shelves = tuple(catalog.shelves_of(reach))
    if not shelves:
        return None
    stream = shelves[0].stream
    if any(shelf.stream.stid != stream.stid for shelf in shelves):
        raise AmbiguousConnection
    dialect = catalog.dialect
    conditions: list[str] = []
    values: list[Any] = []
    _bound_time(dialect, stream, reach, conditions, values)
    if reach.resources is not None:
        conditions.append(dialect.sql["key_in_list"])
        values.append(msgspec.json.encode(sorted(reach.resources)).decode())
    _filter(dialect, stream, filters, conditions, values)
    return SqlScope(
        dialect,
        stream,
        shelves,
        tuple(conditions),
        tuple(values),
        uses_typed=bool(filters),
        is_by_key=reach.resources is not None,
    )


def passing(
    database: Database,
    catalog: Catalog,
    shelves: Iterable[Shelf],
    filters: Sequence[Filter],
    rids: Sequence[int],
) -> list[int]:
    """Return those of some live records of these shelves, by row number, that pass the filters."""
    # By number: several connectors may have a stream of the same name.
    by_stream: dict[tuple[int, StreamName], list[ConnectionId]] = {}
    for shelf in shelves:
        by_stream.setdefault((shelf.stream.stid, shelf.name), []).append(shelf.connection_id)
    numbers = msgspec.json.encode(rids).decode()
    passed: list[int] = []
    for (_, stream), connections in by_stream.items():
        scope = scope_of(catalog, Reach(stream, tuple(connections), ()), filters)
        assert scope is not None, stream
        sql = database.sql["passing_rows"].format(join=scope.join, where=scope.where)
        passed += [rid for (rid,) in database.all(sql, (numbers, *scope.values))]
    return passed


def column_of(stream: StreamTable, name: FieldName) -> Column:
    """Find the column that holds a field's values."""
    column = stream.columns.get(name)
    if column is None:
        raise UnknownField(f"'{name}' holds no values that compare.", param=name)
    return column


def typed_join(dialect: Dialect, stream: StreamTable) -> str:
    """Join the typed values of a stream to its records."""
    return dialect.sql["typed_join"].format(table=dialect.typed_table(stream.stid))


def _is_order(stream: StreamTable, name: FieldName) -> bool:
    return stream.declaration.cursor_field == name


def _bound_time(
    dialect: Dialect, stream: StreamTable, reach: Reach, conditions: list[str], values: list[Any]
) -> None:
    if reach.time is None:
        return
    # Where pages are ordered by the same time, the index can stop at the bound.
    is_order = _is_order(stream, reach.time.field)
    column = "r.sort" if is_order else "r.ts"
    for operator, bound in ((">=", reach.time.since), ("<", reach.time.until)):
        if bound is not None:
            conditions.append(f"{column} {operator} ?")
            values.append(dialect.sort_value(bound) if is_order else bound)


def _filter(
    dialect: Dialect, stream: StreamTable, filters: Sequence[Filter], conditions: list[str], values: list[Any]
) -> None:
    for wanted in filters:
        column = column_of(stream, wanted.field)
        is_text = is_hashed(stream, wanted)
        operator = "=" if isinstance(wanted, ExactFilter) else _OPERATORS[wanted.operator]
        condition, value = dialect.comparison(
            column, operator, text_hash(str(wanted.value)) if is_text else wanted.value
        )
        conditions.append(condition)
        values.append(value)
        if is_text:
            conditions.append(dialect.sql["text_of_field"])
            values.extend([wanted.field, str(wanted.value)])


def is_hashed(stream: StreamTable, wanted: Filter) -> bool:
    """Return whether a filter has to look at the record: its column holds checksums, which several texts may share."""
    return isinstance(wanted, ExactFilter) and column_of(stream, wanted.field).kind is ColumnKind.HASH


class VisibleRows(NamedTuple):
    """The end of a statement over the visible rows, from its FROM on, and what it binds."""

    sql: str
    values: tuple[Any, ...]
    #: Whether the records, as ``r``, are there.
    has_records: bool = False


def visible_rows(
    scope: SqlScope,
    reach: Reach,
    filters: Sequence[Filter] = (),
    *,
    with_typed: bool = True,
    among: Sequence[int] | None = None,
) -> VisibleRows:
    """Write the end of a statement over the rows of a reach that pass filters, with their typed values as ``t``.

    ``among`` are the row numbers of those that are looked at; None for all.

    It looks at visible rows alone where they can be found by key or by the stream's order, else at those of whole shelves.
    The scope is that of the same reach and filters. The records, as ``r``, are there only where rows are found among them.
    """
    dialect, stream = scope.dialect, scope.stream
    if reach.resources is not None or (reach.time is not None and _is_order(stream, reach.time.field)):
        join = scope.joined(with_typed=with_typed or scope.uses_typed)
        sql = dialect.sql["records_of_shelves"].format(join=join, sids=scope.sids, where=scope.where)
        return _among(dialect, "r.rid", VisibleRows(sql, scope.values, has_records=True), among)
    conditions: list[str] = []
    values: list[Any] = []
    if reach.time is not None:
        column = column_of(stream, reach.time.field)
        for operator, bound in ((">=", reach.time.since), ("<", reach.time.until)):
            if bound is not None:
                condition, value = dialect.comparison(column, operator, bound)
                conditions.append(condition)
                values.append(value)
    _filter(dialect, stream, filters, conditions, values)
    records = any(is_hashed(stream, wanted) for wanted in filters)
    sql = dialect.sql["typed_of_shelves"].format(
        starts=", ".join(f"({shelf.sid << RID_SHIFT})" for shelf in scope.shelves),
        size=1 << RID_SHIFT,
        table=dialect.typed_table(stream.stid),
        records=f" {dialect.sql['records_of_typed']}" if records else "",
        where="".join(f" AND {condition}" for condition in conditions),
    )
    return _among(dialect, "t.rid", VisibleRows(sql, tuple(values)), among)


def _among(dialect: Dialect, rid: str, rows: VisibleRows, among: Sequence[int] | None) -> VisibleRows:
    if among is None:
        return rows
    condition = dialect.sql["row_in_list"].format(rid=rid)
    return rows._replace(
        sql=f"{rows.sql} AND {condition}", values=(*rows.values, msgspec.json.encode(among).decode())
    )
