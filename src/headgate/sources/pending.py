"""Files that the owner uploaded and has not imported yet: private, in the home, for an hour."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from headgate.errors import NotFound
from headgate.home import Home, make_private_directory, write_private

_DIRECTORY = "uploads"
_ID = re.compile(r"[0-9a-f]{32}")
_HOUR_SECONDS = 3600
_PIECE_BYTES = 256 * 1024


class PendingUploads:
    """Stores files between their preview and their import. Their names are content, never part of a path."""

    __slots__ = ("_clock", "_directory")

    def __init__(self, home: Home, clock: Callable[[], int]) -> None:
        self._directory = home.path / _DIRECTORY
        self._clock = clock

    async def add(self, name: str, content: AsyncIterator[bytes]) -> str:
        """Store a file; returns the id by which it is found again. Older uploads than an hour are removed."""
        self._remove_old()
        upload_id = secrets.token_hex(16)
        place = self._directory / upload_id
        make_private_directory(place)
        write_private(place / "name", name.encode("utf-8", "replace"))
        with (place / "content").open("xb") as file:
            (place / "content").chmod(0o600)
            async for piece in content:
                await asyncio.to_thread(file.write, piece)
        return upload_id

    def name(self, upload_id: str) -> str:
        """Return the name of a file.

        Raises:
            NotFound: it is gone.
        """
        return (self._place(upload_id) / "name").read_text(encoding="utf-8")

    async def content(self, upload_id: str) -> AsyncIterator[bytes]:
        """Read a file piece by piece.

        Raises:
            NotFound: it is gone.
        """
        with (self._place(upload_id) / "content").open("rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                yield piece

    def remove(self, upload_id: str) -> None:
        """Remove a file."""
        shutil.rmtree(self._place(upload_id), ignore_errors=True)

    def _place(self, upload_id: str) -> Path:
        place = self._directory / upload_id
        if not _ID.fullmatch(upload_id) or not (place / "content").exists():
            raise NotFound("This upload is gone.", hint="Choose the file again.")
        return place

    def _remove_old(self) -> None:
        oldest = self._clock() // 1_000_000 - _HOUR_SECONDS
        for place in self._directory.glob("*"):
            if place.stat().st_mtime < oldest:
                shutil.rmtree(place, ignore_errors=True)
