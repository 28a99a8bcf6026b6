"""The text of a page of records: counts and cursors first, then a few rows, then how to read what was cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.model.wire import PageBody, RecordBody, SearchBody
from headgate.text.binary import binary_facts
from headgate.text.budget import QUERY_TEXT, cut, size
from headgate.text.ladder import Windows, without_bytes
from headgate.text.quote import json_text

#: How many rows are printed at most.
SHOWN = 5
_NAMED = 8
_VALUE_CHARS = 96
_NESTED = (dict, list)
_ROW_BYTES = 420
#: Where there is less space than this, no row is tried.
_LEAST_ROW_BYTES = 100
_FILE = ("binary_field", "mime_type", "size_bytes", "preview_status")


def records_text(
    stream: str,
    body: PageBody,
    rows: Iterable[tuple[str, RecordBody]],
    *,
    windows: Windows = Windows.JSON,
) -> str:
    """Write the text of a page from its body and its rows, each with its id; as many rows as fit are printed."""
    total = len(body.get("data", ()))
    lines = [_header(stream, body, total)]
    space = QUERY_TEXT - size(lines[0]) - size(_footer(body, total, 1)) - 1
    printed = 0
    for position, (record_id, row) in enumerate(rows):
        text, reading = _row(f"record[{position}]", row, record_id, windows)
        whole = f"{text}\n{reading}" if reading else text
        left = space - size(whole) - 1
        if left < 0 and printed:
            # The printed rows are the first ones, so that it is clear which are missing; only before them is one skipped.
            break
        if left < 0:
            whole, left = text, space - size(text) - 1
        if left >= 0:
            lines.append(whole)
            printed, space = printed + 1, left
        if printed == SHOWN or space < _LEAST_ROW_BYTES:
            break
    lines.append(_footer(body, total, printed))
    return "\n".join(lines)


def paging_line(body: PageBody | SearchBody) -> str:
    """Write what the next call needs: whether there is more, the cursors and the count."""
    parts = [f"has_more={json_text(bool(body.get('has_more')))}"]
    cursors = {key: body.get(key) for key in ("next_cursor", "next_changes_since")}
    parts += [f"{key}={json_text(cursor)}" for key, cursor in cursors.items() if cursor]
    count = count_of(body)
    return " ".join([*parts, count] if count else parts)


def count_of(body: PageBody | SearchBody) -> str:
    """Write the count, which pages and searches hold in different forms."""
    meta: Any = body.get("meta")
    if not isinstance(meta, dict):
        # There is none, or it is encoded already, because it holds neither a count nor a warning.
        return ""
    meta = cast("Mapping[str, Any]", meta)
    count = meta.get("count")
    if isinstance(count, dict):
        known = cast("Mapping[str, Any]", count)
        return f"count={known.get('kind')}:{known['value']}" if known.get("value") is not None else ""
    return f"count={meta.get('count_accuracy', 'exact')}:{count}" if isinstance(count, int) else ""


def _header(stream: str, body: PageBody, total: int) -> str:
    return f"records from stream {json_text(stream)}: {total} record(s). {paging_line(body)}"


def _footer(body: PageBody, total: int, printed: int) -> str:
    if not total:
        return _nothing(body)
    hints = ["Pass an id to fetch to read that record."]
    if total > printed:
        hints.append(
            f"{total - printed} more record(s) of this page are not printed; "
            f"to see each, ask with limit={printed or 1} and go on with cursor."
        )
    if body.get("has_more"):
        hints.append("For the next page repeat the call with cursor=next_cursor.")
    if body.get("next_changes_since"):
        hints.append("Next time pass changes_since=next_changes_since to get only what changed.")
    return " ".join(hints)


def _nothing(body: PageBody) -> str:
    if body.get("next_changes_since"):
        return "Nothing changed. Next time pass changes_since=next_changes_since again."
    return "No record fits. Loosen or leave out filter, or find records by words with search."


def _row(name: str, row: RecordBody, record_id: str, windows: Windows) -> tuple[str, str]:
    """Write the line of a row, and the one with the call that reads what was cut, if anything was."""
    if row.get("deleted"):
        return f"{name} deleted_at={json_text(row.get('deleted_at'))} id={record_id}", ""
    shown, cut_paths = preview(row.get("data") or {}, _ROW_BYTES)
    reading = ""
    if cut_paths:
        reading = f"{name} complete=false {windows.tool} {_reading(record_id, cut_paths, windows)}"
    return f"{name} {shown} id={record_id}", reading


def _reading(record_id: str, paths: Sequence[str], windows: Windows) -> str:
    if not windows:
        return f"args={json_text({'id': record_id, 'fields': paths})}"
    first, *others = paths
    also = f" (likewise field_path {json_text(others)})" if others else ""
    return f"args={json_text({'id': record_id, 'field_path': first, 'offset_chars': 0})}{also}"


def preview(data: Mapping[str, Any], limit_bytes: int) -> tuple[str, list[str]]:
    """Show a record's data as JSON within a budget, and name the text fields that were cut."""
    shown = dict(data)
    named: list[str] = []
    for path, value in data.items():
        if isinstance(value, str):
            if len(value) > _VALUE_CHARS:
                short = shown[path] = binary_facts(value) or cut(value, _VALUE_CHARS)
                named += [path] if isinstance(short, str) else []
        elif isinstance(value, _NESTED):
            shown[path] = _short(value)
    text = json_text(shown)
    return (text if size(text) <= limit_bytes else _within(shown, limit_bytes)), named[:_NAMED]


def _within(shown: Mapping[str, Any], limit_bytes: int) -> str:
    fitting: dict[str, Any] = {}
    used = 2
    for path, value in shown.items():
        needed = size(json_text({path: value})) - 1
        if used + needed <= limit_bytes:
            fitting[path] = value
            used += needed
    return f"{json_text(fitting)} (+{len(shown) - len(fitting)} fields)"


def _short(value: Any) -> Any:
    """Shorten an object or a list."""
    facts = binary_facts(value)
    if facts is not None:
        # Enough to judge by; fetch prints how to get the file.
        return {key: facts[key] for key in _FILE if key in facts}
    clean = without_bytes(value)
    text = msgspec.json.encode(clean).decode()
    return clean if len(text) <= 2 * _VALUE_CHARS else cut(text, _VALUE_CHARS)
