"""A message with its attachments as an entry of an mbox file.

The text is written as it was read, apart from its form: a message that was HTML becomes plain text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.message import Message
from email.utils import format_datetime, formataddr
from pathlib import PurePosixPath
from typing import Any

from headgate.sources.mail.html import fold

_PERSON = re.compile(r"(.*) <([^<>]*)>", re.DOTALL)
#: Lines of a message that would begin another one are quoted, and quoted ones once more.
_BEGINNING = re.compile(rb"^(>*From )", re.MULTILINE)
_MIME_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_NO_FOLDER = "mail"
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class AttachedFile:
    name: str | None
    mime_type: str
    content: bytes


def mbox_name(folder: str | None) -> PurePosixPath:
    """Name the file of a folder, so that the folder can be read from it: ``Work.sbd/Invoices.mbox``."""
    parts = [_safe(part) for part in (folder or _NO_FOLDER).split("/") if part.strip(". ")] or [_NO_FOLDER]
    return PurePosixPath(*(f"{part}.sbd" for part in parts[:-1]), f"{parts[-1]}.mbox")


def _safe(part: str) -> str:
    return "".join(letter if letter.isprintable() and letter not in '\\:*?"<>|' else "_" for letter in part)[
        :_NAME_CHARS
    ].lstrip(".")


def entry(row: Mapping[str, Any], files: Sequence[AttachedFile]) -> bytes:
    moment = datetime.fromisoformat(row["sent_at"]) if row.get("sent_at") else None
    envelope = "From -" if moment is None else f"From - {moment.strftime('%a %b %d %H:%M:%S %Y')}"
    return f"{envelope}\n".encode() + _BEGINNING.sub(rb">\1", message_of(row, files)) + b"\n\n"


def message_of(row: Mapping[str, Any], files: Sequence[AttachedFile]) -> bytes:
    """Write the message of a row with its files."""
    moment = datetime.fromisoformat(row["sent_at"]) if row.get("sent_at") else None
    head = "\n".join(_headers(row, moment)).encode()
    return head + b"\n" + (_multipart(row, files) if files else _text_part(_text(row)))


def _headers(row: Mapping[str, Any], moment: datetime | None) -> list[str]:
    people: dict[str, list[str]] = {"From": [_sender(row)] if row.get("from") else []}
    people |= {name.title(): row.get(name) or [] for name in ("to", "cc", "bcc")}
    # Without an id, two messages that differ in their receivers only would be taken for one.
    own_id = row.get("internet_message_id") or f"{_digest(row)[:32]}@record.invalid"
    ids = {"Message-ID": own_id, "In-Reply-To": row.get("in_reply_to")}
    names = row.get("labels") or ()
    # The first label is taken for the folder.
    folder = [row["folder"]] if names and row.get("folder") and row["folder"] not in names else []
    labels = ",".join(_quoted_label(text) for text in (*folder, *names))
    status = "".join(letter for letter, name in (("R", "is_read"), ("F", "is_flagged")) if row.get(name))
    is_known = row.get("is_read") is not None or row.get("is_flagged") is not None
    return [
        *(
            f"{name}: {', '.join(map(_address, addresses))}"
            for name, addresses in people.items()
            if addresses
        ),
        _header("Subject", row.get("subject") or ""),
        *(f"{name}: <{_one_line(text)}>" for name, text in ids.items() if text),
        *([f"Date: {format_datetime(moment)}"] if moment else ()),
        # What Gmail calls a thread: the one of the record.
        _header("X-GM-THRID", row.get("thread_id") or ""),
        *([_header("X-Gmail-Labels", labels)] if labels else ()),
        *([f"Status: {status}O"] if is_known else ()),
        "MIME-Version: 1.0",
    ]


def _sender(row: Mapping[str, Any]) -> str:
    address = row.get("from_address") or ""
    return f"{row['from']} <{address}>" if "@" in address and "@" not in row["from"] else row["from"]


def _digest(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(str(row["id"]).encode()).hexdigest()


def _header(name: str, value: str) -> str:
    text = _one_line(value)
    return f"{name}: {text if text.isascii() else Header(text, 'utf-8', header_name=name).encode()}"


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _address(text: str) -> str:
    match = _PERSON.fullmatch(_one_line(text))
    name, address = match.groups() if match else ("", _one_line(text))
    return formataddr((name, address)) if address.isascii() else Header(_one_line(text), "utf-8").encode()


def _quoted_label(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if "," in label or '"' in label else label


def _text(row: Mapping[str, Any]) -> str:
    body, quoted = row.get("body") or "", row.get("quoted") or ""
    if not quoted:
        return body
    whole = f"{body}\n\n{quoted}"
    # Quotations of HTML have no sign; with one they are found again.
    return whole if fold(whole) == (body, quoted) else f"{body}\n\n> " + "\n> ".join(quoted.splitlines())


def _text_part(text: str) -> bytes:
    head = b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
    return head + base64.encodebytes(text.encode())


def _multipart(row: Mapping[str, Any], files: Sequence[AttachedFile]) -> bytes:
    boundary = _digest(row)[:40].encode()
    parts = [_text_part(_text(row)), *map(_file_part, files)]
    inner = b"".join(b"--%b\n%b\n" % (boundary, part) for part in parts)
    return b'Content-Type: multipart/mixed; boundary="%b"\n\n%b--%b--\n' % (boundary, inner, boundary)


def _file_part(file: AttachedFile) -> bytes:
    mime_type = file.mime_type if _MIME_TYPE.fullmatch(file.mime_type) else "application/octet-stream"
    head = Message()
    head["Content-Type"] = mime_type
    if file.name:
        name = _one_line(file.name)
        head.add_header(
            "Content-Disposition", "attachment", filename=name if name.isascii() else ("utf-8", "", name)
        )
    else:
        head["Content-Disposition"] = "attachment"
    is_message = mime_type == "message/rfc822"
    # A message in a message must not be encoded.
    head["Content-Transfer-Encoding"] = "8bit" if is_message else "base64"
    content = file.content if is_message else base64.encodebytes(file.content)
    lines = "".join(f"{name}: {value}\n" for name, value in head.items())
    return f"{lines}\n".encode() + content
