"""The intake: what an owner adds or removes by hand, passed to the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.errors import BodyCutShort, ConnectionNotFound, InvalidRequest, NotFound
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.record import Connection
from headgate.model.rows import Batch, IngestReport, LineError, OnInvalid
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


@dataclass(frozen=True, slots=True)
class Intake:
    """Stores what arrives from an owner; what needs no more than the store is asked of it."""

    store: Store
    clock: Callable[[], int]

    async def connection(self, connection_id: ConnectionId) -> Connection:
        for connection in await self.store.connections():
            if connection.id == connection_id:
                return connection
        raise ConnectionNotFound(param="connection_id")

    async def push(self, where: Push, content: AsyncIterator[bytes]) -> IngestReport:
        """Store lines as they arrive, batch by batch; a bad line is reported and stops no other."""
        accepted, errors, invalid, before, number = 0, list[LineError](), list[LineError](), 0, 0
        try:
            async for lines in _batches(content):
                key = None if where.idempotency_key is None else f"{where.idempotency_key}:{number}"
                report = await self.store.ingest(
                    Batch(where.connection_id, where.stream, lines, self.clock(), key, where.on_invalid)
                )
                accepted += report.accepted
                errors.extend(replace(error, index=error.index + before) for error in report.errors)
                invalid.extend(replace(error, index=error.index + before) for error in report.invalid)
                before, number = before + len(lines), number + 1
        except BodyCutShort:
            raise BodyCutShort(data={"records_accepted": accepted, "records_rejected": len(errors)}) from None
        if number == 0:
            # Without a line there is no batch, but a wrong connection or stream is refused all the same.
            await self.store.ingest(Batch(where.connection_id, where.stream, [], self.clock()))
        return IngestReport(accepted, tuple(errors), tuple(invalid))

    async def remove(self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId) -> None:
        if not await self.store.delete_record(connection_id, stream, record_id, at=self.clock()):
            raise NotFound(param="id")

    async def state(self, connection_id: ConnectionId) -> Any:
        """Return the document that a collector last stored for itself."""
        document = await self.store.state(connection_id)
        return None if document is None else msgspec.json.decode(document)

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Store a document for a collector, to be read by its next run."""
        try:
            msgspec.json.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InvalidRequest("The body must be JSON.") from None
        await self.store.put_state(connection_id, document)


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
