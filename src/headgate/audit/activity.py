"""The disclosure log as a person reads it: entries, conversations, who read a record, and days of unusual reading."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headgate.audit import chain
from headgate.audit.journal import SENT, Disclosed, Disclosure, ShownRecord
from headgate.home import Home
from headgate.model.ids import ClientId, ConnectionId, FieldName, RecordId, RequestId, StreamName
from headgate.model.instants import DAY_US, iso
from headgate.model.ledger import AuditEntry
from headgate.store.ledger.ledger import Ledger

_AT_ONCE = 1000


async def in_pieces(ledger: Ledger) -> AsyncIterator[tuple[AuditEntry, ...]]:
    """Read the whole chain in order, a piece at a time."""
    after = 0
    while entries := await ledger.entries(after, _AT_ONCE):
        yield entries
        after = entries[-1].seq


async def all_entries(ledger: Ledger) -> AsyncIterator[AuditEntry]:
    """Read the whole chain in order."""
    async for piece in in_pieces(ledger):
        for entry in piece:
            yield entry


async def newest_entries(ledger: Ledger) -> AsyncIterator[AuditEntry]:
    """Read the whole chain from its end."""
    before = None
    while entries := await ledger.newest(before, _AT_ONCE):
        for entry in entries:
            yield entry
        before = entries[-1].first


async def who_read(
    ledger: Ledger, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> AsyncIterator[AuditEntry]:
    """Find every disclosure of a record."""
    text = msgspec.json.encode(record_id).decode()
    after = 0

    def showing(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
        return [entry for entry in entries if parts_of(read_event(entry), record_id, stream, connection_id)]

    while page := await ledger.entries_with(text, after, _AT_ONCE):
        for entry in await asyncio.to_thread(showing, page):
            yield entry
        after = page[-1].seq


def read_event(entry: AuditEntry) -> Disclosure:
    return msgspec.json.decode(entry.event, type=Disclosure)


def entry_document(entry: AuditEntry) -> dict[str, Any]:
    """Write an entry as the JSON document that ``headgate audit`` prints."""
    event = read_event(entry)
    return {
        "seq": entry.seq,
        **msgspec.to_builtins(event),
        "at": iso(event.at),
        "tokens": event.tokens,
        "record_count": event.record_count,
        "seal": entry.seal.hex(),
    }


def parts_of(
    event: Disclosure, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> list[Disclosed]:
    """Find the parts of an event that show a record."""
    return [
        part
        for part in event.parts
        if record_id in part.record_ids
        and stream in {None, part.stream}
        and connection_id in {None, part.connection_id}
    ]


#: How much of the log is looked through for one page.
_MOST_SCANNED = 5000
#: Lines of several processes come into the chain in batches: so much later than its neighbours may an entry stand.
_SLACK_US = 60 * 60 * 1_000_000


@dataclass(frozen=True, slots=True)
class LoggedRead:
    """One entry of the log and its number."""

    seq: int
    event: Disclosure

    @property
    def shown(self) -> list[tuple[ConnectionId, StreamName, tuple[FieldName, ...]]]:
        """The streams and the fields of them that were shown; parts that differ in their fields alone are one."""
        fields: dict[tuple[ConnectionId, StreamName], dict[FieldName, None]] = {}
        for part in self.event.parts:
            fields.setdefault((part.connection_id, part.stream), {}).update(dict.fromkeys(part.fields))
        return [(*place, tuple(names)) for place, names in fields.items()]


@dataclass(frozen=True, slots=True)
class RecordRead:
    """An entry of the log that shows a record, and which fields of it."""

    seq: int
    event: Disclosure
    fields: tuple[FieldName, ...]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which entries are shown."""

    client_id: ClientId | None = None
    stream: StreamName | None = None
    only_refused: bool = False
    #: Whether the owner's own looks are shown as well.
    with_owner: bool = False
    #: Microseconds since 1970; the end is left out.
    since: int | None = None
    until: int | None = None

    def takes(self, event: Disclosure) -> bool:
        """Return whether an entry is shown."""
        return (
            self.client_id in {None, event.client_id}
            and (self.stream is None or any(part.stream == self.stream for part in event.parts))
            and (not self.only_refused or event.is_refused)
            and (self.with_owner or event.client_id is not None)
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at < self.until)
        )


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of the log, newest first."""

    reads: tuple[LoggedRead, ...]
    #: Where older ones go on; None at the beginning of the log.
    before: int | None


@dataclass(slots=True)
class AgentDay:
    """What one client read on one day, in UTC; the newest read first."""

    client_id: ClientId | None
    #: Days since 1970.
    day: int
    reads: list[LoggedRead] = field(default_factory=list[LoggedRead])

    @property
    def first(self) -> LoggedRead:
        """The first read of the day."""
        return self.reads[-1]

    @property
    def last(self) -> LoggedRead:
        """The last read of the day."""
        return self.reads[0]

    @property
    def records(self) -> list[ShownRecord]:
        """The records that were shown, each once, those that were shown first before the others."""
        return records_of(reversed(self.reads))

    @property
    def places(self) -> list[tuple[tuple[ConnectionId, StreamName], int]]:
        """Of which streams they were, and how many of each; those with the most first."""
        return Counter((connection, stream) for connection, stream, _ in self.records).most_common()

    @property
    def calls(self) -> int:
        """How many reads there were; an entry may stand for several refusals."""
        return sum(read.event.read_count for read in self.reads)

    @property
    def refusals(self) -> int:
        """How many reads were refused."""
        return sum(read.event.read_count for read in self.reads if read.event.is_refused)

    @property
    def tools(self) -> list[tuple[str, int]]:
        """The tools and routes, the most used first."""
        counts: Counter[str] = Counter()
        for read in self.reads:
            counts[read.event.via] += read.event.read_count
        return counts.most_common()


class Activity:
    """Reads the disclosure log for the owner."""

    __slots__ = ("_home", "_ledger")

    def __init__(self, ledger: Ledger, home: Home) -> None:
        self._ledger = ledger
        self._home = home

    async def page(self, chosen: LogFilter, *, before: int | None, limit: int) -> LogPage:
        """Read a part of the log; one that looks through much of it may hold less than the limit."""
        reads: list[LoggedRead] = []
        ended: set[RequestId] = set()
        if before is None and chosen.until is not None:
            before = await self._place_of(chosen.until + _SLACK_US)
        entries = await self._ledger.newest(before, _MOST_SCANNED)
        for entry in entries:
            event = read_event(entry)
            if chosen.since is not None and event.at < chosen.since - _SLACK_US:
                return LogPage(tuple(reads), None)
            if event.called is not msgspec.UNSET:
                if event.outcome == SENT and event.request_id in ended:
                    # The end of this call is on the page.
                    continue
                ended.add(event.request_id)
            if chosen.takes(event):
                reads.append(LoggedRead(entry.seq, event))
                if len(reads) == limit:
                    return LogPage(tuple(reads), entry.first)
        return LogPage(tuple(reads), entries[-1].first if len(entries) == _MOST_SCANNED else None)

    async def between(self, first: int, last: int, chosen: LogFilter) -> tuple[LoggedRead, ...]:
        """Read the entries from one number to another, in order."""
        entries = await self._ledger.entries(first - 1, min(max(last - first + 1, 0), _MOST_SCANNED))
        reads = (LoggedRead(entry.seq, read_event(entry)) for entry in entries if entry.seq <= last)
        return tuple(read for read in reads if chosen.takes(read.event))

    async def _place_of(self, at: int) -> int:
        """Find where in the log a time is: the number of the first entry that is not before it."""
        newest = await self._ledger.newest(None, 1)
        low, high = 0, newest[0].seq + 1 if newest else 1
        while low + 1 < high:
            middle = (low + high) // 2
            entries = await self._ledger.entries(middle - 1, 1)
            if entries and entries[0].seq < high and read_event(entries[0]).at < at:
                low = entries[0].seq
            else:
                high = middle
        return high

    async def who_read(
        self, record_id: RecordId, stream: StreamName, connection_id: ConnectionId, *, limit: int
    ) -> tuple[RecordRead, ...]:
        """Find who has read a record, newest first; the owner's own looks are left out."""
        reads: deque[LoggedRead] = deque(maxlen=limit)
        async for read in who_read(self._ledger, record_id, stream, connection_id):
            event = read_event(read)
            if event.client_id is not None:
                reads.append(LoggedRead(read.seq, event))
        return tuple(
            _of_record(read, parts_of(read.event, record_id, stream, connection_id))
            for read in reversed(reads)
        )

    async def export(
        self, write: Callable[[Iterable[dict[str, Any]]], bytes], chosen: LogFilter | None = None
    ) -> AsyncIterator[bytes]:
        """Write the log in order, a piece at a time in a thread, out of documents; without a filter all of it."""

        def written(entries: Iterable[AuditEntry]) -> bytes:
            return write(
                entry_document(entry)
                for entry in entries
                if chosen is None or chosen.takes(read_event(entry))
            )

        async for piece in in_pieces(self._ledger):
            yield await asyncio.to_thread(written, piece)

    async def verify(self) -> chain.Verdict:
        """Check that no entry was changed and none is missing."""
        return await chain.verify(self._ledger, chain.read_notes(self._home))


def _of_record(read: LoggedRead, parts: Sequence[Disclosed]) -> RecordRead:
    fields = dict.fromkeys(name for part in parts for name in part.fields)
    return RecordRead(read.seq, read.event, tuple(fields))


def by_day(reads: Iterable[LoggedRead]) -> list[AgentDay]:
    """Group reads, given newest first, by client and day."""
    grouped: dict[tuple[ClientId | None, int], AgentDay] = {}
    for read in reads:
        client, day = read.event.client_id, read.event.at // DAY_US
        grouped.setdefault((client, day), AgentDay(client, day)).reads.append(read)
    return list(grouped.values())


@dataclass(frozen=True, slots=True)
class WeekOfReads:
    """How many records of a source a client read in the last seven days, and in the seven before."""

    client_id: ClientId | None
    connection_id: ConnectionId
    this_week: int
    last_week: int


def by_week(reads: Iterable[LoggedRead], now: int) -> list[WeekOfReads]:
    """Count what clients read of each source in the last seven days, with the seven before; the most first."""
    shown: dict[tuple[ClientId | None, ConnectionId], tuple[set[ShownRecord], set[ShownRecord]]] = {}
    for read in reads:
        week = (now - read.event.at) // (7 * DAY_US)
        for place in records_of([read]) if week in {0, 1} else ():
            shown.setdefault((read.event.client_id, place[0]), (set(), set()))[week].add(place)
    weeks = [WeekOfReads(*key, len(this), len(last)) for key, (this, last) in shown.items()]
    return sorted(weeks, key=lambda week: (-week.this_week, -week.last_week))


def records_of(reads: Iterable[LoggedRead]) -> list[ShownRecord]:
    """Name the records that reads showed, each once."""
    return list(
        dict.fromkeys(
            (part.connection_id, part.stream, record_id)
            for read in reads
            for part in read.event.parts
            for record_id in part.record_ids
        )
    )


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
    alarms: list[Alarm] = []
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
                    alarms.append(Alarm(client, day, records, usual))
    return tuple(alarms)
