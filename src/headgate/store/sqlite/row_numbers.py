"""Row numbers of records and of the word index, and what their bits mean.

A record's row number (rid) begins with its shelf, so the records of a shelf lie together::

    rid = sid << 40 | n                  n: the record's number in its shelf, from 1

Its row in the word index (tid) begins with its time, so the index finds the newest matches first::

    tid = time_step << 41 | sid << 27 | n
"""

from __future__ import annotations

RID_SHIFT = 40
N_BITS, SID_BITS = 27, 14
TIME_SHIFT = N_BITS + SID_BITS
#: The largest numbers that a row of the index has room for.
MAX_N, MAX_SID = (1 << N_BITS) - 1, (1 << SID_BITS) - 1
#: The shelf of an index row, and its record, as SQL.
SID_OF_ROWID = f"(fts.rowid >> {N_BITS} & {MAX_SID})"
RID_OF_ROWID = f"({SID_OF_ROWID} << {RID_SHIFT} | (fts.rowid & {MAX_N}))"
TIME_STEP_OF_ROWID = f"(fts.rowid >> {TIME_SHIFT})"
_STEP_US = 4096 * 1_000_000
#: 22 bits of time; steps before 1970 need no sign.
_STEP_OF_1970, _LAST_STEP = 1 << 21, (1 << 22) - 1


def time_step(ts: int | None) -> int:
    """Give the step of 68 minutes that a time falls into; 0 for none."""
    if ts is None:
        return 0
    return min(max(ts // _STEP_US + _STEP_OF_1970, 1), _LAST_STEP)


def first_tid(step: int) -> int:
    """Give the smallest number that an index row of a step can have."""
    return step << TIME_SHIFT


def tid_of(ts: int | None, rid: int) -> int:
    """Give the number of a record's row in the index."""
    return first_tid(time_step(ts)) | (rid >> RID_SHIFT) << N_BITS | (rid & MAX_N)


class Tid(int):
    """The number of an index row, in its parts."""

    __slots__ = ()

    @property
    def time_step(self) -> int:
        """The step of time that the record falls into; 0: it has no time."""
        return self >> TIME_SHIFT

    @property
    def rid(self) -> int:
        """The record's own row."""
        return (self >> N_BITS & MAX_SID) << RID_SHIFT | (self & MAX_N)
