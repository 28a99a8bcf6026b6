"""The intake: what an owner adds or removes by hand, passed to the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.errors import BodyCutShort, ConnectionNotFound, InvalidRequest, NotFound
from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName
from headgate.model.record import Connection
from headgate.model.rows import Batch, IngestReport, LineError, MarkedRecords, OnInvalid
from headgate.store.format.lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

BATCH_LINES = 2000
BATCH_BYTES = 2 * 1024 * 1024
_COLLECTED_BYTES = MAX_LINE_BYTES + 1


@dataclass(frozen=True, slots=True)
class Push:
    """Where lines go, and what becomes of those that break the schema or come twice."""

    connection_id: ConnectionId
    stream: StreamName
    #: Makes a repeated push answer as the first one did.
    idempotency_key: str | None = None
    on_invalid: OnInvalid = OnInvalid.REJECT


class Intake:
    """Stores declarations, connections, records and files."""

    __slots__ = ("_clock", "_store")

    def __init__(self, store: Store, *, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock

    async def declare(self, connector_key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
        """Register a declaration."""
        return await self._store.declare(connector_key, document)

    async def connect(self, connector_key: ConnectorKey, display_name: str) -> Connection:
        """Add a connection."""
        return await self._store.create_connection(connector_key, display_name)

    async def connection(self, connection_id: ConnectionId) -> Connection:
        """Find a connection."""
        for connection in await self._store.connections():
            if connection.id == connection_id:
                return connection
        raise ConnectionNotFound(param="connection_id")

    async def rename(self, connection_id: ConnectionId, display_name: str) -> Connection:
        """Rename a connection."""
        return await self._store.rename_connection(connection_id, display_name)

    async def disconnect(self, connection_id: ConnectionId) -> None:
        """Remove a connection with all its records."""
        await self._store.delete_connection(connection_id)

    async def push(self, where: Push, content: AsyncIterator[bytes]) -> IngestReport:
        """Store lines as they arrive, batch by batch; a bad line is reported and stops no other."""
        accepted, errors, invalid, before, number = 0, list[LineError](), list[LineError](), 0, 0
        try:
            async for lines in _batches(content):
                key = None if where.idempotency_key is None else f"{where.idempotency_key}:{number}"
                report = await self._store.ingest(
                    Batch(where.connection_id, where.stream, lines, self._clock(), key, where.on_invalid)
                )
                accepted += report.accepted
                errors.extend(replace(error, index=error.index + before) for error in report.errors)
                invalid.extend(replace(error, index=error.index + before) for error in report.invalid)
                before, number = before + len(lines), number + 1
        except BodyCutShort:
            raise BodyCutShort(data={"records_accepted": accepted, "records_rejected": len(errors)}) from None
        if number == 0:
            # Without a line there is no batch, but a wrong connection or stream is refused all the same.
            await self._store.ingest(Batch(where.connection_id, where.stream, [], self._clock()))
        return IngestReport(accepted, tuple(errors), tuple(invalid))

    async def marked(
        self, connection_id: ConnectionId, stream: StreamName, *, after: int, limit: int
    ) -> MarkedRecords:
        """List records that are stored although they break their stream's schema."""
        return await self._store.marked(connection_id, stream, after=after, limit=limit)

    async def remove(self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId) -> None:
        """Remove a record."""
        if not await self._store.delete_record(connection_id, stream, record_id, at=self._clock()):
            raise NotFound(param="id")

    async def keep_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Store a file; return its id and size."""
        return await self._store.put_blob(content, mime_type)

    async def state(self, connection_id: ConnectionId) -> Any:
        """Return the document that a collector last stored for itself."""
        document = await self._store.state(connection_id)
        return None if document is None else msgspec.json.decode(document)

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Store a document for a collector, to be read by its next run."""
        try:
            msgspec.json.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InvalidRequest("The body must be JSON.") from None
        await self._store.put_state(connection_id, document)


async def _batches(content: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the lines of the content in batches.

    Of a line that is too long only so much is collected as the store needs to see that it is.
    """
    rest, lines, size = bytearray(), list[bytes](), 0
    async for piece in content:
        end_of_rest, *others = piece.split(b"\n")
        rest += end_of_rest[: _COLLECTED_BYTES - len(rest)]
        if not others:
            continue
        whole = [bytes(rest), *others[:-1]]
        rest = bytearray(others[-1][:_COLLECTED_BYTES])
        for line in whole:
            if line.strip():
                lines.append(line)
                size += len(line)
            if len(lines) == BATCH_LINES or size > BATCH_BYTES:
                yield lines
                lines, size = [], 0
    if rest.strip():
        lines.append(bytes(rest))
    if lines:
        yield lines
