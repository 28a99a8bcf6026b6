"""Times as programs export them."""

from __future__ import annotations

import math
from typing import Any

from headgate.model.instants import instant, iso

#: The year 9999, in seconds.
_LAST = 253_402_300_800


def time_of_seconds(value: Any) -> str | None:
    """Write seconds since 1970, a number or its text, as a time; None if they are none."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    # A float of today's seconds is exact to less than a microsecond.
    return iso(round(seconds * 1_000_000)) if 0 <= seconds < _LAST else None


def time_of_text(value: Any) -> str | None:
    """Return a text if it is an ISO 8601 time."""
    return value if isinstance(value, str) and instant(value) is not None else None
