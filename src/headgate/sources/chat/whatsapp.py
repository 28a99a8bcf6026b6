"""A chat that WhatsApp exported as text, with or without its media.

A phone writes dates in the order of its region and names no time zone. The order follows from the whole file: a
number beyond 12 decides, else the order in which fewer messages go back in time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from headgate.sources.chat.streams import ChatFormat, MediaFiles, directory
from headgate.sources.formats.texts import byte_lines
from headgate.sources.formats.values import RowKeys, decoded, digest_of, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Reject, Row

_MAX_TEXT_CHARS = 4_000_000
#: A year in the first place has four digits.
_FIRST_YEAR = 1000
_HEADER_CHARS = 64
_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff"
_SPACES = {0x202F: " ", 0xA0: " ", 0x2009: " "}
_HEADER = re.compile(
    rf"[{_MARKS}]*\[?(\d{{1,4}})([./-]|年) ?(\d{{1,2}})(?:\2|月) ?(\d{{1,4}})(?:\.|日)?,? "
    r"(?:at |um |à |a las |klo |kl\.? |в |o )?(?:(上午|早上|凌晨|오전|午前)|(下午|晚上|中午|오후|午後))? ?"
    r"(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?(?: ?([AaPp])\.? ?[Mm]\.?| Uhr)?"
    # Two more ends: of old Finnish exports, whose clock has points, and of Korean ones.
    r"(?:\] | [-\u2013] |(?<=\.\d\d): (?=[^:]{1,60}: )|, (?=[^:]{1,60} : ))",
    re.ASCII,
)
_AUTHOR = re.compile(r"([^:]{1,120}):(?: (.*)|$)", re.DOTALL)
_OMITTED = re.compile(
    r"<[^<>:]{3,40}>|(?:image|video|audio|sticker|GIF|document|Contact card) omitted|"
    r"(?:Bild|Video|Audio|Sticker|GIF|Dokument) weggelassen"
)
_ATTACHED = re.compile(
    rf"[{_MARKS}]*(?:<[^<>:]{{3,20}}: ([^<>\n/]+)>|"
    r"([^<>\n/]+\.\w{2,5}) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado)\))"
)
_CHAT_NAME = re.compile(
    r"(?:WhatsApp[ -]Chat (?:with|mit|-) ?|Chat (?:de )?WhatsApp con |Discussion WhatsApp avec |"
    r"Conversa do WhatsApp com )(.+)",
    re.IGNORECASE,
)
_COPY = re.compile(r" ?\(\d+\)$")
_MEDIA = re.compile(
    r"(?:(?:IMG|VID|PTT|AUD|DOC|STK)-\d{8}-WA\d+|\d{8}-(?:PHOTO|VIDEO|AUDIO|GIF|STICKER)-.*|\d{8}-.*)\.\w+"
)


@dataclass(frozen=True, slots=True)
class _Header:
    """The date and time that begin a message, as numbers of unknown order."""

    first: int
    second: int
    third: int
    #: Whether points separate the date, as only regions do that write the day first.
    has_points: bool
    #: Whether the clock has twelve hours.
    has_half: bool
    clock: tuple[int, int, int]
    end: int


@dataclass(slots=True)
class _Open:
    """A message whose further lines may still come."""

    time: datetime
    line: int
    text: str
    more: list[str]
    size: int


def _find(tree: InputTree) -> Iterator[tuple[dict[str, str], list[InputFile]]]:
    """Recognise texts that WhatsApp names, or whose first line is the header of a message."""
    texts = [file for file in tree.files if file.suffix == ".txt"]
    chats = [file for file in texts if _CHAT_NAME.fullmatch(file.stem) or _is_chat(file)]
    folders = {directory(file.name) for file in chats}
    near = (file for file in tree.files if directory(file.name) in folders)
    if chats:
        yield (
            {file.name: _chat_name(tree, file) for file in chats},
            [file for file in near if _MEDIA.fullmatch(file.name.rpartition("/")[2])],
        )


def _is_chat(file: InputFile) -> bool:
    first = next((line for line in file.head.split(b"\n", 20) if line.strip()), b"")
    return _header(decoded(first[:1000])) is not None


def _chat_name(tree: InputTree, file: InputFile) -> str:
    folder = directory(file.name).rstrip("/").rpartition("/")[2]
    label = file.stem if file.stem != "_chat" else folder or tree.label
    match = _CHAT_NAME.fullmatch(label)
    return _COPY.sub("", match.group(1) if match else label)


class _Chat:
    def __init__(self, file: InputFile, name: str, media: MediaFiles) -> None:
        self._file = file
        self._name = name
        self._id = f"whatsapp-{digest_of(name)}"
        self._media = media
        self._keys = RowKeys()
        self._time: datetime | None = None

    def read(self, content: IO[bytes]) -> Iterator[Row | Reject]:
        if not _is_chat(self._file):
            yield Reject(self._file.name, "No message begins as those of WhatsApp do that are known here.")
            return
        order = _order(self._file)
        channel = {"id": self._id, "name": self._name, "service": "WhatsApp", "kind": "chat"}
        yield Row("channels", channel, place=self._file.name)
        message: _Open | None = None
        for number, text in enumerate(map(decoded, byte_lines(content)), 1):
            header = _header(text)
            time = _time(header, order) if header else None
            if header is not None and time is not None:
                if message is not None:
                    yield self._row(message)
                message = _Open(time, number, text[header.end :], [], 0)
            elif message is None:
                yield Reject(f"{self._file.name}, line {number}", "The line belongs to no message.")
            else:
                _continue(message, text)
        if message is not None:
            yield self._row(message)

    def _row(self, message: _Open) -> Row | Reject:
        place = f"{self._file.name}, line {message.line}"
        if message.size > _MAX_TEXT_CHARS:
            return Reject(place, f"The message has more than {_MAX_TEXT_CHARS} characters.")
        if message.time != self._time:
            # Alike messages are counted within one minute only: the count then needs no memory of the whole file.
            self._keys, self._time = RowKeys(), message.time
        author, text = _author(message.text)
        whole = "\n".join((text, *message.more)).strip()
        sent_at = message.time.isoformat()
        file, visible = _file(whole)
        data = {
            "id": self._keys.key(self._name, sent_at, author, whole),
            "channel_id": self._id,
            "channel": self._name,
            "author": author,
            "sent_at": sent_at,
            "text": visible,
            "kind": "notice" if author is None else "message" if visible else "media",
            "files": [file] if file else None,
        }
        attachments = self._media.attachments(directory(self._file.name) + file) if file else {}
        return Row("messages", without_empty(data), attachments, place)


def _continue(message: _Open, text: str) -> None:
    message.size += len(text) + 1
    if message.size <= _MAX_TEXT_CHARS:
        message.more.append(text)


def _header(text: str) -> _Header | None:
    beginning = text[:_HEADER_CHARS].translate(_SPACES)
    match = _HEADER.match(beginning if beginning.isascii() else "".join(map(_digit, beginning)))
    if match is None:
        return None
    first, mark, second, third, morning, later, hour, minute, seconds, half = match.groups()
    half = half or ("A" if morning else "P" if later else None)
    hours = int(hour) if half is None else int(hour) % 12 + (12 if half in "Pp" else 0)
    clock = (hours, int(minute), int(seconds or 0))
    return _Header(int(first), int(second), int(third), mark == ".", half is not None, clock, match.end())


def _digit(character: str) -> str:
    """Write the digits of every script as those of ASCII."""
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def _time(header: _Header, order: str) -> datetime | None:
    numbers = dict(zip(order, (header.first, header.second, header.third), strict=True))
    if order == "ymd" and numbers["y"] < _FIRST_YEAR:
        return None
    year = numbers["y"] + 2000 if numbers["y"] < 100 else numbers["y"]  # noqa: PLR2004 - a year of two digits
    try:
        return datetime(year, numbers["m"], numbers["d"], *header.clock)  # noqa: DTZ001 - the zone is not known
    except ValueError:
        return None


def _order(file: InputFile) -> str:
    """Find the order of day, month and year."""
    before: dict[str, datetime] = {}
    back = {"dmy": 0, "mdy": 0}
    has_half = False
    for header in _headers(file):
        if decided := _decided(header):
            return decided
        has_half = has_half or header.has_half
        for order in back:
            time = _time(header, order)
            if time is not None:
                back[order] += time < before.get(order, time)
                before[order] = time
    if back["dmy"] != back["mdy"]:
        return min(back, key=lambda order: back[order])
    return "mdy" if has_half else "dmy"


def _headers(file: InputFile) -> Iterator[_Header]:
    with file.open() as content:
        yield from filter(None, (_header(decoded(line)) for line in byte_lines(content)))


def _decided(header: _Header) -> str | None:
    """Return the order of a date that has only one: in the others it would not exist."""
    possible = [order for order in ("dmy", "mdy", "ymd") if _time(header, order) is not None]
    if header.has_points and "dmy" in possible:
        return "dmy"
    return possible[0] if len(possible) == 1 else None


def _author(text: str) -> tuple[str | None, str]:
    match = _AUTHOR.fullmatch(text)
    if match is None:
        return None, _bare(text)
    author = _bare(match.group(1)).removeprefix("~").strip()
    return (author, _bare(match.group(2) or "")) if author else (None, _bare(text))


def _bare(text: str) -> str:
    return text.strip(_MARKS + " \u202f\u00a0")


def _file(text: str) -> tuple[str | None, str | None]:
    """Take the name of an attached file out of a text."""
    if _OMITTED.fullmatch(text):
        return None, None
    match = _ATTACHED.match(text)
    if match is None:
        return None, text
    return (match.group(1) or match.group(2)).strip(), text[match.end() :].strip() or None


WHATSAPP = ChatFormat(
    "WhatsApp", _find, lambda file, content, name, media: _Chat(file, name, media).read(content)
)
