"""Which records of a shelf have their vectors: all up to a number, but for the gaps that are left below it. Pure."""

from __future__ import annotations

from typing import NamedTuple

#: With more gaps than this, the newest of them is closed before another can be left.
_GAPS_MOST = 32


class NumberRange(NamedTuple):
    """Numbers of records, the last included."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many numbers they are."""
        return self.last - self.first + 1


class MadeVectors(NamedTuple):
    """Up to which number vectors are made, and the gaps below it, the oldest first."""

    filled: int = 0
    gaps: tuple[NumberRange, ...] = ()

    @classmethod
    def read(cls, filled: int, gaps: str) -> MadeVectors:
        """Read what a store notes: gaps as ``first-last`` with spaces between them."""
        ranges = (NumberRange(*map(int, gap.split("-"))) for gap in gaps.split())
        return cls(filled, tuple(ranges))

    def noted(self) -> tuple[int, str]:
        """Return it as a store notes it."""
        return self.filled, " ".join(f"{gap.first}-{gap.last}" for gap in self.gaps)

    def missing(self, total: int) -> tuple[NumberRange, ...]:
        """Return the ranges whose vectors are to be made, the oldest first; there are numbers up to a total."""
        return (*self.gaps, *([NumberRange(self.filled + 1, total)] if self.filled < total else []))

    def newest(self, total: int, most: int) -> NumberRange | None:
        """Return the newest numbers that are to be made next, at most so many; None: all are made."""
        missing = self.gaps if len(self.gaps) > _GAPS_MOST else self.missing(total)
        if not missing:
            return None
        first, last = missing[-1]
        return NumberRange(max(first, last - most + 1), last)

    def with_made(self, made: NumberRange) -> MadeVectors:
        """Return it with the end of a missing range made."""
        left = [
            NumberRange(first, made.first - 1) if last == made.last else NumberRange(first, last)
            for first, last in self.missing(max(self.filled, made.last))
        ]
        gaps = tuple(gap for gap in left if gap.first <= gap.last)
        return MadeVectors(max(self.filled, made.last), gaps)
