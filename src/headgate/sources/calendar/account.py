"""Calendars of an account: an iCalendar file at an address, or the calendars of a CalDAV server. Only reads.

Of a CalDAV server every object is remembered with its version and with the records that it became, so that what changed
is fetched and what was deleted is removed. Occurrences of series reach two years beyond the day of the run; after a
month everything is fetched again, so that they go on.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from xml.sax.saxutils import escape

import msgspec

from headgate.errors import ConfigInvalid, UpstreamProtocolError
from headgate.sources.calendar.source import AHEAD, EVENTS, TASKS
from headgate.sources.formats.xml_events import XmlEnd, XmlStart, xml_events
from headgate.sources.parser_requests import ReadFetched
from headgate.sources.parsers import AccountParser
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item, LiveSource, Mark, Removal
from headgate.sources.secrets import FORMS, Secrets
from headgate.sources.web_account import HttpAnswer, WebAccess, WebAccount, web_account

_NAMES = 'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:S="http://calendarserver.org/ns/"'
PROPERTIES = (
    f"<D:propfind {_NAMES}><D:prop><D:resourcetype/><D:displayname/><D:sync-token/><S:getctag/>"
    "<D:current-user-principal/><C:calendar-home-set/></D:prop></D:propfind>"
).encode()
LIST = (
    f"<C:calendar-query {_NAMES}><D:prop><D:getetag/></D:prop>"
    '<C:filter><C:comp-filter name="VCALENDAR"/></C:filter></C:calendar-query>'
).encode()


def fetch_of(paths: Iterable[str]) -> bytes:
    hrefs = "".join(f"<D:href>{escape(path)}</D:href>" for path in paths)
    return (
        f"<C:calendar-multiget {_NAMES}><D:prop><D:getetag/><C:calendar-data/></D:prop>{hrefs}"
        "</C:calendar-multiget>"
    ).encode()


@dataclass(slots=True)
class DavPart:
    """What a server says about one path."""

    path: str = ""
    #: Texts by the name of the property.
    texts: dict[str, str] = field(default_factory=dict[str, str])
    #: Paths that a property names, by its name.
    links: dict[str, str] = field(default_factory=dict[str, str])
    #: What it is: ``collection``, ``calendar``.
    kinds: set[str] = field(default_factory=set[str])

    @property
    def version(self) -> str:
        """What changes when anything in a calendar changes; empty if the server has no such thing."""
        return self.texts.get("sync-token") or self.texts.get("getctag", "")


def parts_of(body: bytes) -> Iterator[DavPart]:
    """Read the parts of an answer.

    Raises:
        XmlRefused: it is no XML, or has what no answer needs.
    """
    part, inside = DavPart(), list[str]()
    for event in xml_events(io.BytesIO(body)):
        if isinstance(event, XmlStart):
            inside.append(event.name)
            if event.name == "response":
                part = DavPart()
            elif len(inside) > 1 and inside[-2] == "resourcetype":
                part.kinds.add(event.name)
        elif isinstance(event, XmlEnd):
            inside.pop()
            _take(part, event.name, event.text, inside[-1] if inside else "")
            if event.name == "response":
                yield part


def _take(part: DavPart, name: str, text: str, parent: str) -> None:
    if name == "href" and parent == "response":
        part.path = text.strip()
    elif name == "href":
        part.links[parent] = text.strip()
    elif parent == "prop" and text.strip():
        part.texts[name] = text if name == "calendar-data" else text.strip()


_FETCHED = 50
_AGAIN_DAYS = 30
_MAX_HOPS = 4
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_UNCHANGED = 304

#: The records that an object became: stream and id.
_Ids = list[list[str]]


class _WithId(msgspec.Struct):
    id: str


class _RecordLine(msgspec.Struct):
    data: _WithId


_RECORD = msgspec.json.Decoder(_RecordLine)


class CalendarAccount(LiveSource):
    name = "calendar"
    title = "Calendar"
    streams = (EVENTS, TASKS)
    plain_form = 2
    settings: Mapping[str, str] = {
        "url": "The https address of an .ics file, of a CalDAV calendar, or of a CalDAV server.",
        "user": "The name to sign in with (optional)",
        "secret": f"Where the password is: {FORMS} (optional)",
        "kind": "ics or caldav; caldav if there is a user (optional)",
        "whole": "true, to remove events that are gone from an .ics file (optional)",
        "allow_private": "true, if the server may have a private address (optional)",
    }

    def __init__(
        self, clock: Callable[[], int], notes: Path | None = None, secrets: Secrets | None = None
    ) -> None:
        self._clock = clock
        self._notes = notes
        self._secrets = secrets or Secrets()

    def label(self, settings: Mapping[str, str]) -> str:
        host = urlsplit(settings["url"]).hostname or settings["url"]
        return f"Calendar of {settings.get('user') or host}"

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
        """Fetch what changed; it is read in another process."""
        kind = settings.get("kind") or ("caldav" if settings.get("user") else "ics")
        if kind not in {"ics", "caldav"}:
            raise ConfigInvalid("'kind' is ics or caldav.", hint="Leave it out to have it chosen.")
        secret = settings.get("secret")
        access = WebAccess(
            user=settings.get("user", ""),
            secret=self._secrets.find(secret) if secret else None,
            allow_private=settings.get("allow_private") == "true",
        )
        now = datetime.fromtimestamp(self._clock() / 1_000_000, UTC).replace(tzinfo=None)
        with AccountParser(self._notes, settings) as parser, web_account(settings["url"], access) as account:
            run = _CalendarRun(account, parser, now)
            if kind == "ics":
                yield from _file(run, settings, state)
            else:
                yield from _calendars(run, settings["url"], state)
                # Series are followed so far; what is later may still come.
                yield Covered("events", end=(now + AHEAD).date().isoformat())
                yield Covered("tasks")


@dataclass(frozen=True, slots=True)
class _CalendarRun:
    account: WebAccount
    parser: AccountParser
    now: datetime

    def parts_of(self, answer: HttpAnswer) -> list[DavPart]:
        return self.parser.one(ReadFetched(kind="dav", place=answer.url, content=answer.body), list[DavPart])

    def records(
        self, place: str, content: bytes, name: str, ids: _Ids, before: Sequence[list[str]]
    ) -> Iterator[ImportPart]:
        """Read a file that was fetched, and note which records it became.

        Of one that cannot be read to its end, those count that it became before.
        """
        request = ReadFetched(
            kind="calendar", place=place, content=content, facts={"name": name, "now": self.now.isoformat()}
        )
        for part in self.parser.parts(request):
            for stream, lines in part.lines.items():
                ids.extend([stream, _RECORD.decode(line.line).data.id] for line in lines)
            if part.is_cut:
                ids.extend(record for record in before if record not in ids)
            yield part


# A file at an address


def _file(
    run: _CalendarRun, settings: Mapping[str, str], state: Mapping[str, Any]
) -> Iterator[Item | ImportPart]:
    url = settings["url"]
    before: Mapping[str, Any] = state.get("file") or {}
    is_due = _is_due(before, run.now)
    wanted = {"If-None-Match": before["etag"]} if before.get("etag") and not is_due else {}
    answer = run.account.request("GET", url, wanted)
    if answer.status == _UNCHANGED:
        return
    if b"BEGIN:VCALENDAR" not in answer.body[:4096].upper():
        raise UpstreamProtocolError("The address gives no iCalendar file.")
    ids: _Ids = []
    name = unquote(Path(urlsplit(url).path).stem) or "calendar"
    yield from run.records(name, answer.body, name, ids, before.get("ids") or ())
    is_whole = settings.get("whole") == "true"
    if is_whole:
        yield from _gone(before.get("ids") or (), ids)
    etag = answer.headers.get("etag", "")
    yield Mark(
        "file", 0, {"etag": etag, "ids": ids if is_whole else [], "expanded": run.now.date().isoformat()}
    )


# The calendars of a server


def _calendars(run: _CalendarRun, url: str, state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
    base, calendars = _found_calendars(run, url)
    for part in calendars:
        others = _held_elsewhere(state, part.path)
        address = urljoin(base, part.path)
        yield from _calendar(run, part, address, state.get(part.path) or {}, others)


def _held_elsewhere(state: Mapping[str, Any], path: str) -> set[tuple[str, ...]]:
    """Return the records of all other calendars: an event may stand in several, and is one record."""
    objects: list[Mapping[str, Any]] = [
        calendar.get("objects") or {} for name, calendar in state.items() if name != path and calendar
    ]
    return {tuple(record) for entries in objects for _, ids in entries.values() for record in ids}


def _found_calendars(run: _CalendarRun, url: str) -> tuple[str, list[DavPart]]:
    """Look for calendars at an address, and from there at the owner's and at the home of their calendars."""
    for _ in range(_MAX_HOPS):
        answer = _report(run.account, "PROPFIND", url, PROPERTIES, depth="1")
        parts = run.parts_of(answer)
        calendars = [part for part in parts if "calendar" in part.kinds]
        if calendars:
            return answer.url, calendars
        # Of the address itself, which stands first; what it holds may name others.
        links = parts[0].links if parts else {}
        following = links.get("calendar-home-set") or links.get("current-user-principal")
        if not following or urljoin(answer.url, following) == url:
            break
        url = urljoin(answer.url, following)
    raise UpstreamProtocolError("There is no calendar at the address.")


def _calendar(
    run: _CalendarRun, part: DavPart, url: str, before: Mapping[str, Any], others: set[tuple[str, ...]]
) -> Iterator[Item | ImportPart]:
    is_due = _is_due(before, run.now)
    if part.version and part.version == before.get("version") and not is_due:
        return
    known: Mapping[str, Any] = before.get("objects") or {}
    answer = _report(run.account, "REPORT", url, LIST, depth="1")
    listed = {entry.path: entry.texts.get("getetag", "") for entry in run.parts_of(answer) if entry.path}
    changed = [
        path for path, etag in listed.items() if is_due or not etag or known.get(path, [None])[0] != etag
    ]
    name = part.texts.get("displayname") or unquote(part.path.rstrip("/").rpartition("/")[2])
    stored: dict[str, Any] = {path: known[path] for path in listed if path in known and path not in changed}
    yield from _changed(run, url, {path: known.get(path, ("", ()))[1] for path in changed}, name, stored)
    ids = [entry for _, records in stored.values() for entry in records]
    was = (entry for _, records in known.values() for entry in records if tuple(entry) not in others)
    yield from _gone(was, ids)
    expanded = before.get("expanded") if not is_due else None
    yield Mark(
        part.path,
        0,
        {"version": part.version, "objects": stored, "expanded": expanded or run.now.date().isoformat()},
    )


def _changed(
    run: _CalendarRun, url: str, changed: Mapping[str, Any], name: str, stored: dict[str, Any]
) -> Iterator[ImportPart]:
    paths = list(changed)
    for at in range(0, len(paths), _FETCHED):
        answer = _report(run.account, "REPORT", url, fetch_of(paths[at : at + _FETCHED]), depth="1")
        for part in run.parts_of(answer):
            content = part.texts.get("calendar-data", "")
            if content:
                ids: _Ids = []
                yield from run.records(part.path, content.encode(), name, ids, changed.get(part.path, ()))
                stored[part.path] = [part.texts.get("getetag", ""), ids]


def _report(account: WebAccount, method: str, url: str, body: bytes, *, depth: str) -> HttpAnswer:
    return account.request(method, url, {**_XML, "Depth": depth}, body)


# Both


def _gone(before: Any, ids: _Ids) -> Iterator[Removal]:
    there = {tuple(record) for record in ids}
    for stream, key in before:
        if (stream, key) not in there:
            yield Removal(stream, [key])


def _is_due(before: Mapping[str, Any], now: datetime) -> bool:
    """Return whether series must be followed further than at the last run."""
    expanded = before.get("expanded")
    return expanded is None or now - datetime.fromisoformat(expanded) > timedelta(days=_AGAIN_DAYS)
