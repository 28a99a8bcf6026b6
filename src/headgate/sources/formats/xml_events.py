"""Read XML piece by piece, without entities, external documents or unlimited depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple
from xml.parsers import expat

from headgate.sources.formats.texts import MAX_TEXT

MAX_DEPTH = 128
_CHUNK = 64 * 1024


class XmlRefused(ValueError):
    """The document is broken, or it has what no document of this kind needs."""


class XmlStart(NamedTuple):
    name: str
    attributes: Mapping[str, str]


class XmlEnd(NamedTuple):
    """An element ends; its text is what stands between the last tag and this one."""

    name: str
    text: str


class XmlText(NamedTuple):
    """Text before an element begins, as in prose with marks in it."""

    text: str


XmlEvent = XmlStart | XmlEnd | XmlText


def xml_events(content: IO[bytes], *, doctype: str | None = None) -> Iterator[XmlEvent]:
    """Yield the elements in their order; names are without namespaces. `doctype`: the document type it may have.

    Raises:
        XmlRefused: the document is broken from here on, or is refused.
    """
    collector = _XmlCollector(doctype)
    while True:
        chunk = content.read(_CHUNK)
        try:
            collector.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            yield from collector.take()
            raise XmlRefused(f"The XML is broken at line {error.lineno}.") from None
        except XmlRefused:
            yield from collector.take()
            raise
        except (LookupError, ValueError):
            # The parser asks Python for a code that it does not have itself, and Python may not have it either.
            raise XmlRefused("The XML is written in an encoding that is not known.") from None
        yield from collector.take()
        if not chunk:
            return


class _XmlCollector:
    def __init__(self, doctype: str | None) -> None:
        self._doctype = doctype
        self._events: list[XmlEvent] = []
        self._text: list[str] = []
        self._text_chars = 0
        self._depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._begin_doctype
        self.parser.EntityDeclHandler = self._refuse_entity

    def take(self) -> list[XmlEvent]:
        events, self._events = self._events, []
        return events

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise XmlRefused(f"The XML nests deeper than {MAX_DEPTH} levels.")
        if text := self._take_text():
            self._events.append(XmlText(text))
        self._events.append(XmlStart(_local(name), {_local(key): value for key, value in attributes.items()}))

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._events.append(XmlEnd(_local(name), self._take_text()))

    def _characters(self, text: str) -> None:
        if self._text_chars < MAX_TEXT:
            self._text.append(text)
            self._text_chars += len(text)

    def _take_text(self) -> str:
        text = "".join(self._text)
        self._text, self._text_chars = [], 0
        return text

    def _begin_doctype(self, name: str, _system: str | None, _public: str | None, _internal: int) -> None:
        if name != self._doctype:
            raise XmlRefused("A document type is refused here.")

    def _refuse_entity(self, *_declared: object) -> None:
        raise XmlRefused("A document that declares entities is refused.")


def _local(name: str) -> str:
    return name.rpartition(":")[2]
