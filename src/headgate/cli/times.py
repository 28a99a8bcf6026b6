"""Times as a person types them: a date, ``today``, ``yesterday``, or how long ago."""

from __future__ import annotations

import re

from headgate.model.instants import DAY_US, instant

_AGO = re.compile(r"([1-9]\d{0,4})([hdw])")
_UNITS = {"h": DAY_US // 24, "d": DAY_US, "w": 7 * DAY_US}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def typed_instant(text: str, now: int) -> int | None:
    """Read a time; None if it is none. A day begins at midnight UTC, ``30d`` is thirty times 24 hours ago."""
    word = text.strip().lower()
    if word in _DAYS_AGO:
        return now // DAY_US * DAY_US - _DAYS_AGO[word] * DAY_US
    if ago := _AGO.fullmatch(word):
        return now - int(ago[1]) * _UNITS[ago[2]]
    return instant(text)
