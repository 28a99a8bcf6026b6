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
    """Give the text and the quoted reply."""
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
