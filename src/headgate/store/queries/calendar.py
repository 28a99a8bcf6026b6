"""Buckets of time in a time zone: numbered for counting, named for answers.

SQL counts the rows of each step of time; a step is as long as the clock of the zone allows, so that all its times are
in one bucket. The steps are mapped to buckets here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from zoneinfo import ZoneInfo

from headgate.model.query import Granularity
from headgate.store.format.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

_DAY_SECONDS = 86_400
#: A zone that changed its clock and changed it back within a week would be missed.
_WEEK_SECONDS = 7 * _DAY_SECONDS
#: Spans begin and end at multiples of this, so that what is remembered of a zone fits for a while.
_SPAN_SECONDS = 6 * _WEEK_SECONDS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 3, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = int((datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH).total_seconds())
#: 1970-01-01 was a Thursday; weeks start on Monday.
_MONDAY = 3
_DATETIME = {Granularity.MONTH: "M8[M]", Granularity.YEAR: "M8[Y]"}
_STEPS = {Granularity.MINUTE: 60, Granularity.HOUR: 3600}


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of a zone from UTC: `seconds[i]` holds from the second `starts[i]` on."""

    starts: Array
    seconds: Array


@dataclass(frozen=True, slots=True)
class Span:
    """The seconds from a start to an end, as far as all times of an answer may lie."""

    start: int
    end: int

    def covers(self, seconds: Sequence[int]) -> bool:
        """Return whether all these seconds are in it."""
        return not seconds or (self.start <= min(seconds) and max(seconds) < self.end)


#: From here on the clocks of all zones differ by quarter hours; nearly all records are of these years.
USUAL_SPAN = Span(
    int((datetime(1973, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()),
    int((datetime(2100, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()),
)


def span_of(seconds: Sequence[int]) -> Span:
    """Return a span around some seconds, with room for times that are a day later."""
    start, end = min(seconds) // _SPAN_SECONDS, (max(seconds) + _DAY_SECONDS) // _SPAN_SECONDS + 1
    return Span(start * _SPAN_SECONDS, end * _SPAN_SECONDS)


@lru_cache(maxsize=256)
def step_seconds(granularity: Granularity, time_zone: str, span: Span) -> int:
    """Return how many seconds, counted from 1970, always lie in one bucket, whatever the clock of the zone did."""
    offsets = offsets_between(time_zone, span.start, span.end)
    changes = [*offsets.seconds.tolist(), *offsets.starts[1:].tolist()]
    return math.gcd(_STEPS.get(granularity, _DAY_SECONDS), *changes)


def bucket_numbers(
    seconds: Sequence[int], granularity: Granularity, time_zone: str, span: Span
) -> Sequence[int]:
    """Return the number of the bucket of each second."""
    offsets = offsets_between(time_zone, span.start, span.end)
    array = np.array(seconds, np.int64)
    local = array + offsets.seconds[np.searchsorted(offsets.starts, array, "right") - 1]
    return _number(local, granularity).tolist()


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
        following = min(at + _WEEK_SECONDS, end)
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
