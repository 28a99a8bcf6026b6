"""How values are written on pages: numbers, times, sizes and spans, for a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_KIB = 1024
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_000_000


def number(value: int) -> str:
    """Write a number with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def counted(value: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def of_kind(value: int, stream: str) -> str:
    """Write a number of records of a stream, whose name is a plural."""
    singular = f"{stream[:-3]}y" if stream.endswith("ies") else stream.removesuffix("s")
    return counted(value, singular, stream)


def size(value: float) -> str:
    """Write a number of bytes."""
    amount, unit = float(value), 0
    while amount >= _KIB and unit < len(_UNITS) - 1:
        amount, unit = amount / _KIB, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 or amount >= 10 else f"{amount:.1f} {_UNITS[unit]}"  # noqa: PLR2004 - two digits say enough


def moment(at: int) -> datetime:
    """Turn microseconds since 1970 into a time; one outside the calendar becomes its first or last."""
    return _EPOCH + timedelta(microseconds=min(max(at, _FIRST_US), _LAST_US))


def day(at: int) -> str:
    """Write the day of a time."""
    time = moment(at)
    return f"{time.day} {time:%b} {time.year}"


def span(ends: tuple[int, int]) -> str:
    """Write the first and the last day of a time."""
    first, last = day(ends[0]), day(ends[1])
    return first if first == last else f"{first} to {last}"


def minute(at: int) -> str:
    """Write a time to the minute, in UTC."""
    return f"{day(at)}, {moment(at):%H:%M}"


def clock(at: int) -> str:
    """Write the time of day, in UTC."""
    return f"{moment(at):%H:%M}"


def ago(at: int, now: int) -> str:
    """Write how long ago a time was, roughly."""
    seconds = (now - at) // 1_000_000
    if seconds < _MINUTE:
        return "just now"
    for length, noun in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= length:
            amount = seconds // length
            return counted(amount, noun) + " ago" if noun != "day" or amount < 30 else day(at)  # noqa: PLR2004 - after a month the day is clearer
    return day(at)


#: The functions that templates may use by name.
FILTERS = (ago, clock, counted, day, minute, number, of_kind, size, span)
