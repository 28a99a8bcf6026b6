"""Texts of mail: in any charset, and in the encodings of headers."""

from __future__ import annotations

from email.errors import HeaderParseError
from email.header import decode_header

from headgate.sources.cleaning import clean

#: Decoding takes time with the square of the encoded words.
_HEADER_CHARS = 16 * 1024


def decoded(content: bytes, charset: str | None) -> str:
    """Read bytes in their charset; one that is wrong or not known gives way to UTF-8, then to Latin-1."""
    for name in (charset, "utf-8"):
        try:
            return clean(content.decode(name)) if name else clean(content.decode())
        except (LookupError, ValueError):
            continue
    return clean(content.decode("windows-1252", "replace"))


def unfolded(value: str) -> str:
    """Read a header's value: one line, its encoded words decoded (RFC 2047); a very long one is cut."""
    value = value[:_HEADER_CHARS]
    if "=?" in value:
        value = _words(value)
    return clean(" ".join(value.split()))


def _words(value: str) -> str:
    try:
        found = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(text if isinstance(text, str) else _word(text, charset) for text, charset in found)


def _word(text: bytes, charset: str | None) -> str:
    # Text between encoded words comes as bytes that were made of Unicode escapes.
    return text.decode("raw-unicode-escape", "replace") if charset is None else decoded(text, charset)
