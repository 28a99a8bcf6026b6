"""The directory of uploads: files while they are imported, and how far each import is, for any process of the home."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from headgate.errors import InvalidRequest, NotFound, StorageFull
from headgate.home import has_room, make_private_directory, read_private, write_private
from headgate.system import lock, open_private

_ID_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_ID_LENGTHS = range(8, 65)
#: What became of an import can be read for so long.
_DAY_SECONDS = 24 * 3600
_SECOND_US = 1_000_000
_UPLOAD = "upload-"


class UploadDirectory:
    """Holds uploads and their progress below a directory that only the owner can enter."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def receiving(self) -> Generator[Path]:
        """Make a directory for one upload, and remove it with what lies in it at the end."""
        make_private_directory(self._path)
        directory = self._path / f"{_UPLOAD}{secrets.token_hex(8)}"
        handle = open_private(_lock_of(directory), os.O_RDWR | os.O_CREAT)
        try:
            lock(handle)
            make_private_directory(directory)
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(handle)
            _lock_of(directory).unlink(missing_ok=True)

    def clean(self, now: int) -> None:
        """Remove uploads of processes that were killed, and what became of imports of more than a day ago."""
        for directory in self._path.glob(f"{_UPLOAD}*/"):
            if not _is_locked(_lock_of(directory)):
                shutil.rmtree(directory, ignore_errors=True)
                _lock_of(directory).unlink(missing_ok=True)
        # Also what a killed process had not put in its place.
        for path in self._path.glob("*.json*"):
            if changed_at(path) < now // _SECOND_US - _DAY_SECONDS:
                path.unlink(missing_ok=True)

    def refuse_without_room(self) -> None:
        """Leave the disk space that reading and revocation need.

        Raises:
            StorageFull: there is no more than that.
        """
        if not has_room(self._path):
            raise StorageFull

    def put(self, import_id: str, document: dict[str, Any]) -> None:
        """Note how far an import is."""
        write_private(self._file(import_id), msgspec.json.encode(document))

    def get(self, import_id: str) -> Any:
        """Read how far an import is.

        Raises:
            NotFound: there was none of that id within the last day.
        """
        found = read_private(self._file(checked_id(import_id)))
        if found is None:
            raise NotFound("There is no such import.", param="import_id")
        return msgspec.json.decode(found)

    def _file(self, import_id: str) -> Path:
        return self._path / f"{import_id}.json"


def changed_at(path: Path) -> float:
    """Return when an entry was last changed, in seconds; never if another process has removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _lock_of(directory: Path) -> Path:
    """Name the file that a process has locked for as long as it has an upload."""
    return directory.with_suffix(".lock")


def _is_locked(path: Path) -> bool:
    try:
        handle = open_private(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def checked_id(text: str | None) -> str:
    """Take the id that a caller chose for an import, or make one.

    Raises:
        InvalidRequest: it is no id.
    """
    if text is None:
        return f"imp_{secrets.token_hex(8)}"
    if len(text) not in _ID_LENGTHS or not _ID_CHARS.issuperset(text):
        raise InvalidRequest("import_id must have 8 to 64 letters, digits, - or _.", param="import_id")
    return text
