"""What a source reads, cut into parts of bounded size: the lines of each stream, ready for the store.

What is stored of a file is bounded by its size: a few bytes of some formats stand for any number of records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from headgate.errors import HeadgateError
from headgate.model.ids import blob_id_from
from headgate.sources.formats.values import plain_id
from headgate.sources.protocol import ID_FIELDS, Attachment, Covered, Item, Mark, Reject, Removal, Row
from headgate.sources.reading_note import NOTE

PART_LINES = 2000
#: Together with what storing makes of them, this decides how much memory an import takes.
PART_BYTES = 2 * 1024 * 1024
#: What may be stored of a file: so many times its size, and what is small in any case.
_MAX_STORED_RATIO = 200
_FREE_STORED_BYTES = 64 * 1024**2
#: How JSON writes NUL, which the store does not take.
_NUL = b"\\u0000"
#: What of a line names records; the rest of it is passed over.
_Ids = msgspec.defstruct("_Ids", [(name, Any, None) for name in ID_FIELDS])
_IdsLine = msgspec.defstruct("_IdsLine", [("data", _Ids)])
_read_ids = msgspec.json.Decoder(_IdsLine).decode


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One row as a line for the store, and where it was read."""

    line: bytes
    place: str


@dataclass(slots=True)
class ImportPart:
    """Rows that are stored together, and the marks that hold once they are."""

    lines: dict[str, list[ReadLine]] = field(default_factory=dict[str, list[ReadLine]])
    #: Lines that remove a record, stored after the others.
    removals: dict[str, list[ReadLine]] = field(default_factory=dict[str, list[ReadLine]])
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    rejects: list[Reject] = field(default_factory=list[Reject])
    marks: dict[str, Mark] = field(default_factory=dict[str, Mark])
    covered: list[Covered] = field(default_factory=list[Covered])
    #: Why reading ended before the end; empty while all is well.
    failure: str = ""
    #: Whether a reject stands for more than can be known.
    is_cut: bool = False
    #: Of lines and attachments.
    size_bytes: int = 0
    #: What the source gave, and what of that after the last mark.
    item_count: int = 0
    after_mark: int = 0

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= PART_BYTES or self.item_count >= PART_LINES

    def take(self, item: Item | ImportPart) -> None:
        if isinstance(item, ImportPart):
            self._take_part(item)
            return
        self.item_count += 1
        self.after_mark += 1
        if isinstance(item, Row):
            self._take_row(item)
        elif isinstance(item, Removal):
            line = msgspec.json.encode({"op": "delete", "key": list(item.key)})
            self.removals.setdefault(item.stream, []).append(ReadLine(line, ""))
        elif isinstance(item, Reject):
            self.rejects.append(Reject(_repaired(item.place), _repaired(item.reason)))
        elif isinstance(item, Covered):
            self.covered.append(item)
        else:
            self.marks[item.file] = item
            self.after_mark = 0

    def _take_part(self, part: ImportPart) -> None:
        for stream, lines in part.lines.items():
            self.lines.setdefault(stream, []).extend(lines)
        for stream, lines in part.removals.items():
            self.removals.setdefault(stream, []).extend(lines)
        self.attachments.extend(part.attachments)
        self.rejects.extend(part.rejects)
        self.marks.update(part.marks)
        self.covered.extend(part.covered)
        self.failure = part.failure
        self.is_cut = self.is_cut or part.is_cut
        self.size_bytes += part.size_bytes
        self.item_count += part.item_count
        self.after_mark = part.after_mark if part.marks else self.after_mark + part.after_mark

    def _take_row(self, row: Row) -> None:
        try:
            line = line_of(row)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            self.rejects.append(Reject(row.place or row.stream, f"It cannot be written as JSON: {error}."))
            return
        self.lines.setdefault(row.stream, []).append(ReadLine(line, _repaired(row.place)))
        self.attachments.extend(row.attachments.values())
        self.size_bytes += len(line) + sum(len(attachment.content) for attachment in row.attachments.values())


def renamed(items: Iterator[Item | ImportPart], rename: Callable[[Row], Row]) -> Iterator[Item | ImportPart]:
    """Name all records that a source gives anew, those that it removes included."""
    try:
        for item in items:
            if isinstance(item, Row):
                yield rename(item)
            elif isinstance(item, Removal):
                yield replace(
                    item, key=[plain_id(part) if isinstance(part, str) else part for part in item.key]
                )
            elif isinstance(item, ImportPart):
                lines = {
                    stream: [_renamed_line(stream, line, rename) for line in lines]
                    for stream, lines in item.lines.items()
                }
                yield replace(item, lines=lines)
            else:
                yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _renamed_line(stream: str, read: ReadLine, rename: Callable[[Row], Row]) -> ReadLine:
    """Name the record of a line that was written already, mostly in the process that reads what servers send."""
    ids: dict[str, Any] = msgspec.structs.asdict(cast("Any", _read_ids(read.line)).data)
    changed = {name: key for name, key in rename(Row(stream, ids)).data.items() if key != ids[name]}
    if not changed:
        return read
    document = msgspec.json.decode(read.line)
    return replace(read, line=msgspec.json.encode({**document, "data": {**document["data"], **changed}}))


def most_stored_bytes(size_bytes: int) -> int:
    return _FREE_STORED_BYTES + size_bytes * _MAX_STORED_RATIO


def within(most_bytes: int, read_parts: Iterable[ImportPart], name: str) -> Iterator[ImportPart]:
    """Return parts until they are more than may be stored of a file; a reject says that the rest is left out."""
    left = most_bytes
    for part in read_parts:
        left -= part.size_bytes
        yield part
        if left < 0:
            reason = f"It would store more than {most_bytes // 1024**2:,} MB, which is too much for its size."
            yield ImportPart(rejects=[Reject(name, f"{reason} The rest is left out.")], is_cut=True)
            return


def parts(items: Iterable[Item | ImportPart]) -> Iterator[ImportPart]:
    """Collect what a source gives; the last part says if reading ended in a failure."""
    part = ImportPart()
    try:
        for item in items:
            NOTE.step()
            part.take(item)
            if part.is_full:
                yield part
                part = ImportPart()
    except HeadgateError as error:
        part.failure = error.message
    except OSError as error:
        part.failure = f"The file cannot be read: {error.strerror or error}."
    yield part


def line_of(row: Row) -> bytes:
    """Write a row as a line; text that no store takes is repaired: NUL goes, half a surrogate pair becomes ``?``."""
    data: Mapping[str, Any] = row.data
    if row.attachments:
        data = {**data, **{name: reference(attachment) for name, attachment in row.attachments.items()}}
    try:
        line = msgspec.json.encode({"data": data})
    except UnicodeEncodeError:
        return msgspec.json.encode({"data": _repaired(data)})
    return msgspec.json.encode({"data": _repaired(data)}) if _NUL in line else line


def reference(attachment: Attachment) -> dict[str, Any]:
    """Make the value by which a record refers to a file; its id follows from its content."""
    digest = hashlib.sha256(attachment.content).hexdigest()
    return {
        "blob_id": blob_id_from(digest),
        "mime_type": attachment.mime_type,
        "size_bytes": len(attachment.content),
        "sha256": digest,
    }


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {_repaired(name): _repaired(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [_repaired(member) for member in cast("Sequence[Any]", value)]
    return value
