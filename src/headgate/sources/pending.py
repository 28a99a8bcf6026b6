"""Files that the owner uploaded and has not imported yet: private, in the home, for an hour."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from headgate.errors import NotFound
from headgate.home import Home, make_private_directory, write_private
from headgate.sources.import_files import changed_at

_DIRECTORY = "uploads"
#: Beside the content, if that is a bundle.
_BUNDLE = "bundle"
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
        """Store a file; returns the id by which it is found again."""
        place = self._new(name)
        with (place / "content").open("xb") as file:
            (place / "content").chmod(0o600)
            async for piece in content:
                await asyncio.to_thread(file.write, piece)
        return place.name

    async def add_all(self, name: str, files: Sequence[tuple[str, AsyncIterator[bytes]]]) -> str:
        """Store several files, each under its path, as one archive of ours: a bundle."""
        place, taken = self._new(name), set[str]()
        (place / _BUNDLE).touch()
        with (place / "content").open("xb") as file, ZipFile(file, "w") as archive:
            (place / "content").chmod(0o600)
            for path, content in files:
                member = _member(path, taken)
                with archive.open(ZipInfo(member), "w", force_zip64=True) as into:
                    async for piece in content:
                        await asyncio.to_thread(into.write, piece)
        return place.name

    def _new(self, name: str) -> Path:
        place = self._directory / secrets.token_hex(16)
        make_private_directory(place)
        write_private(place / "name", name.encode("utf-8", "replace"))
        return place

    def name(self, upload_id: str) -> str:
        """Return the name of a file.

        Raises:
            NotFound: it is gone.
        """
        return (self._place(upload_id) / "name").read_text(encoding="utf-8")

    def is_bundle(self, upload_id: str) -> bool:
        """Return whether it is several files.

        Raises:
            NotFound: it is gone.
        """
        return (self._place(upload_id) / _BUNDLE).exists()

    async def content(self, upload_id: str) -> AsyncIterator[bytes]:
        """Read a file piece by piece.

        Raises:
            NotFound: it is gone.
        """
        async for piece in _pieces(self._place(upload_id)):
            yield piece

    def take(self, upload_id: str) -> TakenUpload:
        """Take a file out, to import it once: a second call finds nothing.

        Raises:
            NotFound: it is gone.
        """
        name, place = self.name(upload_id), self._place(upload_id)
        taken = self._directory / f"{upload_id}.taken"
        try:
            place.rename(taken)
        except FileNotFoundError:
            raise _gone() from None
        return TakenUpload(name, taken)

    def remove(self, upload_id: str) -> None:
        """Remove a file."""
        shutil.rmtree(self._place(upload_id), ignore_errors=True)

    def _place(self, upload_id: str) -> Path:
        place = self._directory / upload_id
        if not _ID.fullmatch(upload_id) or not (place / "content").exists():
            raise _gone()
        return place

    def clean(self) -> None:
        """Remove what has not changed for an hour."""
        oldest = self._clock() // 1_000_000 - _HOUR_SECONDS
        for place in self._directory.glob("*"):
            last = (changed_at(path) for path in (place, place / "content"))
            if max((at for at in last if at != math.inf), default=math.inf) < oldest:
                shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class TakenUpload:
    """A file on its way into the store."""

    name: str
    place: Path

    @property
    def is_bundle(self) -> bool:
        """Whether it is several files."""
        return (self.place / _BUNDLE).exists()

    def content(self) -> AsyncIterator[bytes]:
        """Read it piece by piece."""
        return _pieces(self.place)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.place, ignore_errors=True)


async def _pieces(place: Path) -> AsyncIterator[bytes]:
    with (place / "content").open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece


def _member(path: str, taken: set[str]) -> str:
    """Make a path of an archive from one that a browser sent: inside of it, and not there yet."""
    parts = [one for one in path.replace("\\", "/").split("/") if one not in {"", ".", ".."}]
    named = "/".join(parts) or "file"
    number, found = 1, named
    while found in taken:
        number, found = number + 1, f"{number}-{named}"
    taken.add(found)
    return found


def _gone() -> NotFound:
    return NotFound("This upload is gone.", hint="Choose the file again.")
