"""A store in a few dicts: every plan answered by looking at everything. Slow, and easy to believe."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from headgate.model.declaration import FieldKind, Semantics, SourceDeclaration, StreamDeclaration
from headgate.model.ids import ConnectionId, FieldName, StreamName, canonical_key, key_text
from headgate.model.instants import instant, iso
from headgate.model.plan import (
    AggregatePlan,
    ChangesPlan,
    ExpandPlan,
    PagePlan,
    Reach,
    SearchPlan,
    SearchReach,
    Term,
    TimeGroups,
)
from headgate.model.query import ExactFilter, Filter, Granularity, Metric, Order
from headgate.model.rows import Aggregate, Group

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_COMPARE = {
    "gte": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "lte": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
}


@dataclass(frozen=True)
class LiveRecord:
    """A live record."""

    connection_id: ConnectionId
    stream: StreamName
    key: str
    values: Mapping[str, Any]
    emitted_at: int


@dataclass(frozen=True)
class Change:
    """One change of one record; None is a record that is not there."""

    before: LiveRecord | None
    after: LiveRecord | None


@dataclass
class Model:
    """Everything that was put in, and everything that ever changed."""

    source: SourceDeclaration
    live: dict[tuple[str, str, str], LiveRecord] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)

    # Writing

    def take(
        self, connection_id: ConnectionId, stream: StreamName, lines: Iterable[Mapping[str, Any]], at: int
    ) -> None:
        """Take good lines in, one after the other; what a batch changes and takes back is no change."""
        declared = self.source.streams[stream]
        before: dict[tuple[str, str, str], LiveRecord | None] = {}
        for line in lines:
            values = line.get("data", {})
            is_delete = line.get("op") == "delete"
            key = line["key"] if is_delete else canonical_key([values[name] for name in declared.primary_key])
            place = (connection_id, stream, key)
            now = self.live.get(place)
            before.setdefault(place, now)
            if is_delete:
                self.live.pop(place, None)
            elif now is None or (
                declared.semantics is Semantics.MUTABLE_STATE and not same(now.values, values)
            ):
                self.live[place] = LiveRecord(connection_id, stream, key, values, at)
        for place, was in before.items():
            now = self.live.get(place)
            if (was is None) != (now is None) or (was and now and not same(was.values, now.values)):
                self.log.append(Change(was, now))

    # Reading

    def visible(self, reach: Reach, filters: Sequence[Filter] = ()) -> list[LiveRecord]:
        """Give the records that a reach covers and filters let through."""
        declared = self.source.streams[reach.stream]
        return [
            one
            for one in self.live.values()
            if in_reach(one, reach) and all(_passes(declared, one, each) for each in filters)
        ]

    def page(self, plan: PagePlan) -> list[LiveRecord]:
        """Give all records of a page and of those after it, in order."""
        name = self.source.streams[plan.reach.stream].cursor_field if plan.by_cursor_field else None
        found = self.visible(plan.reach, plan.filters)

        def place(one: LiveRecord) -> Any:
            return None if name is None else self.comparable(one, name)

        is_descending = plan.order is Order.DESC
        placed = sorted(
            (one for one in found if place(one) is not None),
            key=lambda one: (place(one), one.key),
            reverse=is_descending,
        )
        placeless = [one for one in found if place(one) is None]
        return placed + sorted(placeless, key=lambda one: one.key, reverse=is_descending)

    def extent(self, plan: PagePlan) -> tuple[int, int | None, int | None]:
        """Give how many records there are and the times they span."""
        found = self.visible(plan.reach, plan.filters)
        name = time_field(self.source.streams[plan.reach.stream])
        times = [time for one in found if name and (time := self.comparable(one, name)) is not None]
        return len(found), min(times, default=None), max(times, default=None)

    def comparable(self, one: LiveRecord, name: FieldName) -> Any:
        """Give the value of a field as it compares, or None."""
        return comparable(self.source.streams[one.stream], one.values, name)

    def children(self, parent: LiveRecord, plan: ExpandPlan) -> list[LiveRecord]:
        """Give a record's children, last first."""
        page = PagePlan(plan.child, plan.limit)
        return [
            one
            for one in self.page(page)
            if one.connection_id == parent.connection_id
            and is_key(one.values.get(plan.foreign_key))
            and key_text(one.values[plan.foreign_key]) == parent.key
        ]

    # Aggregates

    def aggregate(self, plan: AggregatePlan) -> Aggregate:
        """Compute a number, or groups."""
        found = self.visible(plan.reach, plan.filters)
        if plan.words is not None:
            reach = SearchReach(plan.reach, plan.words.search_fields, quoted_fields=plan.words.quoted_fields)
            words = SearchPlan((reach,), plan.words.terms, 0)
            holding, own = (self.search(asked) for asked in (words, without_quoted(words)))
            every = [one for one in found if (one.connection_id, one.stream, one.key) in holding]
            found = [one for one in every if (one.connection_id, one.stream, one.key) in own]
            counted = len(every) - len(found) if plan.words.quoted_fields else None
            return replace(self._numbers(plan, found), quoted_count=counted)
        return self._numbers(plan, found)

    def _numbers(self, plan: AggregatePlan, found: Sequence[LiveRecord]) -> Aggregate:
        gaps = (None, None) if plan.field is None else self._gaps(plan, found)
        if plan.group_by is None:
            return Aggregate(len(found), self._metric(plan, found), None, 0, *gaps)
        groups = self._groups(plan, found)[: plan.limit]
        rest = len(found) - sum(group.count for group in groups)
        return Aggregate(len(found), None, tuple(groups), rest, *gaps)

    def _gaps(self, plan: AggregatePlan, found: Sequence[LiveRecord]) -> tuple[int, int]:
        """Count the records without a value of the metric's field, and those with one of another type."""
        if plan.field is None:
            return 0, 0
        without = [one for one in found if self.comparable(one, plan.field) is None]
        missing = sum(one.values.get(plan.field) is None for one in without)
        return missing, len(without) - missing

    def _groups(self, plan: AggregatePlan, found: Sequence[LiveRecord]) -> list[Group]:
        members: dict[tuple[Any, ...], list[LiveRecord]] = {}
        for one in found:
            keys = (self._key(one, key) for key in (plan.group_by, plan.then_by) if key is not None)
            members.setdefault(tuple(keys), []).append(one)

        def order(keys: tuple[Any, ...]) -> tuple[Any, ...]:
            # The last year has five digits east of Greenwich.
            times = [(time is None, len(time or ""), time or "") for time in keys[1:]]
            if isinstance(plan.group_by, TimeGroups):
                return keys[0] is None, len(keys[0] or ""), keys[0] or ""
            return (
                *self._rank(plan, members[keys]),
                times,
                keys[0] is None,
                "" if keys[0] is None else keys[0],
            )

        return [self._group(plan, keys, members[keys]) for keys in sorted(members, key=order)]

    def _key(self, one: LiveRecord, key: FieldName | TimeGroups) -> Any:
        if not isinstance(key, TimeGroups):
            return self.comparable(one, key)
        time = self.comparable(one, key.field)
        return None if time is None else local_bucket(time, key.granularity, ZoneInfo(key.time_zone))

    def _rank(self, plan: AggregatePlan, members: Sequence[LiveRecord]) -> tuple[bool, Any]:
        value = self._raw_metric(plan, members)
        if value is None:
            return True, 0
        return False, {Metric.SUM: -abs(value), Metric.MIN: value}.get(plan.metric, -value)

    def _group(self, plan: AggregatePlan, keys: tuple[Any, ...], members: Sequence[LiveRecord]) -> Group:
        key, *times = keys
        if plan.group_by is not None and not isinstance(plan.group_by, TimeGroups):
            key = shown(self.source.streams[plan.reach.stream].fields[plan.group_by].kind, key)
        value = None if plan.field is None else self._metric(plan, members)
        return Group(key, len(members), value, (*times, None)[0], *self._gaps(plan, members))

    def _metric(self, plan: AggregatePlan, found: Sequence[LiveRecord]) -> Any:
        value = self._raw_metric(plan, found)
        if plan.field is None or plan.metric in {Metric.SUM, Metric.COUNT_DISTINCT}:
            return value
        return shown(self.source.streams[plan.reach.stream].fields[plan.field].kind, value)

    def _raw_metric(self, plan: AggregatePlan, found: Sequence[LiveRecord]) -> Any:
        if plan.field is None:
            return len(found)
        kind = self.source.streams[plan.reach.stream].fields[plan.field].kind
        values = [value for one in found if (value := self.comparable(one, plan.field)) is not None]
        match plan.metric:
            case Metric.COUNT_DISTINCT:
                return len(set(values))
            case Metric.SUM:
                return decimal_sum(values) if kind is FieldKind.NUMBER else sum(values)
            case Metric.MIN:
                return min(values, default=None)
            case _:
                return max(values, default=None)

    # Changes

    def changes(self, plan: ChangesPlan) -> dict[tuple[str, str], LiveRecord | None]:
        """Give what a reader needs to go from one change number to the last; None is a tombstone."""
        then = self._state(plan.since)
        places = {place: None for change in self.log[plan.since :] for place in [_place(change)]}
        entries: dict[tuple[str, str], LiveRecord | None] = {}
        for place in places:
            before, after = then.get(place), self.live.get(place)
            saw = before is not None and in_reach(before, plan.reach) and plan.since > 0
            sees = after is not None and in_reach(after, plan.reach)
            if saw and not sees:
                entries[place[0], place[2]] = None
            elif sees and (not saw or self._has_changed(place, plan)):
                entries[place[0], place[2]] = after
        return entries

    def _state(self, number: int) -> dict[tuple[str, str, str], LiveRecord]:
        state: dict[tuple[str, str, str], LiveRecord] = {}
        for change in self.log[:number]:
            state.pop(_place(change), None)
            if change.after:
                state[_place(change)] = change.after
        return state

    def _has_changed(self, place: tuple[str, str, str], plan: ChangesPlan) -> bool:
        """Say whether a visible field was given another value in between, even if it was taken back."""
        return any(
            change.before is None
            or change.after is None
            or any(differs(change.before.values, change.after.values, name) for name in plan.reach.fields)
            for change in self.log[plan.since :]
            if _place(change) == place
        )

    # Search

    def search(self, plan: SearchPlan) -> dict[tuple[str, str, str], set[str]]:
        """Give the records that hold all terms, and the fields that hold any of them."""
        hits: dict[tuple[str, str, str], set[str]] = {}
        for each in plan.reaches:
            for one in self.visible(each.reach, plan.filters):
                texts = {name: one.values.get(name) for name in each.search_fields}
                texts = {name: text for name, text in texts.items() if isinstance(text, str)}
                holding = [{name for name in texts if holds(texts[name], term)} for term in plan.terms]
                if all(holding):
                    hits[one.connection_id, one.stream, one.key] = set().union(*holding)
        return hits


def without_quoted(plan: SearchPlan) -> SearchPlan:
    """Give the same search without the fields of quoted text."""
    reaches = [
        replace(
            each, search_fields=tuple(name for name in each.search_fields if name not in each.quoted_fields)
        )
        for each in plan.reaches
    ]
    return replace(plan, reaches=tuple(reaches))


# Values


def decimal_sum(values: Iterable[float]) -> float:
    """Add numbers up as they are written, and round once."""
    return float(sum(Fraction(repr(value)) for value in values))


def time_field(declared: StreamDeclaration) -> FieldName | None:
    """Say which field places a stream's records in time."""
    cursor = declared.cursor_field
    if declared.consent_time_field is not None:
        return declared.consent_time_field
    return cursor if cursor is not None and declared.fields[cursor].kind.is_time else None


def in_reach(one: LiveRecord, reach: Reach) -> bool:
    """Say whether a live record is inside a reach."""
    if one.stream != reach.stream or one.connection_id not in reach.connection_ids:
        return False
    if reach.resources is not None and one.key not in reach.resources:
        return False
    if reach.time is None:
        return True
    value = one.values.get(reach.time.field)
    time = instant(value) if isinstance(value, str) else None
    since, until = reach.time.since, reach.time.until
    return time is not None and (since is None or time >= since) and (until is None or time < until)


def comparable(declared: StreamDeclaration, values: Mapping[str, Any], name: FieldName) -> Any:
    """Give a value as it compares; None for none and for one of another type."""
    value = values.get(name)
    match declared.fields[name].kind:
        case FieldKind.TEXT:
            return value if isinstance(value, str) else None
        case FieldKind.BOOLEAN:
            return value if isinstance(value, bool) else None
        case FieldKind.DATE | FieldKind.DATE_TIME:
            return instant(value) if isinstance(value, str) else None
        case FieldKind.INTEGER:
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return int(value) if is_whole and not isinstance(value, bool) else None
        case _:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return float(value) if is_number else None


def shown(kind: FieldKind, value: Any) -> Any:
    """Write a comparable value the way its field does."""
    if value is None or not kind.is_time:
        return value
    text = iso(value)
    return text[:10] if kind is FieldKind.DATE and value % _DAY_US == 0 else text


def same(before: Any, after: Any) -> bool:
    """Say whether two values are written alike; 1 and 1.0 and true are not."""
    return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)


def differs(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """Say whether a field is there in one only, or has another value."""
    if (name in before) != (name in after):
        return True
    return name in before and not same(before[name], after[name])


def is_key(value: Any) -> bool:
    """Say whether a value can be part of a key."""
    return isinstance(value, str | int | float)


def _passes(declared: StreamDeclaration, one: LiveRecord, each: Filter) -> bool:
    value = comparable(declared, one.values, each.field)
    if value is None:
        return False
    return (
        value == each.value if isinstance(each, ExactFilter) else _COMPARE[each.operator](value, each.value)
    )


def _place(change: Change) -> tuple[str, str, str]:
    one = change.after or change.before
    assert one is not None
    return one.connection_id, one.stream, one.key


# Groups


def local_bucket(microseconds: int, granularity: Granularity, zone: ZoneInfo) -> str:
    """Name the bucket that a time falls into on a wall clock."""
    # Four hundred years away the calendar is the same, and no clock leaves it.
    moment = _EPOCH + timedelta(microseconds=microseconds)
    years = {1: 400, 9999: -400}.get(moment.year, 0)
    if not years:
        return _bucket(moment.astimezone(zone).replace(tzinfo=None), granularity)
    inside = moment.replace(tzinfo=None) + timedelta(days=2 if years > 0 else -2)
    offset = inside.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    name = _bucket(moment.replace(tzinfo=None, year=moment.year + years) + offset, granularity)
    return f"{int(name[:4]) - years:04}{name[4:]}"


def _bucket(local: datetime, granularity: Granularity) -> str:
    if granularity is Granularity.MINUTE:
        return local.isoformat(timespec="minutes")
    if granularity is Granularity.HOUR:
        return local.replace(minute=0).isoformat(timespec="minutes")
    day = local.date()
    starts = {
        Granularity.DAY: day,
        Granularity.WEEK: day - timedelta(days=day.weekday()),
        Granularity.MONTH: day.replace(day=1),
        Granularity.QUARTER: day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1),
    }
    return starts.get(granularity, day.replace(day=1, month=1)).isoformat()


# Words


def fold(text: str) -> str:
    """Leave case and accents out."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).lower().replace("ß", "ss")


def words(text: str) -> list[str]:
    """Give the words of a text; one that is written without spaces stays whole."""
    return re.findall(r"[^\W_]+", fold(text))


def holds(text: str, term: Term) -> bool:
    """Say whether a text holds a term."""
    sought = [word for part in term.words for word in words(part)]
    if re.search(f"[{UNSPACED}]", "".join(sought)):
        return re.search(_phrase(sought, term), fold(text)) is not None
    have = words(text)
    return any(_fits(have[at : at + len(sought)], sought, term) for at in range(len(have)))


UNSPACED = "\u2e80-\U0003ffff"
_LETTER = rf"[^\W_{UNSPACED}]"


def _phrase(sought: Sequence[str], term: Term) -> str:
    """Write a phrase as a pattern: runs without spaces may begin and end within others, words may not."""
    last = len(sought) - 1
    parts: list[str] = []
    for at, word in enumerate(sought):
        is_run = re.match(f"[{UNSPACED}]", word) is not None
        before = "" if is_run and not at else rf"(?<!{f'[{UNSPACED}]' if is_run else _LETTER})"
        is_open = at == last and (is_run or term.is_prefix)
        after = "" if is_open else rf"(?!{f'[{UNSPACED}]' if is_run else _LETTER})"
        parts.append(f"{before}{re.escape(word)}{after}")
    return r"[\W_]*".join(parts)


def _fits(have: Sequence[str], sought: Sequence[str], term: Term) -> bool:
    if len(have) < len(sought):
        return False
    *first, last = zip(have, sought, strict=True)
    ends = last[0].startswith(last[1]) if term.is_prefix else last[0] == last[1]
    return ends and all(left == right for left, right in first)
