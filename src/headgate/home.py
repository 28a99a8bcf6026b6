"""The owner's directory: its paths, and private files in it that only the owner can read.

Handles names and modes only; the packages that write the files define their content.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ConfigInvalid, StorageReadOnly

_GROUP_AND_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Home:
    """One owner's directory and the paths in it."""

    path: Path

    @property
    def keys(self) -> Path:
        """The directory of key files."""
        return self.path / "keys"


def open_home(path: Path) -> Home:
    """Create the directory if it is missing, and refuse one that other users can enter.

    Raises:
        ConfigInvalid: it is not a directory, is not ours, or is open to others.
    """
    home = Home(path.expanduser().absolute())
    for directory in (home.path, home.keys):
        _make_private(directory)
    return home


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably, readable by its owner only.

    A reader sees the old content or the new, never a part, even after a power loss.

    Raises:
        StorageReadOnly: the directory cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        if error.errno not in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise
        raise StorageReadOnly(f"{path.name} cannot be written in {path.parent}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def read_private(path: Path) -> bytes | None:
    """Read a private file; None if it does not exist.

    Raises:
        ConfigInvalid: it is a link or device, is not ours, or is open to others.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}.", hint=f"Look at {path}.") from error
    with os.fdopen(handle, "rb") as file:
        _refuse_open_to_others(path, os.fstat(file.fileno()))
        return file.read()


def read_or_create_private(path: Path, create: Callable[[], bytes]) -> bytes:
    """Read a private file such as a key, or create it with fresh content if it does not exist.

    Raises:
        ConfigInvalid: it is a link or device, is not ours, or is open to others.
        StorageReadOnly: there is none, and none can be written.
    """
    content = read_private(path)
    if content is None:
        content = create()
        write_private(path, content)
    return content


def sync_directory(directory: Path) -> None:
    """Flush the entries of a directory, so that a new name survives a power loss."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror
        raise ConfigInvalid(
            f"{directory} cannot be used as a directory: {reason}.", hint="Choose another with --home DIR."
        ) from error
    _refuse_open_to_others(directory, directory.stat())


def _refuse_open_to_others(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ConfigInvalid(
            f"{path} belongs to another user.", hint="Run as its owner, or choose another home."
        )
    if status.st_mode & _GROUP_AND_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        mended = mode & ~_GROUP_AND_OTHERS
        raise ConfigInvalid(
            f"{path} is open to other users (mode {mode:04o}).", hint=f"Run: chmod {mended:o} {path}"
        )
