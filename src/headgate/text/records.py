"""The text of a page of records: counts and cursors first, then a line for each row, then what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.model.wire import PageBody, RecordBody, SearchBody
from headgate.text.binary import binary_facts
from headgate.text.budget import ELLIPSIS, QUERY_TEXT, cut, size
from headgate.text.ladder import Windows, without_bytes
from headgate.text.quote import json_text, json_within, name

#: A page of this many rows is printed whole; each row has at least its share of the text.
SHARES = 25
_NAMED = 8
_WARNINGS = 3
_WARNING_CHARS = 120
#: How much of a value is printed; the next smaller number is tried while a row is larger than its share.
_VALUE_CHARS = (96, 40)
_JSON_CHARS = 192
_LABEL_BYTES = 40
_NAMES_BYTES = 100
_LEAST_VALUE = 32
_NESTED = (dict, list)
_LEAST_PREVIEW = 24
_FILE = ("binary_field", "mime_type", "size_bytes", "preview_status")
_FETCH = "Pass an id to fetch to read that record."
_DELETED = "Rows with deleted_at are gone: there is nothing to read of them."
_MORE_FIELDS = "(+n fields) names what a row leaves out: call fetch with its id, or ask with fields."


def records_text(
    stream: str,
    body: PageBody,
    rows: Iterable[tuple[str, RecordBody]],
    *,
    cursor: str | None = None,
    windows: Windows = Windows.JSON,
) -> str:
    """Write the text of a page from its body and its rows, each with its id; as many rows as fit are printed.

    ``cursor`` is the one that the page was asked with. A row has a ``display_name`` if its source is to be printed.
    """
    total = len(body.get("data", ()))
    lines = [_header(stream, body, total)]
    # Reserved for the longest footer, so that the rows do not depend on what it says.
    space = (
        QUERY_TEXT
        - size(lines[0])
        - size(_footer(body, total, 0, cursor, [_FETCH, _DELETED, _MORE_FIELDS]))
        - 3
    )
    deleted = 0
    for position, (record_id, row) in enumerate(rows):
        share = space // max(1, min(total, SHARES) - position)
        text = _row(f"record[{position}]", row, record_id, windows, share - 1)
        space -= size(text) + 1
        if space < 0:
            # The printed rows are the first ones, so that it is clear which are missing.
            break
        deleted += bool(row.get("deleted"))
        lines.append(text)
    lines.append(_footer(body, total, len(lines) - 1, cursor, _advice(lines[1:], deleted)))
    return "\n".join(lines)


def rest_hint(left: int, printed: int, cursor: str | None) -> str:
    """Say how many rows are not printed, and which call shows them; the next cursor would skip them."""
    same = "without cursor" if cursor is None else "with the same cursor"
    return (
        f"{left} more of this page are not printed, and next_cursor skips them: "
        f"repeat the call {same} and with limit={printed or 1}, then go on with its next_cursor."
    )


def paging_line(body: PageBody | SearchBody) -> str:
    """Write what the next call needs: whether there is more, the cursors and the count, and the server's warnings."""
    parts = [f"has_more={json_text(bool(body.get('has_more')))}"]
    if body.get("has_more") and not body.get("next_cursor"):
        parts.append("(the server gave no cursor: narrow the call to see the rest)")
    cursors = {key: body.get(key) for key in ("next_cursor", "next_changes_since")}
    parts += [f"{key}={json_text(cursor)}" for key, cursor in cursors.items() if cursor]
    count = count_of(body)
    return " ".join([*parts, *([count] if count else []), *_warnings(body)])


def _warnings(body: PageBody | SearchBody) -> Iterator[str]:
    meta: Any = body.get("meta")
    if not isinstance(meta, dict):
        return
    warnings: Any = cast("Mapping[str, Any]", meta).get("warnings")
    if not isinstance(warnings, list):
        return
    for warning in cast("list[Any]", warnings)[:_WARNINGS]:
        if isinstance(warning, dict):
            fields = cast("Mapping[str, Any]", warning)
            message = cut(str(fields.get("message") or ""), _WARNING_CHARS)
            yield f"warning={name(cut(str(fields.get('code')), _WARNING_CHARS))} {json_text(message)}"


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


def _footer(body: PageBody, total: int, printed: int, cursor: str | None, advice: Iterable[str]) -> str:
    if not total:
        return _nothing(body)
    hints = [*advice]
    if total > printed:
        hints.append(rest_hint(total - printed, printed, cursor))
    elif body.get("next_cursor"):
        hints.append("For the next page repeat the call with cursor=next_cursor.")
    if body.get("next_changes_since"):
        hints.append("Next time pass changes_since=next_changes_since to get only what changed.")
    return " ".join(hints)


def _advice(printed: Sequence[str], deleted: int) -> list[str]:
    """Say what can be done with the printed rows, of which some can be deleted."""
    fits = {
        _FETCH: len(printed) > deleted or not printed,
        _DELETED: deleted > 0,
        _MORE_FIELDS: any(" fields: " in text for text in printed),
    }
    return [advice for advice, does_fit in fits.items() if does_fit]


def _nothing(body: PageBody) -> str:
    if body.get("next_changes_since"):
        return "Nothing changed. Next time pass changes_since=next_changes_since again."
    return "No record fits. Loosen or leave out filter, or find records by words with search."


def _row(label: str, row: RecordBody, record_id: str, windows: Windows, limit_bytes: int) -> str:
    """Write a row in one line: its source, its first values, how to read what was cut, and its id at the end."""
    if row.get("deleted"):
        return f"{label} deleted_at={json_text(row.get('deleted_at'))} id={record_id}"
    label_of = row.get("display_name")
    head = f"{label} source={json_within(label_of, _LABEL_BYTES)}" if label_of else label
    data = row.get("data") or {}
    space = limit_bytes - size(f"{head}  id={record_id}")
    children = _children(row.get("expanded"), space // 2)
    space -= size(children)
    for value_chars in _VALUE_CHARS:
        shown, paths = _shown(data, value_chars, windows)
        text = json_text(shown) + _reading(paths, windows)
        if size(text) <= space:
            return f"{head} {text}{children} id={record_id}"
    shown, paths = _shown(data, _VALUE_CHARS[-1], windows)
    return f"{head} {_within(shown, paths, windows, max(space, _LEAST_PREVIEW))}{children} id={record_id}"


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


def _reading(paths: Sequence[str], windows: Windows) -> str:
    """Write the call that reads what was cut; its id is at the end of the line."""
    if not paths:
        return ""
    if not windows:
        return f" complete=false read=fetch fields={json_text(paths)}"
    also = f" (likewise {json_text(paths[1:])})" if paths[1:] else ""
    return f" complete=false read={windows.tool} field_path={name(paths[0])}{also} offset_chars=0"


def _shown(data: Mapping[str, Any], value_chars: int, windows: Windows) -> tuple[dict[str, Any], list[str]]:
    """Cut the values of a record, and name the fields that were cut."""
    shown = dict(data)
    named: list[str] = []
    for path, value in data.items():
        if isinstance(value, str):
            if len(value) > value_chars:
                short = shown[path] = binary_facts(value) or cut(value, value_chars)
                named += [path] if isinstance(short, str) else []
        elif isinstance(value, _NESTED):
            short = shown[path] = _short(value)
            # A server that reads only texts in windows cannot read an object on.
            named += [path] if isinstance(short, str) and windows is not Windows.TEXT else []
    return shown, named[:_NAMED]


def _within(shown: Mapping[str, Any], paths: Sequence[str], windows: Windows, limit_bytes: int) -> str:
    """Write the values that fit, name the fields that do not, and say how to read those that were cut."""
    space = limit_bytes - len("{} (+999 fields: )")
    names_bytes = min(_NAMES_BYTES, space // 3)
    space -= names_bytes
    fitting: dict[str, Any] = {}
    cut_paths: list[str] = []
    for path, value in shown.items():
        also = [*cut_paths, path] if path in paths else cut_paths
        needed = size(json_text({path: value})) - 1
        if needed + size(_reading(also, windows)) <= space:
            fitting[path], cut_paths = value, also
            space -= needed
    if not fitting:
        fitting, cut_paths = _first_value(shown, paths)
    left = [path for path in shown if path not in fitting]
    return f"{json_text(fitting)}{_left_out(left, names_bytes)}{_reading(cut_paths, windows)}"


def _first_value(shown: Mapping[str, Any], paths: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Give the beginning of the first value, without which a row would say nothing."""
    for path, value in shown.items():
        if value is not None and size(path) <= _LEAST_PREVIEW:
            text = value if isinstance(value, str) else json_text(value)
            short = msgspec.json.decode(json_within(text, _LEAST_VALUE))
            is_cut = path in paths or short != text
            return {path: short if is_cut else value}, [path] if is_cut else []
    return {}, []


def _left_out(left: Sequence[str], limit_bytes: int) -> str:
    if not left:
        return ""
    names: list[str] = []
    for path in left:
        limit_bytes -= size(name(path)) + 2
        if limit_bytes < 0:
            names.append(ELLIPSIS)
            break
        names.append(name(path))
    return f" (+{len(left)} fields: {', '.join(names)})"


def _short(value: Any) -> Any:
    """Shorten an object or a list."""
    facts = binary_facts(value)
    if facts is not None:
        # Enough to judge by; fetch prints how to get the file.
        return {key: facts[key] for key in _FILE if key in facts}
    clean = without_bytes(value)
    text = msgspec.json.encode(clean).decode()
    return clean if len(text) <= _JSON_CHARS else cut(text, _VALUE_CHARS[0])
