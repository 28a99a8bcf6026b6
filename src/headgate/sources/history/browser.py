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
    #: Its visits: time, address and title, in their order.
    times: str
    url: str
    title: str
    visits: str
    #: The column of seconds with its table, and its unit; only newer versions have it.
    seconds: tuple[str, str, str] | None = None
    #: Microseconds from the format's first moment to 1970, and units of its time in a microsecond.
    epoch_us: int = 0
    unit_us: int = 1

    def query(self, database: ForeignDatabase) -> str:
        seconds = "NULL"
        if self.seconds and self.seconds[1] in database.columns(self.seconds[0]):
            seconds = self.seconds[2]
        # Texts come as bytes, so that one that is not UTF-8 spoils nothing but itself.
        url, title = (
            f"substr(CAST({column} AS BLOB), 1, {length})"
            for column, length in ((self.url, _MAX_URL), (self.title, _MAX_TITLE))
        )
        return f"SELECT {self.times}, {seconds}, {url}, {title} FROM {self.visits}"  # noqa: S608 - our own text


_FORMATS = (
    BrowserFormat(
        "chrome",
        frozenset({"History"}),
        frozenset({"visits", "urls"}),
        *("v.visit_time", "u.url", "u.title", "visits v JOIN urls u ON u.id = v.url ORDER BY v.id"),
        ("visits", "visit_duration", "v.visit_duration / 1e6"),
        -11_644_473_600_000_000,
    ),
    BrowserFormat(
        "firefox",
        frozenset({"places.sqlite"}),
        frozenset({"moz_historyvisits", "moz_places"}),
        *("v.visit_date", "p.url", "p.title"),
        "moz_historyvisits v JOIN moz_places p ON p.id = v.place_id ORDER BY v.id",
    ),
    BrowserFormat(
        "safari",
        frozenset({"History.db"}),
        frozenset({"history_visits", "history_items"}),
        *("v.visit_time", "i.url", "v.title"),
        "history_visits v JOIN history_items i ON i.id = v.history_item ORDER BY v.id",
        epoch_us=978_307_200_000_000,
        unit_us=1_000_000,
    ),
    # On Android, until 2020.
    BrowserFormat(
        "firefox",
        frozenset(),
        frozenset({"bookmarks", "history", "remote_devices", "visits"}),
        *("v.date", "h.url", "h.title"),
        "visits v JOIN history h ON h.guid = v.history_guid ORDER BY v._id",
    ),
    BrowserFormat(
        "qutebrowser",
        frozenset(),
        frozenset({"History", "CompletionHistory"}),
        *("h.atime", "h.url", "h.title", "History h ORDER BY h.rowid"),
        unit_us=1_000_000,
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
    for number, (time, seconds, url, title) in enumerate(database.rows(form.query(database)), 1):
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


BROWSER = FileFormat(
    "Browser history", _is_history, _read, "browser", (_VISITS,), log_of=lambda file: file.name
)
