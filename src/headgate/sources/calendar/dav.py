"""The XML of CalDAV (RFC 4791): what is asked, and answers of several parts."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from headgate.sources.xml_events import XmlEnd, XmlStart, xml_events

_NAMES = 'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:S="http://calendarserver.org/ns/"'
LOOK = (
    f"<D:propfind {_NAMES}><D:prop><D:resourcetype/><D:displayname/><D:sync-token/><S:getctag/>"
    "<D:current-user-principal/><C:calendar-home-set/></D:prop></D:propfind>"
).encode()
LIST = (
    f"<C:calendar-query {_NAMES}><D:prop><D:getetag/></D:prop>"
    '<C:filter><C:comp-filter name="VCALENDAR"/></C:filter></C:calendar-query>'
).encode()


def fetch_of(paths: Iterable[str]) -> bytes:
    """Write the request for the content of some objects."""
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
