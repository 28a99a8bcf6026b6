"""The text of an aggregate: one number, or the groups that fit and the call that shows the others.

A key can be of any length. A long one is begun, and a cursor printed beside it reads on where it stops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from headgate.model.query import MAX_GROUPS, ExactFilter, Filter, RangeOperator
from headgate.model.wire import AggregateBody, GroupBody, Json
from headgate.text.ladder import binary_facts
from headgate.text.line import coverage_fact
from headgate.text.records import warning_facts
from headgate.text.search import understood_line
from headgate.text.writing import AGGREGATE_TEXT, ELLIPSIS, cut, fenced, fitting, json_text, line, name, size

_KEY_CHARS = 60
_KEY_WINDOW = 4096
_MARK_CHARS = 8
_CURSOR = re.compile(r"(\d{1,3})(?::(\d{1,9}):([0-9a-f]{8}))?")
_FILE = ("binary_field", "mime_type", "size_chars")
#: A number with all its digits, which is sent as a text.
_DECIMAL = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?")
#: Records whose value is not in the result.
_GAPS = {"missing": "without a value", "unreadable": "with a value of another type"}
_SIGNS = {RangeOperator.GTE: ">=", RangeOperator.GT: ">", RangeOperator.LTE: "<=", RangeOperator.LT: "<"}
_FILTER_BYTES = 400
_JOINT = " · "
#: How much of its first day names a time of a length.
_TIME_CHARS = {"year": 4, "month": 7}
_FIRST_DAY = re.compile(r"\d{4}-\d\d-01")
#: A key that stands without quotes: words, a day or an address, which no number, sign or joint of the line can be taken for.
_BARE = re.compile(r"[^\W\d](?:[\w &'./+@-]*[\w.)])?|\d[\d-]*-[\d-]*\d")
_UNSAFE_END = re.compile(r" \S*\d\S*$| of | @ |^(?:true|false|null)$|\s\s")


class GroupPlace(NamedTuple):
    """Where an aggregate is read on: at a group, or at a character of the key of one."""

    group: int
    offset_chars: int | None = None
    #: Of the key, which can have moved to another place since.
    mark: str = ""

    def write(self) -> str:
        """Write it as a cursor."""
        return (
            str(self.group) if self.offset_chars is None else f"{self.group}:{self.offset_chars}:{self.mark}"
        )


def read_place(cursor: str) -> GroupPlace | None:
    """Read a cursor; None if it is none of these."""
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        return None
    return GroupPlace(int(parts[1]), None if parts[2] is None else int(parts[2]), parts[3] or "")


def aggregate_text(body: AggregateBody, first: int = 0, filters: Sequence[Filter] = ()) -> str:
    """Write the text of an aggregate: what was counted, and the number, or a line for each group from the given one on."""
    what = f"{_what(body)}{_narrowed(body, filters)}"
    understood = [*understood_line(body), *_advice(body)]
    groups = body.get("groups")
    if groups is None:
        head = _JOINT.join([f"{what}: {_value(body.get('value'))}", *_counts(body)])
        return "\n".join([head, *understood])
    how_many = _JOINT.join([f"{what}{_by(body)}", *_counts(body), _how_many(body, groups, first)])
    return _grouped(body, groups, [how_many, *understood], first)


def key_text(body: AggregateBody, place: GroupPlace) -> str | None:
    """Write a part of the key of one group; None if the key at that place is another."""
    groups = body.get("groups") or []
    key = groups[place.group].get("key") if place.group < len(groups) else None
    start = place.offset_chars or 0
    if not isinstance(key, str) or _mark(key) != place.mark or start >= len(key) or binary_facts(key):
        return None
    end = min(len(key), start + _KEY_WINDOW)
    which = f"key of group {place.group + 1}, characters {start}..{end} of {len(key)}"
    head = f"{_what(body)}{_by(body)}: {which}"
    following = [_repeat(place._replace(offset_chars=end))] if end < len(key) else []
    return "\n".join([head, *following, fenced(key[start:end])])


def cut_keys(groups: Sequence[GroupBody], limit_chars: int) -> list[Json]:
    """Cut long keys for the structure: encoded bytes are described, a cut key has the cursor that reads on."""
    return [_cut_key(cast("Json", group), at, limit_chars) for at, group in enumerate(groups)]


def _cut_key(group: Json, at: int, limit_chars: int) -> Json:
    key = group.get("key")
    if not isinstance(key, str) or len(key) <= limit_chars:
        return group
    facts = binary_facts(key)
    if facts is not None:
        return {**group, "key": facts}
    cursor = GroupPlace(at, limit_chars - len(ELLIPSIS), _mark(key)).write()
    return {**group, "key": cut(key, limit_chars), "key_truncated": True, "key_cursor": cursor}


def _what(body: AggregateBody) -> str:
    """Write what the number is of: "sum of amount of transactions"."""
    metric, stream = name(str(body.get("metric"))), name(str(body.get("stream")))
    extract, field = body.get("extract"), body.get("field")
    if extract:
        kind, after = name(str(extract.get("type"))), json_text(cut(str(extract.get("after")), _KEY_CHARS))
        return f"{metric} of the first {kind} after {after} of {stream}"
    return f"{metric} of {name(str(field))} of {stream}" if field else f"{metric} of {stream}"


def _narrowed(body: AggregateBody, filters: Sequence[Filter]) -> str:
    """Write which records are counted: those that hold words, and whose fields are as the filter says."""
    words: Any = body.get("q")
    fields = ", ".join(name(cut(str(field), _KEY_CHARS)) for field in body.get("in") or ())
    holding = f" holding {json_text(cut(words, _KEY_CHARS))}" if isinstance(words, str) else ""
    conditions = fitting(map(_condition, filters), _FILTER_BYTES, len(" and "))
    left = [f"{len(filters) - len(conditions)} more"] if len(conditions) < len(filters) else []
    where = f" where {' and '.join([*conditions, *left])}" if filters else ""
    return f"{holding}{f' in {fields}' if fields else ''}{where}"


def _condition(condition: Filter) -> str:
    sign = "=" if isinstance(condition, ExactFilter) else _SIGNS[condition.operator]
    value = condition.value
    written = name(cut(value, _KEY_CHARS)) if isinstance(value, str) else json_text(value)
    return f"{name(cut(condition.field, _KEY_CHARS))}{sign}{written}"


def _by(body: AggregateBody) -> str:
    """Write what the groups are by: " by category and by month of booked_on (UTC)"."""
    keys = [name(str(key)) for key in [body.get("group_by")] if key]
    if time := body.get("group_by_time"):
        zone = f" ({line(str(body.get('time_zone')))})" if body.get("time_zone") else ""
        keys.append(f"{name(str(body.get('granularity')))} of {name(str(time))}{zone}")
    return f" by {' and by '.join(keys)}" if keys else ""


def _counts(body: AggregateBody) -> list[str]:
    """Write of how many records it is, and how many of them had no value."""
    records = body.get("filtered_record_count")
    facts = [] if records is None or records == body.get("value") else [f"{records} records"]
    if quoted := body.get("quoted_count"):
        facts.append(f"{quoted} more only in quoted text (name its field with in to count them)")
    if "extract" in body:
        facts.append(f"{body.get('value_count')} with a value")
    facts += [
        f"{count} {words}"
        for gap, words in _GAPS.items()
        if (count := body.get(f"{gap}_value_count")) and not ("extract" in body and gap == "missing")
    ]
    return [*facts, *coverage_fact(body), *warning_facts(body)]


def _how_many(body: AggregateBody, groups: Sequence[GroupBody], first: int) -> str:
    """Write how many groups there are, and whether these are all; another server may not say."""
    beyond = body.get("other_count")
    number = f"{len(groups)} group{'' if len(groups) == 1 else 's'}"
    known = (
        f"{number}, others unknown" if beyond is None else f"first {number}" if beyond else f"all {number}"
    )
    return f"{known}, from {first + 1} on" if first else known


def _advice(body: AggregateBody) -> list[str]:
    if ("q" in body or "extract" in body) and body.get("filtered_record_count") == 0:
        return ["Nothing matched. Try fewer or other words, or a beginning* with a star."]
    if "extract" in body and body.get("value_count") == 0:
        return ["No record has a value there. Try another phrase, as the texts write it."]
    return []


def _grouped(body: AggregateBody, groups: Sequence[GroupBody], head: list[str], first: int) -> str:
    beyond = _beyond(body, len(groups))
    space = AGGREGATE_TEXT - size("\n".join([*head, *beyond])) - size(_more(999, 999)) - 2
    written = [_group(_timed(group, body), at) for at, group in enumerate(groups[first:], first)]
    printed = fitting(written, space) or written[:1]
    left = max(0, len(groups) - first - len(printed))
    more = [_more(left, first + len(printed))] if left else []
    return "\n".join([*head, *printed, *more, *beyond])


def _beyond(body: AggregateBody, groups: int) -> list[str]:
    """Write how many records are in groups beyond the limit, and how to see them."""
    others, records = body.get("other_count"), body.get("filtered_record_count")
    if not others:
        return []
    share = f" ({others * 100 / records:.0f}%)" if records else ""
    advice = "narrow with filter" if groups >= MAX_GROUPS else f"raise limit, up to {MAX_GROUPS}"
    return [f"+ {others} records{share} in groups beyond limit: {advice}"]


def _more(left: int, following: int) -> str:
    return f"+ {left} groups that are not printed: {_repeat(GroupPlace(following))}"


def _repeat(place: GroupPlace) -> str:
    return f'repeat the call with cursor="{place.write()}"'


def _timed(group: GroupBody, body: AggregateBody) -> GroupBody:
    """Write the first day of a month or a year as that month or year."""
    chars = _TIME_CHARS.get(str(body.get("granularity")))
    member = "time" if "time" in group else "key"
    time: Any = group.get(member)
    if not chars or not body.get("group_by_time") or not isinstance(time, str) or not _FIRST_DAY.match(time):
        return group
    return cast("GroupBody", {**group, member: time[:chars]})


def _group(group: GroupBody, at: int) -> str:
    """Write a group: "Groceries 312", or with a value "Groceries -14894.82 of 300 records"."""
    key = _key(group.get("key"), at)
    if "time" in group:
        key += f" @ {_key(group.get('time'), at)}"
    if "value" not in group:
        return f"{key} {group.get('count')}"
    gaps = [
        f", {count} {words}" for gap, words in _GAPS.items() if (count := group.get(f"{gap}_value_count"))
    ]
    return f"{key} {_value(group.get('value'))} of {group.get('count')} records{''.join(gaps)}"


def _key(key: Any, at: int) -> str:
    if not isinstance(key, str):
        return json_text(key)
    if len(key) <= _KEY_CHARS:
        is_bare = _BARE.fullmatch(key) and not _UNSAFE_END.search(key) and line(key) == key
        return key if is_bare else json_text(key)
    facts = binary_facts(key)
    if facts is not None:
        return json_text({fact: facts[fact] for fact in _FILE})
    stop = _KEY_CHARS - len(ELLIPSIS)
    return f'{json_text(cut(key, _KEY_CHARS))} (reads on with cursor="{GroupPlace(at, stop, _mark(key)).write()}")'


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if _DECIMAL.fullmatch(value) else json_text(cut(value, _KEY_CHARS))
    return json_text(value)


def _mark(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:_MARK_CHARS]
