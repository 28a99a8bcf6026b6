"""Pairs of a question and a text that answers it, of which no half of the questions has any: what vectors are turned by.

`python -m bench.relevance.pairs PAIRS.jsonl` writes ``[group, question, text]`` a line, from the titles of sections of other
manuals of Debian in thirteen languages, and the words of an English dictionary with what they mean. Texts of one group are
the wrong answers to each other's questions.
"""

from __future__ import annotations

import html
import random
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.homes import CACHE
from bench.relevance.manuals import fetch_package, sections_of

_LANGUAGES = frozenset({"en", "de", "fr", "es", "it", "pt", "ja", "zh", "nl", "ru", "ko", "pl", "tr"})
_OFFICE = ("de", "en-us", "fr", "ko", "ru", "nl", "ja", "zh-cn", "it", "es", "pt")
_APTITUDE = ("en", "es", "fr", "it", "ja", "nl", "ru")
_LEFT_OUT = frozenset({"zh-TW", "zh_TW", "pt_BR"})
_MIN_TEXT_CHARS, _MOST_TITLE_CHARS = 80, 150
#: Of the pages of one translation, and of the words, so many: no kind of text outweighs the others.
_OFFICE_PAGES, _WORDS, _OFFICE_CHARS = 500, 5000, 4000
_MALLARD = "{http://projectmallard.org/1.0/}"
_HIDDEN = re.compile(r"<script.*?</script>|<style.*?</style>|<h1.*?</h1>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_BODY = re.compile(r'<div id="DisplayArea".*', re.DOTALL)


class Pair(NamedTuple):
    """A question, a text that answers it, and which texts are compared with it."""

    group: str
    question: str
    text: str


def main(target: str) -> None:
    """Write every pair."""
    cache = CACHE / "relevance"
    pairs = [*_handbook(cache), *_aptitude(cache), *_desktop(cache), *_office(cache), *_dictionary(cache)]
    Path(target).write_bytes(b"\n".join(map(msgspec.json.encode, pairs)))
    print(f"{len(pairs)} pairs of {len({pair.group for pair in pairs})} groups")


def _of(group: str, found: Iterable[tuple[str, str]]) -> Iterator[Pair]:
    """Yield what has a short title, each title once, and enough text."""
    seen: set[str] = set()
    for title, text in ((" ".join(title.split()), " ".join(text.split())) for title, text in found):
        if title and title not in seen and len(title) < _MOST_TITLE_CHARS and len(text) >= _MIN_TEXT_CHARS:
            seen.add(title)
            yield Pair(group, title, text)


def _is_wanted(folder: Path) -> bool:
    language = re.split(r"[-_]", "en" if folder.name == "C" else folder.name)[0]
    return folder.is_dir() and language in _LANGUAGES and folder.name not in _LEFT_OUT


def _pages(folder: Path) -> Iterator[tuple[str, str]]:
    for page in sorted(folder.glob("*.html")):
        for section in sections_of(page.read_text(encoding="utf-8", errors="replace")):
            yield section.title, section.text


def _handbook(cache: Path) -> Iterator[Pair]:
    root = fetch_package("debian-handbook", cache) / "usr/share/doc/debian-handbook/html"
    for folder in filter(_is_wanted, sorted(root.iterdir())):
        yield from _of(f"handbook {folder.name}", _pages(folder))


def _aptitude(cache: Path) -> Iterator[Pair]:
    for language in _APTITUDE:
        place = fetch_package(f"aptitude-doc-{language}", cache)
        yield from _of(f"aptitude {language}", _pages(place / f"usr/share/doc/aptitude/html/{language}"))
    yield from _of("debmake", _pages(fetch_package("debmake-doc", cache) / "usr/share/doc/debmake-doc/html"))


def _desktop(cache: Path) -> Iterator[Pair]:
    root = fetch_package("gnome-user-docs", cache) / "usr/share/help"
    for folder in filter(_is_wanted, sorted(root.iterdir())):
        yield from _of(f"desktop {folder.name}", _topics(folder / "gnome-help"))


def _topics(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the title and the description of each topic, with its paragraphs."""
    for page in sorted(folder.glob("*.page")):
        try:
            root = ET.parse(page).getroot()  # noqa: S314 - a page of a package of Debian
        except ET.ParseError:
            continue
        text = " ".join("".join(paragraph.itertext()) for paragraph in root.iter(f"{_MALLARD}p"))
        for name in ("title", f"info/{_MALLARD}desc"):
            named = root.find(f"{_MALLARD}{name}")
            if named is not None:
                yield "".join(named.itertext()), text


def _office(cache: Path) -> Iterator[Pair]:
    for language in _OFFICE:
        root = fetch_package(f"libreoffice-help-{language}", cache) / "usr/share/libreoffice/help"
        pages = sorted(root.glob("*/text/**/*.html"))
        random.Random(5).shuffle(pages)
        yield from _of(f"office {language}", map(_office_page, pages[:_OFFICE_PAGES]))


def _office_page(page: Path) -> tuple[str, str]:
    raw = page.read_text(encoding="utf-8", errors="replace")
    title, body = _TITLE.search(raw), _BODY.search(raw)
    if title is None or body is None:
        return "", ""
    text = html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", body.group())))
    return re.split(r" - |\|", html.unescape(title[1]))[0], text[:_OFFICE_CHARS]


def _dictionary(cache: Path) -> Iterator[Pair]:
    root = fetch_package("wordnet-base", cache) / "usr/share/wordnet"
    lines = [
        line
        for kind in ("noun", "verb", "adj")
        for line in (root / f"data.{kind}").read_text().splitlines()
        if not line.startswith("  ")
    ]
    random.Random(3).shuffle(lines)
    return islice(filter(None, map(_meaning, lines)), _WORDS)


def _meaning(line: str) -> Pair | None:
    """Return words with one meaning, and what that is; None for names."""
    head, _, gloss = line.partition("|")
    columns = head.split()
    names = columns[4 : 4 + 2 * int(columns[3], 16) : 2]
    words = [re.sub(r"\(.*\)", "", name).replace("_", " ") for name in names]
    if any(word[:1].isupper() for word in words):
        return None
    return Pair("dictionary", ", ".join(words[:2]), gloss.strip().replace('"', ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
