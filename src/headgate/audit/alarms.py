"""Alarms: days on which a client read far more than it usually does. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.model.ids import ClientId

#: The usual is taken from the days with reads among so many before.
USUAL_DAYS = 30
#: With fewer days with reads there is no usual yet, and a day of fewer records is no reason for an alarm.
_LEAST_DAYS = 3
_LEAST_RECORDS = 50


@dataclass(frozen=True, slots=True)
class Alarm:
    """A day on which a client read more than it usually does."""

    client_id: ClientId
    #: Days since 1970.
    day: int
    records: int
    #: What it reads on a usual day with reads.
    usual: int


def find_alarms(reads: Mapping[int, Mapping[ClientId, int]], factor: int) -> tuple[Alarm, ...]:
    """Find the days, newest first, on which a client read more than so many times its usual; 0 finds none."""
    found: list[Alarm] = []
    for day in sorted(reads, reverse=True):
        for client, records in sorted(reads[day].items()):
            before = [
                count
                for other in range(day - USUAL_DAYS, day)
                if (count := reads.get(other, {}).get(client, 0))
            ]
            if factor and len(before) >= _LEAST_DAYS and records >= _LEAST_RECORDS:
                usual = round(statistics.median(before))
                if records > factor * usual:
                    found.append(Alarm(client, day, records, usual))
    return tuple(found)
