"""The line of a record on pages: what, how much and when, who and where, the beginning of its text, and its link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from markupsafe import Markup, escape

from headgate.console.formatting import day, minute
from headgate.console.pages import View
from headgate.model.declaration import LineFields
from headgate.model.ids import ConnectionId
from headgate.model.instants import instant
from headgate.model.wire import LineBody
from headgate.text.document import title
from headgate.text.line import beginning_of, line_body, line_fields
from headgate.text.search import unmarked
from headgate.text.writing import cut
from headgate.wiring import Services

PREVIEW_CHARS = 220
_DAY_CHARS = len("2025-12-31")
_MARK, _MARK_END = Markup("<mark>"), Markup("</mark>")


def stream_path(where: str, stream: str) -> str:
    """Return the console's address of a stream."""
    return f"/console/data/{quote(where, safe='')}/{quote(stream, safe='')}"


def record_path(where: str, stream: str, key: str) -> str:
    """Return the console's address of a record."""
    return f"/console/records/{quote(stream, safe='')}/{quote(key, safe='')}?connection_id={quote(where, safe='')}"


async def source_names(console: Services) -> dict[ConnectionId, str]:
    """Return what the owner calls each source."""
    known = (await console.reads.catalog()).connections
    return {key: connection.label or connection.connector_key for key, connection in known.items()}


def source_of(row: Mapping[str, Any]) -> str:
    """Name the source of a row."""
    return str(row.get("display_name") or row["connector_key"])


def line_of(declared: LineFields, row: Mapping[str, Any]) -> View:
    """Return the line of a record, and beside its title the beginning of its text; without one what else it says."""
    data: Mapping[str, Any] = row["data"]
    line, shown = line_body(declared, data), line_fields(declared, data)
    text = "" if declared.text in shown else beginning_of(declared, data, PREVIEW_CHARS)
    if "title" not in line:
        others = [value for name, value in data.items() if name not in shown and isinstance(value, str)]
        text = cut(" · ".join(other for other in others if other != row["id"]), PREVIEW_CHARS)
    titled = {**row, "line": line}
    return _parts(titled, row["id"], title(cast("Any", titled)), escape(text))


def hit_line(row: Mapping[str, Any]) -> View:
    """Return the line of a hit, with the words that were found marked."""
    text = str(cast("Mapping[str, Any]", row.get("snippet") or {}).get("text", ""))
    # Escaped as a whole; after that only these two tags are let through.
    marked = escape(text).replace("&lt;mark&gt;", _MARK).replace("&lt;/mark&gt;", _MARK_END)
    named = title(cast("Any", row))
    shown = (marked, Markup()) if unmarked(text) == named else (named, marked)
    return _parts(row, row["record_key"], *shown)


def _parts(row: Mapping[str, Any], key: str, named: str, excerpt: Markup) -> View:
    line: LineBody = row["line"]
    return View(
        path=record_path(row["connection_id"], row["stream"], key),
        title=named,
        when=_time(line.get("time", "")),
        amount=line.get("amount", ""),
        people=" · ".join(filter(None, (line.get("who"), line.get("where")))),
        source=source_of(row),
        stream=row["stream"],
        excerpt=excerpt,
    )


def _time(written: str) -> str:
    at = instant(written)
    if at is None:
        return ""
    return day(at) if len(written) == _DAY_CHARS else minute(at)
