"""The histories of Chrome, Firefox and Safari, and of the browsers that are built on them; that of a Takeout too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urlsplit

from headgate.errors import InvalidRequest
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.databases import HEADER, DatabaseError, ForeignDatabase, opened
from headgate.sources.formats.json_values import json_rows
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, decoded, iso_us, text_of, without_empty
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_VISITS = StreamSpec(
    name="visits",
    label="Visited pages",
    detail="One visit to a web page: its address, title and time.",
    fields=fields("id title url site visited_at:time seconds:number browser"),
    time="visited_at",
    times="UTC",
    title="title",
    words=("title", "url", "site"),
    groups=("site", "browser"),
    views=(("sites", "Sites and times without addresses", ("id", "site", "visited_at", "browser")),),
    is_append_only=True,
)
_MAX_URL = 8192
_MAX_TITLE = 2000


@dataclass(frozen=True, slots=True)
class BrowserFormat:
    """How one family of browsers stores its history."""

    name: str
    file_names: frozenset[str]
    tables: frozenset[str]
    #: Gives time, seconds, address and title, in the order of the visits.
    query: str
    #: Microseconds from the format's first moment to 1970, and units of its time in a microsecond.
    epoch_us: int
    unit_us: int


# Texts come as bytes, so that one that is not UTF-8 spoils nothing but itself.
_TEXTS = f"substr(CAST(%s AS BLOB), 1, {_MAX_URL}), substr(CAST(%s AS BLOB), 1, {_MAX_TITLE})"
_FORMATS = (
    BrowserFormat(
        "chrome",
        frozenset({"History"}),
        frozenset({"visits", "urls"}),
        f"SELECT v.visit_time, v.visit_duration / 1e6, {_TEXTS % ('u.url', 'u.title')} "  # noqa: S608 - our own text
        "FROM visits v JOIN urls u ON u.id = v.url ORDER BY v.id",
        -11_644_473_600_000_000,
        1,
    ),
    BrowserFormat(
        "firefox",
        frozenset({"places.sqlite"}),
        frozenset({"moz_historyvisits", "moz_places"}),
        f"SELECT v.visit_date, NULL, {_TEXTS % ('p.url', 'p.title')} "  # noqa: S608 - our own text
        "FROM moz_historyvisits v JOIN moz_places p ON p.id = v.place_id ORDER BY v.id",
        0,
        1,
    ),
    BrowserFormat(
        "safari",
        frozenset({"History.db"}),
        frozenset({"history_visits", "history_items"}),
        f"SELECT v.visit_time, NULL, {_TEXTS % ('i.url', 'v.title')} "  # noqa: S608 - our own text
        "FROM history_visits v JOIN history_items i ON i.id = v.history_item ORDER BY v.id",
        978_307_200_000_000,
        1_000_000,
    ),
)


_TAKEOUT_VISITS = "Browser History"


def _is_history(file: InputFile) -> bool:
    if file.suffix == ".json":
        return file.head.lstrip()[:1] == b"{" and f'"{_TAKEOUT_VISITS}"'.encode() in file.head[:1000]
    if not file.head.startswith(HEADER):
        return False
    return any(
        file.name.rpartition("/")[2] in form.file_names
        or all(b"CREATE TABLE " + table.encode() in file.head for table in form.tables)
        for form in _FORMATS
    )


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    if file.suffix == ".json":
        return _takeout_visits(file, content)
    return _database_visits(file)


def _takeout_visits(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = OrderedKeys()

    def row(_path: str, entry: dict[str, Any]) -> list[Row]:
        visited_at, address = iso_us(entry.get("time_usec")), one_line(text_of(entry.get("url")), _MAX_URL)
        if visited_at is None or address is None:
            return []
        title = one_line(text_of(entry.get("title")), _MAX_TITLE)
        visit = _visit(keys.key(visited_at, "chrome", address), visited_at, address, title)
        return [Row("visits", without_empty({**visit, "browser": "chrome"}))]

    return json_rows(file, content, frozenset({f"{_TAKEOUT_VISITS}.item"}), row)


def _database_visits(file: InputFile) -> Iterator[Row | Reject]:
    try:
        with file.on_disk() as path, opened(path) as database:
            tables = set(database.tables())
            known = next((form for form in _FORMATS if form.tables <= tables), None)
            if known is None:
                yield Reject(file.name, "It is no history of a browser that is known here.")
                return
            yield from _visits(file.name, database, known)
    except (InvalidRequest, DatabaseError):
        yield Reject(file.name, "The database is damaged; the rest of it cannot be read.")


def _visits(place: str, database: ForeignDatabase, form: BrowserFormat) -> Iterator[Row | Reject]:
    keys = OrderedKeys()
    for number, (time, seconds, url, title) in enumerate(database.rows(form.query), 1):
        visited_at = _time(time, form)
        address = one_line(decoded(url)) if isinstance(url, bytes) else None
        if visited_at is None or address is None:
            yield Reject(f"{place}, visit {number}", "It has no time or no address.")
            continue
        name = one_line(decoded(title)) if isinstance(title, bytes) else None
        data = {
            **_visit(keys.key(visited_at, form.name, address), visited_at, address, name),
            "seconds": seconds if isinstance(seconds, float) and 0 < seconds < 1e9 else None,  # noqa: PLR2004
            "browser": form.name,
        }
        yield Row("visits", without_empty(data), place=f"{place}, visit {number}")


def _visit(key: str, visited_at: str, address: str, title: str | None) -> dict[str, Any]:
    return {
        "id": key,
        "title": title or address,
        "url": address,
        "site": _site(address),
        "visited_at": visited_at,
    }


def _time(value: Any, form: BrowserFormat) -> str | None:
    if not isinstance(value, int | float) or not abs(value) < 2**62:
        return None
    return iso_us(round(value * form.unit_us) + form.epoch_us)


def _site(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.") or None
    except ValueError:
        return None


BROWSER = FileFormat("Browser history", _is_history, _read, "browser", (_VISITS,))
