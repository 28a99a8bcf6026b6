"""The text of a page of records: counts and cursors first, then a table with a line for each row, then what to do next."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from headgate.model.wire import AggregateBody, PageBody, RecordBody, SearchBody
from headgate.text.ladder import Windows, binary_facts, without_bytes
from headgate.text.writing import (
    ELLIPSIS,
    QUERY_TEXT,
    cut,
    fitting,
    json_text,
    json_within,
    line,
    minute,
    name,
    shared_lines,
    size,
)

#: How much of a cell is printed, from the most to the least.
_CELL_CHARS = (4_096, 240, 96, 48, 24, 12)
_LABEL_BYTES = 40
_NAMES_BYTES = 120
_SHARED_BYTES = 1_200
#: A column that fewer rows have is written with its name, in those rows that have it.
_COMMON_PART = 0.5
_JOINT = " | "
_FILE = ("binary_field", "mime_type", "size_bytes", "preview_status")
#: A text that cannot be taken for anything else in a row.
_BARE = re.compile(r"(?! )[^|\"=\\\[\]{}\x00-\x1f\x7f-\x9f]*(?<! )")
_LESS_FIELDS = re.compile(r"\| \(\+\d+ fields")
_CUT_CELL = re.compile(r"…\"\[\+\d+ from \d+\]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?|true|false|null")


class _Table(NamedTuple):
    """What all rows of a page are drawn by."""

    columns: tuple[str, ...]
    has_sources: bool


#: The end of the name of a field that has a number as its source wrote it.
_TWIN = "_text"


def telling(data: Mapping[str, Any], key: str, named: Collection[str] = ()) -> dict[str, Any]:
    """Leave out what is known already or says nothing: nulls, the key, and the text beside a number; not what was ``named``."""
    return {
        name: value
        for name, value in data.items()
        if name in named
        or (
            value is not None
            and not (name == "id" and isinstance(value, str) and key.startswith(value))
            and not (name.endswith(_TWIN) and isinstance(data.get(name.removesuffix(_TWIN)), int | float))
        )
    }


def _table(rows: Sequence[RecordBody], line: Sequence[str] = ()) -> _Table:
    """Choose the columns: the fields that most rows have, those of the line first, then in the order of the rows."""
    records = [row.get("data") or {} for row in rows if not row.get("deleted")]
    counts: dict[str, int] = {}
    for data in records:
        for path in data:
            counts[path] = counts.get(path, 0) + 1
    ordered = dict.fromkeys([*(path for path in line if path in counts), *counts])
    columns = [path for path in ordered if counts[path] >= len(records) * _COMMON_PART]
    return _Table(tuple(columns), has_sources=len({row.get("display_name") for row in rows}) > 1)


def _row_text(label: str, row: RecordBody, record_id: str, table: _Table, limit_bytes: int) -> str:
    """Write a record in one line: its values, its source where there are several, and its id at the end."""
    if row.get("deleted"):
        return f"{label} deleted_at={json_text(row.get('deleted_at'))}{_JOINT}id={record_id}"
    source = row.get("display_name")
    ending = [
        *([json_within(source, _LABEL_BYTES)] if source and table.has_sources else []),
        f"id={record_id}",
    ]
    space = limit_bytes - size(label) - size(_JOINT.join(ending)) - len(_JOINT) - 1
    children = _children(row.get("expanded"), space // 2)
    beside = [children] if children else []
    values = {path: _plain_value(value) for path, value in (row.get("data") or {}).items()}
    lengths = _lengths(row)
    text = ""
    for chars in _CELL_CHARS:
        text = _JOINT.join([*_cells(values, table, lengths, chars), *beside])
        if size(text) <= space:
            return f"{label} {_JOINT.join([text, *ending])}"
    reserve = min(_NAMES_BYTES, space // 2)
    least = [*_cells(values, table, lengths, _CELL_CHARS[-1]), *beside]
    cells = fitting(least, space - reserve, len(_JOINT))
    left = [*table.columns, *(path for path in values if path not in table.columns)][len(cells) :]
    parts = [*cells, *_left_out(left, reserve - len(_JOINT))] or [ELLIPSIS]
    return f"{label} {_JOINT.join([*parts, *ending])}"


def _lengths(row: RecordBody) -> Mapping[str, int]:
    """Return the true lengths of the texts of which the row has only the beginning."""
    previews: Any = row.get("previews") or {}
    return {path: known["size_chars"] for path, known in previews.items() if "size_chars" in known}


def _cells(values: Mapping[str, Any], table: _Table, lengths: Mapping[str, int], chars: int) -> list[str]:
    common = [
        _cell(values[path], lengths.get(path), chars) if path in values else "" for path in table.columns
    ]
    others = [
        _pair(path, value, lengths.get(path), chars)
        for path, value in values.items()
        if path not in table.columns
    ]
    return [*common, *others]


def _named(path: str) -> str:
    """Write the name of a field; one that is called id must not pass for the id of the row."""
    return json_text(path) if path in {"id", "source"} else name(path)


def _pair(path: str, value: Any, size_chars: int | None, chars: int) -> str:
    """Write a value with the name of its field; without columns only quotes tell where it ends."""
    cell = _cell(value, size_chars, chars)
    is_bare_text = isinstance(value, str) and not cell.startswith('"')
    return f"{_named(path)}={json_text(cell) if is_bare_text and ' ' in cell else cell}"


def _cell(value: Any, size_chars: int | None, chars: int) -> str:
    """Write a value bare where it cannot be mistaken, else as JSON; of a long one the beginning, and how it goes on."""
    text = minute(value) or value if isinstance(value, str) else json_text(value)
    total = size_chars if size_chars is not None and size_chars > len(text) else len(text)
    begin = text[:chars]
    if len(begin) < total:
        # An object or a list is read on from its beginning: what is printed of it is not a part of its JSON.
        start = len(begin) if isinstance(value, str) else 0
        return f"{json_text(begin + ELLIPSIS)}[+{total - len(begin)} from {start}]"
    if not isinstance(value, str):
        return text
    quoted = json_text(text)
    # A text that looks like a number is quoted, so that it is not taken for one.
    is_bare = _BARE.fullmatch(text) and not _NUMBER.fullmatch(text) and quoted == f'"{text}"'
    return text if is_bare else quoted


def _plain_value(value: Any) -> Any:
    """Return a value without bytes: of a file, what there is to judge it by; fetch prints how to get it."""
    facts = binary_facts(value)
    if facts is not None:
        return {key: facts[key] for key in _FILE if key in facts}
    return without_bytes(value) if isinstance(value, dict | list) else value


def _left_out(left: Sequence[str], limit_bytes: int) -> list[str]:
    """Name the fields that a row has no space for, as many as fit."""
    names = fitting(map(name, left), limit_bytes - size("(+999 fields: …)"), len(", "))
    if not names:
        return [f"(+{len(left)} fields)"] if left and limit_bytes > len("(+999 fields)") else []
    more = [ELLIPSIS] if len(names) < len(left) else []
    return [f"(+{len(left)} fields: {', '.join([*names, *more])})"]


def _children(expanded: Any, limit_bytes: int) -> str:
    """Name the related records of a row by their ids, as many as fit, and count the others."""
    parts: list[str] = []
    for relation, ids in cast("Mapping[str, Sequence[str]]", expanded or {}).items():
        limit_bytes -= size(relation) + len(" expanded =[], +99 more")
        printed = fitting(ids, limit_bytes, len(", "))
        # One that does not fit leaves no space for those of another relation either.
        limit_bytes = (
            limit_bytes - sum(size(child) + len(", ") for child in printed) if len(printed) == len(ids) else 0
        )
        left = len(ids) - len(printed)
        more = [f"+{left} more: fetch with expand"] if left else []
        parts.append(f"expanded {name(relation)}=[{', '.join([*printed, *more])}]")
    return " ".join(parts)


_WARNINGS = 3
_WARNING_CHARS = 120
_FETCH = "Pass an id to fetch to read that record."
_DELETED = "Rows with deleted_at are gone: there is nothing to read of them."
_MORE_FIELDS = "(+n fields) names what a row leaves out: call fetch with its id, or ask with fields."


def records_text(
    stream: str,
    body: PageBody,
    rows: Sequence[tuple[str, RecordBody]],
    *,
    cursor: str | None = None,
    windows: Windows = Windows.JSON,
    limit_bytes: int = QUERY_TEXT,
) -> str:
    """Write the text of a page from its body and its rows, each with its id.

    ``cursor`` is the one that the page was asked with. Only a page of a server that does not cut it can be too large.
    """
    total = len(body.get("data", ()))
    table = _table([row for _, row in rows], _line_of(body))
    head = [_header(stream, body, total), *_above(body, rows, table)]
    # Reserved for the longest footer, so that the rows do not depend on what it says.
    longest = _footer(body, total, 0, cursor, [_FETCH, _DELETED, _MORE_FIELDS, _how_to_read(windows)])
    space = limit_bytes - sum(size(text) + 1 for text in head) - size(longest) - 3

    def draw(position: int, entry: tuple[str, RecordBody], limit_bytes: int) -> str:
        record_id, row = entry
        return _row_text(f"{position + 1}.", row, record_id, table, limit_bytes)

    printed = shared_lines(rows, total, space, draw)
    deleted = sum(bool(row.get("deleted")) for _, row in rows[: len(printed)])
    footer = _footer(body, total, len(printed), cursor, _advice(printed, deleted, windows))
    return "\n".join([*head, *printed, footer])


def _line_of(body: PageBody) -> list[str]:
    """Return the fields of the line; another server can send anything in their place."""
    line: Any = body.get("line")
    return (
        [name for name in cast("list[Any]", line) if isinstance(name, str)] if isinstance(line, list) else []
    )


def _above(body: PageBody, rows: Sequence[tuple[str, RecordBody]], table: _Table) -> list[str]:
    """Write what stands above the rows: what all of them share, and the names of the columns."""
    shared = cast("Mapping[str, Any]", body.get("all") or {})
    facts = [_pair(path, _plain_value(value), None, _CELL_CHARS[2]) for path, value in shared.items()]
    sources = {row.get("display_name") for _, row in rows} - {None}
    if not table.has_sources:
        facts += [f"source={json_within(str(source), _LABEL_BYTES)}" for source in sources]
    lines = [f"all: {' '.join(fitting(facts, _SHARED_BYTES))}"] if facts else []
    columns = [*map(_named, table.columns), *(["source"] if table.has_sources else []), "id"]
    return [*lines, _JOINT.join(fitting(columns, _SHARED_BYTES, len(_JOINT)))] if table.columns else lines


def _how_to_read(windows: Windows) -> str:
    if not windows:
        return f"[+n from m]: n characters are not printed; {windows.tool} with the id and fields reads them."
    return f"[+n from m]: {windows.tool} with the id, field_path of the column and offset_chars=m reads on."


def rest_hint(left: int, printed: int, cursor: str | None) -> str:
    """Return how many rows are not printed, and which call shows them; the next cursor would skip them."""
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
    times = times_fact(cast("Mapping[str, Any]", body.get("meta") or {}))
    return " ".join([*parts, *([count] if count else []), *([times] if times else []), *warning_facts(body)])


def times_fact(meta: Mapping[str, Any]) -> str:
    """Write whose clock the times of an answer are of, for its head: "times: UTC"; empty if its ``meta`` does not say."""
    times = meta.get("times")
    return f"times: {cut(line(times), _WARNING_CHARS)}" if isinstance(times, str) and times else ""


def warning_facts(body: PageBody | SearchBody | AggregateBody) -> Iterator[str]:
    """Write the server's warnings."""
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


def _advice(printed: Sequence[str], deleted: int, windows: Windows) -> list[str]:
    """Return what can be done with the printed rows, of which some can be deleted."""
    fits = {
        _FETCH: len(printed) > deleted or not printed,
        _DELETED: deleted > 0,
        _MORE_FIELDS: any(_LESS_FIELDS.search(text) for text in printed),
        _how_to_read(windows): any(_CUT_CELL.search(text) for text in printed),
    }
    return [advice for advice, does_fit in fits.items() if does_fit]


def _nothing(body: PageBody) -> str:
    if body.get("next_changes_since"):
        return "Nothing changed. Next time pass changes_since=next_changes_since again."
    if body.get("next_cursor"):
        return "Nothing on this page. For the next page repeat the call with cursor=next_cursor."
    return "No record fits. Loosen or leave out filter, or find records by words with search."
