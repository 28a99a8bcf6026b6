"""The text of an aggregate: one number, or the groups that fit and the call that shows the others.

A key can be of any length. A long one is begun, and a cursor printed beside it reads on where it stops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from headgate.model.query import MAX_GROUPS
from headgate.model.wire import AggregateBody, GroupBody, Json
from headgate.text.ladder import binary_facts
from headgate.text.line import coverage_fact
from headgate.text.records import warning_facts
from headgate.text.search import understood_line
from headgate.text.writing import AGGREGATE_TEXT, ELLIPSIS, cut, fenced, fitting, json_text, name, size

_KEY_CHARS = 60
_KEY_WINDOW = 4096
_MARK_CHARS = 8
_CURSOR = re.compile(r"(\d{1,3})(?::(\d{1,9}):([0-9a-f]{8}))?")
_FILE = ("binary_field", "mime_type", "size_chars")
#: A number with all its digits, which is sent as a text.
_DECIMAL = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?")
_GAPS = ("missing", "unreadable")


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


def aggregate_text(body: AggregateBody, first: int = 0) -> str:
    """Write the text of an aggregate from its body, with its groups from the given one on."""
    what = _what(body)
    counted = f"filtered_record_count={json_text(body.get('filtered_record_count'))}"
    if "extract" in body:
        counted += f"; value_count={json_text(body.get('value_count'))} (records with a value)"
    if missing := body.get("missing_value_count"):
        where = "after the phrase" if "extract" in body else "in field"
        counted += f"; missing_value_count={missing} (records without a value {where}; not in the result)"
    if unreadable := body.get("unreadable_value_count"):
        counted += (
            f"; unreadable_value_count={unreadable} (records whose value does not fit the field's type; "
            "not in the result)"
        )
    facts = [counted, *coverage_fact(body), *warning_facts(body)]
    counted = "\n".join([" ".join(facts), *understood_line(body)])
    if ("q" in body or "extract" in body) and body.get("filtered_record_count") == 0:
        counted += "\nNothing matched. Try fewer or other words, or a beginning* with a star."
    elif "extract" in body and body.get("value_count") == 0:
        counted += "\nNo record has a value there. Try another phrase, as the texts write it."
    groups = body.get("groups")
    if groups is None:
        return f"{what} = {_value(body.get('value'))}. {counted}"
    return _grouped(body, groups, f"{what}{_by(body)}", counted, first)


def key_text(body: AggregateBody, place: GroupPlace) -> str | None:
    """Write a part of the key of one group; None if the key at that place is another."""
    groups = body.get("groups") or []
    key = groups[place.group].get("key") if place.group < len(groups) else None
    start = place.offset_chars or 0
    if not isinstance(key, str) or _mark(key) != place.mark or start >= len(key) or binary_facts(key):
        return None
    end = min(len(key), start + _KEY_WINDOW)
    head = (
        f"{_what(body)}{_by(body)}: key of group {place.group + 1}, characters {start}..{end} of {len(key)}"
    )
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
    what = f"{name(str(body.get('metric')))}({name(str(body.get('stream')))})"
    extract = body.get("extract")
    if extract:
        kind, after = name(str(extract.get("type"))), json_text(cut(str(extract.get("after")), _KEY_CHARS))
        return f"{what} of the first {kind} after {after}"
    field = body.get("field")
    return f"{what} field={name(str(field))}" if field else what


def _by(body: AggregateBody) -> str:
    facts = {key: body.get(key) for key in ("group_by", "group_by_time", "granularity", "time_zone")}
    return "".join(f" {key}={json_text(value)}" for key, value in facts.items() if value)


def _grouped(body: AggregateBody, groups: Sequence[GroupBody], what: str, counted: str, first: int) -> str:
    # Another server may send none, which is not the same as 0.
    others = (
        f"other_count={json_text(body['other_count'])}" if "other_count" in body else "other_count unknown"
    )
    tail = f"{others}; {counted}"
    if body.get("other_count"):
        tail += f"\nother_count counts records in groups beyond limit; {_beyond(len(groups))}"
    start = f" from group {first + 1}" if first else ""
    legend = ", each value of how many records" if any("value" in group for group in groups) else ""
    head = f"{what}: {len(groups)} group(s){start}{legend} ["
    space = AGGREGATE_TEXT - size(head) - size(tail) - size(_more(999, 999)) - len("]\n")
    written = [_group(group, at) for at, group in enumerate(groups[first:], first)]
    printed = fitting(written, space, len(", ")) or written[:1]
    left = max(0, len(groups) - first - len(printed))
    more = _more(left, first + len(printed)) if left else ""
    return f"{head}{', '.join(printed)}]\n{more}{tail}"


def _beyond(groups: int) -> str:
    return "narrow with filter to see them." if groups >= MAX_GROUPS else "raise limit to see them."


def _more(left: int, following: int) -> str:
    return f"more_groups={left}: {_repeat(GroupPlace(following))}\n"


def _repeat(place: GroupPlace) -> str:
    return f'repeat the call with cursor="{place.write()}"'


def _group(group: GroupBody, at: int) -> str:
    key = _key(group.get("key"), at)
    if "time" in group:
        key += f" @ {_value(group.get('time'))}"
    if "value" not in group:
        return f"{key}={group.get('count')}"
    gaps = [
        f"{group.get(f'{word}_value_count')} {word}" for word in _GAPS if group.get(f"{word}_value_count")
    ]
    left_out = f" ({', '.join(gaps)})" if gaps else ""
    return f"{key}={_value(group.get('value'))} of {group.get('count')}{left_out}"


def _key(key: Any, at: int) -> str:
    if not isinstance(key, str) or len(key) <= _KEY_CHARS:
        return json_text(key)
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
