"""What was brought in can leave: the records of a connection with their files."""

from __future__ import annotations

import csv
import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import BlobNotFound, InvalidRequest
from headgate.model.declaration import SourceDeclaration, StreamDeclaration
from headgate.model.ids import BlobId, ConnectionId, FieldName, StreamName, is_blob_id
from headgate.model.plan import PagePlan, Reach
from headgate.model.query import ExactFilter, Order
from headgate.model.record import Connection
from headgate.sources.exports.calendar import CalendarFile
from headgate.sources.exports.content_lines import card
from headgate.sources.exports.mail import AttachedFile, entry, mbox_name
from headgate.sources.formats.databases import NewDatabase
from headgate.sources.formats.texts import safe_cell

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

#: The streams of each format, and a field by which a stream of that name is known to be one.
STREAMS: Mapping[str, Mapping[str, str]] = {
    "mbox": {"messages": "from_address"},
    "ics": {"events": "starts_at", "tasks": "due_at"},
    "vcf": {"contacts": "emails"},
}
_ATTACHMENTS = StreamName("attachments")
_ATTACHMENTS_MOST = 500
_MESSAGE_TYPE = "message/rfc822"
_Page = Sequence[Mapping[str, Any]]


def streams_of(form: str, declared: SourceDeclaration) -> list[StreamName]:
    """Choose the streams that can be written so."""
    fields = {StreamName(name): FieldName(needed) for name, needed in STREAMS[form].items()}
    streams = [
        name
        for name, needed in fields.items()
        if name in declared.streams and needed in declared.streams[name].fields
    ]
    if not streams:
        raise InvalidRequest(
            f"Nothing of this connection can be written as {form}.", hint="Use jsonl, csv or sqlite."
        )
    return streams


@dataclass(slots=True)
class NativeFiles:
    """Files that grow page by page; none stays open, so there may be many."""

    store: Store
    connection_id: ConnectionId
    directory: Path
    #: From when on no more occurrences of a series are to be expected, if it has an end.
    now: datetime
    #: How many files of records were written into them, and how many were not there.
    attached_count: int = 0
    missing_count: int = 0
    _begun: set[Path] = field(default_factory=set[Path])
    _calendars: dict[str, tuple[CalendarFile, Path]] = field(
        default_factory=dict[str, tuple[CalendarFile, Path]]
    )

    async def write(self, stream: str, rows: _Page) -> None:
        for row in rows:
            if stream == "messages":
                self._append(Path(mbox_name(row.get("folder"))), entry(row, await self._attached(row)))
            elif stream == "contacts":
                self._append(Path("contacts.vcf"), card(row, await self._photo(row)))
            else:
                calendar, path = self._calendar(str(row.get("calendar") or "calendar"))
                self._append(_entries(path), (calendar.event if stream == "events" else calendar.task)(row))

    def close(self) -> None:
        """Put calendars together: their zones and series are known at the end, and zones stand first."""
        for calendar, path in self._calendars.values():
            entries = self.directory / _entries(path)
            with (self.directory / path).open("xb") as file, entries.open("rb") as content:
                series = b"".join(calendar.series())
                file.write(calendar.begin())
                shutil.copyfileobj(content, file)
                file.write(series + calendar.end())
            entries.unlink()

    def _calendar(self, name: str) -> tuple[CalendarFile, Path]:
        if name not in self._calendars:
            stem = mbox_name(name.replace("/", "_")).stem
            taken = {path.stem.casefold() for _, path in self._calendars.values()}
            # Two calendars may differ in what no file's name can hold.
            number = next(
                number for number in itertools.count(1) if _numbered(stem, number).casefold() not in taken
            )
            path = Path(f"{_numbered(stem, number)}.ics")
            self._calendars[name] = CalendarFile(name, self.now), path
        return self._calendars[name]

    def _append(self, path: Path, content: bytes) -> None:
        whole = self.directory / path
        if path not in self._begun:
            self._begun.add(path)
            whole.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole.open("ab") as file:
            file.write(content)

    async def _attached(self, row: Mapping[str, Any]) -> list[AttachedFile]:
        """Read the files of a message; those inside a message that was passed on leave with it."""
        if not row.get("has_attachments"):
            return []
        from headgate.sources.mail.rows import attachments_inside  # noqa: PLC0415 - parsers of an extra

        files: list[AttachedFile] = []
        skipped = 0
        for attachment in await self._rows_of_message(str(row["id"])):
            if skipped:
                skipped -= 1
                continue
            content = await self._content_or_text(attachment)
            if content is None:
                continue
            files.append(AttachedFile(attachment.get("name"), attachment["mime_type"], content))
            if attachment["mime_type"] == _MESSAGE_TYPE:
                skipped = attachments_inside(content)
        return files

    async def _rows_of_message(self, message_id: str) -> list[dict[str, Any]]:
        fields = tuple(map(FieldName, ("id", "message_id", "name", "mime_type", "file", "text")))
        plan = PagePlan(
            Reach(_ATTACHMENTS, (self.connection_id,), fields, with_hidden=True),
            _ATTACHMENTS_MOST,
            Order.ASC,
            by_cursor_field=False,
            filters=(ExactFilter(FieldName("message_id"), message_id),),
        )
        page = await self.store.page(plan)
        rows: list[dict[str, Any]] = [msgspec.json.decode(record.body) for record in page.records]
        return sorted(rows, key=lambda row: _number(row["id"]))

    async def _content_or_text(self, attachment: Mapping[str, Any]) -> bytes | None:
        """Read the file of an attachment; of one without a file that is a text, its text."""
        if attachment.get("file"):
            return await self._content(attachment["file"])
        is_text = attachment["mime_type"].startswith("text/") and attachment.get("text")
        return attachment["text"].encode() if is_text else None

    async def _photo(self, row: Mapping[str, Any]) -> bytes | None:
        return await self._content(row["photo"]) if row.get("photo") else None

    async def _content(self, reference: Any) -> bytes | None:
        """Read a file; None if it is not there: a record can hold any value in the place of one."""
        blob_id = cast("dict[str, Any]", reference).get("blob_id") if isinstance(reference, dict) else None
        try:
            content = b"".join([piece async for piece in self.store.read_blob(BlobId(str(blob_id)))])
        except BlobNotFound:
            self.missing_count += 1
            return None
        self.attached_count += 1
        return content


def _entries(path: Path) -> Path:
    """Name the file in which the entries of a calendar wait for their beginning."""
    return path.with_name(f"{path.name}.part")


def _numbered(stem: str, number: int) -> str:
    return stem if number == 1 else f"{stem}_{number}"


def _number(key: str) -> int:
    """Read the place of an attachment in its message from its id."""
    digits = key.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


_PAGE = 500
_RowWriter = Callable[[Sequence[Mapping[str, Any]]], None]
#: File systems allow 255 bytes; a number and an ending are added.
_TITLE_BYTES = 200


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    SQLITE = "sqlite"
    MBOX = "mbox"
    ICS = "ics"
    VCF = "vcf"


#: Formats in which files lie inside the files of records.
_NATIVE = frozenset({ExportFormat.MBOX, ExportFormat.ICS, ExportFormat.VCF})


@dataclass(frozen=True, slots=True)
class ExportReport:
    records: Mapping[str, int]
    file_count: int
    #: How many files records refer to that are not there.
    missing_file_count: int = 0


async def export_connection(
    store: Store,
    connection: Connection,
    directory: Path,
    how: ExportFormat,
    streams: Sequence[str] = (),
    *,
    now: int,
) -> ExportReport:
    """Write the streams of a connection into a new directory that only its owner can read."""
    declaration = (await store.declarations())[connection.connector_key]
    declared = declaration.streams
    for name in streams:
        if StreamName(name) not in declared:
            raise InvalidRequest(f"There is no stream '{name}'.", hint=f"Streams are {', '.join(declared)}.")
    if how in _NATIVE:
        chosen = [name for name in streams_of(how, declaration) if not streams or name in streams]
        files = NativeFiles(store, connection.id, directory, datetime.fromtimestamp(now // 1_000_000, UTC))
        return await _export_native(files, {name: declared[name] for name in chosen})
    _make(directory)
    counts: dict[str, int] = {}
    blobs: set[BlobId] = set()
    with ExitStack() as stack:
        writer_of = _writers(how, directory, stack)
        chosen = [StreamName(name) for name in streams or declared]
        for name, title in zip(chosen, _distinct(chosen), strict=True):
            fields = tuple(declared[name].fields)
            write = writer_of(title, fields)
            counts[name] = 0
            async for rows in _pages(store, Reach(name, (connection.id,), fields, with_hidden=True)):
                counts[name] += len(rows)
                blobs.update(blob_id for row in rows for blob_id in _blob_ids(row))
                write(rows)
    copied = await _copy_files(store, blobs, directory / "files")
    return ExportReport(counts, copied, len(blobs) - copied)


async def _export_native(files: NativeFiles, chosen: Mapping[StreamName, StreamDeclaration]) -> ExportReport:
    _make(files.directory)
    counts: dict[str, int] = {}
    for name, stream in chosen.items():
        counts[name] = 0
        reach = Reach(name, (files.connection_id,), tuple(stream.fields), with_hidden=True)
        async for rows in _pages(files.store, reach):
            counts[name] += len(rows)
            await files.write(name, rows)
    files.close()
    return ExportReport(counts, files.attached_count, files.missing_count)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700)
    except FileNotFoundError:
        raise InvalidRequest(
            f"There is no directory {directory.parent}.", hint="Create it first, or choose another one."
        ) from None
    except OSError as error:
        raise InvalidRequest(f"{directory}: {error.strerror}.", hint="Give a new directory.") from None


async def _pages(store: Store, reach: Reach) -> AsyncIterator[list[dict[str, Any]]]:
    after = None
    while True:
        page = await store.page(PagePlan(reach, _PAGE, Order.ASC, by_cursor_field=False, after=after))
        if page.records:
            yield [msgspec.json.decode(record.body) for record in page.records]
        if page.next is None:
            return
        after = page.next


# Formats


def _writers(
    how: ExportFormat, directory: Path, stack: ExitStack
) -> Callable[[str, Sequence[str]], _RowWriter]:
    """Return the function that begins a stream."""
    if how is ExportFormat.SQLITE:
        database = stack.enter_context(NewDatabase(directory / "records.db"))
        return lambda title, fields: database.table(
            title, dict(zip(fields, _distinct(fields), strict=True)), _cell
        )
    begin = _csv_writer if how is ExportFormat.CSV else _json_writer
    return lambda title, fields: begin(directory / f"{title}.{how.value}", fields, stack)


def _distinct(names: Sequence[str]) -> list[str]:
    """Title files, tables or columns by names: short enough for a file, and none like another but for its case."""
    titles: list[str] = []
    taken = set[str]()
    for name in names:
        stem = name.encode()[:_TITLE_BYTES].decode(errors="ignore")
        numbered = (f"{stem}_{number}" for number in itertools.count(2))
        title = next(
            candidate for candidate in itertools.chain((stem,), numbered) if candidate.casefold() not in taken
        )
        titles.append(title)
        taken.add(title.casefold())
    return titles


def _json_writer(path: Path, _fields: Sequence[str], stack: ExitStack) -> _RowWriter:
    lines = stack.enter_context(path.open("xb"))
    return lambda rows: lines.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def _csv_writer(path: Path, fields: Sequence[str], stack: ExitStack) -> _RowWriter:
    table = csv.writer(stack.enter_context(path.open("x", encoding="utf-8", newline="")))
    table.writerow([safe_cell(name) for name in fields])
    return lambda rows: table.writerows(
        [[safe_cell(_cell(row.get(name))) for name in fields] for row in rows]
    )


def _cell(value: Any) -> Any:
    """Write what a table cannot hold as JSON."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


# Files


def _blob_ids(value: Any) -> Iterator[BlobId]:
    """Find the files that a value refers to."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        blob_id = members.get("blob_id")
        # A record can hold any text there, and a file is named by it.
        if isinstance(blob_id, str) and is_blob_id(blob_id) and "sha256" in members:
            yield BlobId(blob_id)
        for member in members.values():
            yield from _blob_ids(member)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _blob_ids(item)


async def _copy_files(store: Store, blobs: set[BlobId], directory: Path) -> int:
    if blobs:
        _make(directory)
    return sum([await _copy_file(store, blob, directory) for blob in sorted(blobs)])


async def _copy_file(store: Store, blob: BlobId, directory: Path) -> bool:
    path = directory / blob.removeprefix("blob_")
    try:
        with path.open("xb") as file:
            async for piece in store.read_blob(blob):
                file.write(piece)
    except BlobNotFound:
        path.unlink()
        return False
    return True
