"""Points in time as whole microseconds since 1970 in UTC: exact, ordered, and one comparison each."""

from __future__ import annotations

import functools
from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: An offset can push a time past the years that a calendar has: such a time could not be written again.
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
#: A day in microseconds.
DAY_US = 24 * 3600 * 1_000_000
_DATE_CHARS = 10


def instant(text: str) -> int | None:
    """Read an ISO 8601 date or date-time; without a zone it is taken as UTC.

    Returns None for anything else, so that a record without a readable time is outside every range.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        microseconds = (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
    return microseconds if _FIRST <= microseconds <= _LAST else None


@functools.lru_cache(maxsize=4096)
def iso(microseconds: int) -> str:
    """Write an instant as RFC 3339 in UTC, with a fraction only where there is one.

    Every record that is shown has one, so it is put together from parts that are written once.
    """
    seconds, fraction = divmod(microseconds, 1_000_000)
    days, second = divmod(seconds, 86_400)
    minute, second = divmod(second, 60)
    if fraction:
        return f"{_day(days)}{_MINUTES[minute]}{_SECONDS[second]}.{fraction:06}Z"
    return f"{_day(days)}{_MINUTES[minute]}{_SECONDS[second]}Z"


_MINUTES = tuple(f"T{hour:02}:{minute:02}:" for hour in range(24) for minute in range(60))
_SECONDS = tuple(f"{second:02}" for second in range(60))


@functools.lru_cache(maxsize=16_384)
def _day(days: int) -> str:
    return date.fromordinal(_EPOCH.toordinal() + days).isoformat()


def is_date(text: str) -> bool:
    """Return whether the text is a plain calendar date such as 2026-04-01."""
    if len(text) != _DATE_CHARS:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
