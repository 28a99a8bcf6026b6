"""Text of files that other programs wrote: of any encoding, of any length, and always fit to be stored."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import IO, Any

#: The most characters of one field.
MAX_TEXT = 1024 * 1024
#: A longer line of a table is not one.
MAX_LINE = 1024 * 1024
_CHUNK = 64 * 1024
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BAD_BYTES = "headgate-windows-1252"
#: How spreadsheets recognise a formula; a number, a list's dash alone or the number of a phone is none.
_FORMULA = re.compile(r"(?![+-][\d\s.,()]*\Z)[=+\-@\t\r]")


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Read the bytes that are not UTF-8 as what else they are in practice, so that mixed files are readable."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return bad.decode("cp1252", "replace"), error.end


codecs.register_error(_BAD_BYTES, _as_windows_1252)


def clean(text: str | None, limit: int = MAX_TEXT) -> str | None:
    """Return the text without what no store takes, at most `limit` characters; None if nothing is left."""
    if not text:
        return None
    return _UNSTORABLE.sub("", text[:limit]).strip() or None


def one_line(text: str | None, limit: int = MAX_TEXT) -> str | None:
    """Clean a text and write every run of white space as one space."""
    return " ".join(cleaned.split()) if (cleaned := clean(text, limit)) else None


def encoding_of(head: bytes) -> str:
    """Guess the encoding by its mark, by the zero bytes of UTF-16, or by the letters of Central and Eastern Europe.

    Else it is UTF-8, with other bytes read leniently.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    sample = head[:512]
    if len(sample) > 1 and sample[1::2].count(0) * 2 > len(sample) // 2:
        return "utf-16-le"
    if sample[0::2].count(0) * 2 > len(sample) // 2:
        return "utf-16-be"
    sample = head[:_CHUNK]
    return "utf-8" if sample.isascii() or _is_utf_8(sample) else _windows_code(sample) or "utf-8"


def _is_utf_8(head: bytes) -> bool:
    """Return whether most of what is not ASCII is UTF-8: a file may have lines of two encodings, and be cut in a letter."""
    read = head.decode("utf-8", "ignore")
    return sum(not letter.isascii() for letter in read) * 4 > sum(byte > 127 for byte in head)  # noqa: PLR2004


#: Words of letters that are not ASCII: of Cyrillic every letter is one, of Latin one or two.
_CYRILLIC_WORD = re.compile(rb"[\xa8\xb8\xc0-\xff]{3,}")
#: The seven most frequent letters of Russian, and the bit that small letters have more.
_FREQUENT = "оеаинтс".encode("cp1251")
_SMALL = 0x20
#: Letters of Polish inside words, where Windows-1252 has signs; of Czech and Slovak (two of them) and of Hungarian before
#: other letters, where Western languages have theirs at the end of words, or others with them.
_POLISH = re.compile(rb"[\xb3\xb9][a-z]|[a-z]\xbf")
_CZECH = re.compile(rb"[\xe8\xc8\xec\xcc\xf8\xd8\xf9\x9d](?=[a-z\x80-\xff])")
_HUNGARIAN = re.compile(rb"\xf5(?!e)|\xfb(?=[a-z])")
_WITH_CZECH = "áíéý".encode("cp1250")
_WITH_HUNGARIAN = "áó".encode("cp1250")
_WESTERN = "àåçêæãâä".encode("cp1252")


def _windows_code(head: bytes) -> str | None:
    """Tell Windows-1251 and Windows-1250 from Windows-1252 by the letters of their languages; None: by no letter."""
    letters = sum(byte >= 0xC0 for byte in head)  # noqa: PLR2004 - the first letter
    words = b"".join(_CYRILLIC_WORD.findall(head))
    frequent = sum(byte | _SMALL in _FREQUENT for byte in words)
    if words and len(words) > letters * 0.6 and frequent > len(words) * 0.35:
        return "cp1251"
    if _POLISH.search(head):
        return "cp1250"
    if any(byte in _WESTERN for byte in head):
        return None
    is_czech = len({mark[0] | _SMALL for mark in _CZECH.findall(head)}) > 1 and any(
        byte in _WITH_CZECH for byte in head
    )
    is_hungarian = _HUNGARIAN.search(head) is not None and any(byte in _WITH_HUNGARIAN for byte in head)
    return "cp1250" if is_czech or is_hungarian else None


def decode(content: bytes) -> str:
    return "".join(decoded_pieces(io.BytesIO(content), content))


def decoded_pieces(content: IO[bytes], head: bytes) -> Iterator[str]:
    """Decode a text piece by piece; every kind of line end becomes a plain one."""
    encoding = encoding_of(head)
    errors = _BAD_BYTES if encoding.startswith("utf-8") else "replace"
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(errors), True)
    while chunk := content.read(_CHUNK):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def lines(content: IO[bytes], head: bytes) -> Iterator[str]:
    """Yield the lines with their ends; one that is too long comes in pieces of `MAX_LINE` characters."""
    rest = ""
    for piece in decoded_pieces(content, head):
        *whole, rest = (rest + piece).split("\n")
        yield from (f"{line}\n" for line in whole)
        while len(rest) > MAX_LINE:
            yield rest[:MAX_LINE]
            rest = rest[MAX_LINE:]
    if rest:
        yield rest


#: A longer line is no text that a person or a program wrote as one.
MAX_LINE_BYTES = 16 * 1024 * 1024
_BUFFER_BYTES = 64 * 1024


class _Readable(io.RawIOBase):
    """Content that may have no method but `read`, for the buffer of the standard library."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        part = self._content.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def byte_lines(content: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines without their ends; of a line that is too long the beginning."""
    buffered = io.BufferedReader(_Readable(content), _BUFFER_BYTES)
    while part := buffered.readline(MAX_LINE_BYTES):
        line = part
        while not part.endswith(b"\n") and (part := buffered.readline(MAX_LINE_BYTES)):
            pass
        yield line.rstrip(b"\r\n")


def safe_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value.lstrip("'")) else value


def plain_cell(text: str) -> str:
    """Take away the apostrophe that `safe_cell` put before a text."""
    return text[1:] if text.startswith("'") and safe_cell(text[1:]) == text else text
