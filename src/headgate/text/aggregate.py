"""The text of an aggregate: one number, or the first groups and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.model.wire import AggregateBody, GroupBody
from headgate.text.budget import AGGREGATE_TEXT, Line, compose, cut
from headgate.text.quote import json_text, name

_SHOWN = 5
_KEY_CHARS = 60


def aggregate_text(body: AggregateBody) -> str:
    """Write the text of an aggregate from its body."""
    what = f"{name(str(body.get('metric')))}({name(str(body.get('stream')))})"
    if field := body.get("field"):
        what += f" field={name(str(field))}"
    counted = f"filtered_record_count={json_text(body.get('filtered_record_count'))}"
    if missing := body.get("missing_value_count"):
        counted += (
            f"; missing_value_count={missing} (records without a usable value in field; not in the result)"
        )
    groups = body.get("groups")
    if groups is None:
        return compose([Line(f"{what} = {json_text(body.get('value'))}. {counted}")], AGGREGATE_TEXT)
    return compose(_grouped(body, groups, f"{what}{_by(body)}", counted), AGGREGATE_TEXT)


def _by(body: AggregateBody) -> str:
    facts = {key: body.get(key) for key in ("group_by", "group_by_time", "granularity", "time_zone")}
    return "".join(f" {key}={json_text(value)}" for key, value in facts.items() if value)


def _grouped(body: AggregateBody, groups: Sequence[GroupBody], what: str, counted: str) -> list[Line]:
    shown = ", ".join(_group(group) for group in groups[:_SHOWN])
    more = max(0, len(groups) - _SHOWN)
    lines = [Line(f"{what}: {len(groups)} group(s) [{shown}]")]
    # Another server may send none, which is not the same as 0.
    others = (
        f"other_count={json_text(body['other_count'])}" if "other_count" in body else "other_count unknown"
    )
    tail = f"{others}; {counted}"
    lines.append(Line(f"more_groups={more}; {tail}" if more else tail))
    if more:
        rest = ", ".join(_group(group) for group in groups[_SHOWN:])
        lines.append(Line(f"further groups: {rest}", 1))
    if body.get("other_count"):
        lines.append(Line("other_count counts records in groups beyond limit; raise limit to see them.", 2))
    return lines


def _group(group: GroupBody) -> str:
    key = _key(group.get("key"))
    if "time" in group:
        key += f" @ {_key(group.get('time'))}"
    if "value" in group:
        return f"{key}={_key(group.get('value'))} of {group.get('count')}"
    return f"{key}={group.get('count')}"


def _key(key: Any) -> str:
    return json_text(cut(key, _KEY_CHARS) if isinstance(key, str) else key)
