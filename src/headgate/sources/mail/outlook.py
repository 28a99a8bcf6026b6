"""Messages that Outlook saved as files: numbered properties in a compound file (MS-OXMSG)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.sources.documents.office import DocumentUnreadable, read_office
from headgate.sources.exports.mail import AttachedFile, message_of
from headgate.sources.formats.compound import CompoundDamaged, Storage, storage_of
from headgate.sources.formats.values import clean, decoded
from headgate.sources.mail.html import text_of_html
from headgate.sources.mail.parsing import (
    MAX_PARTS,
    MAX_PEOPLE,
    AttachedPart,
    Correspondent,
    ParsedMessage,
    parse,
)

_PROPERTIES = "__properties_version1.0"
_PROPERTY = struct.Struct("<HH4x8s")
#: What stands before the properties of a file, of a message inside another one, and of its receivers and attachments.
_FILE_HEAD, _INNER_HEAD, _PART_HEAD = 32, 24, 8
_TEXT, _OLD_TEXT, _BYTES, _STORAGE = "001F", "001E", "0102", "000D"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
#: Numbers of Windows for character sets that Python has by other names.
_CHARSETS = {20127: "ascii", 20866: "koi8-r", 21866: "koi8-u", 50220: "iso-2022-jp", 51932: "euc-jp"}
_FIRST_ISO, _LAST_ISO = 28591, 28605
_RECEIVERS = {1: "to", 2: "cc", 3: "bcc"}
#: Items of Outlook that are no mail.
_OTHERS = {
    "ipm.contact": "a contact; save it as .vcf",
    "ipm.distlist": "a list of contacts; save the contacts as .vcf",
    "ipm.appointment": "an appointment; save it as .ics",
    "ipm.task": "a task; save it as text",
    "ipm.stickynote": "a note; save it as text",
    "ipm.activity": "an entry of a journal; save it as text",
}
_MESSAGE_TYPE = "message/rfc822"
_MAX_FORWARDS = 5
_MAX_HEADERS_CHARS = 256 * 1024
#: Headers of what lies elsewhere in the file.
_CONTENT = re.compile(r"^(?:Content-|MIME-)[^\n]*\n?(?:[ \t][^\n]*\n?)*", re.IGNORECASE | re.MULTILINE)
_MAX_BODY_BYTES = 1_000_000
_WHOLE_TYPE = "application/octet-stream"


class NoMail(ValueError):
    """An item of Outlook that is no message."""


def read_outlook(raw: bytes) -> ParsedMessage:
    """Read a file.

    Raises:
        CompoundDamaged: it cannot be read.
        NoMail: it is another item.
    """
    item = _Item.of(storage_of(raw), _FILE_HEAD)
    kind = f"{item.text(0x001A).lower()}."
    if other := next((what for name, what in _OTHERS.items() if kind.startswith(f"{name}.")), ""):
        raise NoMail(f"It is no mail but {other}.")
    return _message(item, _MAX_FORWARDS)


@dataclass(frozen=True, slots=True)
class _Item:
    """A message, a receiver or an attachment."""

    storage: Storage
    #: What fits into eight bytes, by its number.
    fixed: Mapping[int, bytes]
    #: Of texts that are not Unicode.
    charset: str

    @classmethod
    def of(cls, storage: Storage, head: int, charset: str = "") -> _Item:
        properties = storage.get(_PROPERTIES)
        if not isinstance(properties, bytes):
            raise CompoundDamaged("It is no message of Outlook.")
        whole = len(properties) - (len(properties) - head) % _PROPERTY.size
        fixed = {number: value for _, number, value in _PROPERTY.iter_unpack(properties[head:whole])}
        item = cls(storage, fixed, charset)
        return item if charset else cls(storage, fixed, _charset(item.number(0x3FFD) or item.number(0x3FDE)))

    def number(self, key: int) -> int:
        return int.from_bytes(self.fixed.get(key, b"")[:4], "little")

    def moment(self, *keys: int) -> datetime | None:
        for key in keys:
            ticks = int.from_bytes(self.fixed.get(key, b""), "little")
            try:
                if ticks:
                    return _EPOCH + timedelta(microseconds=ticks // 10)
            except OverflowError:
                continue
        return None

    def binary(self, key: int) -> bytes:
        content = self.storage.get(f"__substg1.0_{key:04X}{_BYTES}")
        return content if isinstance(content, bytes) else b""

    def text(self, *keys: int) -> str:
        """Return the first of these that is not empty."""
        for key in keys:
            for kind, charset in ((_TEXT, "utf-16-le"), (_OLD_TEXT, self.charset)):
                content = self.storage.get(f"__substg1.0_{key:04X}{kind}")
                if isinstance(content, bytes) and (
                    text := _ended(decoded(content, charset, errors="replace"))
                ):
                    return text
        return ""

    def parts(self, prefix: str, most: int) -> list[_Item]:
        """Return its receivers or attachments."""
        names = sorted(name for name in self.storage if name.startswith(prefix))[:most]
        storages = (self.storage[name] for name in names)
        return [
            _Item.of(storage, _PART_HEAD, self.charset)
            for storage in storages
            if not isinstance(storage, bytes)
        ]

    def person(self, name: int, smtp: Sequence[int], address: int) -> Correspondent | None:
        called = " ".join(self.text(name).split()).strip("'")
        at = self.text(*smtp) or self.text(address)
        # Inside an organisation an address may be a path that ends in the name of the mailbox.
        at = at.rpartition("=")[2] if at.startswith("/") else at
        at = "".join(at.split()) or called
        return Correspondent("" if called == at else called, at) if at else None


def _ended(text: str) -> str:
    return clean(text.rstrip("\0\N{REPLACEMENT CHARACTER}")).strip()


def _charset(code_page: int) -> str:
    if _FIRST_ISO <= code_page <= _LAST_ISO:
        return f"iso8859-{code_page - _FIRST_ISO + 1}"
    return _CHARSETS.get(code_page) or (f"cp{code_page}" if code_page else "cp1252")


def _message(item: _Item, levels: int) -> ParsedMessage:
    sent = parse(_CONTENT.sub("", item.text(0x007D)[:_MAX_HEADERS_CHARS]).encode() + b"\n\n.")
    date = sent.date or item.moment(0x0039, 0x0E06, 0x3007)
    status = "R" * (item.number(0x0E07) & 1) + "F" * (item.number(0x1090) == 2) + "O"  # noqa: PLR2004 - flagged
    ids = {"message-id": 0x1035, "in-reply-to": 0x1042, "references": 0x1039}
    headers = {
        "subject": item.text(0x0037),
        "date": "" if date is None else date.isoformat(),
        "status": status,
        **{name: sent.header(name) or item.text(key) for name, key in ids.items()},
    }
    plain, html = _texts(item)
    return ParsedMessage(
        {name: [value] for name, value in headers.items()},
        {},
        _people(item, sent.people["from"]),
        date,
        [plain] if plain else [],
        [html] if html else [],
        [
            part
            for attachment in item.parts("__attach_", MAX_PARTS)
            if (part := _attached(attachment, levels))
        ],
    )


def _people(item: _Item, sent_by: Sequence[Correspondent]) -> dict[str, list[Correspondent]]:
    sender = item.person(0x0042, (0x5D02, 0x5D01), 0x0065) or item.person(0x0C1A, (0x5D01,), 0x0C1F)
    # Inside an organisation only the headers may have the address.
    is_known = sender is not None and ("@" in sender.address or not sent_by)
    people: dict[str, list[Correspondent]] = {
        "from": [sender] if sender and is_known else [*sent_by],
        "to": [],
        "cc": [],
        "bcc": [],
    }
    for receiver in item.parts("__recip_", MAX_PEOPLE):
        if person := receiver.person(0x3001, (0x39FE,), 0x3003):
            people[_RECEIVERS.get(receiver.number(0x0C15) & 0xF, "to")].append(person)
    return people


def _texts(item: _Item) -> tuple[str, str]:
    """Return the plain text and the HTML; from rich text, if there is neither."""
    plain = item.text(0x1000)
    html = item.text(0x1013) or decoded(
        item.binary(0x1013), _charset(item.number(0x3FDE) or 65001), "utf-8", errors="replace"
    )
    if plain or html.strip():
        return plain, html
    try:
        _, pages = read_office(_unpacked(item.binary(0x1009)), ".rtf")
        return "".join(page.text or "" for page in pages), ""
    except DocumentUnreadable:
        return "", ""


def _attached(item: _Item, levels: int) -> AttachedPart | None:
    name = " ".join(item.text(0x3707, 0x3704, 0x3001).split())
    inner = item.storage.get(f"__substg1.0_3701{_STORAGE}")
    if inner is None or isinstance(inner, bytes):
        return AttachedPart(name, item.text(0x370E).lower() or _WHOLE_TYPE, item.binary(0x3701))
    if _PROPERTIES not in inner or not levels:
        # An object of another program inside the text.
        return None
    message = _message(_Item.of(inner, _INNER_HEAD), levels - 1)
    return AttachedPart("", _MESSAGE_TYPE, _as_mail(message, levels))


def _as_mail(message: ParsedMessage, levels: int) -> bytes:
    """Write a message that was passed on as other programs would attach it."""
    row = {
        "id": f"{levels} {message.header('message-id')} {message.header('date')}",
        "from": next(map(str, message.people["from"]), None),
        **{name: [str(person) for person in message.people[name]] for name in ("to", "cc", "bcc")},
        "subject": message.header("subject"),
        "sent_at": message.header("date"),
        "body": "\n\n".join(message.plain)
        or "\n\n".join("\n\n".join(text_of_html(html)) for html in message.html),
        "internet_message_id": message.header("message-id").strip("<>"),
    }
    return message_of(
        row, [AttachedFile(part.name, part.mime_type, part.content) for part in message.attached]
    )


#: What every rich text is packed against.
_COMMON = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbol"
    rb"ArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_RICH_HEAD = 16
_WINDOW = 4096


def _unpacked(packed: bytes) -> bytes:
    """Unpack rich text (MS-OXRTFCP), as far as it goes."""
    if packed[8:12] == b"MELA":
        return packed[_RICH_HEAD:]
    text, at = bytearray(_COMMON), _RICH_HEAD
    while at < len(packed) and len(text) < _MAX_BODY_BYTES:
        flags, at = packed[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                text += packed[at : at + 1]
                at += 1
                continue
            reference, at = int.from_bytes(packed[at : at + 2], "big"), at + 2
            # The text refers to a window by places in it; the place of the next byte ends it.
            back = (len(text) - (reference >> 4)) % _WINDOW
            if not back or back > len(text):
                return bytes(text[len(_COMMON) :])
            for _ in range((reference & 0xF) + 2):
                text.append(text[-back])
    return bytes(text[len(_COMMON) :])
