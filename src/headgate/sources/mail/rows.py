"""Make the records of one message.

A message is named by what it says: its Message-ID, sender, date, subject and content, and not by where it lies or by
what a server or program added. So copies in two folders or exports are one record, and two messages that wrongly have
the same Message-ID are two.
"""

from __future__ import annotations

import csv
import hashlib
import io
import plistlib
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from headgate.sources.documents.office import TYPES, DocumentUnreadable, read_office
from headgate.sources.documents.pdf import read_pdf
from headgate.sources.formats.compound import SIGNATURE, CompoundDamaged
from headgate.sources.formats.values import clean, decoded, digest_of
from headgate.sources.formats.xml_events import XmlEnd, xml_events
from headgate.sources.inputs.tree import InputFile
from headgate.sources.mail.html import fold, text_of_html
from headgate.sources.mail.mbox import MAX_MESSAGE_BYTES, MailFile, folder_of, kind_of, maildir_flags, split
from headgate.sources.mail.outlook import NoMail, read_outlook
from headgate.sources.mail.parsing import AttachedPart, Correspondent, ParsedMessage, parse, sent_at, unfolded
from headgate.sources.protocol import Attachment, Item, Mark, Reject, Row
from headgate.sources.reading_note import NOTE

MAX_TEXT_CHARS = 200_000
_MAX_PAGES = 50
_MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_SUFFIXES = {
    **{kind: suffix[1:] for suffix, kind in TYPES.items()},
    "text/html": "html",
    "application/vnd.ms-outlook": "msg",
    "text/rtf": "rtf",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    **dict.fromkeys(("application/json", "application/xml", "application/ics"), "txt"),
}


def attached_text(name: str, mime_type: str, content: bytes) -> str | None:
    """Return the text of a file; None if it has none that can be read."""
    reader = _reader(_SUFFIXES.get(mime_type) or name.rpartition(".")[2].lower(), mime_type)
    if reader is None:
        return None
    try:
        text = reader(content)
    except Exception:  # noqa: BLE001 - parsers of foreign files fail in every way
        return None
    return clean(text[:MAX_TEXT_CHARS]).strip() or None


def _reader(suffix: str, mime_type: str) -> Callable[[bytes], str] | None:
    if suffix in {"htm", "html"}:
        return lambda content: "\n\n".join(filter(None, text_of_html(_plain(content))))
    if suffix == "xlsx":
        return _workbook
    if suffix == "msg":
        return lambda content: _as_text(read_outlook(content))
    if f".{suffix}" in TYPES or suffix == "ods":
        return lambda content: _document(content, f".{suffix}")
    return _plain if mime_type.startswith("text/") or suffix in {"txt", "md", "csv"} else None


def _plain(content: bytes) -> str:
    # A character has at most four bytes.
    charset = "utf-16" if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
    return decoded(content[: 4 * MAX_TEXT_CHARS], charset, "utf-8", errors="replace")


def _document(content: bytes, suffix: str) -> str:
    if len(content) > _MAX_DOCUMENT_BYTES:
        return ""
    texts: list[str] = []
    try:
        _, pages = read_pdf(content) if suffix == ".pdf" else read_office(content, suffix)
        for page in pages:
            texts.append((page.text or "").strip())
            if page.number == _MAX_PAGES or sum(map(len, texts)) > MAX_TEXT_CHARS:
                break
    except DocumentUnreadable:
        pass  # What was read before counts.
    return "\n\n".join(text for text in texts if text)


def _workbook(content: bytes) -> str:
    """Return the texts of the cells; a workbook has each of them once."""
    texts: list[str] = []
    length = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("xl/sharedStrings.xml") as packed:
        for event in xml_events(io.BytesIO(packed.read(_MAX_DOCUMENT_BYTES))):
            if isinstance(event, XmlEnd) and event.name == "t":
                texts.append(event.text)
                length += len(event.text)
            if length > MAX_TEXT_CHARS:
                break
    return "\n".join(texts)


MAX_BODY_CHARS = 1_000_000
_MAX_HEADER_CHARS = 2_000
_MAX_LABELS = 100
#: Messages inside messages, which somebody passed on.
_MAX_FORWARDS = 5
_MAX_ATTACHMENTS = 500
_KNOWN_THREADS = 20_000
_MESSAGE_TYPE = "message/rfc822"
#: Labels of a Takeout that say what became of a message, not where it lies.
_GMAIL_MARK = re.compile(r"(?:Unread|Opened|Starred|Important|Category .*|IMAP_.*|\$.*)$", re.IGNORECASE)
_MESSAGE_IDS = re.compile(r"<([^<>\s]{1,500})>")
_ANSWER = re.compile(
    r"^(?:\s*(?:re|fwd?|aw|wg|sv|vs|antw|rif|tr|res|odp)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class MailState:
    """What is known of a message besides its content."""

    #: Where it was read, for people.
    place: str
    folder: str | None = None
    labels: Sequence[str] = ()
    is_read: bool | None = None
    is_flagged: bool | None = None
    #: The line before it in an mbox.
    envelope: bytes = b""
    #: What the server calls its thread.
    thread: str | None = None


class MailRows:
    """Makes the rows of messages; a thread is given with the first of its messages."""

    def __init__(self) -> None:
        #: Bounded: a thread that is given again changes nothing.
        self._threads: OrderedDict[str, None] = OrderedDict()

    def of(self, raw: bytes, state: MailState) -> Iterator[Row | Reject]:
        refused = NOTE.read_item(state.place)
        if refused:
            yield Reject(state.place, refused)
        else:
            yield from self._rows(raw, state)
        NOTE.item_is_read()

    def _rows(self, raw: bytes, state: MailState) -> Iterator[Row | Reject]:
        try:
            message = read_outlook(raw) if raw.startswith(SIGNATURE) else parse(raw)
        except (CompoundDamaged, NoMail) as error:
            yield Reject(state.place, str(error))
            return
        # Thunderbird leaves a deleted message in the file until the folder is compacted.
        if _mozilla(message) & 8:
            return
        key = _key(message, raw)
        thread = state.thread or _thread_id(message, key)
        body, quoted = _texts(message)
        if len(body) > MAX_BODY_CHARS or len(quoted) > MAX_BODY_CHARS:
            yield Reject(state.place, f"The text of the message is cut after {MAX_BODY_CHARS} characters.")
        moment = sent_at(message.date, message.headers.get("received", ()), state.envelope)
        attached = list(_attached(message.attached, _MAX_FORWARDS))[:_MAX_ATTACHMENTS]
        subject = _subject(message)
        if thread not in self._threads:
            self._remember(thread)
            yield Row("threads", {"id": thread, "subject": _ANSWER.sub("", subject)}, place=state.place)
        data = {
            "id": key,
            "thread_id": thread,
            "subject": subject,
            **_correspondents(message),
            "sent_at": moment,
            "body": body[:MAX_BODY_CHARS],
            "quoted": quoted[:MAX_BODY_CHARS] or None,
            **_placing(message, state),
            "has_attachments": bool(attached),
            "size": len(raw),
            "internet_message_id": _header_id(message, "message-id"),
            "in_reply_to": _header_id(message, "in-reply-to"),
        }
        yield Row("messages", data, place=state.place)
        for number, part in enumerate(attached, 1):
            yield _attachment(
                part, {"id": f"{key}-{number}", "message_id": key, "sent_at": moment}, state.place
            )

    def _remember(self, thread: str) -> None:
        self._threads[thread] = None
        if len(self._threads) > _KNOWN_THREADS:
            self._threads.popitem(last=False)


def _key(message: ParsedMessage, raw: bytes) -> str:
    # Programs end lines and messages differently.
    head, blank_line, content = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    if raw.startswith(SIGNATURE):
        # Saved again, the same message lies otherwise in its file.
        head, blank_line = "\n".join((*message.plain, *message.html)).encode(), b""
    digest = hashlib.blake2b(content.strip() if blank_line else head, digest_size=16).hexdigest()
    headers = [unfolded(message.header(name)) for name in ("message-id", "from", "date", "subject")]
    return digest_of(*headers, digest)


def _thread_id(message: ParsedMessage, key: str) -> str:
    """Name the thread by the message that began it; Gmail numbers threads."""
    if gmail := message.header("x-gm-thrid"):
        return clean(gmail)[:100]
    for name in ("references", "in-reply-to", "message-id"):
        if first := _header_id(message, name):
            return digest_of("thread", first)
    return key


def _header_id(message: ParsedMessage, name: str) -> str | None:
    value = message.header(name)[:10_000]
    match = _MESSAGE_IDS.search(value)
    text = match.group(1) if match else value.split(maxsplit=1)[0] if value.strip() else ""
    return _limited(clean(text)) or None


def _texts(message: ParsedMessage) -> tuple[str, str]:
    plain = "\n\n".join(text for text in message.plain if text.strip())
    if plain:
        return fold(plain)
    parts = [text_of_html(html) for html in message.html]
    bodies, quotes = (
        ("\n\n".join(piece for piece in texts if piece) for texts in zip(*parts, strict=True))
        if parts
        else ("", "")
    )
    if not bodies:
        return quotes, ""
    body, earlier = fold(bodies)
    return body, "\n\n".join(piece for piece in (earlier, quotes) if piece)


def _correspondents(message: ParsedMessage) -> dict[str, Any]:
    sender: Sequence[Correspondent] = message.people["from"]
    first = sender[0] if sender else None
    return {
        "from": None if first is None else _limited(str(first)),
        "from_address": None if first is None else _limited(first.address).lower(),
        **{name: [_limited(str(person)) for person in message.people[name]] for name in ("to", "cc", "bcc")},
    }


def _placing(message: ParsedMessage, state: MailState) -> dict[str, Any]:
    labels = [*state.labels, *_gmail_labels(message)][:_MAX_LABELS]
    status = message.header("status") + message.header("x-status")
    folder, is_read, is_flagged = state.folder, state.is_read, state.is_flagged
    if message.header("x-gmail-labels"):
        is_read, is_flagged = "Unread" not in labels, "Starred" in labels
        folder = next((label for label in labels if not _GMAIL_MARK.match(label)), folder)
    elif mozilla := _mozilla(message):
        is_read, is_flagged = bool(mozilla & 1), bool(mozilla & 4)
    elif status:
        is_read, is_flagged = "R" in status, "F" in status
    return {"folder": folder, "labels": labels, "is_read": is_read, "is_flagged": is_flagged}


def _gmail_labels(message: ParsedMessage) -> list[str]:
    text = message.text("x-gmail-labels")
    return [label.strip() for label in next(csv.reader([text[:10_000]]), list[str]()) if label.strip()]


def _mozilla(message: ParsedMessage) -> int:
    try:
        return int(message.header("x-mozilla-status")[:8] or "0", 16)
    except ValueError:
        return 0


def _attached(parts: Sequence[AttachedPart], levels: int) -> Iterator[tuple[AttachedPart, str | None]]:
    """Yield attachments with their text, and those of messages that were passed on."""
    for part in parts:
        if part.mime_type != _MESSAGE_TYPE:
            yield part, attached_text(part.name, part.mime_type, part.content)
            continue
        inner = parse(part.content)
        name = part.name or f"{_subject(inner) or 'message'}.eml"
        yield AttachedPart(name, part.mime_type, part.content), _as_text(inner)
        if levels:
            yield from _attached(inner.attached, levels - 1)


def attachments_inside(content: bytes) -> int:
    """Count the attachments that were taken from a message which is itself an attachment."""
    return sum(1 for _ in _attached(parse(content).attached, _MAX_FORWARDS - 1))


def _subject(message: ParsedMessage) -> str:
    return _limited(message.text("subject"))


def _as_text(message: ParsedMessage) -> str:
    people = {name: ", ".join(map(str, message.people[name])) for name in ("from", "to")}
    head = f"From: {people['from']}\nTo: {people['to']}\nDate: {message.text('date')}\nSubject: {_subject(message)}"
    body, quoted = _texts(message)
    return f"{head}\n\n{body}\n\n{quoted}".strip()[:MAX_BODY_CHARS]


def _attachment(attached: tuple[AttachedPart, str | None], keys: dict[str, Any], place: str) -> Row:
    part, text = attached
    data = {
        **keys,
        "name": _limited(part.name) or None,
        "mime_type": _limited(part.mime_type),
        "size": len(part.content),
        "text": text,
    }
    return Row("attachments", data, {"file": Attachment(part.content, _limited(part.mime_type))}, place)


def _limited(text: str) -> str:
    return text[:_MAX_HEADER_CHARS]


MESSAGES_PER_MARK = 1000
#: A mark comes at least this often, however large the messages are.
_BYTES_PER_MARK = 64 * 1024 * 1024
_TOO_LARGE = f"The message is larger than {MAX_MESSAGE_BYTES // 1024 // 1024} MB."
_SKIPPED_BYTES = 1024 * 1024


def read_files(files: Iterator[InputFile], resume: Mapping[str, Any]) -> Iterator[Item]:
    rows = MailRows()
    for file in files:
        kind = kind_of(file)
        try:
            if kind is MailFile.MBOX:
                yield from _mbox(file, rows, int((resume.get(file.name) or {"offset": 0})["offset"]))
            elif kind is not None:
                yield from _single(file, kind, rows)
        except OSError as error:
            yield Reject(file.name, f"The file cannot be read: {error.strerror or error}.")
        else:
            yield Mark(file.name, file.size_bytes)


def _mbox(file: InputFile, rows: MailRows, offset: int) -> Iterator[Item]:
    folder, marked = folder_of(file.name, MailFile.MBOX), offset
    with file.open() as content:
        _skip(content, offset)
        for number, message in enumerate(split(content, offset), 1):
            place = f"{file.name}, byte {message.begin}"
            if message.content is None:
                yield Reject(place, _TOO_LARGE)
            else:
                yield from rows.of(message.content, MailState(place, folder, envelope=message.envelope))
            if number % MESSAGES_PER_MARK == 0 or message.end - marked > _BYTES_PER_MARK:
                marked = message.end
                yield Mark(file.name, message.end, {"offset": message.end})


def _skip(content: IO[bytes], offset: int) -> None:
    if content.seekable():
        content.seek(offset)
        return
    while offset > 0 and (piece := content.read(min(offset, _SKIPPED_BYTES))):
        offset -= len(piece)


def _single(file: InputFile, kind: MailFile, rows: MailRows) -> Iterator[Item]:
    if file.size_bytes > MAX_MESSAGE_BYTES:
        yield Reject(file.name, _TOO_LARGE)
        return
    with file.open() as content:
        raw = content.read(MAX_MESSAGE_BYTES)
    if raw.strip():
        yield from rows.of(*_unpacked(file, kind, raw))


def _unpacked(file: InputFile, kind: MailFile, raw: bytes) -> tuple[bytes, MailState]:
    """Take the message out of a file, with what its name or what follows it says about the message."""
    state = MailState(file.name, folder_of(file.name, kind))
    if kind is MailFile.MAILDIR:
        flags = maildir_flags(file.name)
        return raw, replace(state, is_read="S" in flags, is_flagged="F" in flags)
    count, _, rest = raw.partition(b"\n")
    if kind is not MailFile.EMLX or not count.strip().isdigit():
        return raw, state
    length = int(count[:12])
    apple = _apple_flags(rest[length:])
    if apple is not None:
        state = replace(state, is_read=bool(apple & 1), is_flagged=bool(apple & 16))
    return rest[:length], state


def _apple_flags(properties: bytes) -> int | None:
    try:
        document: Any = plistlib.loads(properties.strip(), fmt=plistlib.FMT_XML)
        flags = document["flags"]
    except Exception:  # noqa: BLE001 - a damaged list costs the flags only
        return None
    return flags if isinstance(flags, int) else None
