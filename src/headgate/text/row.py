"""The line of one record in a page: short values first, then the beginnings of long ones, in the bytes it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.model.wire import RecordBody
from headgate.text.binary import binary_facts
from headgate.text.budget import ELLIPSIS, cut, size
from headgate.text.ladder import Windows, without_bytes
from headgate.text.quote import json_text, json_within, name

#: The longest value that is printed whole, and how much is printed of longer ones.
_VALUE_CHARS = 96
_JSON_CHARS = 192
_NAMED = 8
_LABEL_BYTES = 40
_NAMES_BYTES = 100
_LEAST_VALUE = 32
_LEAST_PREVIEW = 24
_LEAST_BEGINNING = 8
_NESTED = (dict, list)
_FILE = ("binary_field", "mime_type", "size_bytes", "preview_status")


class _Values(msgspec.Struct):
    """What of a record's values is printed."""

    #: Values printed whole, by field.
    whole: dict[str, Any]
    #: Texts of which the beginning is printed; objects and lists are JSON here.
    long: dict[str, str]


def row_text(label: str, row: RecordBody, record_id: str, windows: Windows, limit_bytes: int) -> str:
    """Write a record in one line: its source, its values, how to read what was cut, and its id at the end."""
    if row.get("deleted"):
        return f"{label} deleted_at={json_text(row.get('deleted_at'))} id={record_id}"
    source = row.get("display_name")
    head = f"{label} source={json_within(source, _LABEL_BYTES)}" if source else label
    space = limit_bytes - size(head) - size(record_id) - len("  id=")
    children = _children(row.get("expanded"), space // 2)
    space -= size(children)
    values = _values(row.get("data") or {})
    text = _all_values(values, windows, space) or _some_values(values, windows, max(space, _LEAST_PREVIEW))
    if size(text) > space:
        # Names in escapes and wide characters can be that long; which fields there are is the least to print.
        text = "{}" + _left_out([*values.whole, *values.long], space)
    return f"{head} {text}{children} id={record_id}"


def _values(data: Mapping[str, Any]) -> _Values:
    """Part short values from long ones, and replace bytes by what is known about them."""
    values = _Values({}, {})
    for path, value in data.items():
        if isinstance(value, str):
            if len(value) <= _VALUE_CHARS:
                values.whole[path] = value
            elif (facts := binary_facts(value)) is not None:
                values.whole[path] = facts
            else:
                values.long[path] = value
        elif isinstance(value, _NESTED):
            short = _short(value)
            if not isinstance(short, str):
                values.whole[path] = short
                continue
            values.long[path] = short
        else:
            values.whole[path] = value
    return values


def _short(value: Any) -> Any:
    """Shorten an object or a list: what is known about a file, the value itself, or its JSON if that is long."""
    facts = binary_facts(value)
    if facts is not None:
        # Enough to judge by; fetch prints how to get the file.
        return {key: facts[key] for key in _FILE if key in facts}
    clean = without_bytes(value)
    text = msgspec.json.encode(clean).decode()
    return clean if len(text) <= _JSON_CHARS else text


def _all_values(values: _Values, windows: Windows, limit_bytes: int) -> str | None:
    """Write every value, the long ones cut to equal shares; None when there is too little space for that."""
    whole = json_text(values.whole)
    space = limit_bytes - size(whole)
    if not values.long:
        return whole if space >= 0 else None
    reading = _reading([*values.long], windows)
    share = (space - size(reading)) // len(values.long)
    pieces = [_beginning(path, value, share) for path, value in values.long.items()]
    if None in pieces:
        return None
    return f"{{{','.join([*([whole[1:-1]] if values.whole else []), *filter(None, pieces)])}}}{reading}"


def _some_values(values: _Values, windows: Windows, limit_bytes: int) -> str:
    """Write the values that fit, name the fields that do not, and say how to read those that were cut."""
    whole, left = json_text(values.whole), list[str]()
    most = min(_NAMES_BYTES, limit_bytes // 3)
    reserve = min(most, size(_left_out([*values.long], _NAMES_BYTES)))
    if size(whole) > limit_bytes - reserve:
        reserve = most
        fitting = _fitting(values.whole, limit_bytes - reserve)
        left = [path for path in values.whole if path not in fitting]
        whole = json_text(fitting)
    space = limit_bytes - reserve - size(whole)
    parts: list[str] = [] if whole == "{}" else [whole[1:-1]]
    shown: list[str] = []
    for path, value in values.long.items():
        called = [*shown, path]
        piece = _beginning(path, value, space - size(_reading(called, windows)))
        if piece is None:
            left.append(path)
            continue
        parts.append(piece)
        space -= size(piece) + 1
        shown = called
    if not parts:
        first, shown = _first_value(values, windows, limit_bytes - reserve)
        parts = [first] if first else []
        left = [path for path in left if not first.startswith(json_text(path))]
    written, reading = f"{{{','.join(parts)}}}", _reading(shown, windows)
    return f"{written}{_left_out(left, limit_bytes - size(written) - size(reading))}{reading}"


def _fitting(whole: Mapping[str, Any], limit_bytes: int) -> dict[str, Any]:
    """Choose the values that fit, in their order; a large one does not keep out those after it."""
    space = limit_bytes - len("{}")
    fitting: dict[str, Any] = {}
    for path, value in whole.items():
        needed = size(json_text({path: value})) - 1
        if needed <= space:
            fitting[path] = value
            space -= needed
    return fitting


def _beginning(path: str, value: str, limit_bytes: int) -> str | None:
    """Write the beginning of a long value as a member of an object; None when there is too little space for one."""
    member = f"{json_text(path)}:"
    space = limit_bytes - size(member) - 1
    if space < _LEAST_VALUE:
        return None
    limit_chars = min(_VALUE_CHARS, space - len('""') - size(ELLIPSIS) + 1)
    written = json_text(cut(value, limit_chars))
    return member + (written if size(written) <= space else json_within(cut(value, limit_chars), space))


def _first_value(values: _Values, windows: Windows, limit_bytes: int) -> tuple[str, list[str]]:
    """Return the beginning of the first value, without which a row would say nothing, and its field if it was cut."""
    for path, value in {**values.whole, **values.long}.items():
        if value is None or size(path) > _LEAST_PREVIEW:
            continue
        text = value if isinstance(value, str) else json_text(value)
        space = limit_bytes - size(f"{{{json_text(path)}:}}{_reading([path], windows)}")
        short = json_within(text, min(_LEAST_VALUE, max(space, _LEAST_BEGINNING)))
        is_cut = path in values.long or msgspec.json.decode(short) != text
        member = f"{json_text(path)}:{short if is_cut else json_text(value)}"
        return member, [path] if is_cut else []
    return "", []


def _reading(paths: Sequence[str], windows: Windows) -> str:
    """Write the call that reads what was cut; its id is at the end of the line."""
    if not paths:
        return ""
    more = f" and {len(paths) - _NAMED} more" if paths[_NAMED:] else ""
    if not windows:
        return f" complete=false read=fetch fields={json_text(paths[:_NAMED])}{more}"
    also = f" (likewise {json_text(paths[1:_NAMED])}{more})" if paths[1:] else ""
    return f" complete=false read={windows.tool} field_path={name(paths[0])}{also} offset_chars=0"


def _left_out(left: Sequence[str], limit_bytes: int) -> str:
    if not left:
        return ""
    names: list[str] = []
    space = limit_bytes - size(" (+999 fields: …)")
    for path in left:
        space -= size(name(path)) + 2
        if space < 0:
            names.append(ELLIPSIS)
            break
        names.append(name(path))
    return f" (+{len(left)} fields: {', '.join(names)})"


def _children(expanded: Any, limit_bytes: int) -> str:
    """Name the related records of a row by their ids, as many as fit, and count the others."""
    parts: list[str] = []
    for relation, ids in cast("Mapping[str, Sequence[str]]", expanded or {}).items():
        limit_bytes -= size(relation) + len(" expanded =[], +99 more")
        fitting: list[str] = []
        for child in ids:
            limit_bytes -= size(child) + 2
            if limit_bytes < 0:
                break
            fitting.append(child)
        left = len(ids) - len(fitting)
        more = [f"+{left} more: fetch with expand"] if left else []
        parts.append(f" expanded {name(relation)}=[{', '.join([*fitting, *more])}]")
    return "".join(parts)
