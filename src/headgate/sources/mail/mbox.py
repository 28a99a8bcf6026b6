"""Cut an mbox file into messages, in memory bounded by one message.

There are several mbox formats. What they agree on is a line that begins with ``From ``, and that such a line of a
message is quoted with ``>``. Not every program quotes, so a line counts as the beginning of a message only if it looks
like one and a header follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import PurePosixPath
from typing import IO

from headgate.sources.formats.compound import SIGNATURE
from headgate.sources.formats.values import clean
from headgate.sources.inputs.tree import InputFile

#: A larger message is left out: no provider passes it on, so it is a damaged file.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
#: How much of what follows a possible beginning must be there to judge it.
_JUDGED_BYTES = 4096
#: A sender and a time as asctime writes it, whatever follows; any text with a time, or a sender alone, if a header
#: follows.
_BEGINNING = re.compile(
    rb"From (?:[^\s]{1,500} +[A-Z][a-z][a-z] [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d(?::\d\d)?(?: [+-]\d{4})? \d{4}[ \t]*\r?\n"
    rb"|[^\n]{0,1000}\d:\d\d[^\n]{0,200}\n(?:[!-9;-~]{1,200}:|>From |\r?\n|$)"
    rb"|[^\s]{0,500}[ \t]*\r?\n(?:[!-9;-~]{1,200}:|>From ))"
)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MboxMessage:
    #: Bytes of the file before it, and with it.
    begin: int
    end: int
    #: The line before the message, without its ``From ``.
    envelope: bytes
    #: None if it is too large.
    content: bytes | None


def is_mbox(head: bytes) -> bool:
    """Return whether a file begins as an mbox does."""
    return _BEGINNING.match(head.lstrip(b"\xef\xbb\xbf\r\n")) is not None


def split(content: IO[bytes], begin: int = 0) -> Iterator[MboxMessage]:
    """Read messages from a place where one begins; the content stands there already."""
    buffer, searched, skipped, is_end = bytearray(), 0, 0, False
    while not is_end:
        piece = content.read(_PIECE_BYTES)
        is_end = not piece
        buffer += piece
        judged = len(buffer) if is_end else len(buffer) - _JUDGED_BYTES
        while (cut := _next_beginning(buffer, searched, judged)) is not None:
            if message := _message(buffer[:cut], begin, skipped):
                yield message
            begin += skipped + cut
            del buffer[:cut]
            judged, searched, skipped = judged - cut, 0, 0
        searched = max(0, judged)
        if len(buffer) > MAX_MESSAGE_BYTES:
            # Only its size is known from here on.
            skipped += searched
            del buffer[:searched]
            searched = 0
    if message := _message(buffer, begin, skipped):
        yield message


def _next_beginning(buffer: bytearray, start: int, end: int) -> int | None:
    """Find the next beginning of a message after the first byte."""
    at = buffer.find(b"\nFrom ", start)
    while at != -1 and at < end:
        if _BEGINNING.match(buffer, at + 1):
            return at + 1
        at = buffer.find(b"\nFrom ", at + 1)
    return None


def _message(raw: bytearray, begin: int, skipped: int) -> MboxMessage | None:
    end = begin + skipped + len(raw)
    if skipped:
        return MboxMessage(begin, end, b"", None)
    text = bytes(raw).lstrip(b"\xef\xbb\xbf\r\n")
    envelope, _, content = text.partition(b"\n") if text.startswith(b"From ") else (b"", b"", text)
    if not content.strip():
        return None
    unquoted = _QUOTED.sub(rb"\1", content) if b">From " in content else content
    return MboxMessage(begin, end, envelope[5:].strip(), unquoted)


INBOX = "Inbox"
_MAILDIR = frozenset({"cur", "new"})
#: Names of a Maildir that is an account, not a folder of one.
_ACCOUNTS = frozenset({"", "mail", "maildir", ".maildir"})
_MAILDIR_NAME = re.compile(r"\d+\..+|.*[:!;]2,[A-Za-z]*")
_HEADER = re.compile(rb"[!-9;-~]{1,200}:")
_MAIL_HEADER = re.compile(
    rb"^(From|To|Date|Received|Subject|Message-ID|MIME-Version):", re.IGNORECASE | re.MULTILINE
)
#: So many different ones make a file without a known name a message.
_SURE_HEADERS = 3
_ENDS_AS_NUMBER = re.compile(r"\.[\d_]+\Z|\Z")
#: Files that lie beside mailboxes and never are some; they are not opened.
_OTHERS = frozenset(
    {".csv", ".dat", ".html", ".ics", ".jpg", ".json", ".md"}
    | {".msf", ".pdf", ".png", ".py", ".vcf", ".xml", ".zip"}
)
#: How mail programs end the names of files and directories that hold mail.
_ENDING = re.compile(r"\.(?:mbox|mbx|sbd|partial)$", re.IGNORECASE)


class MailFile(Enum):
    """How messages lie in a file."""

    MBOX = auto()
    MAILDIR = auto()
    EML = auto()
    #: A message of Apple Mail: its length, the message, and a property list.
    EMLX = auto()
    #: A message of Outlook.
    MSG = auto()


_BY_SUFFIX = {".eml": MailFile.EML, ".emlx": MailFile.EMLX, ".msg": MailFile.MSG}


def kind_of(file: InputFile) -> MailFile | None:
    """Recognise a file of mail by its name, and by its beginning where the name leaves it open."""
    path = PurePosixPath(file.name)
    by_name = _BY_SUFFIX.get(file.suffix)
    if by_name is not None and (by_name is not MailFile.MSG or file.head.startswith(SIGNATURE)):
        return by_name
    if path.parent.name in _MAILDIR and (_MAILDIR_NAME.fullmatch(path.name) or _mail_headers(file)):
        return MailFile.MAILDIR
    if file.suffix in _OTHERS:
        return None
    if is_mbox(file.head):
        return MailFile.MBOX
    # Messages by themselves: of MH, or that lie beside the directories of a Maildir, where "tmp" has unfinished ones.
    is_named = _ENDS_AS_NUMBER.fullmatch(file.suffix) or _MAILDIR_NAME.fullmatch(path.name)
    is_bare = is_named and path.parent.name != "tmp"
    return MailFile.EML if is_bare and _mail_headers(file) >= _SURE_HEADERS else None


def _mail_headers(file: InputFile) -> int:
    """Count the headers with which a mail begins; a program may name the files of a Maildir as it likes."""
    headers = file.head.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    is_head = file.suffix not in _OTHERS and _HEADER.match(headers)
    return len({name.lower() for name in _MAIL_HEADER.findall(headers)}) if is_head else 0


def folder_of(name: str, kind: MailFile) -> str | None:
    """Name the folder of a file as its owner sees it; None if single messages lie in no folder."""
    path = PurePosixPath(clean(name))
    if kind is MailFile.MAILDIR or path.parent.name == "cur":
        # Maildir++ names a folder inside another one ".Work.Invoices"; the account itself is the inbox.
        own = path.parent.parent.name
        if own.startswith("."):
            return own.strip(".").replace(".", "/")
        return INBOX if own.lower() in _ACCOUNTS else own
    if kind is not MailFile.MBOX:
        parts = [_ENDING.sub("", part) for part in path.parent.parts if part not in {"Messages", "Data"}]
        return "/".join(parts) or None
    # Apple Mail exports a directory "Work.mbox" with a file "mbox".
    parts = path.parent.parts if path.name == "mbox" and path.parent.name else path.parts
    above = [part for part in parts[:-1] if part.endswith((".sbd", ".mbox"))]
    return "/".join(_ENDING.sub("", part) for part in (*above, parts[-1]))


def maildir_flags(name: str) -> str:
    """Return the letters after ``2,``: F flagged, S seen, R replied, T deleted, D draft."""
    match = re.search(r"[:!;]2,([A-Za-z]*)$", name)
    return match.group(1) if match else ""
