"""The text of a page of records: counts and cursors first, then a line for each row, then what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.model.wire import AggregateBody, PageBody, RecordBody, SearchBody
from headgate.text.ladder import Windows, binary_facts, without_bytes
from headgate.text.writing import (
    ELLIPSIS,
    QUERY_TEXT,
    cut,
    fitting,
    json_text,
    json_within,
    name,
    shared_lines,
    size,
)

#: The longest value that is printed whole, and how much is printed of longer ones.
_VALUE_CHARS = 96
_JSON_CHARS = 192
_NAMED = 8
_LABEL_BYTES = 40
_NAMES_BYTES = 60
_LEAST_VALUE = 32
_LEAST_PREVIEW = 24
_LEAST_BEGINNING = 8
_NESTED = (dict, list)
#: The end of the name of a field that has a number as its source wrote it.
_TWIN = "_text"
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
    values = _values(_telling(row.get("data") or {}, record_id))
    text = _all_values(values, windows, space) or _some_values(values, windows, max(space, _LEAST_PREVIEW))
    if size(text) > space:
        # Names in escapes and wide characters can be that long; which fields there are is the least to print.
        text = "{}" + _left_out([*values.whole, *values.long], space)
    return f"{head} {text}{children} id={record_id}"


def _telling(data: Mapping[str, Any], record_id: str) -> dict[str, Any]:
    """Leave out what a line says already or what says nothing: nulls, the key, and the text beside a number."""
    return {
        path: value
        for path, value in data.items()
        if value is not None
        and not (path == "id" and isinstance(value, str) and record_id.endswith(f":{value}"))
        and not (path.endswith(_TWIN) and isinstance(data.get(path.removesuffix(_TWIN)), int | float))
    }


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
        chosen = _fitting_values(values.whole, limit_bytes - reserve)
        left = [path for path in values.whole if path not in chosen]
        whole = json_text(chosen)
    space = limit_bytes - reserve - size(whole)
    parts: list[str] = [] if whole == "{}" else [whole[1:-1]]
    begun: list[str] = []
    for path, value in values.long.items():
        called = [*begun, path]
        piece = _beginning(path, value, space - size(_reading(called, windows)))
        if piece is None:
            left.append(path)
            continue
        parts.append(piece)
        space -= size(piece) + 1
        begun = called
    if not parts:
        first, begun = _first_value(values, windows, limit_bytes - reserve)
        parts = [first] if first else []
        left = [path for path in left if not first.startswith(json_text(path))]
    written, reading = f"{{{','.join(parts)}}}", _reading(begun, windows)
    return f"{written}{_left_out(left, limit_bytes - size(written) - size(reading))}{reading}"


def _fitting_values(whole: Mapping[str, Any], limit_bytes: int) -> dict[str, Any]:
    """Choose the values that fit, in their order; a large one does not keep out those after it."""
    space = limit_bytes - len("{}")
    chosen: dict[str, Any] = {}
    for path, value in whole.items():
        needed = size(json_text({path: value})) - 1
        if needed <= space:
            chosen[path] = value
            space -= needed
    return chosen


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
    names = fitting(map(name, left), limit_bytes - size(" (+999 fields: …)"), len(", "))
    more = [ELLIPSIS] if len(names) < len(left) else []
    return f" (+{len(left)} fields: {', '.join([*names, *more])})"


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
        parts.append(f" expanded {name(relation)}=[{', '.join([*printed, *more])}]")
    return "".join(parts)


_WARNINGS = 3
_WARNING_CHARS = 120
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
    header = _header(stream, body, total)
    # Reserved for the longest footer, so that the rows do not depend on what it says.
    space = (
        QUERY_TEXT
        - size(header)
        - size(_footer(body, total, 0, cursor, [_FETCH, _DELETED, _MORE_FIELDS]))
        - 3
    )
    drawn: list[RecordBody] = []

    def draw(position: int, entry: tuple[str, RecordBody], limit_bytes: int) -> str:
        record_id, row = entry
        drawn.append(row)
        return row_text(f"record[{position}]", row, record_id, windows, limit_bytes)

    printed = shared_lines(rows, total, space, draw)
    deleted = sum(bool(row.get("deleted")) for row in drawn[: len(printed)])
    footer = _footer(body, total, len(printed), cursor, _advice(printed, deleted))
    return "\n".join([header, *printed, footer])


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
    return " ".join([*parts, *([count] if count else []), *warning_facts(body)])


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


def _advice(printed: Sequence[str], deleted: int) -> list[str]:
    """Return what can be done with the printed rows, of which some can be deleted."""
    fits = {
        _FETCH: len(printed) > deleted or not printed,
        _DELETED: deleted > 0,
        _MORE_FIELDS: any(" fields: " in text for text in printed),
    }
    return [advice for advice, does_fit in fits.items() if does_fit]


def _nothing(body: PageBody) -> str:
    if body.get("next_changes_since"):
        return "Nothing changed. Next time pass changes_since=next_changes_since again."
    if body.get("next_cursor"):
        return "Nothing on this page. For the next page repeat the call with cursor=next_cursor."
    return "No record fits. Loosen or leave out filter, or find records by words with search."
