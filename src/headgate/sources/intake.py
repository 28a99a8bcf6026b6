"""The intake: everything an owner brings in or takes out by hand, checked and handed to the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.errors import ConnectionNotFound, InvalidRequest, NotFound
from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName
from headgate.model.record import Connection
from headgate.model.rows import IngestReport, LineError
from headgate.store.protocol import Batch, Store

BATCH_LINES = 2000
BATCH_BYTES = 2 * 1024 * 1024
MAX_LINE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Push:
    """Where lines go, and the key under which they are taken once."""

    connection_id: ConnectionId
    stream: StreamName
    idempotency_key: str | None = None


class Intake:
    """Takes declarations, connections, records and files in."""

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
        """Find a connection.

        Raises:
            ConnectionNotFound: there is none of that id.
        """
        for found in await self._store.connections():
            if found.id == connection_id:
                return found
        raise ConnectionNotFound(param="connection_id")

    async def rename(self, connection_id: ConnectionId, display_name: str) -> Connection:
        """Give a connection another name."""
        return await self._store.rename_connection(connection_id, display_name)

    async def disconnect(self, connection_id: ConnectionId) -> None:
        """Remove a connection with everything it brought."""
        await self._store.delete_connection(connection_id)

    async def push(self, where: Push, content: AsyncIterator[bytes]) -> IngestReport:
        """Take lines in as they arrive, batch by batch; good lines stay whatever becomes of the others."""
        accepted, errors, before, number = 0, list[LineError](), 0, 0
        async for lines in _batches(content):
            key = None if where.idempotency_key is None else f"{where.idempotency_key}:{number}"
            report = await self._store.ingest(
                Batch(where.connection_id, where.stream, lines, self._clock(), key)
            )
            accepted += report.accepted
            errors.extend(
                LineError(one.index + before, one.code, one.message, one.pointer) for one in report.errors
            )
            before, number = before + len(lines), number + 1
        if number == 0:
            # Nothing came, but a wrong address is still told.
            await self._store.ingest(Batch(where.connection_id, where.stream, [], self._clock()))
        return IngestReport(accepted, tuple(errors))

    async def remove(self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId) -> None:
        """Remove a record.

        Raises:
            NotFound: it is not there.
        """
        if not await self._store.delete_record(connection_id, stream, record_id, at=self._clock()):
            raise NotFound(param="id")

    async def keep_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Keep a file; gives its id and size."""
        return await self._store.put_blob(content, mime_type)

    async def state(self, connection_id: ConnectionId) -> Any:
        """Give what a collector last noted for itself."""
        document = await self._store.state(connection_id)
        return None if document is None else msgspec.json.decode(document)

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Keep what a collector notes for itself.

        Raises:
            InvalidRequest: it is not JSON.
        """
        try:
            msgspec.json.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InvalidRequest("The body must be JSON.") from None
        await self._store.put_state(connection_id, document)


async def _batches(content: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    rest, lines, size = b"", list[bytes](), 0
    async for piece in content:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise InvalidRequest(f"A line must have at most {MAX_LINE_BYTES} bytes.")
        for line in whole:
            if line.strip():
                lines.append(line)
                size += len(line)
            if len(lines) == BATCH_LINES or size > BATCH_BYTES:
                yield lines
                lines, size = [], 0
    if rest.strip():
        lines.append(rest)
    if lines:
        yield lines
