"""Pages of the manual in Debian's packages: a question is what the first section says after the names."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from bench.relevance.manuals import Section, fetch_package

#: The packages of each set, by the language of their pages.
MAN_PAGES = {
    "man-pages-en": ("en", ("manpages", "git-man", "coreutils")),
    "man-pages-de": ("de", ("manpages-de",)),
}
_MIN_TEXT_CHARS = 200
#: The most characters of a page that are searched: the rest of a long one is its list of options.
_MAX_TEXT_CHARS = 6_000
_FEWEST_WORDS, _MOST_WORDS = 4, 16
_FONTS = frozenset({"B", "I", "R", "SM", "SB", "SH", "SS", "BR", "RB", "BI", "IB", "IR", "RI"})
_FONT = re.compile(r"\\f(?:\[\w*\]|\(..|.)")
_NO_WIDTH = re.compile(r"\\[&,/:%|^]|\\s[+-]?\d")
_GLYPH = re.compile(r"\\\(..|\\\[[^\]]*\]|\\\*(?:\(..|\[[^\]]*\]|.)")
_ARGUMENT = re.compile(r'"([^"]*)"|(\S+)')


def man_pages(name: str, cache: Path) -> list[Section]:
    """Read the pages of a set; of pages that are described alike the first."""
    _, packages = MAN_PAGES[name]
    found: dict[str, Section] = {}
    for package in packages:
        for path in sorted(fetch_package(package, cache).glob("usr/share/man/**/*.gz")):
            for section in _page(path):
                found.setdefault(section.title, section)
    return list({section.anchor: section for section in found.values()}.values())


def _page(path: Path) -> Iterator[Section]:
    if path.is_symlink():
        return
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        parts = re.split(r"^\.SH\b.*\n", file.read(), flags=re.MULTILINE)
    names, dash, about = " ".join("".join(map(_text, parts[1:2])).split()).partition(" - ")
    text = " ".join(map(_text, parts[2:]))[:_MAX_TEXT_CHARS].strip()
    if dash and _FEWEST_WORDS <= len(about.split()) <= _MOST_WORDS and len(text) >= _MIN_TEXT_CHARS:
        yield Section(path.name.removesuffix(".gz"), about, None, text, names)


def _text(source: str) -> str:
    """Return the text of roff source, without its commands."""
    lines = (_line(line) for line in source.splitlines())
    return " ".join(line for line in lines if line)


def _line(line: str) -> str:
    if line.startswith((".", "'")):
        command, _, rest = line[1:].partition(" ")
        if command not in _FONTS:
            return ""
        # Fonts that take turns leave no space between their arguments.
        glue = "" if len(command) == 2 and command not in {"SM", "SB", "SH", "SS"} else " "
        line = glue.join(quoted or plain for quoted, plain in _ARGUMENT.findall(rest))
    line = _NO_WIDTH.sub("", _FONT.sub("", line)).replace("\\-", "-").replace("\\ ", " ")
    return _GLYPH.sub(" ", line).replace("\\(", "").replace("\\e", "\\").strip()
