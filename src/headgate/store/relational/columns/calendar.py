"""Buckets of time in a time zone: numbered for counting, named for answers.

Most zones change their clocks at quarter hours only. Then a table gives the bucket of each quarter hour, and
counting is one lookup for each record. Otherwise the local time of each record is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from headgate.model.query import Granularity
from headgate.store.relational.columns.specs import Array

_SECOND_US = 1_000_000
_DAY_SECONDS = 86_400
_QUARTER_HOUR_SECONDS = 900
#: A table of more quarter hours than this (a century) takes more memory than it saves time.
_TABLE_MOST = 4_000_000
#: Tables begin and end at multiples of 4096 quarter hours (43 days), so that the cached one fits for a while.
_TABLE_STEP_BITS = 12
#: A zone that changed its clock and changed it back within a week would be missed.
_STEP_SECONDS = 7 * _DAY_SECONDS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 3, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH).total_seconds())
#: 1970-01-01 was a Thursday; weeks start on Monday.
_MONDAY = 3
_DATETIME = {Granularity.MONTH: "M8[M]", Granularity.YEAR: "M8[Y]"}


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of a zone from UTC: `seconds[i]` holds from the second `starts[i]` on."""

    starts: Array
    seconds: Array


def count_buckets(
    times: Sequence[Array], quarters: Sequence[Array], granularity: Granularity, time_zone: str
) -> dict[int, int]:
    """Count the times in each bucket, by the bucket's number; no time may be missing."""
    filled = [array for array in quarters if len(array)]
    if not filled:
        return {}
    found = _table_for(filled, granularity, time_zone)
    if found is not None:
        return _count_by_table(filled, *found)
    numbers, counts = np.unique(
        _computed_numbers(np.concatenate(times), granularity, time_zone), return_counts=True
    )
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def bucket_numbers(times: Array, quarters: Array, granularity: Granularity, time_zone: str) -> Array:
    """Give the number of each time's bucket; no time may be missing."""
    if not len(times):
        return times
    found = _table_for([quarters], granularity, time_zone)
    if found is None:
        return _computed_numbers(times, granularity, time_zone)
    table, start = found
    return table[quarters - start]


def _table_for(
    quarters: Sequence[Array], granularity: Granularity, time_zone: str
) -> tuple[Array, int] | None:
    """Find the table that has all these quarter hours, and its first one; None where there is no such table."""
    first, last = min(int(array.min()) for array in quarters), max(int(array.max()) for array in quarters)
    if granularity is Granularity.MINUTE or last - first >= _TABLE_MOST:
        return None
    first_step, last_step = first >> _TABLE_STEP_BITS, last >> _TABLE_STEP_BITS
    table = _table(granularity, time_zone, first_step, last_step)
    return None if table is None else (table, first_step << _TABLE_STEP_BITS)


def _computed_numbers(times: Array, granularity: Granularity, time_zone: str) -> Array:
    seconds = times // _SECOND_US
    offsets = offsets_between(time_zone, int(seconds.min()), int(seconds.max()))
    return _number(
        seconds + offsets.seconds[np.searchsorted(offsets.starts, seconds, "right") - 1], granularity
    )


def _count_by_table(quarters: Sequence[Array], table: Array, start: int) -> dict[int, int]:
    base = int(table.min())
    counts = np.zeros(int(table.max()) - base + 1, np.int64)
    small = (table - base).astype(np.int32)
    for array in quarters:
        counts += np.bincount(small[array - start], minlength=len(counts))
    filled = np.flatnonzero(counts)
    return dict(zip((filled + base).tolist(), counts[filled].tolist(), strict=True))


def bucket_name(number: int, granularity: Granularity) -> str:
    """Write the local date, or date and time, at which a bucket starts."""
    # Local time west of Greenwich may be in the year 0, which a datetime cannot hold but numpy can.
    if granularity is Granularity.MINUTE:
        return str(np.datetime64(number, "m"))
    if granularity is Granularity.HOUR:
        return f"{np.datetime64(number, 'h')}:00"
    if granularity is Granularity.DAY:
        return str(np.datetime64(number, "D"))
    if granularity is Granularity.WEEK:
        return str(np.datetime64(number * 7 - _MONDAY, "D"))
    months = number * {Granularity.MONTH: 1, Granularity.QUARTER: 3, Granularity.YEAR: 12}[granularity]
    return f"{1970 + months // 12:04}-{months % 12 + 1:02}-01"


@lru_cache(maxsize=64)
def _table(granularity: Granularity, time_zone: str, first: int, last: int) -> Array | None:
    """Map each quarter hour of a range to its bucket; None where the zone changes within a quarter hour."""
    start, end = first << _TABLE_STEP_BITS, (last + 1) << _TABLE_STEP_BITS
    offsets = offsets_between(time_zone, start * _QUARTER_HOUR_SECONDS, end * _QUARTER_HOUR_SECONDS)
    if np.any(offsets.seconds % _QUARTER_HOUR_SECONDS) or np.any(offsets.starts[1:] % _QUARTER_HOUR_SECONDS):
        return None
    seconds = np.arange(start, end, dtype=np.int64) * _QUARTER_HOUR_SECONDS
    local = seconds + offsets.seconds[np.searchsorted(offsets.starts, seconds, "right") - 1]
    return _number(local, granularity)


def _number(local: Array, granularity: Granularity) -> Array:
    """Compute the bucket of each local second."""
    if granularity is Granularity.MINUTE:
        return local // 60
    if granularity is Granularity.HOUR:
        return local // 3600
    days = local // _DAY_SECONDS
    if granularity is Granularity.DAY:
        return days
    if granularity is Granularity.WEEK:
        return (days + _MONDAY) // 7
    if granularity is Granularity.QUARTER:
        return days.astype("M8[D]").astype("M8[M]").astype(np.int64) // 3
    return days.astype("M8[D]").astype(_DATETIME[granularity]).astype(np.int64)


@lru_cache(maxsize=256)
def offsets_between(time_zone: str, start: int, end: int) -> Offsets:
    """Find every change of a zone's offset between two seconds."""
    zone = ZoneInfo(time_zone)
    starts, seconds = [start], [_offset(zone, start)]
    at = start
    while at < end:
        following = min(at + _STEP_SECONDS, end)
        if _offset(zone, following) != seconds[-1]:
            following = _change(zone, at, following, seconds[-1])
            starts.append(following)
            seconds.append(_offset(zone, following))
        at = following
    return Offsets(np.array(starts, np.int64), np.array(seconds, np.int64))


def _change(zone: ZoneInfo, low: int, high: int, offset: int) -> int:
    """Find the first second between two at which a zone has left an offset."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = _moment(second).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _moment(second: int) -> datetime:
    """Make a time that has a local time in every zone: near the first and last year, the nearest one that has."""
    return _EPOCH + timedelta(seconds=min(max(second, _FIRST), _LAST))
