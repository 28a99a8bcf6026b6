"""Manuals of Debian in several languages, cut into sections: the text to search, and titles to ask with.

A section's title is left out of its text, so that a question has to find it by what it is about. The packages are
fetched by name with apt and unpacked into the cache; nothing of them is kept in the project.
"""

from __future__ import annotations

import re
import subprocess  # noqa: TID251 - packages are fetched with the programs of the system
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_MIN_TEXT_CHARS = 80
#: The number before a title: "7.5.1. Basic fonts", "Kapitel 3. ".
_NUMBER = re.compile(r"^\s*(?:\w+\s*)?[\dA-Z]+(?:\.\d+)*\.?[\s\u00a0]+")
_SPACE = re.compile(r"\s+")
_VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta"})
_HIDDEN = frozenset({"toc", "navheader", "navfooter", "titlepage"})


@dataclass(frozen=True, slots=True)
class Manual:
    """One manual in one language."""

    name: str
    language: str
    package: str
    #: The pages, as a pattern below the unpacked package.
    pages: str


MANUALS = tuple(
    Manual(f"reference-{language}", language, f"debian-reference-{language}", f"**/*.{language}.html")
    for language in ("en", "de", "fr", "es", "it", "pt", "ja", "zh-cn")
) + tuple(
    Manual(f"questions-{language}", language, package, f"**/*{ending}")
    for language, package, ending in (
        ("en", "debian-faq", ".en.html"),
        ("de", "debian-faq-de", ".de.html"),
        ("fr", "debian-faq-fr", ".fr.html"),
        ("it", "debian-faq-it", ".it.html"),
        ("nl", "debian-faq-nl", ".nl.html"),
        ("ru", "debian-faq-ru", ".ru.html"),
        ("ko", "debian-faq-ko", ".ko.html"),
    )
)


@dataclass(slots=True)
class Section:
    """One section: its anchor, its title, the section around it, and its own text.

    The title is what it is asked for with; a heading is searched, as a field before the text.
    """

    anchor: str
    title: str
    parent: str | None
    text: str
    heading: str = ""


@dataclass(slots=True)
class _Open:
    """A section that the parser is inside of."""

    depth: int
    anchor: str = ""
    title: str = ""
    text: list[str] = field(default_factory=list[str])


def fetch_package(package: str, cache: Path) -> Path:
    """Unpack a package into the cache, if it is not there."""
    place = cache / package
    if not place.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        _run(cache, "apt-get", "download", "-q", package)
        (archive,) = cache.glob(f"{package}_*.deb")
        _run(cache, "dpkg-deb", "-x", archive.name, package)
    return place


def _run(directory: Path, *command: str) -> None:
    subprocess.run(command, cwd=directory, check=True, capture_output=True)  # noqa: S603 - the names are ours


def sections(manual: Manual, place: Path) -> list[Section]:
    """Read the sections of every page that have a title and enough text."""
    found: dict[str, Section] = {}
    for page in sorted(place.glob(manual.pages)):
        for section in sections_of(page.read_text(encoding="utf-8", errors="replace")):
            found.setdefault(section.anchor, section)
    return [section for section in found.values() if len(section.text) >= _MIN_TEXT_CHARS and section.title]


def sections_of(page: str) -> Iterator[Section]:
    """Read the sections of a page."""
    reader = _PageReader()
    reader.feed(page)
    yield from reader.done


class _PageReader(HTMLParser):
    """Collects the text of each DocBook section, without the text of the sections in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.done: list[Section] = []
        self._depth = 0
        self._open: list[_Open] = []
        self._hidden_at: int | None = None
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        kind = given.get("class") or ""
        if tag in _VOID:
            return
        self._depth += 1
        if tag == "div" and kind in {"section", "chapter", "appendix", "preface"}:
            self._open.append(_Open(self._depth))
        elif tag == "div" and kind in _HIDDEN and self._hidden_at is None:
            self._hidden_at = self._depth
        if not self._open:
            return
        section = self._open[-1]
        if tag == "a" and given.get("id") and not section.anchor and self._hidden_at is not None:
            section.anchor = given["id"] or ""
        if tag in {"h1", "h2", "h3", "h4", "h5"} and "title" in kind and not section.title:
            self._in_title = True
            section.anchor = section.anchor or given.get("id") or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if tag in {"h1", "h2", "h3", "h4", "h5"}:
            self._in_title = False
        if self._hidden_at == self._depth:
            self._hidden_at = None
        if self._open and self._open[-1].depth == self._depth:
            self._close()
        self._depth -= 1

    def _close(self) -> None:
        section = self._open.pop()
        title = _NUMBER.sub("", _SPACE.sub(" ", section.title).strip(), count=1).strip()
        parent = self._open[-1].anchor if self._open else None
        text = _SPACE.sub(" ", "".join(section.text)).strip()
        if section.anchor:
            self.done.append(Section(section.anchor, title, parent, text))

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        if self._in_title:
            self._open[-1].title += data
        elif self._hidden_at is None:
            self._open[-1].text.append(data)
