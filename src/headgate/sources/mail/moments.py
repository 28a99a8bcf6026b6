"""When a message was sent: by its date, else by a server that passed it on, else by the line before it in an mbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from headgate.model.instants import instant, iso

_DATE_CHARS = 200
#: As asctime writes it, with a zone before or after the year if at all.
_ENVELOPE = re.compile(
    r"([A-Z][a-z]{2}) +(\d{1,2}) +(\d{1,2}:\d\d(?::\d\d)?)(?: +([+-]\d{4}|[A-Z]{1,5}))? +(\d{4})(?: +([+-]\d{4}))?"
)


def sent_at(date: datetime | None, received: Sequence[str], envelope: bytes) -> str | None:
    """Choose the time of a message, in UTC; None if nothing tells it."""
    if date is not None and (moment := _utc(date)):
        return moment
    for line in received:
        found = header_moment(line.rpartition(";")[2])
        if found is not None and (moment := _utc(found)):
            return moment
    found = envelope_moment(envelope)
    return None if found is None else _utc(found)


def header_moment(value: str) -> datetime | None:
    """Read a date as headers have it; without a zone it is UTC."""
    try:
        found = parsedate_to_datetime(value.strip()[:_DATE_CHARS])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def envelope_moment(envelope: bytes) -> datetime | None:
    """Read the time of the line before a message in an mbox."""
    match = _ENVELOPE.search(envelope[:1000].decode("ascii", "replace"))
    if match is None:
        return None
    month, day, clock, zone, year, zone_after = match.groups()
    return header_moment(f"{day} {month} {year} {clock} {zone or zone_after or '+0000'}")


def _utc(moment: datetime) -> str | None:
    try:
        found = instant(moment.isoformat())
    except (ValueError, OverflowError):
        return None
    return None if found is None else iso(found)
