"""The latest time that any process of a home has seen: what has expired stays expired when the clock goes back.

The time lies in eight bytes of a file that every process of the home maps: reading and raising it takes no system
call, other processes see it at once, and it is there after a restart. Machines that share a home know the latest of all:
each admission asks the database for it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct

from headgate.errors import ConfigInvalid
from headgate.home import Home
from headgate.model.instants import iso
from headgate.store.sharing import MachineSharing
from headgate.system import open_private, write_at

FILE = "latest-time"
_FORM = struct.Struct("<q")
#: A clock that is corrected goes back by less than this.
_CORRECTION_US = 3600 * 1_000_000


class LatestTime:
    """The latest time seen, in microseconds since 1970; of this process alone if the home cannot be written."""

    __slots__ = ("_pages", "_path", "_seen", "_sharing")

    def __init__(self, home: Home, sharing: MachineSharing | None = None) -> None:
        self._path = home.path / FILE
        self._sharing = sharing
        self._pages: mmap.mmap | bytearray = bytearray(_FORM.size)
        with contextlib.suppress(OSError):
            self._pages = _map(str(self._path))
        self._seen = 0

    def raise_to(self, now: int) -> int:
        """Note a time; returns the latest one that was noted."""
        (shared,) = _FORM.unpack_from(self._pages)
        others = 0 if self._sharing is None else self._sharing.latest_time
        latest = max(now, shared, self._seen, others)
        if latest != shared:
            _FORM.pack_into(self._pages, 0, latest)
        self._seen = latest
        return latest

    async def share(self) -> None:
        """Let other machines know the latest time."""
        if self._sharing is not None and self._seen > self._sharing.latest_time:
            await self._sharing.raise_latest_time(self._seen)

    async def share_end(self, end: int) -> None:
        """Let other machines know that an end has passed, before this one refuses what ended by it."""
        if self._sharing is not None and self._sharing.latest_time < end:
            await self.share()

    def refuse_clock_behind(self, now: int) -> None:
        """Refuse to compute an end from a clock that is behind: it would have passed already.

        Raises:
            ConfigInvalid: the clock is more than an hour behind the latest time.
        """
        latest = self.raise_to(now)
        if latest - now > _CORRECTION_US:
            raise ConfigInvalid(
                f"The clock is at {iso(now)}, but was at {iso(latest)} before: what expired by then stays expired.",
                hint=f"Set the clock; if the later time was wrong, remove {self._path}{self._elsewhere} while nothing runs.",
            )

    @property
    def _elsewhere(self) -> str:
        """Where the time lies beside the file, for who removes it."""
        return (
            "" if self._sharing is None else ", on every machine, and the row latest_time of the table meta,"
        )


def _map(path: str) -> mmap.mmap:
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(handle).st_size < _FORM.size:
            # Written, not truncated to size: a page of a sparse file may find no space on the disk later.
            write_at(handle, bytes(_FORM.size), 0)
        return mmap.mmap(handle, _FORM.size)
    finally:
        os.close(handle)
