"""How much memory the process may still take: requests are refused before an allocation fails.

Where one fails, Python raises MemoryError, but libraries written in C may end the process. A process without a limit
is not measured.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path

from headgate.errors import Overloaded

if sys.platform != "win32":
    import resource

#: What must be left when a request begins: as much as one page of records, a batch of an ingest and the answers
#: to what is under way take together.
RESERVE_BYTES = 48 * 1024 * 1024
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_TAKEN = Path("/proc/self/statm")
_PAGE_BYTES = mmap.PAGESIZE
_STACK_BYTES = 2 * 1024 * 1024
#: The numbers by which `mallopt` of glibc knows its options.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
#: Less than what the event loop reads from a socket at once, and than a text that is stored apart from its record.
_MAPPED_FROM_BYTES = 128 * 1024
#: With so much left, several threads may do work that takes much memory.
_PLENTY_BYTES = 1024 * 1024 * 1024
_alone = threading.Lock()
#: How long after one collection of garbage the next one comes at the earliest: while it runs, nothing is answered.
_COLLECT_SECONDS = 1.0
_collecting = threading.Lock()
_collected_at = 0.0


def left_bytes() -> int:
    """Measure how many bytes the process may still take."""
    return min((left() for left in _limits()), default=sys.maxsize)


def require(size_bytes: int = 0) -> None:
    """Refuse work that needs so many bytes, if they are not there beside the reserve."""
    needed_bytes = size_bytes + RESERVE_BYTES
    if left_bytes() < needed_bytes and not (_collect() and left_bytes() >= needed_bytes):
        raise out_of_memory()


def _collect() -> bool:
    """Free what only cycles of objects hold; return False if that was done a moment ago.

    A refused request makes too few objects for the interpreter to look for cycles by itself: what the last requests
    before it left would stay, and with it the refusals.
    """
    global _collected_at  # noqa: PLW0603 - one process has one memory
    with _collecting:
        if time.monotonic() < _collected_at + _COLLECT_SECONDS:
            return False
        gc.collect()
        _collected_at = time.monotonic()
    return True


@contextmanager
def alone() -> Generator[None]:
    """Do work that may take much memory; while little is left, no other thread does such work at the same time."""
    if left_bytes() >= _PLENTY_BYTES:
        yield
        return
    with _alone:
        yield


def out_of_memory() -> Overloaded:
    """Make the refusal of a request for which there is not enough memory."""
    return Overloaded("The server has too little memory for this request now.")


def share(most_bytes: int, one_in: int) -> int:
    """Return how large a cache may become: so many bytes, but no more than a part of what the process may take."""
    return min(most_bytes, _total_bytes() // one_in)


def economise() -> None:
    """Reserve little address space; to be called before threads are started and numpy is imported.

    Every arena of malloc and every thread of OpenBLAS reserves tens of megabytes. Memory that one thread has freed
    stays in its arena, where no other finds it. Large blocks are mapped, so that they leave no holes: a hole is not
    given back, and would count as taken for ever.
    """
    with suppress(AttributeError, OSError):
        adjust = ctypes.CDLL(None).mallopt
        adjust(_M_ARENA_MAX, 1)
        if _limits():
            adjust(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
    if _space_bytes() is not None:
        threading.stack_size(_STACK_BYTES)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@lru_cache(maxsize=1)
def _limits() -> tuple[Callable[[], int], ...]:
    """Find the limits of the process: for each a function that measures what is left."""
    space = _space_bytes()
    # Only Linux says how much of its address space a process has taken.
    limits = [partial(_left_of_space, space)] if space is not None and _TAKEN.exists() else []
    return (*limits, *(partial(_left_of_group, group, most) for group, most in _groups()))


@lru_cache(maxsize=1)
def _total_bytes() -> int:
    space = _space_bytes()
    return min([sys.maxsize if space is None else space, *(most for _, most in _groups())])


def _space_bytes() -> int | None:
    """Read the limit on the address space of the process; None if it has none."""
    if sys.platform == "win32":
        return None
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if space == resource.RLIM_INFINITY else space


def _left_of_space(most_bytes: int) -> int:
    # Opened anew: a file that was opened before a fork shows the parent.
    return most_bytes - int(_TAKEN.read_bytes().split()[0]) * _PAGE_BYTES


def _groups() -> Iterator[tuple[Path, int]]:
    """Find the control groups (version 2) around the process that limit its memory."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    name = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if name is None:
        return
    place = _CGROUPS / name
    for group in (place, *place.parents):
        with suppress(OSError, ValueError):
            yield group, int((group / "memory.max").read_text(encoding="ascii"))


def _left_of_group(group: Path, most_bytes: int) -> int:
    # Pages of files count for the group as well, but the system takes them back when it needs them.
    lines = (group / "memory.stat").read_bytes().splitlines()
    return most_bytes - next(int(line[5:]) for line in lines if line.startswith(b"anon "))
