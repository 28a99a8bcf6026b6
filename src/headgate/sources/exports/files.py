"""Write the records of a connection into files of their kind: one for each folder of mail and each calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import BlobNotFound, InvalidRequest
from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import BlobId, ConnectionId, FieldName, StreamName
from headgate.model.plan import PagePlan, Reach
from headgate.model.query import ExactFilter, Order
from headgate.sources.exports.content_lines import calendar_begin, calendar_end, card, event, task
from headgate.sources.exports.mail import AttachedFile, entry, mbox_name

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
    found = [
        name
        for name, needed in fields.items()
        if name in declared.streams and needed in declared.streams[name].fields
    ]
    if not found:
        raise InvalidRequest(
            f"Nothing of this connection can be written as {form}.", hint="Use jsonl, csv or sqlite."
        )
    return found


@dataclass(slots=True)
class NativeFiles:
    """Files that grow page by page; none stays open, so there may be many."""

    store: Store
    connection_id: ConnectionId
    directory: Path
    #: How many files of records were written into them, and how many were not there.
    attached_count: int = 0
    missing_count: int = 0
    _begun: set[Path] = field(default_factory=set[Path])
    _calendars: set[Path] = field(default_factory=set[Path])

    async def write(self, stream: str, rows: _Page) -> None:
        """Write some records of a stream."""
        for row in rows:
            if stream == "messages":
                self._append(Path(mbox_name(row.get("folder"))), entry(row, await self._attached(row)))
            elif stream == "contacts":
                self._append(Path("contacts.vcf"), card(row, await self._photo(row)))
            else:
                self._append_entry(
                    row.get("calendar") or "calendar", (event if stream == "events" else task)(row)
                )

    def close(self) -> None:
        """End the files."""
        for path in self._calendars:
            self._append(path, calendar_end())

    def _append_entry(self, calendar: str, content: bytes) -> None:
        path = Path(mbox_name(calendar.replace("/", "_"))).with_suffix(".ics")
        if path not in self._calendars:
            self._calendars.add(path)
            self._append(path, calendar_begin(calendar))
        self._append(path, content)

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
        for one in await self._rows_of_message(str(row["id"])):
            if skipped:
                skipped -= 1
                continue
            content = await self._content(one["file"])
            if content is None:
                continue
            files.append(AttachedFile(one.get("name"), one["mime_type"], content))
            if one["mime_type"] == _MESSAGE_TYPE:
                skipped = attachments_inside(content)
        return files

    async def _rows_of_message(self, message_id: str) -> list[dict[str, Any]]:
        fields = tuple(map(FieldName, ("id", "message_id", "name", "mime_type", "file")))
        plan = PagePlan(
            Reach(_ATTACHMENTS, (self.connection_id,), fields, with_hidden=True),
            _ATTACHMENTS_MOST,
            Order.ASC,
            by_cursor_field=False,
            filters=(ExactFilter(FieldName("message_id"), message_id),),
        )
        page = await self.store.page(plan)
        rows: list[dict[str, Any]] = [msgspec.json.decode(record.body) for record in page.records]
        return sorted((row for row in rows if row.get("file")), key=lambda row: _number(row["id"]))

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


def _number(key: str) -> int:
    """Read the place of an attachment in its message from its id."""
    digits = key.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
