"""The title and the words of an HTML page."""

from __future__ import annotations

import re
from html import unescape

from headgate.sources.mail.html import text_of_html

_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_HEADING = re.compile(r"<h1[^<>]*>([^<]*)", re.IGNORECASE)


def title_and_text(html: str) -> tuple[str | None, str]:
    """Give the title, if the page has one, and the text line by line."""
    found = _TITLE.search(html) or _HEADING.search(html)
    text = "\n\n".join(part for part in text_of_html(html) if part)
    return (unescape(found[1]) if found else None), text
