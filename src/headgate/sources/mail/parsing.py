"""Take a message apart: by a fast parser, and by the standard library's where that one refuses.

What is not a message at all is read as text: a hostile or damaged message costs its shape, never the import.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import collapse_rfc2231_value, parsedate_to_datetime

from fast_mail_parser import ParseError, PyAddress, PyMail, parse_email

from headgate.model.instants import instant, iso
from headgate.sources.formats.values import clean, decoded

#: Decoding takes time with the square of the encoded words.
_HEADER_CHARS = 16 * 1024


def unfolded(value: str) -> str:
    """Read a header's value: one line, its encoded words decoded (RFC 2047); a very long one is cut."""
    value = value[:_HEADER_CHARS]
    if "=?" in value:
        value = _words(value)
    return clean(" ".join(value.split()))


def _words(value: str) -> str:
    try:
        words = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(text if isinstance(text, str) else _word(text, charset) for text, charset in words)


def _word(text: bytes, charset: str | None) -> str:
    # Text between encoded words comes as bytes that were made of Unicode escapes.
    return (
        text.decode("raw-unicode-escape", "replace")
        if charset is None
        else decoded(text, charset, "utf-8", errors="replace")
    )


_DATE_CHARS = 200
#: As asctime writes it, with a zone before or after the year if at all.
_ENVELOPE = re.compile(
    r"([A-Z][a-z]{2}) +(\d{1,2}) +(\d{1,2}:\d\d(?::\d\d)?)(?: +([+-]\d{4}|[A-Z]{1,5}))? +(\d{4})(?: +([+-]\d{4}))?"
)


def sent_at(date: datetime | None, received: Sequence[str], envelope: bytes) -> str | None:
    """Choose the time of a message, in UTC; None if nothing tells it."""
    if date is not None and (moment := _utc(date)):
        return moment
    for line in received:
        parsed = header_moment(line.rpartition(";")[2])
        if parsed is not None and (moment := _utc(parsed)):
            return moment
    parsed = envelope_moment(envelope)
    return None if parsed is None else _utc(parsed)


def header_moment(value: str) -> datetime | None:
    """Read a date as headers have it, or as ISO 8601 has it; without a zone it is UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            parsed = read(value.strip()[:_DATE_CHARS])
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return None


def envelope_moment(envelope: bytes) -> datetime | None:
    """Read the time of the line before a message in an mbox."""
    match = _ENVELOPE.search(envelope[:1000].decode("ascii", "replace"))
    if match is None:
        return None
    month, day, clock, zone, year, zone_after = match.groups()
    return header_moment(f"{day} {month} {year} {clock} {zone or zone_after or '+0000'}")


def _utc(moment: datetime) -> str | None:
    try:
        microseconds = instant(moment.isoformat())
    except (ValueError, OverflowError):
        return None
    return None if microseconds is None else iso(microseconds)


@dataclass(frozen=True, slots=True)
class Correspondent:
    """A sender or receiver; the name may be empty."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name and self.name != self.address else self.address


@dataclass(frozen=True, slots=True)
class AttachedPart:
    """A part of a message that is not its text."""

    name: str
    mime_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message taken apart; texts are Unicode and hold no NUL."""

    #: All values by the name in lower case.
    headers: Mapping[str, Sequence[str]]
    #: Those with raw bytes in encoded words, which the fast parser drops; messages are named without them.
    mended: Mapping[str, str]
    #: By ``from``, ``to``, ``cc``, ``bcc``.
    people: Mapping[str, Sequence[Correspondent]]
    date: datetime | None
    plain: Sequence[str]
    html: Sequence[str]
    attached: Sequence[AttachedPart]

    def header(self, name: str) -> str:
        values = self.headers.get(name)
        return values[0].strip() if values else ""

    def text(self, name: str) -> str:
        """Return a header as it is shown."""
        return self.mended.get(name) or unfolded(self.header(name))


#: More parts, people or text than any person sends; the rest is left out.
MAX_PARTS = 1000
MAX_PEOPLE = 1000
_ADDRESS_CHARS = 64 * 1024
_ROUTE = re.compile(r"^@[^:\s]{1,300}:")
_AROUND_POINTS = re.compile(r"\s{1,9}\.\s{0,9}|\.\s{1,9}")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MENDED_BYTES = 256 * 1024
_PEOPLE_HEADERS = ("from", "to", "cc", "bcc")
#: The fast parser needs time with the square of the encoded words of a header.
_ENCODED_WORDS = 5000
#: A name and an address, or an address alone. The standard library's reader recurses into what is hostile.
_LOOSE_ADDRESS = re.compile(
    r'"?([^"<>,;]{0,200})"?\s{0,9}<([^<>\s,;]{1,400})>|([^\s<>,;:"()]{1,100}@[^\s<>,;"()]{1,300})'
)
#: A name behind an address, as cron and Mailman write it, and an address that is hidden from collectors.
_COMMENTED = re.compile(r"([^\s<>,;:\"()]{1,200})\s{0,9}\(((?:[^()]|\([^()]{0,100}\)){1,200})\)")
_HIDDEN_AT = re.compile(r"^(\S{1,100}) at (\S{1,200})(?=\s|$)")
_COMMENTS = re.compile(r'"(?:[^"\\]|\\.){0,1000}"|\\.|[()]|[^"\\()]{1,1000}|.', re.DOTALL)
#: The standard library parses nested parts by recursion, and slowly; the fast parser recurses on the system's stack.
_NESTED_PARTS = 100
_FAST_NESTED_PARTS = 2000


def parse(raw: bytes) -> ParsedMessage:
    if raw.count(b"=?") > _ENCODED_WORDS or _boundaries(raw) > _FAST_NESTED_PARTS:
        return _thorough(raw)
    try:
        message = _fast(parse_email(raw), raw)
    except (ParseError, ValueError):
        return _thorough(raw)
    # It finds no parts where boundaries are missing or wrong; the text is there all the same.
    has_parts = message.attached or any(map(str.strip, (*message.plain, *message.html)))
    return message if has_parts else _thorough(raw)


def _boundaries(raw: bytes) -> int:
    return raw.lower().count(b"boundary")


def _fast(mail: PyMail, raw: bytes) -> ParsedMessage:
    headers = _headers(mail.headers.items())
    plain = [clean(text) for text in mail.text_plain]
    attached: list[AttachedPart] = []
    for part in mail.attachments[:MAX_PARTS]:
        name, kind = unfolded(part.filename), clean(part.mimetype.lower())
        if name or "/" in kind:
            attached.append(AttachedPart(name, kind, part.content))
        else:
            # "Content-Type: text", of before there were types.
            plain.append(decoded(part.content, errors="replace"))
    mended, sender = _mended(raw), [] if mail.from_ is None else [mail.from_]
    addressed = {"from": sender, "to": mail.to, "cc": mail.cc, "bcc": mail.bcc}
    return ParsedMessage(
        headers,
        mended,
        {
            name: _people([mended[name]]) if name in mended else _people(headers.get(name, ()), addresses)
            for name, addresses in addressed.items()
        },
        mail.date_parsed or header_moment(mail.date),
        plain,
        [clean(text) for text in mail.text_html],
        attached,
    )


def _headers(pairs: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, values in pairs:
        headers.setdefault(name.lower(), []).extend(values)
    return headers


def _mended(raw: bytes) -> dict[str, str]:
    head = _HEAD_END.split(raw[:_MENDED_BYTES], maxsplit=1)[0]
    return (
        _mended_values(BytesHeaderParser().parsebytes(head)) if b"=?" in head and not head.isascii() else {}
    )


def _mended_values(message: Message) -> dict[str, str]:
    """Read the headers that have encoded words and, against the rules, other bytes than ASCII."""
    return {
        name.lower(): _of_bytes(str(value).encode("utf-8", "surrogateescape"))
        for name, value in reversed([*message.raw_items()])
        if "=?" in str(value) and not str(value).isascii()
    }


def _of_bytes(value: bytes) -> str:
    try:
        words = decode_header(value[:_HEADER_CHARS].decode("latin-1"))
    except (HeaderParseError, ValueError):
        words = [(value, None)]
    parts = (text.encode("latin-1", "replace") if isinstance(text, str) else text for text, _ in words)
    texts = (
        decoded(part, charset or "utf-8", "utf-8", errors="replace")
        for part, (_, charset) in zip(parts, words, strict=True)
    )
    return " ".join("".join(texts).split())


def _people(values: Sequence[str], addresses: Sequence[PyAddress] = ()) -> list[Correspondent]:
    """Read the people of a header, which may break the rules or stand more than once."""
    values = [str(value)[:_ADDRESS_CHARS] for value in values[:MAX_PEOPLE]]
    plain = [_without_comments(value) for value in values]
    if plain != values:
        try:
            # Comments may stand anywhere, also inside of an address, where the fast parser takes them for its letters.
            addresses = parse_email(f"To: {' '.join(', '.join(plain).split())}\n\n".encode()).to
        except (ParseError, ValueError):
            addresses = ()
    people = [
        Correspondent(unfolded(address.display_name or ""), _without_route(unfolded(address.address)))
        for address in addresses[:MAX_PEOPLE]
    ]
    if any(" " in person.address and person.address.count("@") > 1 for person in people):
        people = _loose_people(plain)
    return _named(people or _loose_people(plain), values) or [
        _local(text)
        for text, bare in zip(map(unfolded, values), plain, strict=True)
        # A group that has no members has a name all the same.
        if text and not bare.replace(" ", "").endswith(":;")
    ]


def _without_route(address: str) -> str:
    """Leave out the hosts that an old address passes, spaces around its points, and commas before it."""
    if address[:1] not in {"@", ","} and " " not in address:
        return address
    return _ROUTE.sub("", _AROUND_POINTS.sub(".", address.lstrip(", ")))


def _without_comments(value: str) -> str:
    if "(" not in value:
        return value
    depth, outside = 0, list[str]()
    for piece in _COMMENTS.findall(value):
        depth += {"(": 1, ")": -1 if depth else 0}.get(piece, 0)
        if not depth and piece != ")":
            outside.append(piece)
    return value if depth else "".join(outside)


def _named(people: list[Correspondent], values: Sequence[str]) -> list[Correspondent]:
    """Give the names that stand behind their addresses to those that have none."""
    names = {address: name for value in values for address, name in _COMMENTED.findall(value)}
    if not names:
        return people
    return [
        person if person.name else replace(person, name=unfolded(names.get(person.address, "")))
        for person in people
    ]


def _loose_people(values: Sequence[str]) -> list[Correspondent]:
    matches = [match for value in values for match in _LOOSE_ADDRESS.findall(value)]
    people = [Correspondent(unfolded(person), unfolded(named or bare)) for person, named, bare in matches]
    return people[:MAX_PEOPLE]


def _local(text: str) -> Correspondent:
    """Read an address without a domain, or one that is written out."""
    match = _COMMENTED.fullmatch(_HIDDEN_AT.sub(r"\1@\2", text))
    return Correspondent(match[2], match[1]) if match else Correspondent("", text)


def _thorough(raw: bytes) -> ParsedMessage:
    try:
        if _boundaries(raw) > _NESTED_PARTS:
            raise RecursionError  # noqa: TRY301 - what the parser would end with, much later
        message = message_from_bytes(raw)
        parts = [part for part in message.walk() if not part.is_multipart()][:MAX_PARTS]
    except (RecursionError, ValueError, LookupError, AttributeError, TypeError):
        message = BytesHeaderParser().parsebytes(raw)
        return _only_text(message, raw)
    return _from_parts(message, parts)


def _from_parts(message: Message, parts: Sequence[Message]) -> ParsedMessage:
    plain: list[str] = []
    html: list[str] = []
    attached: list[AttachedPart] = []
    for part in parts:
        kind, name = part.get_content_type(), _file_name(part)
        content = _content(part)
        if name or part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
            attached.append(AttachedPart(name, clean(kind), content))
        else:
            (html if kind == "text/html" else plain).append(
                decoded(content, _charset(part), "utf-8", errors="replace")
            )
    return _with_headers(message, plain, html, attached)


def _only_text(message: Message, raw: bytes) -> ParsedMessage:
    separator = b"\r\n\r\n" if b"\r\n\r\n" in raw else b"\n\n"
    return _with_headers(message, [decoded(raw.partition(separator)[2], errors="replace")], [], [])


def _with_headers(
    message: Message, plain: Sequence[str], html: Sequence[str], attached: Sequence[AttachedPart]
) -> ParsedMessage:
    # Bytes beyond ASCII come as escapes; they are UTF-8 or Latin-1.
    values = ((name, str(value).encode("utf-8", "surrogateescape")) for name, value in message.items())
    headers = _headers((name, [decoded(value, errors="replace")]) for name, value in values)
    mended = _mended_values(message)
    people = {
        name: _people([mended[name]] if name in mended else headers.get(name, ())) for name in _PEOPLE_HEADERS
    }
    date = header_moment(headers.get("date", [""])[0])
    return ParsedMessage(headers, mended, people, date, plain, html, attached)


def _content(part: Message) -> bytes:
    try:
        content: object = part.get_payload(decode=True)
    except (ValueError, LookupError):
        content = None
    return content if isinstance(content, bytes) else str(part.get_payload()).encode("utf-8", "replace")


def _charset(part: Message) -> str:
    try:
        return part.get_content_charset() or "utf-8"
    except (ValueError, LookupError):
        return "utf-8"


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename()
    except (ValueError, LookupError, TypeError):
        return ""
    return unfolded(collapse_rfc2231_value(name)) if name else ""
