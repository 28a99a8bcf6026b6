"""Aggregates: exact numbers over the typed values of the visible records, whatever number of connections they come from.

SQL counts, adds up and groups; one statement sees all shelves of a stream. What is left to do here: buckets of time are those
of a clock on the wall, sums may be longer than 64 bits, and the first groups are chosen among all.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Any, NamedTuple

from headgate.errors import ResourceLimit
from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.instants import DAY_US, iso
from headgate.model.plan import AggregatePlan, TimeGroups
from headgate.model.query import ExtractType, Metric
from headgate.model.rows import Aggregate, Group
from headgate.store.format.columns import Column, ColumnKind
from headgate.store.format.streams import StreamTable
from headgate.store.queries import calendar
from headgate.store.queries.scope import SqlScope, VisibleRows, column_of, scope_of, visible_rows
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

_DATE_CHARS = 10
_SECOND_US = 1_000_000
#: Added to times before they are divided: engines round to zero, and so no time may be negative. A multiple of every step.
_YEAR_ZERO_SECONDS = 719_528 * 86_400
_HALF_BITS = 32
#: Holds the sum of any floats with all their digits.
_WIDE = Context(prec=1200)
_NOTHING = Decimal(0)


#: What is read from a text, as it is added up and compared: a number, or the ordinal of a day.
ReadValue = Decimal | int


class ReadableTexts(NamedTuple):
    """The row numbers of the only records that may have a value in their texts, and what reads the values of some."""

    rids: Sequence[int]
    read: Callable[[Sequence[int]], Mapping[int, ReadValue]]
    #: Most of them that are read.
    most: int


def aggregate(
    database: Database,
    catalog: Catalog,
    plan: AggregatePlan,
    among: Sequence[int] | None = None,
    texts: ReadableTexts | None = None,
) -> Aggregate:
    """Compute what the plan asks for, over all its rows or over those of them with one of these numbers.

    The numbers are those of rows of the reach. ``texts`` are what a plan needs that extracts values.
    """
    scope = scope_of(catalog, plan.reach, plan.filters)
    if scope is None or (among is not None and not among):
        return _of_nothing(plan)
    if plan.metric is Metric.COUNT and plan.group_by is None and texts is None:
        total = _count(database, scope, plan, among)
        return Aggregate(total, total)
    rows = visible_rows(scope, plan.reach, plan.filters, among=among)
    question = _Question(database, scope.stream, plan, rows)
    groups = question.groups()
    if plan.group_by is None:
        groups.setdefault((), _Numbers())
    if texts is not None:
        holding = visible_rows(scope, plan.reach, plan.filters, among=texts.rids)
        _take_values(question, groups, holding, texts)
    if plan.group_by is not None:
        return _grouped(question, groups)
    numbers = groups[()]
    value = None if numbers.value is None else question.shown(numbers.value)
    return Aggregate(numbers.count, value, None, 0, *_gaps(plan, [numbers]))


def _take_values(
    question: _Question, groups: dict[_Key, _Numbers], rows: VisibleRows, texts: ReadableTexts
) -> None:
    """Add the values of texts to the numbers of their groups."""
    holding = question.members(rows, texts.most + 1) if texts.rids else []
    if len(holding) > texts.most:
        raise ResourceLimit(
            f"More than {texts.most} of these records hold the phrase of extract.",
            param="extract",
            hint="Narrow with filter, q, in or connection_id, and add the answers up.",
        )
    values = texts.read([rid for _, rid in holding])
    metric = question.plan.metric
    for numbers in groups.values():
        numbers.value = {Metric.COUNT: 0, Metric.SUM: _NOTHING}.get(metric)
    for key, rid in holding:
        value = values.get(rid)
        if value is not None:
            groups[key].take(metric, value)


def _count(database: Database, scope: SqlScope, plan: AggregatePlan, among: Sequence[int] | None) -> int:
    if among is not None and not plan.filters:
        return len(among)
    if among is None and scope.is_whole:
        return database.value(database.sql["live_of_shelves"].format(sids=scope.sids))
    rows = visible_rows(scope, plan.reach, plan.filters, with_typed=False, among=among)
    return count_rows(database, rows)


def count_rows(database: Database, rows: VisibleRows) -> int:
    sql = database.sql["aggregate"].format(select="count(*)", rows=rows.sql, groups="")
    return database.value(sql, rows.values)


def _of_nothing(plan: AggregatePlan) -> Aggregate:
    if plan.group_by is not None:
        return Aggregate(0, None, (), 0, *_gaps(plan, ()))
    value = 0 if plan.metric in {Metric.COUNT, Metric.COUNT_DISTINCT, Metric.SUM} else None
    is_text = plan.extract is not None and plan.metric is Metric.SUM
    return Aggregate(0, str(value) if is_text else value, None, 0, *_gaps(plan, ()))


def _gaps(plan: AggregatePlan, groups: Collection[_Numbers]) -> tuple[int | None, int | None, int | None]:
    """Count the records without a value, with one that cannot be read, and with one in a text."""
    missing = sum(numbers.missing for numbers in groups)
    if plan.extract is not None:
        return missing, None, sum(numbers.known for numbers in groups)
    if plan.field is not None:
        return missing, sum(numbers.unreadable for numbers in groups), None
    return None, None, None


# Groups in order


def _grouped(question: _Question, groups: dict[_Key, _Numbers]) -> Aggregate:
    """Choose the first groups, up to the plan's limit."""
    plan = question.plan
    total = sum(numbers.count for numbers in groups.values())
    chosen = heapq.nsmallest(plan.limit, groups.items(), key=lambda item: _place(plan, *item))
    first_groups = tuple(_group(question, key, numbers) for key, numbers in chosen)
    rest = total - sum(group.count for group in first_groups)
    return Aggregate(total, None, first_groups, rest, *_gaps(plan, groups.values()))


def _place(plan: AggregatePlan, key: _Key, numbers: _Numbers) -> tuple[Any, ...]:
    """Return what groups are ordered by: time, or how large they are, then time, then the value; nothing comes last."""
    order = tuple((part is None, 0 if part is None else part) for part in reversed(key))
    if isinstance(plan.group_by, TimeGroups):
        return order
    return _rank(plan.metric, numbers.value if plan.has_values else numbers.count), *order


def _rank(metric: Metric, value: Any) -> tuple[bool, Any]:
    """Return small ranks for groups that come first: large values, and for minima small ones.

    Sums count without their sign, since what was spent may be written as negative amounts.
    """
    if value is None:
        return True, 0
    if metric is Metric.SUM:
        return False, _negative(abs(value) if isinstance(value, int) else _WIDE.abs(value))
    return False, value if metric is Metric.MIN else _negative(value)


def _negative(value: Any) -> Any:
    return _WIDE.minus(value) if isinstance(value, Decimal) else -value


def _group(question: _Question, key: _Key, numbers: _Numbers) -> Group:
    plan = question.plan
    value = None if not plan.has_values or numbers.value is None else question.shown(numbers.value)
    gaps = (numbers.missing, numbers.unreadable) if plan.has_values else (0, 0)
    if isinstance(plan.group_by, TimeGroups):
        return Group(_bucket(plan.group_by, key[0]), numbers.count, value, None, *gaps)
    assert plan.group_by is not None
    time = None if plan.then_by is None else _bucket(plan.then_by, key[1])
    first = None if key[0] is None else shown_value(question.stream, plan.group_by, key[0])
    return Group(first, numbers.count, value, time, *gaps)


def _bucket(groups: TimeGroups, number: int | None) -> str | None:
    return None if number is None else calendar.bucket_name(number, groups.granularity)


def shown_value(stream: StreamTable, name: FieldName, value: Any) -> Any:
    """Write a stored value the way its field does."""
    kind = stream.declaration.fields[name].kind
    if kind is FieldKind.NUMBER:
        # Turn -0.0 into 0.0: which of the two came first would show.
        return float(value) + 0.0
    if kind is FieldKind.BOOLEAN:
        return bool(value)
    if not kind.is_time:
        return value
    text = iso(value)
    return text[:_DATE_CHARS] if kind is FieldKind.DATE and value % DAY_US == 0 else text


# Numbers of each group


#: The value that a group has, and the number of its bucket of time: one of them, or both, or none for all rows.
_Key = tuple[Any, ...]
_Row = tuple[Any, ...]


@dataclass(slots=True)
class _Numbers:
    """What is known of a group."""

    count: int = 0
    #: How many rows have a value of the metric's field, and how many one that cannot be read.
    known: int = 0
    unreadable: int = 0
    #: How many values a sum holds.
    exact: int = 0
    #: None: no row has a value. Sums and distinct counts are 0 then.
    value: Any = None

    @property
    def missing(self) -> int:
        return self.count - self.known - self.unreadable

    def take(self, metric: Metric, value: ReadValue) -> None:
        """Add a value that was read from a text."""
        self.known += 1
        if metric is Metric.COUNT:
            self.value = self.known
        elif metric is Metric.SUM:
            self.value = _WIDE.add(self.value, value)
        elif self.value is None:
            self.value = value
        else:
            # Of equal numbers the one with more digits, whichever came first.
            self.value = (min if metric is Metric.MIN else max)(
                self.value, value, key=lambda each: _written(metric, each)
            )


def _written(metric: Metric, value: ReadValue) -> tuple[ReadValue, int]:
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    assert isinstance(exponent, int)
    return value, exponent if metric is Metric.MIN else -exponent


class _Question:
    """One aggregate over some rows: which statements answer it, and what their rows mean."""

    def __init__(
        self, database: Database, stream: StreamTable, plan: AggregatePlan, rows: VisibleRows
    ) -> None:
        self.plan = plan
        self.stream = stream
        self._database = database
        self._dialect = database.dialect
        self._rows = rows
        self._column = None if plan.field is None else column_of(stream, plan.field)
        keys = [key for key in (plan.group_by, plan.then_by) if key is not None]
        self._values = [key for key in keys if not isinstance(key, TimeGroups)]
        self._time = next((key for key in keys if isinstance(key, TimeGroups)), None)
        self._span = calendar.USUAL_SPAN

    def shown(self, value: Any) -> Any:
        """Write the metric's value."""
        if self.plan.extract is not None:
            return self._shown_text(self.plan.extract.type, value)
        assert self.plan.field is not None
        if self.plan.metric in {Metric.MIN, Metric.MAX}:
            return shown_value(self.stream, self.plan.field, value)
        return _as_float(value) if isinstance(value, Decimal) else value

    def _shown_text(self, kind: ExtractType, value: Any) -> int | str:
        """Write a value of texts: a number with all its digits, which no number of JSON is sure to keep."""
        if self.plan.metric is Metric.COUNT:
            return value
        return date.fromordinal(value).isoformat() if kind is ExtractType.DATE else format(value, "f")

    def members(self, rows: VisibleRows, most: int) -> list[tuple[_Key, int]]:
        """Return the group and the number of each of some rows, after the groups are known; at most so many."""
        sql = self._database.sql["aggregate"].format(
            select=", ".join([*self._keys(), "t.rid"]), rows=rows.sql, groups=f" LIMIT {most}"
        )
        return [(key, rid) for key, (rid,) in self._with_keys(self._database.all(sql, rows.values))]

    def groups(self) -> dict[_Key, _Numbers]:
        """Answer it: the numbers of each group; of all rows under the empty key, where there are no groups."""
        rows = self._answered()
        if self._time is not None:
            seconds = self._seconds([row[len(self._values)] for row in rows])
            if not self._span.covers(seconds):
                # Rare: such old or such distant times need steps that suit the clocks of their years.
                self._span = calendar.span_of(seconds)
                rows = self._answered()
        groups: dict[_Key, _Numbers] = {}
        values: set[tuple[Any, ...]] = set()
        for key, rest in self._with_keys(rows):
            numbers = groups.setdefault(key, _Numbers())
            self._add(numbers, rest[1:] if self._is_distinct_by_time else rest)
            if self._is_distinct_by_time and rest[0] is not None and (*key, rest[0]) not in values:
                values.add((*key, rest[0]))
                numbers.value += 1
        if self._column is not None:
            if any(numbers.known < numbers.count for numbers in groups.values()):
                self._count_unreadable(groups)
            if self._column.kind is ColumnKind.NUMBER and self.plan.metric is Metric.SUM:
                self._finish_sums(groups, self._column)
        return groups

    def _answered(self) -> list[_Row]:
        more = [self._value()] if self._is_distinct_by_time else []
        return self._selected(["count(*)", *self._metric()], more=more)

    @property
    def _is_distinct_by_time(self) -> bool:
        """Whether values are counted once in a bucket: a bucket has several steps, so each step gives its values."""
        return self.plan.metric is Metric.COUNT_DISTINCT and self._time is not None

    def _value(self) -> str:
        assert self._column is not None
        return self._dialect.typed_column(self._column)

    def _keys(self) -> list[str]:
        keys = [self._dialect.typed_column(column_of(self.stream, name)) for name in self._values]
        if self._time is not None:
            time = self._dialect.typed_column(column_of(self.stream, self._time.field))
            step = self._step_seconds() * _SECOND_US
            keys.append(f"({time} + {_YEAR_ZERO_SECONDS * _SECOND_US}) / {step}")
        return keys

    def _step_seconds(self) -> int:
        assert self._time is not None
        return calendar.step_seconds(self._time.granularity, self._time.time_zone, self._span)

    def _metric(self) -> list[str]:
        """Write what is selected beside the count: how many values there are, and the metric."""
        if self._column is None:
            return []
        value = self._value()
        if self.plan.metric is Metric.SUM:
            exact = value if self._column.kind is not ColumnKind.NUMBER else self._exact()
            return [f"count({value})", f"count({exact})", self._dialect.sql["exact_sum"].format(value=exact)]
        if self._is_distinct_by_time:
            return [f"count({value})", "0"]
        return [f"count({value})", f"{_FUNCTIONS[self.plan.metric]}{value})"]

    def _exact(self) -> str:
        assert self._column is not None
        return self._dialect.typed_column(self._column.scaled)

    def _seconds(self, steps: Sequence[int | None]) -> list[int]:
        """Return the first second of each step; steps are counted from the year zero."""
        step = self._step_seconds()
        return [number * step - _YEAR_ZERO_SECONDS for number in steps if number is not None]

    def _with_keys(self, rows: Sequence[_Row]) -> Iterator[tuple[_Key, _Row]]:
        """Return the key of each row, with buckets in place of steps, and what follows it."""
        at = len(self._values)
        if self._time is None:
            return ((row[:at], row[at:]) for row in rows)
        steps = list({row[at] for row in rows} - {None})
        numbers = calendar.bucket_numbers(
            self._seconds(steps), self._time.granularity, self._time.time_zone, self._span
        )
        buckets = dict(zip(steps, numbers, strict=True))
        return (((*row[:at], buckets.get(row[at])), row[at + 1 :]) for row in rows)

    def _add(self, numbers: _Numbers, row: _Row) -> None:
        """Add what a statement found to the numbers of its group."""
        numbers.count += row[0]
        if self._column is None:
            return
        known, *values = row[1:]
        numbers.known += known
        if self.plan.metric is Metric.SUM:
            exact, high, low = values
            numbers.exact += exact
            numbers.value = (numbers.value or 0) + (int(high or 0) << _HALF_BITS) + int(low or 0)
        elif self.plan.metric is Metric.COUNT_DISTINCT:
            numbers.value = (numbers.value or 0) + values[0]
        elif numbers.value is None or values[0] is None:
            numbers.value = values[0] if numbers.value is None else numbers.value
        else:
            numbers.value = (min if self.plan.metric is Metric.MIN else max)(numbers.value, values[0])

    def _count_unreadable(self, groups: dict[_Key, _Numbers]) -> None:
        """Count the rows of each group whose value cannot be read as the field's type."""
        assert self.plan.field is not None
        condition = self._dialect.sql["is_unreadable"].format(
            value=self._value(), fid=self.stream.fids[self.plan.field]
        )
        for key, (count,) in self._with_keys(self._selected(["count(*)"], f" AND {condition}")):
            groups[key].unreadable += count

    def _selected(self, selected: Sequence[str], condition: str = "", more: Sequence[str] = ()) -> list[_Row]:
        """Select something of each group of the rows that pass a condition; groups may be divided by more keys."""
        keys = [*self._keys(), *more]
        groups = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
        sql = self._database.sql["aggregate"].format(
            select=", ".join([*keys, *selected]), rows=f"{self._rows.sql}{condition}", groups=groups
        )
        return self._database.all(sql, self._rows.values)

    def _finish_sums(self, groups: dict[_Key, _Numbers], column: Column) -> None:
        """Turn sums of exact values into the sums that they stand for, and add what has no exact value."""
        scales = dict(self._database.all(self._database.sql["column_scales"], (self.stream.stid,)))
        scale = scales.get(column.number, 0)
        is_exact = all(numbers.exact == numbers.known for numbers in groups.values())
        rest = {} if is_exact else self._inexact()
        for key, numbers in groups.items():
            whole = Decimal(numbers.value or 0).scaleb(-scale, _WIDE)
            numbers.value = _WIDE.add(whole, rest.get(key, _NOTHING))

    def _inexact(self) -> dict[_Key, Decimal]:
        """Add up the numbers that have no exact value, one by one, by group."""
        value = self._value()
        sql = self._database.sql["aggregate"].format(
            select=", ".join([*self._keys(), value]),
            rows=f"{self._rows.sql} AND {self._exact()} IS NULL AND {value} IS NOT NULL",
            groups="",
        )
        sums: dict[_Key, Decimal] = {}
        for key, (number,) in self._with_keys(self._database.all(sql, self._rows.values)):
            sums[key] = _WIDE.add(sums.get(key, _NOTHING), Decimal(repr(number)))
        return sums


_FUNCTIONS = {Metric.MIN: "min(", Metric.MAX: "max(", Metric.COUNT_DISTINCT: "count(DISTINCT "}


def _as_float(total: Decimal) -> float:
    """Round a sum once."""
    value = float(total)
    if math.isinf(value):
        raise ResourceLimit("The sum is larger than a number can be.")
    return value + 0.0
