"""Values of records: text that can be stored, numbers, times, and keys for rows whose file gives them none."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter, OrderedDict
from contextlib import suppress
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import Any

import msgspec

from headgate.model.ids import is_plain, is_unicode
from headgate.model.instants import instant, iso
from headgate.model.readable import slug

#: Longer ids are replaced by their digest: a key has at most 1024 characters, and may have several parts.
_MAX_ID_CHARS = 400
_MAX_DIGITS = 18
_INSTEAD = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Replace what cannot be stored: NUL, and halves of surrogate pairs."""
    if "\0" in text:
        text = text.replace("\0", _INSTEAD)
    if is_unicode(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decoded(content: bytes, charset: str = "utf-8", *others: str, errors: str = "strict") -> str:
    """Read bytes in the first charset that they fit, else as Windows-1252, which older programs write.

    `errors` says what becomes of bytes that stand for nothing there; by default they make the whole text Latin-1.
    """
    for name in (charset, *others):
        try:
            return clean(content.decode(name))
        except (LookupError, ValueError):
            continue
    try:
        return clean(content.decode("cp1252", errors))
    except ValueError:
        return clean(content.decode("latin-1"))


def text_of(value: Any) -> str | None:
    """Return a value of a JSON document if it is text with anything in it."""
    return clean(value) if isinstance(value, str) and value.strip() else None


def integer_of(value: Any) -> int | None:
    """Return a value of a JSON document if it is an integer of 64 bits, also one that was written as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    return int(value) if is_number else None


def id_of(text: str) -> str:
    """Return an id of a file as part of a key: the text itself, or its digest if it is empty or very long."""
    stripped = clean(text.strip())
    return stripped if 0 < len(stripped) <= _MAX_ID_CHARS else digest_of(stripped)


#: Before the two digits of a byte that the id of a record cannot carry.
_ESCAPE = "~~"
_ESCAPED = re.compile(rf"(?:{_ESCAPE}[0-9A-F]{{2}})+")
_CARRIED = re.compile(r"[A-Za-z0-9_@+=:;,-]+(?:\.[A-Za-z0-9_@+=:;,-]+)*")


def plain_id(text: str) -> str:
    """Escape what the id of a record cannot carry, such as a slash; `original_id` undoes it.

    Where one text begins with another, so does what is made of it, unless it is very long.
    """
    if not text or _CARRIED.fullmatch(text):
        return text
    before, parts = "", list[str]()
    for character in text:
        is_carried = (
            character not in "/\\"
            and is_plain(character)
            and not (character == before and character in ".~ ")
            and (character == " " or not character.isspace())
        )
        parts.append(character if is_carried else _escaped(character))
        before = character
    if parts[0] in {" ", "."} and (len(parts) == 1 or parts[0] == " "):
        parts[0] = _escaped(parts[0])
    if parts[-1] == " ":
        parts[-1] = _escaped(" ")
    return id_of("".join(parts))


def original_id(key: str) -> str:
    """Return the id that `plain_id` escaped."""
    return _ESCAPED.sub(lambda run: bytes.fromhex(run[0].replace(_ESCAPE, "")).decode(errors="replace"), key)


def _escaped(character: str) -> str:
    return "".join(f"{_ESCAPE}{byte:02X}" for byte in character.encode())


_KEY_WORDS_CHARS = 40
_NAME_DIGEST_BYTES = 10
_NAME_DIGEST_CHARS = 11
#: Base32 has no zero, and words seldom begin with one.
_LOOKS_DIGESTED = re.compile(rf".*-0[a-z2-7]{{{_NAME_DIGEST_CHARS}}}")
_NAMELESS = "file"


def path_key(path: str, suffix: str) -> str:
    """Make a readable key of a file's path: "boat.md" -> "boat", "House/The boat.md" -> "the-boat-0r5yn6qbhk2z".

    Files that differ in anything have different keys, whatever other files there are: the words alone are the key only
    if the path can be read from them, with the usual suffix.
    """
    words = slug(PurePosixPath(path).stem, _KEY_WORDS_CHARS)
    if path == f"{words}{suffix}" and not _LOOKS_DIGESTED.fullmatch(words):
        return words
    digest = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=_NAME_DIGEST_BYTES).digest()
    made = base64.b32encode(digest).decode("ascii").lower()[:_NAME_DIGEST_CHARS]
    return f"{words or _NAMELESS}-0{made}"


def without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in (None, "", [])}


#: The year 9999, in seconds.
_LAST = 253_402_300_800
_FIRST_US = -62_135_596_800_000_000
_LAST_US = 253_402_300_799_999_999
_MOST = 1e15
_MAX_NUMBER_CHARS = 40


def time_of_seconds(value: Any) -> str | None:
    """Write seconds since 1970, a number or its text, as a time; None if they are none."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    # A float of today's seconds is exact to less than a microsecond.
    return iso(round(seconds * 1_000_000)) if 0 <= seconds < _LAST else None


def time_of_text(value: Any) -> str | None:
    """Return a text if it is an ISO 8601 time."""
    return value if isinstance(value, str) and instant(value) is not None else None


def iso_of(value: Any) -> str | None:
    """Read a time that is written as text, also with a space before its zone."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    head, space, zone = text.rpartition(" ")
    at = instant(head + zone if space and zone[:1] in {"+", "-"} else text)
    return None if at is None else iso(at)


_OFFSET = re.compile(r"([+-])(\d\d):?([0-5]\d)\Z")


def local_iso_of(value: Any) -> str | None:
    """Read a time as `iso_of` does, and keep its offset: when it was where it happened."""
    at = iso_of(value)
    match = _OFFSET.search(value.strip()) if at is not None else None
    if match is None or at is None:
        return at
    sign, hours, minutes = match.groups()
    offset = (int(hours) * 60 + int(minutes)) * 60_000_000 * (-1 if sign == "-" else 1)
    local = iso_us((instant(at) or 0) + offset)
    return f"{local.removesuffix('Z')}{sign}{hours}:{minutes}" if local and offset else at


def iso_us(microseconds: Any) -> str | None:
    """Write microseconds since 1970 as text, unless no calendar has such a day."""
    is_time = isinstance(microseconds, int) and _FIRST_US <= microseconds <= _LAST_US
    return iso(microseconds) if is_time else None


def day_after(day: str) -> str:
    """Return the day after one, `2026-03-01`; the last of all is its own."""
    with suppress(ValueError, OverflowError):
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    return day


def number_of(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if not isinstance(value, str) or len(value) <= _MAX_NUMBER_CHARS else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < _MOST else None


#: The key of rows that have none: a digest of their values.
MADE_KEY = "row_id"
_DIGEST_BYTES = 15
#: Rows that are remembered, to number those that are alike.
_MAX_REMEMBERED = 200_000


def digest_of(*parts: Any) -> str:
    """Make a short key from values: equal values have an equal key."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=_DIGEST_BYTES).hexdigest()


class RowKeys:
    """Keys for the rows of one file, in their order.

    The n-th of several identical rows has the same key in every file that holds as many of them: a statement that
    overlaps another one doubles nothing, and two payments that are truly alike both stay.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def key(self, *parts: Any) -> str:
        """Make the key of the next row with these values."""
        digest = digest_of(*parts)
        self._seen[digest] += 1
        count = self._seen[digest]
        return digest if count == 1 else f"{digest}-{count}"


class OrderedKeys:
    """The same for files of any length whose rows come in groups, such as days: only the latest groups are remembered."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Counter[str]] = OrderedDict()
        self._remembered = 0

    def key(self, group: str, *parts: Any) -> str:
        """Make the key of the next row with these values; the group is one of them."""
        digest = digest_of(group, *parts)
        seen = self._groups.setdefault(group, Counter())
        seen[digest] += 1
        self._remembered += 1
        while self._remembered > _MAX_REMEMBERED:
            _, forgotten = self._groups.popitem(last=False)
            self._remembered -= forgotten.total()
        count = seen[digest]
        return digest if count == 1 else f"{digest}-{count}"
