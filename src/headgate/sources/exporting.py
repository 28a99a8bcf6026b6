"""What was brought in can leave: the records of a connection with their files."""

from __future__ import annotations

import csv
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import BlobNotFound, InvalidRequest
from headgate.model.declaration import StreamDeclaration
from headgate.model.ids import BlobId, StreamName, is_blob_id
from headgate.model.plan import PagePlan, Reach
from headgate.model.query import Order
from headgate.model.record import Connection
from headgate.sources.exports.files import NativeFiles, streams_of
from headgate.sources.inputs.databases import NewDatabase
from headgate.sources.texts import safe_cell

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

_PAGE = 500
_RowWriter = Callable[[Sequence[Mapping[str, Any]]], None]
#: File systems allow 255 bytes; a number and an ending are added.
_TITLE_BYTES = 200


class ExportFormat(StrEnum):
    """How records are written."""

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
    """What was written."""

    records: Mapping[str, int]
    file_count: int
    #: How many files records refer to that are not there.
    missing_file_count: int = 0


async def export_connection(
    store: Store, connection: Connection, directory: Path, how: ExportFormat, streams: Sequence[str] = ()
) -> ExportReport:
    """Write the streams of a connection into a new directory that only its owner can read."""
    declaration = (await store.declarations())[connection.connector_key]
    declared = declaration.streams
    for name in streams:
        if StreamName(name) not in declared:
            raise InvalidRequest(f"There is no stream '{name}'.", hint=f"Streams are {', '.join(declared)}.")
    if how in _NATIVE:
        chosen = [name for name in streams_of(how, declaration) if not streams or name in streams]
        return await _export_native(store, connection, directory, {name: declared[name] for name in chosen})
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


async def _export_native(
    store: Store, connection: Connection, directory: Path, chosen: Mapping[StreamName, StreamDeclaration]
) -> ExportReport:
    _make(directory)
    files = NativeFiles(store, connection.id, directory)
    counts: dict[str, int] = {}
    for name, stream in chosen.items():
        counts[name] = 0
        reach = Reach(name, (connection.id,), tuple(stream.fields), with_hidden=True)
        async for rows in _pages(store, reach):
            counts[name] += len(rows)
            await files.write(name, rows)
    files.close()
    return ExportReport(counts, files.attached_count, files.missing_count)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700)
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
        title = next(one for one in itertools.chain((stem,), numbered) if one.casefold() not in taken)
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
    """Copy the files that are there, and return how many."""
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
