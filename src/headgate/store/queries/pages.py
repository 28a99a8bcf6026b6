"""Pages: records in their stream's order, merged over connections, from one place on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from headgate.model.ids import MAX_ID_CHARS, RecordId, digest_of_key, key_text
from headgate.model.plan import ExpandPlan, KeyPlan, PagePlan, Position, RecordPlan
from headgate.model.query import Count, Order
from headgate.model.record import Children, Record
from headgate.model.rows import Extent, Page
from headgate.store.format.columns import ColumnKind, column_value
from headgate.store.format.streams import StreamTable
from headgate.store.queries.rows import (
    COLUMNS,
    MAX_PAGE_BYTES,
    FoundColumns,
    FoundRow,
    RecordMaker,
    TooLargeHere,
    readable_rows,
    row_bytes,
)
from headgate.store.queries.scope import PageShape, SqlScope, column_of, scope_of, visible_rows
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

_SEARCHES_AT_ONCE = 5
_ROWS_AT_ONCE = 25
_LAST_CHARACTER = chr(sys.maxunicode)
#: The statement that reads the rows of a page with its keys; not every engine has one.
_WITH_ROWS = "page_with_rows"
_KEY_COLUMNS = "r.rid, r.sid, r.record_id, r.sort"
_ROW_COLUMNS = f"r.sort, {COLUMNS}"
#: The rows of a page by their numbers.
PageRows = dict[int, FoundColumns]


class PageKey(NamedTuple):
    """Which record is on a page, and its place in the page's order."""

    rid: int
    sid: int
    record_id: RecordId
    #: The stored form of the cursor field's value; None: it has none, and comes after those that have one.
    sort: Any


class Finder:
    """The statement that finds one record in a reach, written once for all records."""

    __slots__ = ("_times", "_values", "make", "sql")

    def __init__(self, database: Database, catalog: Catalog, scope: SqlScope, plan: RecordPlan) -> None:
        shelves = [f"= {shelf.sid}" for shelf in scope.shelves]
        if len(shelves) > _SEARCHES_AT_ONCE:
            # SQLite makes a temporary table of a list at every run; a few separate searches need none.
            shelves = [f"IN ({scope.sids})"]
        find = database.sql["find_record"]
        self.sql = " UNION ALL ".join(
            find.format(columns=COLUMNS, shelves=shelve, where=scope.where) for shelve in shelves
        )
        self._values = scope.values
        self._times = len(shelves)
        self.make = RecordMaker(database, catalog, plan.reach, preview_chars=plan.preview_chars).make

    def find(self, database: Database, record_id: RecordId) -> tuple[Record, ...]:
        """Find the record in each shelf of the reach."""
        return tuple(
            map(self.make, cast("list[FoundColumns]", database.all(self.sql, self.values(record_id))))
        )

    def values(self, record_id: RecordId) -> tuple[Any, ...]:
        """Return what the statement binds for a record."""
        return (record_id, *self._values) * self._times


def finder(database: Database, catalog: Catalog, plan: RecordPlan) -> Finder | None:
    """Return the statement for a plan's reach; None when the reach covers nothing."""
    finders = catalog.memo.finders
    key = (plan.reach, plan.preview_chars)
    try:
        return finders[key]
    except KeyError:
        scope = scope_of(catalog, plan.reach)
        return finders.remember(key, None if scope is None else Finder(database, catalog, scope, plan))


def find(database: Database, catalog: Catalog, plan: RecordPlan) -> tuple[Record, ...]:
    """Find one record in each shelf of the reach."""
    statement = finder(database, catalog, plan)
    records = () if statement is None else statement.find(database, plan.record_id)
    if not plan.expand:
        return records
    return with_children(database, catalog, records, plan.expand, plan.preview_chars)


def find_key(database: Database, catalog: Catalog, plan: KeyPlan) -> RecordId | None:
    """Find the one key among those with the same beginning that has the digest."""
    scope = scope_of(catalog, plan.reach)
    if scope is None:
        return None
    rows = database.all(
        database.sql["keys_between"].format(sids=scope.sids, where=scope.where),
        # No key with this beginning is longer than a key can be, or has a character that sorts after the last.
        (plan.beginning, plan.beginning + _LAST_CHARACTER * MAX_ID_CHARS, *scope.values),
    )
    return next((key for (key,) in rows if digest_of_key(key) == plan.digest), None)


def looks_at_all(plan: PagePlan) -> bool:
    """Return whether a page needs a look at every visible record: it is filtered or counted."""
    return bool(plan.filters) or plan.count is not Count.NONE or plan.with_extent


def page(database: Database, catalog: Catalog, plan: PagePlan) -> Page:
    scope = scope_of(catalog, plan.reach, plan.filters)
    if scope is None:
        return Page(
            (),
            None,
            0 if plan.count is not Count.NONE else None,
            Extent(0, None, None) if plan.with_extent else None,
        )
    keys, rows = _found(database, catalog, plan, scope)
    has_more, keys = len(keys) > plan.limit, keys[: plan.limit]
    maker = RecordMaker(database, catalog, plan.reach, preview_chars=plan.preview_chars)
    records, taken = _records(database, catalog, maker, keys, plan, rows)
    is_cut = taken < len(keys)
    return Page(
        tuple(records),
        _position(catalog, keys[taken - 1], plan) if has_more or is_cut else None,
        *_extent(database, plan, scope),
        is_cut=is_cut,
        damaged=tuple(maker.damaged),
    )


def _extent(database: Database, plan: PagePlan, scope: SqlScope) -> tuple[int | None, Extent | None]:
    """Count the records that a page is cut from, and find the times they span, as far as the plan asks for these."""
    if plan.count is Count.NONE and not plan.with_extent:
        return None, None
    if scope.is_whole and not plan.with_extent:
        return database.value(database.sql["live_of_shelves"].format(sids=scope.sids)), None
    select = "count(*), NULL, NULL"
    name = scope.stream.time_field if plan.with_extent else None
    if name is not None:
        time = scope.dialect.typed_column(column_of(scope.stream, name))
        select = f"count(*), min({time}), max({time})"
    rows = visible_rows(scope, plan.reach, plan.filters, with_typed=name is not None)
    sql = database.sql["aggregate"].format(select=select, rows=rows.sql, groups="")
    ((total, earliest, latest),) = database.all(sql, rows.values)
    extent = Extent(total, earliest, latest) if plan.with_extent else None
    return None if plan.count is Count.NONE else total, extent


def _found(
    database: Database, catalog: Catalog, plan: PagePlan, scope: SqlScope
) -> tuple[list[PageKey], PageRows | None]:
    """Find the keys of a page; with their rows where an engine reads both at once, and they are few."""
    if _WITH_ROWS in database.sql and plan.limit <= _ROWS_AT_ONCE and not plan.filters:
        rows: PageRows = {}
        try:
            return page_keys(database, catalog, plan, scope, rows), rows
        except database.damage:
            # One by one, without those that are damaged.
            pass
    return page_keys(database, catalog, plan, scope), None


def _records(
    database: Database,
    catalog: Catalog,
    maker: RecordMaker,
    page_keys: Sequence[PageKey],
    plan: PagePlan,
    read: PageRows | None,
) -> tuple[list[Record], int]:
    """Make the records of a page, and no more than an answer may hold; the first one is made in any case.

    Returns them, and how many keys they were made of: damaged ones are left out.
    """
    records: list[Record] = []
    left = min(MAX_PAGE_BYTES, database.most_bytes)
    space = left if plan.page_bytes is None else plan.page_bytes
    for start in range(0, len(page_keys), _ROWS_AT_ONCE):
        keys = page_keys[start : start + _ROWS_AT_ONCE]
        rows = readable_rows(database, [key.rid for key in keys]) if read is None else read
        for place, key in enumerate(keys, start):
            if key.rid not in rows:
                maker.damaged.append(key.record_id)
                continue
            record = maker.make_intact(rows[key.rid])
            if record is None:
                continue
            if plan.expand:
                (record,) = with_children(database, catalog, (record,), plan.expand, plan.preview_chars)
            left -= _size(record)
            if left < 0 and database.most_bytes < MAX_PAGE_BYTES:
                raise TooLargeHere
            space -= row_bytes(record)
            if (left < 0 or space < 0) and records:
                return records, place
            records.append(record)
    return records, len(page_keys)


def _size(record: Record) -> int:
    """Count the bytes of a record and of those it is expanded with."""
    size = len(record.body)
    for children in record.expanded.values():
        size += sum(len(child.body) for child in children.records)
    return size


def page_keys(
    database: Database, catalog: Catalog, plan: PagePlan, scope: SqlScope, rows: PageRows | None = None
) -> list[PageKey]:
    """Find the keys of a page and one more, in order: those that have a place first, then those without.

    Their rows are put into ``rows``, if that is given.
    """
    wanted = plan.limit + 1
    after = plan.after
    if not plan.by_cursor_field or scope.stream.declaration.cursor_field is None:
        return _part(database, scope, plan, _BY_KEY, _after_key(database, catalog, after, plan), wanted, rows)
    keys: list[PageKey] = []
    if after is None or after.sort is not None:
        place = (
            None
            if after is None
            else (
                scope.dialect.sort_value(after.sort),
                after.record_id,
                place_of(database, catalog, after, plan),
            )
        )
        order = _order(scope.stream)
        if plan.filters and order is _BY_SORT:
            keys = _filtered_part(database, scope, plan, place)
        else:
            keys = _part(database, scope, plan, order, place, wanted, rows)
        after = None
    if len(keys) < wanted:
        place = _after_key(database, catalog, after, plan)
        keys += _part(database, scope, plan, _WITHOUT_SORT, place, wanted - len(keys), rows)
    return keys


class _PageOrder(NamedTuple):
    """The names of the statement that reads a part of a page, and of the part that says where it goes on."""

    statement: str
    start: str


_BY_KEY = _PageOrder("page_by_key", "start_by_key")
_BY_SORT = _PageOrder("page_by_sort", "start_by_sort")
#: Texts may be longer than what an index holds.
_BY_TEXT_SORT = _PageOrder("page_by_text_sort", "start_by_sort")
_WITHOUT_SORT = _PageOrder("page_without_sort", "start_by_key")


def _order(stream: StreamTable) -> _PageOrder:
    cursor = stream.declaration.cursor_field
    column = None if cursor is None else stream.columns.get(cursor)
    is_text = column is not None and column.kind in {ColumnKind.WORD, ColumnKind.HASH}
    return _BY_TEXT_SORT if is_text else _BY_SORT


def _part(
    database: Database,
    scope: SqlScope,
    plan: PagePlan,
    order: _PageOrder,
    place: tuple[Any, ...] | None,
    wanted: int,
    rows: PageRows | None,
) -> list[PageKey]:
    start = None if place is None else order.start
    shape = PageShape(order.statement, start, plan.order, with_rows=rows is not None)
    sql = scope.statements.get(shape)
    if sql is None:
        sql = scope.statements[shape] = _part_sql(scope, shape)
    # The first value is bound twice: once for the leading column alone, once for all columns.
    beginning = () if place is None else (place[0], *place)
    values = (*beginning, *scope.values, wanted)
    if rows is None:
        return database.rows(PageKey, sql, values)
    read = database.all(sql, values)
    rows.update((row[1], cast("FoundColumns", row[1:])) for row in read)
    return [PageKey(rid, sid, record_id, sort) for sort, rid, sid, record_id, *_ in read]


def _filtered_part(
    database: Database, scope: SqlScope, plan: PagePlan, place: tuple[Any, ...] | None
) -> list[PageKey]:
    """Find the first rows that pass filters among the typed values: few records may pass, and walking meets them all."""
    name = scope.stream.declaration.cursor_field
    assert name is not None
    column, sql, dialect = column_of(scope.stream, name), database.sql, scope.dialect
    sort, rows = dialect.typed_column(column), visible_rows(scope, plan.reach, plan.filters)
    is_descending = plan.order is Order.DESC
    beyond, within = ("<", ">=") if is_descending else (">", "<=")
    from_place = behind_place = f" AND {sort} IS NOT NULL"
    from_values: tuple[Any, ...] = ()
    behind_values: tuple[Any, ...] = ()
    start_values: tuple[Any, ...] = ()
    if place is not None and plan.after is not None:
        # Which of the records at the very place of the last page come after it is settled by their keys.
        from_place, from_value = dialect.comparison(column, f"{beyond}=", cast("Any", plan.after.sort))
        behind_place, behind_value = dialect.comparison(column, beyond, cast("Any", plan.after.sort))
        from_place, behind_place = f" AND {from_place}", f" AND {behind_place}"
        from_values, behind_values = (from_value,), (behind_value,)
        start_values = (place[0], *place)
    statement = sql["page_of_filtered"].format(
        rows=rows.sql,
        sort=sort,
        from_place=from_place,
        behind_place=behind_place,
        within=within,
        last="min" if is_descending else "max",
        no_place="?" if from_values else "NULL",
        direction="DESC" if is_descending else "ASC",
        start="" if place is None else f" {sql['start_by_sort'].format(beyond=beyond)}",
    )
    wanted = plan.limit + 1
    values = (
        *rows.values,
        *from_values,
        *rows.values,
        *behind_values,
        wanted,
        *from_values,
        *start_values,
        wanted,
    )
    return database.rows(PageKey, statement, values)


def _part_sql(scope: SqlScope, shape: PageShape) -> str:
    direction, beyond = ("DESC", "<") if shape.order is Order.DESC else ("ASC", ">")
    sql = scope.dialect.sql
    start = "" if shape.start is None else f" {sql[shape.start].format(beyond=beyond)}"
    # Where more rows are compared than a page holds, only their keys are: of several shelves, or of texts that are alike.
    is_whole = shape.with_rows and len(scope.shelves) == 1 and shape.statement != _BY_TEXT_SORT.statement
    statement = sql[shape.statement].format(
        columns=_ROW_COLUMNS if is_whole else _KEY_COLUMNS,
        join=scope.join,
        sids=scope.sids,
        start=start,
        where=scope.where,
        direction=direction,
    )
    if is_whole or not shape.with_rows:
        return statement
    return sql[_WITH_ROWS].format(columns=_ROW_COLUMNS, keys=statement)


def _after_key(
    database: Database, catalog: Catalog, after: Position | None, plan: PagePlan
) -> tuple[Any, ...] | None:
    return None if after is None else (after.record_id, place_of(database, catalog, after, plan))


def place_of(database: Database, catalog: Catalog, after: Position, plan: PagePlan) -> int:
    """Return the shelf of the record after which a page goes on: its number settles ties between connections."""
    key = (after.connection_id, plan.reach.stream)
    shelf = catalog.shelves.get(key)
    if shelf is None:
        return 0
    hidden = catalog.hidden_shelves.get(key) if plan.reach.with_hidden else None
    if (
        hidden is not None
        and database.one(database.sql["live_record"], (hidden.sid, after.record_id)) is not None
    ):
        return hidden.sid
    return shelf.sid


def _position(catalog: Catalog, key: PageKey, plan: PagePlan) -> Position:
    sort = catalog.dialect.shown_sort(key.sort) if plan.by_cursor_field else None
    return Position(sort, key.record_id, catalog.by_sid[key.sid].connection_id)


# Children


def with_children(
    database: Database,
    catalog: Catalog,
    parents: tuple[Record, ...],
    expand: Sequence[ExpandPlan],
    preview_chars: int | None,
) -> tuple[Record, ...]:
    """Read the children that the plan expands, and add them to their parents."""
    if not expand:
        return parents
    return tuple(_expanded(database, catalog, parent, expand, preview_chars) for parent in parents)


def _expanded(
    database: Database,
    catalog: Catalog,
    parent: Record,
    expand: Sequence[ExpandPlan],
    preview_chars: int | None,
) -> Record:
    children = {plan.name: _children(database, catalog, parent, plan, preview_chars) for plan in expand}
    return Record(
        parent.connection_id,
        parent.stream,
        parent.id,
        parent.body,
        parent.emitted_at,
        parent.previews,
        children,
    )


def _children(
    database: Database, catalog: Catalog, parent: Record, plan: ExpandPlan, preview_chars: int | None
) -> Children:
    scope = scope_of(catalog, plan.child)
    sids = _same_connection(scope, parent)
    if scope is None or not sids:
        return Children((), has_more=False)
    comparison = _holds_key(scope, plan, parent.id)
    if comparison is None:
        return Children((), has_more=False)
    condition, values = comparison
    by_sort = "r.sort DESC NULLS LAST, " if plan.by_cursor_field else ""
    rows = database.rows(
        FoundRow,
        database.sql["children"].format(
            columns=COLUMNS,
            table=scope.dialect.typed_table(scope.stream.stid),
            condition=condition,
            sids=sids,
            where=scope.where,
            order=f"{by_sort}r.record_id DESC",
        ),
        (*values, *scope.values, plan.limit + 1),
    )
    maker = RecordMaker(database, catalog, plan.child, preview_chars=preview_chars)
    records = [maker.make_intact(row) for row in rows[: plan.limit]]
    return Children(
        tuple(record for record in records if record is not None),
        has_more=len(rows) > plan.limit,
        damaged=tuple(maker.damaged),
    )


def _same_connection(scope: SqlScope | None, parent: Record) -> str:
    """Return the shelves of the parent's connection, as a list for SQL."""
    shelves = scope.shelves if scope is not None else ()
    return ",".join(str(shelf.sid) for shelf in shelves if shelf.connection_id == parent.connection_id)


def _holds_key(scope: SqlScope, plan: ExpandPlan, key: RecordId) -> tuple[str, tuple[Any, ...]] | None:
    """Return the condition that a child's field holds the parent's key; None when no value of its kind can."""
    column = column_of(scope.stream, plan.foreign_key)
    value = _value_of_key(column.kind, key)
    if value is None:
        return None
    condition, bound = scope.dialect.key_comparison(scope.stream.stid, column, value)
    if column.kind in {ColumnKind.HASH, ColumnKind.TIME}:
        # Several texts have one checksum, or are one time.
        return f"{condition} AND {scope.dialect.sql['text_of_field']}", (*bound, plan.foreign_key, key)
    return condition, bound


def _value_of_key(kind: ColumnKind, key: RecordId) -> Any:
    """Return the value that is written as this key, if there is one of that kind."""
    if kind in {ColumnKind.INTEGER, ColumnKind.NUMBER, ColumnKind.BOOLEAN}:
        try:
            value = msgspec.json.decode(key)
        except msgspec.DecodeError:
            return None
        is_canonical = isinstance(value, int | float) and key_text(value) == key
        return column_value(kind, value) if is_canonical else None
    return column_value(kind, key)
