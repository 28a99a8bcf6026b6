"""The bytes of files, in parts that are rows."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator

from headgate.errors import BlobNotFound, ResourceLimit
from headgate.model.ids import BlobId, blob_id_from
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.relational.write.blobs import MAX_BLOB_BYTES

_PART_BYTES = 1024 * 1024


class BlobRows:
    """Implements `relational.store.BlobContents`. A file's parts are one transaction: it is there whole or not at all."""

    def __init__(self, place: HomePlace) -> None:
        self._place = place

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; gives its id and size.

        Raises:
            ResourceLimit: it is too large.
        """
        hashed, size, parts = hashlib.sha256(), 0, [b""]
        async for piece in content:
            size += len(piece)
            if size > MAX_BLOB_BYTES:
                raise ResourceLimit(f"A file may have at most {MAX_BLOB_BYTES} bytes.")
            hashed.update(piece)
            parts[-1] += piece
            while len(parts[-1]) > _PART_BYTES:
                parts[-1:] = [parts[-1][:_PART_BYTES], parts[-1][_PART_BYTES:]]
        blob_id = blob_id_from(hashed.hexdigest())
        await asyncio.to_thread(self._put, blob_id, parts)
        return blob_id, size

    def _put(self, blob_id: BlobId, parts: list[bytes]) -> None:
        database = PostgresDatabase(self._place)
        try:
            with translated(), database.connected().transaction():
                for number, part in enumerate(parts):
                    database.run(SQL["put_blob_part"], (blob_id, number, part))
        finally:
            database.finish()

    async def read(self, blob_id: BlobId, start: int, end: int | None) -> AsyncIterator[bytes]:
        """Read a file from one byte to another, in pieces.

        Raises:
            BlobNotFound: it is not there.
        """
        first = number = start // _PART_BYTES
        while part := await asyncio.to_thread(self._part, blob_id, number):
            at = number * _PART_BYTES
            piece = part[max(start - at, 0) : None if end is None else max(end - at, 0)]
            if piece:
                yield piece
            number += 1
            if end is not None and number * _PART_BYTES >= end:
                return
        if number == first and start == 0 and not await asyncio.to_thread(self._exists, blob_id):
            raise BlobNotFound

    def pieces(self, blob_id: BlobId) -> Iterator[bytes]:
        """Read a file in pieces, in this thread.

        Raises:
            BlobNotFound: it is not there.
        """
        number = 0
        while (part := self._part(blob_id, number)) is not None:
            yield part
            number += 1
        if number == 0:
            raise BlobNotFound

    def _part(self, blob_id: BlobId, number: int) -> bytes | None:
        rows = self._rows(SQL["blob_part"], (blob_id, number))
        return rows[0][0] if rows else None

    def _exists(self, blob_id: BlobId) -> bool:
        return bool(self._rows(SQL["blob_part"], (blob_id, 0)))

    def _rows(self, sql: str, values: tuple[str, int]) -> list[tuple[bytes]]:
        database = PostgresDatabase(self._place)
        try:
            with translated():
                return [(row[0],) for row in database.all(sql, values)]
        finally:
            database.finish()
