"""Collections of a CalDAV or CardDAV server: its calendars, or its address books. Only reads.

Every object is remembered with its version and with the records that it became, so that what changed is fetched and what
was deleted is removed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urljoin, urlsplit
from xml.sax.saxutils import escape

import msgspec

from headgate.errors import UpstreamProtocolError
from headgate.sources.formats.xml_events import XmlEnd, XmlStart, xml_events
from headgate.sources.parser_requests import ReadFetched
from headgate.sources.parsers import AccountParser
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Item, LiveSource, Mark, Removal
from headgate.sources.secrets import Secrets
from headgate.sources.web_account import HttpAnswer, WebAccess, WebAccount, web_account

_NAMES = (
    'xmlns:D="DAV:" xmlns:S="http://calendarserver.org/ns/" '
    'xmlns:calendar="urn:ietf:params:xml:ns:caldav" xmlns:addressbook="urn:ietf:params:xml:ns:carddav"'
)
_CONTENTS = frozenset({"calendar-data", "address-data"})


@dataclass(frozen=True, slots=True)
class DavKind:
    """What is looked for on a server."""

    #: What such a collection is on the server.
    name: Literal["calendar", "addressbook"]
    #: What people call it.
    title: str
    #: The property with the text of an object, and what an object is.
    content: str
    chosen: str
    #: What reads it, and how its file would end.
    reader: Literal["calendar", "contacts"]
    suffix: str
    #: Whether the records of an object become more with time.
    goes_on: bool

    @property
    def home(self) -> str:
        return f"{self.name}-home-set"

    def properties(self) -> bytes:
        return (
            f"<D:propfind {_NAMES}><D:prop><D:resourcetype/><D:displayname/><D:sync-token/><S:getctag/>"
            f"<D:current-user-principal/><{self.name}:{self.home}/></D:prop></D:propfind>"
        ).encode()

    def list(self) -> bytes:
        return (
            f"<{self.name}:{self.name}-query {_NAMES}><D:prop><D:getetag/></D:prop>{self.chosen}"
            f"</{self.name}:{self.name}-query>"
        ).encode()

    def fetch(self, paths: Iterable[str]) -> bytes:
        hrefs = "".join(f"<D:href>{escape(path)}</D:href>" for path in paths)
        return (
            f"<{self.name}:{self.name}-multiget {_NAMES}><D:prop><D:getetag/><{self.name}:{self.content}/></D:prop>"
            f"{hrefs}</{self.name}:{self.name}-multiget>"
        ).encode()


CALENDARS = DavKind(
    "calendar",
    "calendar",
    "calendar-data",
    '<calendar:filter><calendar:comp-filter name="VCALENDAR"/></calendar:filter>',
    "calendar",
    ".ics",
    goes_on=True,
)
ADDRESS_BOOKS = DavKind(
    "addressbook",
    "address book",
    "address-data",
    '<addressbook:filter><addressbook:prop-filter name="FN"/></addressbook:filter>',
    "contacts",
    ".vcf",
    goes_on=False,
)


@dataclass(slots=True)
class DavPart:
    """What a server says about one path."""

    path: str = ""
    #: Texts by the name of the property.
    texts: dict[str, str] = field(default_factory=dict[str, str])
    #: Paths that a property names, by its name.
    links: dict[str, str] = field(default_factory=dict[str, str])
    #: What it is: ``collection``, ``calendar``, ``addressbook``.
    kinds: set[str] = field(default_factory=set[str])

    @property
    def version(self) -> str:
        """What changes when anything in a collection changes; empty if the server has no such thing."""
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
        part.texts[name] = text if name in _CONTENTS else text.strip()


_FETCHED = 50
_AGAIN_DAYS = 30
_MAX_HOPS = 4
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_UNCHANGED = 304

#: The records that an object became: stream and id.
Ids = list[list[str]]


class _WithId(msgspec.Struct):
    id: str


class _RecordLine(msgspec.Struct):
    data: _WithId


_RECORD = msgspec.json.Decoder(_RecordLine)


class DavAccount(LiveSource):
    """An account of a server."""

    kind: DavKind
    plain_form = 2

    def __init__(
        self, clock: Callable[[], int], notes: Path | None = None, secrets: Secrets | None = None
    ) -> None:
        self._clock = clock
        self._notes = notes
        self._secrets = secrets or Secrets()

    def label(self, settings: Mapping[str, str]) -> str:
        host = urlsplit(settings["url"]).hostname or settings["url"]
        return f"{self.title} of {settings.get('user') or host}"

    @contextmanager
    def opened(self, settings: Mapping[str, str]) -> Generator[DavRun]:
        """Sign in, with a process that reads what is fetched."""
        secret = settings.get("secret")
        access = WebAccess(
            user=settings.get("user", ""),
            secret=self._secrets.find(secret) if secret else None,
            allow_private=settings.get("allow_private") == "true",
        )
        now = datetime.fromtimestamp(self._clock() / 1_000_000, UTC).replace(tzinfo=None)
        with AccountParser(self._notes, settings) as parser, web_account(settings["url"], access) as account:
            yield DavRun(self.kind, account, parser, now)


@dataclass(frozen=True, slots=True)
class DavRun:
    kind: DavKind
    account: WebAccount
    parser: AccountParser
    now: datetime

    def parts_of(self, answer: HttpAnswer) -> list[DavPart]:
        return self.parser.one(ReadFetched(kind="dav", place=answer.url, content=answer.body), list[DavPart])

    def records(
        self, place: str, content: bytes, name: str, ids: Ids, before: Sequence[list[str]]
    ) -> Iterator[ImportPart]:
        """Read a file that was fetched, and note which records it became.

        Of one that cannot be read to its end, those count that it became before.
        """
        request = ReadFetched(
            kind=self.kind.reader,
            place=place,
            content=content,
            facts={"name": f"{name}{self.kind.suffix}", "now": self.now.isoformat()},
        )
        for part in self.parser.parts(request):
            for stream, lines in part.lines.items():
                ids.extend([stream, _RECORD.decode(line.line).data.id] for line in lines)
            if part.is_cut:
                ids.extend(record for record in before if record not in ids)
            yield part


def collections(run: DavRun, url: str, state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
    base, found = _found(run, url)
    for part in found:
        others = _held_elsewhere(state, part.path)
        address = urljoin(base, part.path)
        yield from _collection(run, part, address, state.get(part.path) or {}, others)


def _held_elsewhere(state: Mapping[str, Any], path: str) -> set[tuple[str, ...]]:
    """Return the records of all other collections: an event may stand in several, and is one record."""
    objects: list[Mapping[str, Any]] = [
        held.get("objects") or {} for name, held in state.items() if name != path and held
    ]
    return {tuple(record) for entries in objects for _, ids in entries.values() for record in ids}


def _found(run: DavRun, url: str) -> tuple[str, list[DavPart]]:
    """Look at an address, and from there at the owner's and at the home of their collections."""
    for _ in range(_MAX_HOPS):
        answer = _report(run.account, "PROPFIND", url, run.kind.properties(), depth="1")
        parts = run.parts_of(answer)
        wanted = [part for part in parts if run.kind.name in part.kinds]
        if wanted:
            return answer.url, wanted
        # Of the address itself, which stands first; what it holds may name others.
        links = parts[0].links if parts else {}
        following = links.get(run.kind.home) or links.get("current-user-principal")
        if not following or urljoin(answer.url, following) == url:
            break
        url = urljoin(answer.url, following)
    raise UpstreamProtocolError(f"There is no {run.kind.title} at the address.")


def _collection(
    run: DavRun, part: DavPart, url: str, before: Mapping[str, Any], others: set[tuple[str, ...]]
) -> Iterator[Item | ImportPart]:
    is_all = run.kind.goes_on and is_due(before, run.now)
    if part.version and part.version == before.get("version") and not is_all:
        return
    known: Mapping[str, Any] = before.get("objects") or {}
    answer = _report(run.account, "REPORT", url, run.kind.list(), depth="1")
    listed = {entry.path: entry.texts.get("getetag", "") for entry in run.parts_of(answer) if entry.path}
    changed = [
        path for path, etag in listed.items() if is_all or not etag or known.get(path, [None])[0] != etag
    ]
    name = part.texts.get("displayname") or unquote(part.path.rstrip("/").rpartition("/")[2])
    stored: dict[str, Any] = {path: known[path] for path in listed if path in known and path not in changed}
    yield from _changed(run, url, {path: known.get(path, ("", ()))[1] for path in changed}, name, stored)
    ids = [entry for _, records in stored.values() for entry in records]
    was = (entry for _, records in known.values() for entry in records if tuple(entry) not in others)
    yield from gone(was, ids)
    expanded = before.get("expanded") if not is_all else None
    yield Mark(
        part.path,
        0,
        {"version": part.version, "objects": stored, "expanded": expanded or run.now.date().isoformat()},
    )


def _changed(
    run: DavRun, url: str, changed: Mapping[str, Any], name: str, stored: dict[str, Any]
) -> Iterator[ImportPart]:
    paths = list(changed)
    for at in range(0, len(paths), _FETCHED):
        answer = _report(run.account, "REPORT", url, run.kind.fetch(paths[at : at + _FETCHED]), depth="1")
        for part in run.parts_of(answer):
            content = part.texts.get(run.kind.content, "")
            if content:
                ids: Ids = []
                yield from run.records(part.path, content.encode(), name, ids, changed.get(part.path, ()))
                stored[part.path] = [part.texts.get("getetag", ""), ids]


def _report(account: WebAccount, method: str, url: str, body: bytes, *, depth: str) -> HttpAnswer:
    return account.request(method, url, {**_XML, "Depth": depth}, body)


def gone(before: Any, ids: Ids) -> Iterator[Removal]:
    there = {tuple(record) for record in ids}
    for stream, key in before:
        if (stream, key) not in there:
            yield Removal(stream, [key])


def is_due(before: Mapping[str, Any], now: datetime) -> bool:
    """Return whether series must be followed further than at the last run."""
    expanded = before.get("expanded")
    return expanded is None or now - datetime.fromisoformat(expanded) > timedelta(days=_AGAIN_DAYS)
