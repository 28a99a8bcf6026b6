"""What operating systems do differently: opening, locking and reading files by their handles, and limits of a process.

All other modules use only what Python has on every system, and what is here. Windows has no modes for other users:
what a file there is open to follows from the directory of its user.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource
    import signal

#: Far behind the content of every locked file: Windows refuses to read bytes that another process has locked.
_LOCKED_BYTE = 0x7FFF_FFF0
_GROUP_AND_OTHERS = 0o077
_PIECE_BYTES = 1024 * 1024
#: Flags that not every system has. Without the first a link is followed; without the last, Windows would change
#: line ends.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
#: What the system reports when a disk or a quota is full.
NO_SPACE = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file for this process alone; one that is created is for its owner alone. A link is refused."""
    return os.open(path, flags | _SAFE, 0o600)


def lock(handle: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock a file until its handle is closed.

    Windows has no shared locks of this kind: there, of two that ask for a shared one, the second is refused.

    Raises:
        BlockingIOError: another process has it, and the caller does not wait.
    """
    if sys.platform == "win32":
        _lock_byte(handle, wait=wait)
    else:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


if sys.platform == "win32":

    def _lock_byte(handle: int, *, wait: bool) -> None:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            while True:
                try:
                    # The form that waits tries for ten seconds, and raises then.
                    msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                except OSError as error:
                    if not wait:
                        raise BlockingIOError(error.errno, error.strerror) from error
                else:
                    return
        finally:
            os.lseek(handle, 0, os.SEEK_SET)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Read from a place in a file; fewer bytes if it ends before."""
    if sys.platform == "win32":
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, size)
    return os.pread(handle, size, offset)


def write_at(handle: int, content: bytes, offset: int) -> None:
    """Write at a place in a file."""
    if sys.platform == "win32":
        os.lseek(handle, offset, os.SEEK_SET)
        os.write(handle, content)
    else:
        os.pwrite(handle, content, offset)


def allocate(handle: int, size: int) -> None:
    """Take disk space for a new file: by writing it where the system has no call for that."""
    if sys.platform == "linux":
        os.posix_fallocate(handle, 0, size)
        return
    for offset in range(0, size, _PIECE_BYTES):
        write_at(handle, bytes(min(_PIECE_BYTES, size - offset)), offset)


def sync_directory(directory: Path) -> None:
    """Flush the entries of a directory, so that a new name survives a power loss; Windows does it by itself."""
    if sys.platform == "win32":
        return
    handle = os.open(directory, os.O_RDONLY | _DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_of_other_user(status: os.stat_result) -> bool:
    """Return whether a file belongs to somebody else than who runs this process."""
    return False if sys.platform == "win32" else status.st_uid != os.geteuid()


def open_to_others(status: os.stat_result) -> int:
    """Return the bits of a file's mode that let other users read or change it."""
    return 0 if sys.platform == "win32" else status.st_mode & _GROUP_AND_OTHERS


def limit_process(memory_bytes: int) -> None:
    """Bound the address space of this process, and have it leave no image of its memory; not every system can."""
    if sys.platform != "win32":
        for kind, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0)):
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (most, most))


def end_after(seconds: float) -> None:
    """Have the system end this process after some time, whatever it is doing then; 0: never. Windows cannot."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def was_ended_by_time(exit_code: int | None) -> bool:
    """Return whether a process was ended by `end_after`."""
    return sys.platform != "win32" and exit_code == -signal.SIGALRM
