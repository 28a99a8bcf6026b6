"""Index rows waiting for the end of their transaction.

The index takes rows best in the order of their numbers: every step back makes it close a segment and start
another. Jobs that share a transaction each have rows of all times, so their rows wait here and go in together,
in order. Rows of one number keep the order they came in: an old text leaves before a new one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

#: Row number, whether it leaves, and its texts by slot.
_Row = tuple[int, bool, tuple[int, ...], tuple[Any, ...]]


@dataclass(slots=True)
class WaitingTexts:
    """Rows to be put into the index, and rows to be taken out."""

    rows: list[_Row] = field(default_factory=list[_Row])

    def put(self, slots: Sequence[int], rows: Iterable[tuple[Any, ...]]) -> None:
        """Let rows wait to be put in."""
        self._wait(slots, rows, leaves=False)

    def take_out(self, slots: Sequence[int], rows: Iterable[tuple[Any, ...]]) -> None:
        """Let rows wait to be taken out; they must hold the very text that was put in."""
        self._wait(slots, rows, leaves=True)

    def _wait(self, slots: Sequence[int], rows: Iterable[tuple[Any, ...]], *, leaves: bool) -> None:
        own = tuple(slots)
        self.rows.extend((row[0], leaves, own, row[1:]) for row in rows)

    def forget_after(self, length: int) -> None:
        """Drop the rows that came after a point: their job has failed."""
        del self.rows[length:]

    def flush(self, many: Callable[[str, Any], None]) -> None:
        """Write everything that waits."""
        if not self.rows:
            return
        self.rows.sort(key=lambda row: row[0])
        slots = sorted({slot for row in self.rows for slot in row[2]})
        for leaves, rows in groupby(self.rows, key=lambda row: row[1]):
            many(_statement(slots, leaves=leaves), [_bound(row, slots) for row in rows])
        self.rows.clear()


def _statement(slots: Sequence[int], *, leaves: bool) -> str:
    names = "".join(f"c{slot}, " for slot in slots)
    command, mark = ("fts, ", "'delete', ") if leaves else ("", "")
    return f"INSERT INTO fts({command}rowid, {names}sh) VALUES({mark}?, {'?, ' * len(slots)}?)"


def _bound(row: _Row, slots: Sequence[int]) -> tuple[Any, ...]:
    tid, _, own, values = row
    if len(own) == len(slots) and own == tuple(slots):
        return tid, *values
    by_slot = dict(zip(own, values, strict=False))
    return tid, *(by_slot.get(slot) for slot in slots), values[-1]
