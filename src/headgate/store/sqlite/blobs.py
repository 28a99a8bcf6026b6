"""Files that records refer to: stored beside the database, named by the digest of their content."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from headgate.errors import BlobNotFound
from headgate.model.ids import BlobId, is_blob_id
from headgate.store.format.records import receive
from headgate.system import sync_directory

_PIECE = 256 * 1024
_INCOMING = ".incoming."
#: After so long without a byte an upload is not going on.
_UNFINISHED_SECONDS = 3600.0


class BlobFiles:
    """The directory of files. A name is made from a digest alone, never from outside text."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # The store itself says that a home cannot be written.
        with suppress(OSError):
            directory.mkdir(mode=0o700, exist_ok=True)

    def path(self, blob_id: BlobId) -> Path:
        """Return where a file lies.

        Raises:
            BlobNotFound: no file can have that name; records may hold any text in the place of one.
        """
        if not is_blob_id(blob_id):
            raise BlobNotFound
        digest = blob_id.removeprefix("blob_")
        return self._directory / digest[:2] / digest

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        """Store a file whole and durably, or not at all."""
        handle, name = tempfile.mkstemp(prefix=_INCOMING, dir=self._directory)
        try:
            with os.fdopen(handle, "wb") as file:
                blob_id, size = await receive(content, file)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            await asyncio.to_thread(self._put_in_place, name, blob_id)
        finally:
            _forget(name)
        return blob_id, size

    def _put_in_place(self, name: str, blob_id: BlobId) -> None:
        target = self.path(blob_id)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        Path(name).replace(target)
        # A power cut would lose a synced file whose name was not synced.
        sync_directory(target.parent)
        sync_directory(self._directory)

    async def read(self, blob_id: BlobId, start: int, end: int | None) -> AsyncIterator[bytes]:
        """Read a file from one byte to another, in pieces.

        Raises:
            BlobNotFound: it is not there.
        """
        try:
            file = await asyncio.to_thread(self.path(blob_id).open, "rb")
        except FileNotFoundError:
            raise BlobNotFound from None
        with file:
            file.seek(start)
            left = None if end is None else end - start
            while left is None or left > 0:
                piece = await asyncio.to_thread(file.read, _PIECE if left is None else min(_PIECE, left))
                if not piece:
                    return
                left = None if left is None else left - len(piece)
                yield piece

    def pieces(self, blob_id: BlobId) -> Iterator[bytes]:
        """Read a file in pieces, in this thread.

        Raises:
            BlobNotFound: it is not there.
        """
        try:
            file = self.path(blob_id).open("rb")
        except FileNotFoundError:
            raise BlobNotFound from None
        with file:
            while piece := file.read(_PIECE):
                yield piece

    async def exists(self, blob_id: BlobId) -> bool:
        return await asyncio.to_thread(self.path(blob_id).exists)

    def remove(self, blob_ids: Iterable[BlobId]) -> None:
        """Remove files that nothing refers to any more."""
        for blob_id in blob_ids:
            self.path(blob_id).unlink(missing_ok=True)

    def remove_unfinished(self, now: int) -> None:
        """Remove what killed uploads left, by the time in microseconds; one that goes on writes more often than that."""
        oldest = now / 1_000_000 - _UNFINISHED_SECONDS
        for path in self._directory.glob(f"{_INCOMING}*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _forget(name: str) -> None:
    Path(name).unlink(missing_ok=True)
