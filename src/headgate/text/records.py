"""The text of a page of records: counts and cursors first, then a line for each row, then what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from headgate.model.wire import PageBody, RecordBody, SearchBody
from headgate.text.budget import QUERY_TEXT, cut, size
from headgate.text.ladder import Windows
from headgate.text.quote import json_text, name
from headgate.text.row import row_text

#: A page of this many rows is printed whole; each row has at least its share of the text.
SHARES = 25
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
        text = row_text(f"record[{position}]", row, record_id, windows, share - 1)
        space -= size(text) + 1
        if space < 0:
            # The printed rows are the first ones, so that it is clear which are missing.
            break
        deleted += bool(row.get("deleted"))
        lines.append(text)
    lines.append(_footer(body, total, len(lines) - 1, cursor, _advice(lines[1:], deleted)))
    return "\n".join(lines)


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
