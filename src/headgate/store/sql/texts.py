"""Texts waiting for the end of their transaction, to enter or leave the word index.

Jobs that share a transaction each bring a few texts; together they make larger segments, which take less time and
space than many small ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headgate.store.sql.database import Database


class TextChange(NamedTuple):
    """A text of one field of a record that enters the index, or, without a text, leaves it."""

    rid: int
    fid: int
    time: int | None
    text: str | None


@dataclass(slots=True)
class WaitingTexts:
    """Texts to be put into the index, and texts to be taken out, in the order in which they came."""

    rows: list[TextChange] = field(default_factory=list[TextChange])

    def put(self, rid: int, time: int | None, texts: Iterable[tuple[int, str]]) -> None:
        """Let the texts of a record wait to be put in."""
        self.rows.extend(TextChange(rid, fid, time, text) for fid, text in texts)

    def take_out(self, rid: int, fids: Iterable[int]) -> None:
        """Let texts of a record wait to be taken out."""
        self.rows.extend(TextChange(rid, fid, None, None) for fid in fids)

    def forget_after(self, length: int) -> None:
        """Drop the texts that came after a point: their job has failed."""
        del self.rows[length:]

    def flush(self, database: Database) -> None:
        """Write everything that waits."""
        if not self.rows:
            return
        # Slow to import, and a program that only reads does without.
        from headgate.store.sql.word_segments import write_changes  # noqa: PLC0415

        rows, self.rows = self.rows, []
        write_changes(database, rows)
