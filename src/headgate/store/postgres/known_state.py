"""What a process knows of the state of its home in the primary database."""

from __future__ import annotations

import threading


class KnownState:
    """The newest numbers of a home that this process has seen; threads share it. A number never goes back.

    Admission asks the primary for them at every request, so a read that is done in this state or a later one sees
    everything that was stored, declared, hidden or removed before its request was admitted.
    """

    __slots__ = ("_latest_time", "_lock", "_version")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._latest_time = 0

    @property
    def version(self) -> int:
        """The version of the records, which every transaction that writes them raises."""
        return self._version

    @property
    def latest_time(self) -> int:
        """The latest time that a machine of the home has seen, in microseconds since 1970."""
        return self._latest_time

    def note_version(self, version: int) -> None:
        """Note the version that a transaction saw or made."""
        # Most are known: then no thread waits for another.
        if version > self._version:
            with self._lock:
                self._version = max(self._version, version)

    def note_time(self, at: int) -> None:
        """Note a time that the database holds as the latest."""
        if at > self._latest_time:
            with self._lock:
                self._latest_time = max(self._latest_time, at)
