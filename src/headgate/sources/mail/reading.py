"""Read the messages of files of mail."""

from __future__ import annotations

import plistlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from headgate.sources.inputs.tree import InputFile
from headgate.sources.mail.mbox import MAX_MESSAGE_BYTES, MailFile, folder_of, kind_of, maildir_flags, split
from headgate.sources.mail.rows import MailRows, MailState
from headgate.sources.protocol import Item, Mark, Reject

MESSAGES_PER_MARK = 1000
#: A mark comes at least this often, however large the messages are.
_BYTES_PER_MARK = 64 * 1024 * 1024
_TOO_LARGE = f"The message is larger than {MAX_MESSAGE_BYTES // 1024 // 1024} MB."
_SKIPPED_BYTES = 1024 * 1024


def read_files(files: Iterator[InputFile], resume: Mapping[str, Any]) -> Iterator[Item]:
    """Read files in their order."""
    rows = MailRows()
    for file in files:
        kind = kind_of(file)
        try:
            if kind is MailFile.MBOX:
                yield from _mbox(file, rows, _offset(resume.get(file.name)))
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


def _offset(mark: Any) -> int:
    return 0 if mark is None else int(mark["offset"])


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
        raw, state = _UNPACK[kind](file, raw)
        yield from rows.of(raw, state)


def _eml(file: InputFile, raw: bytes) -> tuple[bytes, MailState]:
    return raw, MailState(file.name, folder_of(file.name, MailFile.EML))


def _maildir(file: InputFile, raw: bytes) -> tuple[bytes, MailState]:
    flags = maildir_flags(file.name)
    folder = folder_of(file.name, MailFile.MAILDIR)
    return raw, MailState(file.name, folder, is_read="S" in flags, is_flagged="F" in flags)


def _emlx(file: InputFile, raw: bytes) -> tuple[bytes, MailState]:
    folder = folder_of(file.name, MailFile.EMLX)
    count, _, rest = raw.partition(b"\n")
    if not count.strip().isdigit():
        return raw, MailState(file.name, folder)
    length = int(count[:12])
    flags = _apple_flags(rest[length:])
    if flags is None:
        return rest[:length], MailState(file.name, folder)
    return rest[:length], MailState(file.name, folder, is_read=bool(flags & 1), is_flagged=bool(flags & 16))


def _apple_flags(properties: bytes) -> int | None:
    try:
        found: Any = plistlib.loads(properties.strip(), fmt=plistlib.FMT_XML)
        flags = found["flags"]
    except Exception:  # noqa: BLE001 - a damaged list costs the flags only
        return None
    return flags if isinstance(flags, int) else None


_UNPACK: dict[MailFile, Callable[[InputFile, bytes], tuple[bytes, MailState]]] = {
    MailFile.EML: _eml,
    MailFile.EMLX: _emlx,
    MailFile.MAILDIR: _maildir,
}
