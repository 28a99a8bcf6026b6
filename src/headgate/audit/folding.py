"""Fold the old part of the disclosure log: the details of single reads go, what each day's reads showed of each record stays.

A fold answers who has read a record, on which day, by which tool, how often and which fields of it. Gone are the times
within the day, the ids of requests, and which records were shown together.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from headgate.audit.chain import read_head, seal_block, seal_fold, write_head
from headgate.home import Home
from headgate.model.disclosure import (
    ANSWERED,
    Disclosed,
    Disclosure,
    FoldedDisclosure,
    FoldedPart,
)
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId, FieldName, RecordId, RequestId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.ledger import AuditBlock, ChainHead, Fold
from headgate.store.ledger import Ledger
from headgate.tasks import Supervisor, stop

LOOP = "folding of the log"
#: Of the entry that notes a fold.
FOLD_ROUTE = "audit fold"
#: How many bytes of events are folded at once: a step holds the writer for some tens of milliseconds.
_STEP_BYTES = 1024 * 1024
_PAUSE_SECONDS = 1.0
_BETWEEN_SECONDS = 3600.0
#: Entries that cannot be checked stay so until a person acts: the attempts become rare.
_MOST_PAUSE_SECONDS = 24 * 3600.0

_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Disclosure).decode
_Caller = tuple[object, ...]
_Record = tuple[ConnectionId, StreamName, RecordId | None]


@dataclass(slots=True)
class _Group:
    """Reads of one day, caller, route and outcome."""

    #: The first of them and its place.
    event: Disclosure
    first: int
    seq: int = 0
    reads: int = 0
    size_bytes: int = 0
    times: Counter[_Record] = field(default_factory=Counter[_Record])
    fields: defaultdict[_Record, dict[FieldName, None]] = field(
        default_factory=lambda: defaultdict(dict[FieldName, None])
    )

    def add(self, seq: int, event: Disclosure) -> None:
        """Count a read."""
        self.seq = seq
        self.reads += event.read_count
        self.size_bytes += event.size_bytes
        shown: dict[_Record, None] = {}
        for part in event.parts:
            for record in _records_of(part):
                shown[record] = None
                self.fields[record].update(dict.fromkeys(part.fields))
        self.times.update(shown.keys())

    def _parts(self) -> Iterator[FoldedPart]:
        """Put records together of which the same fields were shown equally often."""
        found: dict[tuple[ConnectionId, StreamName, tuple[FieldName, ...], int, bool], list[RecordId]] = {}
        for (connection, stream, record), times in self.times.items():
            fields = tuple(sorted(self.fields[connection, stream, record]))
            alike = found.setdefault((connection, stream, fields, times, record is None), [])
            if record is not None:
                alike.append(record)
        for (connection, stream, fields, times, _), records in found.items():
            yield FoldedPart(connection, stream, fields, tuple(records), times)

    def folded(self) -> FoldedDisclosure:
        """Write the group as one line of a fold."""
        event = self.event
        return FoldedDisclosure(
            at=event.at // DAY_US * DAY_US,
            request_id=RequestId(""),
            token_kind=event.token_kind,
            client_id=event.client_id,
            grant_ids=event.grant_ids,
            package_id=event.package_id,
            via=event.via,
            outcome=event.outcome,
            size_bytes=self.size_bytes,
            parts=tuple(self._parts()),
            first=self.first,
            seq=self.seq,
            reads=self.reads,
        )


def _records_of(part: Disclosed) -> Iterator[_Record]:
    # Numbers alone are counted too: they were given of the stream.
    for record in part.record_ids or (None,):
        yield part.connection_id, part.stream, record


def fold_events(events: Iterable[tuple[int, Disclosure]]) -> tuple[FoldedDisclosure, ...]:
    """Sum up reads, given in order with their places; each result has the place of the last read it stands for."""
    groups: dict[_Caller, _Group] = {}
    for seq, event in events:
        caller = (
            event.at // DAY_US, event.token_kind, event.client_id, event.grant_ids, event.package_id, event.via,
            event.outcome,
        )  # fmt: skip
        group = groups.get(caller)
        if group is None:
            group = groups[caller] = _Group(event, seq)
        group.add(seq, event)
    return tuple(sorted((one.folded() for one in groups.values()), key=lambda one: one.seq))


@dataclass(frozen=True, slots=True)
class FoldRule:
    """What may be folded: events of before a time, in blocks that lie before the noted end of the chain."""

    key: bytes
    before: int
    noted: ChainHead | None
    #: When it is folded, for the note.
    now: int

    def __call__(self, head: ChainHead | None, blocks: Sequence[AuditBlock]) -> Fold | None:
        """Fold the first of these blocks, as far as all their events may be; None if the first may not."""
        taken: list[AuditBlock] = []
        events: list[tuple[int, Disclosure]] = []
        for block in blocks:
            read = [(entry.seq, _read(entry.event)) for entry in block.entries()]
            if not self._may_go(block, read):
                break
            taken.append(block)
            events += read
        if not taken:
            return None
        lines = b"\n".join(map(_encode, fold_events(events)))
        made = seal_fold(self.key, head, taken, lines)
        return Fold(made, _note(made, self.now), sum(len(one.events) for one in taken), len(events))

    def _may_go(self, block: AuditBlock, events: Sequence[tuple[int, Disclosure]]) -> bool:
        # What was noted outside the store must stay a place in the chain: within a fold there is no seal for it.
        is_noted = self.noted is not None and block.last <= self.noted.seq
        return is_noted and all(event.at < self.before for _, event in events)


def _note(made: AuditBlock, now: int) -> bytes:
    event = Disclosure(
        at=now,
        request_id=RequestId(f"fold_{made.first}_{made.last}"),
        token_kind=TokenKind.OWNER.value,
        client_id=None,
        grant_ids=(),
        package_id=None,
        via=FOLD_ROUTE,
        outcome=ANSWERED,
    )
    return _encode(event) + b"\n"


@dataclass(frozen=True, slots=True)
class FoldReport:
    """What was folded, or would be: how many reads, and the bytes of their entries before and after."""

    reads: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def plus(self, fold: Fold) -> FoldReport:
        """Count a fold."""
        after = len(fold.block.events) + len(fold.note)
        return FoldReport(
            self.reads + fold.reads, self.bytes_before + fold.replaced_bytes, self.bytes_after + after
        )


async def fold_step(home: Home, ledger: Ledger, key: bytes, *, before: int, now: int) -> Fold | None:
    """Fold a part of what is older than a time, whole days only; None if there is nothing more.

    Raises:
        LogUnverifiable: an entry that is to be folded, or the noted head of the chain, is not as it was written.
    """
    rule = _rule(home, key, before, now)
    done = await ledger.fold(_STEP_BYTES, rule, partial(seal_block, key))
    if done is None:
        return None
    fold, head = done
    await asyncio.to_thread(write_head, home, head)
    return fold


async def would_fold(home: Home, ledger: Ledger, key: bytes, *, before: int, now: int) -> FoldReport:
    """Say what folding would come to, without changing anything."""
    rule = _rule(home, key, before, now)
    report, head = FoldReport(), None
    async for blocks in _steps(ledger):
        if blocks[0].folded is not None:
            head = blocks[-1].head
            continue
        fold = rule(head, blocks)
        if fold is None:
            break
        report, head = report.plus(fold), fold.block.head
        if fold.block.last != blocks[-1].last:
            break
    return report


def _rule(home: Home, key: bytes, before: int, now: int) -> FoldRule:
    # Only days that are over: one that goes on would be folded again and again.
    return FoldRule(key, min(before, now) // DAY_US * DAY_US, read_head(home), now)


async def _steps(ledger: Ledger) -> AsyncIterator[list[AuditBlock]]:
    """Read the chain in the pieces in which it would be folded; a fold is a piece by itself."""
    piece: list[AuditBlock] = []
    after = 0
    while found := await ledger.blocks(after, 1):
        (block,) = found
        after = block.last
        piece.append(block)
        if block.folded is not None or sum(len(one.events) for one in piece) >= _STEP_BYTES:
            yield piece
            piece = []
    if piece:
        yield piece


class Folding:
    """Folds in the background, a step at a time, what is older than so many days."""

    __slots__ = (
        "_clock",
        "_days",
        "_has_turn",
        "_home",
        "_key",
        "_ledger",
        "_sleep",
        "_supervisor",
        "_task",
        "_turn",
    )  # fmt: skip

    def __init__(
        self,
        home: Home,
        ledger: Ledger,
        *,
        key: bytes,
        days: int,
        clock: Callable[[], int],
        supervisor: Supervisor,
        has_turn: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._home = home
        #: Says whether this machine, of those that share a home, folds; None: no others share it.
        self._has_turn = has_turn
        self._ledger = ledger
        self._key = key
        self._days = days
        self._clock = clock
        self._supervisor = supervisor
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def step(self) -> Fold | None:
        """Fold a part of what is due; None if nothing is."""
        now = self._clock()
        before = now - self._days * DAY_US
        async with self._turn:
            return await fold_step(self._home, self._ledger, self._key, before=before, now=now)

    def start(self) -> None:
        """Begin to fold; with 0 days everything is kept."""
        if self._days:
            self._task = self._supervisor.start(LOOP, self._round, most_seconds=_MOST_PAUSE_SECONDS)

    async def stop(self) -> None:
        """End after the step that is under way."""
        await stop(self._task)
        async with self._turn:
            self._task = None

    async def _round(self) -> float:
        """Fold a part, and return how many seconds later to go on."""
        if self._has_turn is not None and not await self._has_turn():
            return _BETWEEN_SECONDS
        folded = await asyncio.shield(self.step())
        return _BETWEEN_SECONDS if folded is None else _PAUSE_SECONDS
