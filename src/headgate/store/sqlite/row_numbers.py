"""Row numbers: a record's row (rid) begins with its shelf, its row in the word index (tid) with its time."""

from __future__ import annotations

RID_SHIFT = 40
#: Limits of the index's row numbers: 22 bits of time, 14 of shelf, 27 of record.
N_BITS, SID_BITS, TIME_SHIFT = 27, 14, 41
MAX_N, MAX_SID = (1 << N_BITS) - 1, (1 << SID_BITS) - 1
_BUCKET = 4096 * 1_000_000
_BUCKET_ZERO, _BUCKET_MOST = 1 << 21, (1 << 22) - 1


def bucket(ts: int | None) -> int:
    """Give the step of 68 minutes that a time falls into; 0 for none."""
    if ts is None:
        return 0
    return min(max(ts // _BUCKET + _BUCKET_ZERO, 1), _BUCKET_MOST)


def tid_of(ts: int | None, rid: int) -> int:
    """Give a record's row in the index: rows are in order of time, so the newest are found first."""
    return bucket(ts) << TIME_SHIFT | (rid >> RID_SHIFT) << N_BITS | (rid & MAX_N)


def rid_of(tid: int) -> int:
    """Give the record that a row of the index belongs to."""
    return (tid >> N_BITS & MAX_SID) << RID_SHIFT | (tid & MAX_N)
