"""Plain text of HTML, with the quoted reply apart; what a person would not see is left out."""

from __future__ import annotations

import re
from html import unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_HTML_CHARS = 4 * 1024 * 1024
#: The parser needs time with the square of the depth: ordinary mail has a few dozen levels.
_MAX_DEPTH = 1000
_MANY_TAGS = 5000
_UNSEEN = (
    'script, style, title, template, noscript, [hidden], [style*="display:none"], [style*="display: none"]'
)
_QUOTES = (
    "blockquote[type=cite], div.gmail_quote, div.yahoo_quoted, div.moz-cite-prefix, div#divRplyFwdMsg, "
    "div.protonmail_quote"
)
#: White space to HTML, so that it may stand everywhere; one is the end of a line, three or more of a paragraph.
_BREAK = "\f"
_PARAGRAPH = re.compile(r"<(?=(?:p|br|h[1-6]|table|ul|ol|pre|blockquote)\b)", re.IGNORECASE)
_LINE = re.compile(
    r"<(?=(?:div|tr|li|hr|section|article|header|footer|/(?:p|div|h[1-6]|table|pre|blockquote))\b)",
    re.IGNORECASE,
)
#: The parser needs time with the square of the attributes of a tag.
_LONG_TAG = re.compile(r"(<[a-zA-Z][a-zA-Z0-9]{0,20})\b[^<>]{8192,}")
_CELL = re.compile(r"<(?=/t[dh]\b)", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>")
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_INVISIBLE = str.maketrans(dict.fromkeys("\u200b\u200c\u034f\u00ad\ufeff"))


def text_of_html(html: str) -> tuple[str, str]:
    """Return the text and the quoted reply."""
    html = _LONG_TAG.sub(r"\1", html[:MAX_HTML_CHARS].replace(_BREAK, " "))
    html = _CELL.sub(" <", _LINE.sub(f"{_BREAK}<", _PARAGRAPH.sub(f"{_BREAK}{_BREAK}<", html)))
    if html.count("<") > _MANY_TAGS and _depth(html) > _MAX_DEPTH:
        return _lines(unescape(_TAG.sub("", html))), ""
    body = LexborHTMLParser(html).body
    if body is None:
        return "", ""
    for node in body.css(_UNSEEN):
        node.decompose()
    quoted = _taken(body)
    return _lines(body.text(deep=True)), quoted


def _taken(body: LexborNode) -> str:
    """Take the quoted replies out; those inside another one go with it."""
    texts: list[str] = []
    while (node := body.css_first(_QUOTES)) is not None:
        texts.append(_lines(node.text(deep=True)))
        node.decompose()
    return "\n\n".join(text for text in texts if text)


def _lines(text: str) -> str:
    if not text.isascii():
        text = text.translate(_INVISIBLE)
    lines: list[str] = []
    empty = 0
    for piece in text.split(_BREAK):
        if words := piece.split():
            if lines and empty > 1:
                lines.append("")
            lines.append(" ".join(words))
            empty = 0
        else:
            empty += 1
    return "\n".join(lines)


def _depth(html: str) -> int:
    depth, deepest = 0, 0
    for match in _TAG.finditer(html):
        if match.group(1):
            depth -= 1
        elif match.group(2).lower() not in _VOID:
            depth += 1
            deepest = max(deepest, depth)
    return deepest


#: "On 3 May 2024, Ada wrote:" in the languages that mail programs often write it in.
_ATTRIBUTION = re.compile(
    r"^\s*(?:On|Am|Le|El|Il|Op|Den|Em|Dnia|W dniu)\b.{0,400}?"
    r"(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|escreveu|napisał|pisze)\b.{0,200}:\s*$",
    re.DOTALL,
)
#: "Ada wrote:" and "Ada wrote on 3 May:".
_SHORT_ATTRIBUTION = re.compile(
    r"^\s*[^\s>][^\n]{0,150}?\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev)\b[^\n]{0,150}:\s*$"
)
#: From here on everything is an earlier message.
_EARLIER = re.compile(
    r"^[ \t]*(?:-{2,}[ \t]*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original)[ \t]*-{2,}"
    r"|_{20,}[ \t]*\n[ \t]*(?:From|Von|De|Da):"
    r"|From:[^\n]*\n(?:Sent|Date):[^\n]*\nTo:[^\n]*\n"
    r"|Von:[^\n]*\n(?:Gesendet|Datum):[^\n]*\nAn:[^\n]*\n)",
    re.MULTILINE,
)
#: One of these stands in every such beginning; looking for them is quick.
_SIGNS = ("---", "______", "From:", "Von:")
_ATTRIBUTION_LINES = 3


def fold(text: str) -> tuple[str, str]:
    """Return the new text and the quoted one; a message that only quotes is all text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    match = _EARLIER.search(text) if any(sign in text for sign in _SIGNS) else None
    text, earlier = (text, "") if match is None else (text[: match.start()], text[match.start() :])
    new, quoted = _by_lines(text) if "\n>" in f"\n{text}" else (text, "")
    quoted = "\n\n".join(part for part in (quoted.strip("\n"), earlier.strip()) if part)
    return (new.strip(), quoted) if new.strip() else (f"{text}{earlier}".strip(), "")


def _by_lines(text: str) -> tuple[str, str]:
    new: list[str] = []
    quoted: list[str] = []
    was_quoted = False
    for line in text.split("\n"):
        is_quoted = line.startswith(">")
        if is_quoted:
            if not was_quoted:
                quoted.extend(_attribution(new))
            quoted.append(line)
        else:
            new.append(line)
        was_quoted = is_quoted
    return "\n".join(new), "\n".join(quoted)


def _attribution(new: list[str]) -> list[str]:
    """Take the line that introduces a quotation, which may be broken into several, off the new text."""
    end = len(new)
    while end and not new[end - 1].strip():
        end -= 1
    for count in range(1, min(_ATTRIBUTION_LINES, end) + 1):
        taken = new[end - count : end]
        if _ATTRIBUTION.match("\n".join(taken)):
            del new[end - count :]
            return taken
    if not end or not _SHORT_ATTRIBUTION.match(new[end - 1]):
        return []
    taken = new[end - 1 : end]
    del new[end - 1 :]
    return taken
