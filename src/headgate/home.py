"""The owner's directory: its paths, and private files in it that only the owner can read.

Handles names and modes only; the packages that write the files define their content.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ConfigInvalid, StorageFull, StorageReadOnly
from headgate.system import (
    NO_SPACE,
    allocate,
    is_of_other_user,
    lock,
    open_private,
    open_to_others,
    sync_directory,
)

#: The end of the chain of disclosures, as it was last noted.
AUDIT_HEAD = "audit-head.json"
#: Exists if the chain may begin with entries that were sealed with another key.
AUDIT_START = "audit-start.json"
#: What a home may hold, beside what reads its own mode when it is opened.
_PRIVATE = (
    "keys",
    "records.db",
    "records.db-wal",
    "records.db-shm",
    "journals",
    "calls",
    "blobs",
    "budgets",
    "cursors",
    "latest-time",
    AUDIT_HEAD,
    "reserve",
    "reserve-revocation",
)
#: The commands that work on a home, as hints name them.
COMMANDS = (
    "audit", "clients", "config", "connect", "demo", "doctor", "export", "grants", "import", "keys", "mcp", "ops",
    "owner", "rules", "search", "serve", "service", "sources", "stop-all", "store", "try", "watch",
)  # fmt: skip
_COMMAND = re.compile(rf"\bheadgate(?= (?:{'|'.join(COMMANDS)})\b)|(?<=')headgate(?=')")
#: Is locked while a file of a directory is created.
_CREATING = ".creating"
#: With less free disk space than this nothing is begun that needs much of it.
_LEAST_FREE_BYTES = 512 * 1024


def with_home(text: str, home: str | None) -> str:
    """Write the commands that a text names for a home; None is the one that commands take by themselves."""
    if home is None:
        return text
    named = f"headgate --home {shlex.quote(home)}"
    return _COMMAND.sub(lambda _: named, text)


@dataclass(frozen=True, slots=True)
class Home:
    """One owner's directory and the paths in it."""

    path: Path

    @property
    def pins(self) -> Path:
        """The file with the definitions of remote tools as the owner approved them."""
        return self.path / "pins.json"

    @property
    def calls(self) -> Path:
        """The directory with the calls of the last hour that went through the gateway, and their answers."""
        return self.path / "calls"

    @property
    def cursors(self) -> Path:
        """The directory with the cursors that clients have short names for."""
        return self.path / "cursors"

    @property
    def keys(self) -> Path:
        """The directory of key files."""
        return self.path / "keys"


@dataclass(frozen=True, slots=True)
class HomeInDatabase(Home):
    """A home whose records are in a PostgreSQL database; keys and journals stay in its directory."""

    url: str
    #: The name of the home in the database.
    name: str


def home_in(home: Home, url: str, name: str) -> Home:
    """Return the home with the place of its records; without an address they are in a file of it."""
    return HomeInDatabase(home.path, url, name) if url else home


def open_home(path: Path) -> Home:
    """Create the directory if it is missing, and refuse one that other users can enter.

    What lies in it is judged alike: who moves or copies it may lose the protection of the directory.
    """
    home = Home(path.expanduser().absolute())
    for directory in (home.path, home.keys):
        _make_private(directory)
    for name in _PRIVATE:
        _refuse_public(home.path / name)
    if has_room(home.path):
        revocation_reserve(home.path).make()
    else:
        opening_reserve(home.path).release()
    return home


@dataclass(frozen=True, slots=True)
class DiskReserve:
    """A file without meaning that takes up disk space, to be removed when there is no other."""

    path: Path
    size: int

    def make(self) -> bool:
        """Make the file, if much more than its size is free; says whether it is there.

        One that cannot be written for another reason than space counts as there: what is written next shows why.
        """
        return self._is_whole() or (
            _free_bytes(self.path.parent) >= self.size + _LEAST_FREE_BYTES and self._write(self.size)
        )

    def make_what_fits(self) -> None:
        """Make the file as large as the disk allows, and no larger than it should be."""
        size = self.size
        while not self._is_whole() and size >= _SMALLEST_RESERVE_BYTES and not self._write(size):
            size //= 2

    def release(self) -> bool:
        """Remove the file; says whether it was there."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True

    def _is_whole(self) -> bool:
        try:
            return self.path.stat().st_size >= self.size
        except OSError:
            return False

    def _write(self, size: int) -> bool:
        try:
            self.path.unlink(missing_ok=True)
            handle = open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            try:
                allocate(handle, size)
            finally:
                os.close(handle)
        except OSError as error:
            self.release()
            return error.errno not in NO_SPACE
        return True


_SMALLEST_RESERVE_BYTES = 32 * 1024


def opening_reserve(directory: Path) -> DiskReserve:
    """Return the reserve with which a home on a full disk is opened and its disclosures are written."""
    return DiskReserve(directory / "reserve", 4 * 1024 * 1024)


def revocation_reserve(directory: Path) -> DiskReserve:
    """Return the reserve with which grants are revoked."""
    return DiskReserve(directory / "reserve-revocation", 256 * 1024)


def has_room(directory: Path) -> bool:
    """Return whether a home has disk space for more than the little that reading it needs."""
    return _free_bytes(directory) >= _LEAST_FREE_BYTES and opening_reserve(directory).make()


def _free_bytes(directory: Path) -> int:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        # A disk that is gone for a moment must not end the thread that asks.
        return 0


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably, readable by its owner only.

    A reader sees the old content or the new, never a part, even after a power loss.
    """
    with _translated(path):
        _replace(path, content)


@contextmanager
def _translated(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise StorageFull(f"There is no disk space for {path}.", hint="Free some space.") from error
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise StorageReadOnly(f"{path.name} cannot be written in {path.parent}.") from error
        raise


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigInvalid(f"{path} cannot be read: {error.strerror}.", hint=f"Look at {path}.") from error
    with os.fdopen(handle, "rb") as file:
        _refuse_open_to_others(path, os.fstat(file.fileno()))
        return file.read()


def read_or_create_private(path: Path, create: Callable[[], bytes], *, least_bytes: int = 1) -> bytes:
    """Read a private file such as a key, or create it with fresh content if it does not exist.

    Of several processes that start on a new home one creates it, and the others wait for it and read it.
    """
    content = read_private(path)
    if content is None:
        with _creating(path.parent):
            content = read_private(path)
            if content is None:
                content = create()
                write_private(path, content)
    if len(content) < least_bytes:
        raise ConfigInvalid(
            f"{path} is damaged: it has {len(content)} bytes, and a key has at least {least_bytes}.",
            hint="Restore it from a backup.",
        )
    return content


@contextmanager
def _creating(directory: Path) -> Generator[None]:
    """Keep other processes from creating files of this directory at the same time."""
    with _translated(directory / _CREATING):
        handle = open_private(directory / _CREATING, os.O_RDWR | os.O_CREAT)
    try:
        lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def make_private_directory(directory: Path) -> None:
    """Make a directory and those above it that are missing, each for the owner alone whatever the umask is."""
    for parent in reversed((directory, *directory.parents)):
        if not parent.is_dir():
            parent.mkdir(mode=0o700)
            parent.chmod(0o700)


def key_ages(home: Home) -> dict[str, int]:
    """Return when each file of keys was written, in microseconds since 1970."""
    return {path.name: path.stat().st_mtime_ns // 1000 for path in home.keys.glob("[!.]*")}


def small_files(home: Home) -> tuple[str, ...]:
    """Name the files beside the store that a copy of the home needs as well: keys, and the notes on the log."""
    keys = sorted(f"{home.keys.name}/{path.name}" for path in home.keys.glob("[!.]*"))
    return (*keys, *(name for name in (AUDIT_HEAD, AUDIT_START) if (home.path / name).exists()))


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror
        raise ConfigInvalid(
            f"{directory} cannot be used as a directory: {reason}.", hint="Choose another with --home DIR."
        ) from error
    if open_to_others(directory.stat()) and _is_something_else(directory):
        raise ConfigInvalid(
            f"{directory} holds other files and is open to other users.",
            hint="Choose a directory for Headgate alone with --home DIR.",
        )
    _refuse_open_to_others(directory, directory.stat())


def _is_something_else(directory: Path) -> bool:
    """Return whether a directory has files, but none of a home; then its mode must stay."""
    return any(directory.iterdir()) and not any(
        (directory / name).exists() for name in ("keys", "records.db")
    )


def _refuse_public(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        raise ConfigInvalid(
            f"{path} is a symbolic link.", hint="Move what it points to into the home, in place of the link."
        )
    _refuse_open_to_others(path, status)


def _refuse_open_to_others(path: Path, status: os.stat_result) -> None:
    if is_of_other_user(status):
        raise ConfigInvalid(
            f"{path} belongs to another user.", hint="Run as its owner, or choose another home."
        )
    if public := open_to_others(status):
        mode = stat.S_IMODE(status.st_mode)
        mended = mode & ~public
        raise ConfigInvalid(
            f"{path} is open to other users (mode {mode:04o}).", hint=f"Run: chmod {mended:o} {path}"
        )
