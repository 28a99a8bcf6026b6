"""The bytes of files, in parts that are rows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import IO

from headgate.errors import BlobNotFound
from headgate.model.ids import BlobId
from headgate.store.format.records import receive
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.sql.database import Database

_PART_BYTES = 1024 * 1024


class BlobRows:
    """The files of a home. A file's parts are one transaction: it is there whole or not at all."""

    def __init__(self, place: HomePlace) -> None:
        self._place = place

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; returns its id and size.

        What arrives is on disk until its digest is known, and neither in memory nor in a transaction that lasts as
        long as a slow sender.
        """
        with tempfile.TemporaryFile(prefix="headgate-") as file:
            blob_id, size = await receive(content, file)
            await asyncio.to_thread(self._put, blob_id, file)
        return blob_id, size

    def _put(self, blob_id: BlobId, file: IO[bytes]) -> None:
        file.seek(0)
        database = PostgresDatabase(self._place)
        try:
            with translated(), database.connected().transaction():
                # An empty file has one empty part.
                parts = chain([file.read(_PART_BYTES)], iter(partial(file.read, _PART_BYTES), b""))
                for number, part in enumerate(parts):
                    database.run(SQL["put_blob_part"], (blob_id, number, part))
        finally:
            database.finish()

    def pieces(self, blob_id: BlobId) -> Iterator[bytes]:
        """Read a file in pieces, in this thread, on a connection for this alone.

        Raises:
            BlobNotFound: it is not there.
        """
        database = PostgresDatabase(self._place)
        number = 0
        try:
            with translated():
                while (part := _part(database, blob_id, number)) is not None:
                    yield part
                    number += 1
        finally:
            database.finish()
        if number == 0:
            raise BlobNotFound


#: Does a short read on a connection that is free.
ReadPart = Callable[[Callable[[Database, object], bytes | None]], Awaitable[bytes | None]]


class ServedBlobRows(BlobRows):
    """Implements `engines.store.BlobContents`: files are read on the connections of other short reads."""

    def __init__(self, place: HomePlace, read: ReadPart) -> None:
        super().__init__(place)
        self._read = read

    async def read(self, blob_id: BlobId, start: int, end: int | None) -> AsyncIterator[bytes]:
        """Read a file from one byte to another, in pieces.

        Raises:
            BlobNotFound: it is not there.
        """
        first = number = start // _PART_BYTES
        while part := await self._numbered(blob_id, number):
            at = number * _PART_BYTES
            piece = part[max(start - at, 0) : None if end is None else max(end - at, 0)]
            if piece:
                yield piece
            number += 1
            if end is not None and number * _PART_BYTES >= end:
                return
        if number == first and start == 0 and not await self.exists(blob_id):
            raise BlobNotFound

    async def exists(self, blob_id: BlobId) -> bool:
        return await self._numbered(blob_id, 0) is not None

    async def _numbered(self, blob_id: BlobId, number: int) -> bytes | None:
        return await self._read(lambda database, _: _part(database, blob_id, number))


def remove_parts(database: Database, blob_ids: Sequence[BlobId]) -> None:
    """Remove the parts of files."""
    if blob_ids:
        database.run(SQL["delete_blob_parts"], (list(blob_ids),))


def _part(database: Database, blob_id: BlobId, number: int) -> bytes | None:
    row = database.one(SQL["blob_part"], (blob_id, number))
    return None if row is None else row[0]
