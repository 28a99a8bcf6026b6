"""Put the owner's rules into effect: find the records that they hide, and move them to the hidden shelf.

Finding reads the whole store and is done beside everything else; only what it found, and what changed meanwhile, is
looked at again in the transaction that adds or removes a rule. So a rule is in effect for all records or for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from headgate.errors import NotFound, ResourceLimit
from headgate.model.hiding import MAX_RULES, HidingRule, RuleCount, RuleId
from headgate.model.ids import RecordId, StreamName
from headgate.model.record import Op
from headgate.model.rows import RecordProblem
from headgate.policy import hiding as rules
from headgate.policy.hiding import VERSION, Hider
from headgate.store.changes.shelf_changes import ShelfPair
from headgate.store.changes.stored_rows import values_of
from headgate.store.format.lines import Incoming
from headgate.store.format.records import RID_SHIFT, shelf_rows
from headgate.store.format.streams import Shelf
from headgate.store.sql.catalog import Catalog, bump_catalog, current
from headgate.store.sql.database import Database

#: So many records move together: their texts are in memory at once.
_AT_ONCE = 500
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


class FoundRecords(NamedTuple):
    """The records that a rule finds on each shelf, by row number, and the change number as of which."""

    rids: Mapping[int, Sequence[int]]
    seq: int


class _Moving(NamedTuple):
    """What is stored of a record that may move."""

    rid: int
    record_id: RecordId
    emitted_at: int
    long: bytes | None
    body: bytes


def find(database: Database, catalog: Catalog, rule: HidingRule) -> FoundRecords:
    """Find the records that may be shown now, and that a rule would hide; in a read transaction."""
    seq: int = database.value(database.sql["change_number"])
    shelves = _shelves(catalog, is_hidden=False)
    return FoundRecords({shelf.sid: [*_matches(database, shelf, rule)] for shelf in shelves}, seq)


def count(database: Database, catalog: Catalog, rule: HidingRule) -> RuleCount:
    """Count the records that a rule finds, hidden or not; in a read transaction."""
    counts: dict[StreamName, int] = {}
    before = 0
    for shelf in catalog.by_sid.values():
        size = sum(1 for _ in _matches(database, shelf, rule))
        before += size if shelf.is_hidden else 0
        if size:
            counts[shelf.name] = counts.get(shelf.name, 0) + size
    return RuleCount(counts, before)


def hidden_counts(database: Database, catalog: Catalog) -> dict[RuleId, int]:
    """Count what each rule hides; a record that several hide counts for each."""
    hidden = [shelf for shelf in catalog.by_sid.values() if shelf.is_hidden]
    return {
        rule.id: sum(1 for shelf in hidden for _ in _matches(database, shelf, rule)) for rule in catalog.rules
    }


def add(database: Database, rule: HidingRule, matches: FoundRecords, *, at: int) -> int:
    """Add a rule and hide what it finds, inside the writer's transaction; returns how many records that were."""
    before = current(database).rules
    if not before:
        # All records are compared with all rules below.
        database.run(database.sql["set_rules_version"], (VERSION,))
    if len(before) >= MAX_RULES:
        raise ResourceLimit(f"There may be at most {MAX_RULES} rules.", hint="Remove one first.")
    database.run(database.sql["insert_hiding_rule"], (rule.id, msgspec.json.encode(rule), rule.created_at))
    bump_catalog(database)
    catalog = current(database)
    moved = 0
    for shelf in _shelves(catalog, is_hidden=False):
        changed = database.all(database.sql["changed_rids"], (shelf.sid, matches.seq, shelf.sid << RID_SHIFT))
        rids = sorted({*matches.rids.get(shelf.sid, ()), *(rid for (rid,) in changed)})
        moved += move(database, catalog, shelf, rids, at=at)
    return moved


def remove(database: Database, rule_id: RuleId, *, at: int) -> int:
    """Remove a rule, inside the writer's transaction; returns how many records may be shown again."""
    if database.one(database.sql["delete_hiding_rule"], (rule_id,)) is None:
        raise NotFound("There is no such rule.", hint="See 'headgate rules list'.")
    bump_catalog(database)
    catalog = current(database)
    moved = 0
    for shelf in _shelves(catalog, is_hidden=True):
        rids = [
            rid
            for (rid,) in database.all(database.sql["changed_rids"], (shelf.sid, 0, shelf.sid << RID_SHIFT))
        ]
        moved += move(database, catalog, shelf, rids, at=at)
    return moved


def _shelves(catalog: Catalog, *, is_hidden: bool) -> list[Shelf]:
    """Return the shelves of one kind, also of streams that are declared no longer: a later version may have them again."""
    return [shelf for shelf in catalog.all_shelves if shelf.is_hidden is is_hidden]


def _matches(database: Database, shelf: Shelf, rule: HidingRule) -> Iterator[int]:
    hider = Hider([rule], shelf.name)
    after, end = shelf_rows(shelf.sid)
    while hider and (rows := database.all(database.sql["live_records"], (after, end, _AT_ONCE))):
        for rid, _, long, body in rows:
            values = values_of(database, shelf.stream, rid, long, body)
            if values is not None and hider.hides(values):
                yield rid
        after = rows[-1][0]


def move(database: Database, catalog: Catalog, shelf: Shelf, rids: Sequence[int], *, at: int) -> int:
    """Look at records of a shelf again, and put each on the shelf where it belongs; returns how many moved."""
    hider = Hider(catalog.rules, shelf.name)
    return sum(
        _move_from(database, shelf, hider, rids[start : start + _AT_ONCE], at=at)
        for start in range(0, len(rids), _AT_ONCE)
    )


def _move_from(database: Database, shelf: Shelf, hider: Hider, rids: Sequence[int], *, at: int) -> int:
    numbers = msgspec.json.encode(rids).decode()
    items: dict[RecordId, Incoming] = {}
    for row in database.rows(_Moving, database.sql["records_to_move"], (numbers,)):
        values = values_of(database, shelf.stream, row.rid, row.long, row.body)
        if values is not None and hider.hides(values) is not shelf.is_hidden:
            items[row.record_id] = _incoming(database, shelf, row, values, at=at)
    pair = ShelfPair(database, shelf.stream, shelf.connection_id, at)
    pair.put(items, pair.stored(items))
    # They would wait for the end of the transaction, all in memory.
    database.texts.flush(database)
    return len(items)


def _incoming(
    database: Database, shelf: Shelf, row: _Moving, values: Mapping[str, Any], *, at: int
) -> Incoming:
    """Make of a record the line that stores it on the other shelf.

    What clients see again comes in now: its last change may have been one of a field that they do not see.
    """
    return Incoming(
        row.record_id,
        Op.UPSERT,
        at if shelf.is_hidden else row.emitted_at,
        row.body if row.long is None else _whole_body(row.body, values),
        values,
        any(isinstance(value, dict) for value in values.values()),
        tuple(_problems(database, shelf, row.rid)),
        not shelf.is_hidden,
    )


def _problems(database: Database, shelf: Shelf, rid: int) -> Iterator[RecordProblem]:
    names = {fid: name for name, fid in shelf.stream.fids.items()}
    for pointer, message, fid in database.all(database.sql["marks_to_move"], (rid,)):
        yield RecordProblem(pointer, message, names.get(fid))


def _whole_body(body: bytes, values: Mapping[str, Any]) -> bytes:
    """Put long texts back into a body; everything else stays as it is written."""
    return msgspec.json.encode({**values, **_RAW.decode(body)})


class RuleComparison:
    """An idle task: put records that this version of the rules hides, or hides no longer, where they belong.

    What a rule finds depends on how texts are folded, and which shelf a record is on was decided when it came in, or
    when the rule was added.
    """

    name = "rules"

    __slots__ = ("_after", "_now")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        #: The last record that was compared; a new process begins again.
        self._after = 0

    def plan(self, database: Database) -> bool:
        """Return whether there are rules, and records were last compared by another version."""
        return database.one(database.sql["has_older_rules"], (rules.VERSION,)) is not None

    def step(self, database: Database) -> bool:
        with database.writing():
            rows = database.all(database.sql["live_records_after"], (self._after, _AT_ONCE))
            catalog = current(database)
            shelves = {shelf.sid: shelf for shelf in catalog.all_shelves}
            for sid, rids in groupby((rid for rid, *_ in rows), lambda rid: rid >> RID_SHIFT):
                move(database, catalog, shelves[sid], list(rids), at=self._now())
            if not rows:
                database.run(database.sql["set_rules_version"], (rules.VERSION,))
        self._after = rows[-1][0] if rows else 0
        return bool(rows)
