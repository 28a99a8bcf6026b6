"""Where a search by meaning looks: the vectors of the granted fields of the shelves that its plan reaches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

import msgspec
import numpy as np

from headgate import memory
from headgate.model.plan import Reach, SearchReach
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.format.vectors import Floats, inverse_lengths
from headgate.store.queries.scope import scope_of
from headgate.store.search.scope import Bounds, SearchedField
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import NO_TIME, Numbers, VectorBlock, fids_key, read_block

#: What a reader remembers of vectors, in bytes: those of a million passages of the default model, and more.
VECTOR_BYTES = 384 * 1024 * 1024
#: Records without vectors are counted up to so many.
PENDING_MOST = 10_000


@dataclass(frozen=True, slots=True)
class MeaningScope:
    """The fields that are compared, which reach each shelf is seen through, and how far its vectors are made."""

    fields: Mapping[tuple[int, int], SearchedField]
    reaches: Mapping[int, SearchReach]
    #: Up to which record the vectors of each shelf are made, and the shelves that have more records.
    filled: Mapping[int, int]
    is_behind: AbstractSet[int]


@dataclass(frozen=True, slots=True)
class VisibleBlock:
    """What may be seen of a block."""

    field: SearchedField
    rows: VectorBlock
    #: One divided by the length of each vector.
    inverse: Floats

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, about."""
        return self.rows.vectors.size + 24 * len(self.rows)


def meaning_scope(
    database: Database, catalog: Catalog, reaches: Sequence[SearchReach], model: str
) -> MeaningScope:
    """Find out where a search by meaning looks, and how far the vectors are made there."""
    shelves = {shelf.sid: (shelf, reach) for reach in reaches for shelf in catalog.shelves_of(reach.reach)}
    fields: dict[tuple[int, int], SearchedField] = {}
    filled: dict[int, int] = {}
    is_behind: set[int] = set()
    asked = msgspec.json.encode(sorted(shelves)).decode()
    for sid, total, *state in database.all(database.sql["visible_vector_shelves"], (asked,)):
        shelf, one = shelves[sid]
        made = shelf.stream.with_vectors
        filled[sid] = state[2] if state[:2] == [model, fids_key(made.values())] else 0
        if filled[sid] < total:
            is_behind.add(sid)
        bounds = Bounds(one.reach.time, one.reach.resources)
        for name in one.meaning_fields:
            if name in made:
                fields[sid, made[name]] = SearchedField(sid, made[name], name, 1.0, bounds, one.shows_time)
    return MeaningScope(fields, {sid: one for sid, (_, one) in shelves.items()}, filled, is_behind)


class VectorMemory:
    """The blocks that a reader has seen, the least recently used of them forgotten first."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[int, Bounds | None], VisibleBlock | None] = OrderedDict()
        self._bytes = 0

    def visible(self, database: Database, scope: MeaningScope) -> list[VisibleBlock]:
        """Return what may be seen of every block; a block never changes, so it is read once."""
        pairs = [key for key in sorted(scope.fields) if scope.filled[key[0]]]
        found: list[VisibleBlock] = []
        asked = msgspec.json.encode(pairs).decode()
        for bid, sid, fid in database.all(database.sql["visible_vector_blocks"], (asked,)):
            one = scope.fields[sid, fid]
            key = (bid, None if one.bounds.is_open else one.bounds)
            block = self._remembered(key, lambda bid=bid, one=one: _read(database, bid, one))
            if block is not None:
                found.append(block)
        return found

    def _remembered(
        self, key: tuple[int, Bounds | None], make: Callable[[], VisibleBlock | None]
    ) -> VisibleBlock | None:
        if key in self._blocks:
            self._blocks.move_to_end(key)
            return self._blocks[key]
        made = self._blocks[key] = make()
        self._bytes += 0 if made is None else made.size_bytes
        while self._bytes > memory.share(VECTOR_BYTES, 8) and len(self._blocks) > 1:
            _, gone = self._blocks.popitem(last=False)
            self._bytes -= 0 if gone is None else gone.size_bytes
        return made


def _read(database: Database, bid: int, one: SearchedField) -> VisibleBlock | None:
    """Read a block and leave out the rows that may not be seen; None: there are no others."""
    rows = read_block(database, bid)
    if not one.bounds.is_open:
        rows = rows.chosen(_inside(database, rows, one))
    return VisibleBlock(one, rows, inverse_lengths(rows.vectors)) if len(rows) else None


def _inside(database: Database, rows: VectorBlock, one: SearchedField) -> Numbers:
    stays = np.ones(len(rows), np.bool_)
    time, resources = one.bounds.time, one.bounds.resources
    if time is not None:
        # A record without a time is outside every range.
        stays &= rows.times >= (NO_TIME + 1 if time.since is None else time.since)
        if time.until is not None:
            stays &= rows.times < time.until
    if resources is not None:
        keys = msgspec.json.encode(sorted(resources)).decode()
        rids = [rid for (rid,) in database.all(database.sql["numbers_by_key"], (one.sid, keys))]
        stays &= np.isin(rows.numbers, np.array(rids, np.int64) & ((1 << RID_SHIFT) - 1))
    return stays


def stale_texts(database: Database, scope: MeaningScope) -> dict[int, set[int]]:
    """Return the row numbers of the texts that changed since their vectors were made, by field."""
    found: dict[int, set[int]] = {}
    for sid in scope.reaches:
        rows = database.all(database.sql["stale_texts"], (sid << RID_SHIFT, (sid + 1) << RID_SHIFT, -1))
        for rid, fid in rows:
            if (sid, fid) in scope.fields:
                found.setdefault(fid, set()).add(rid)
    return found


def pending_count(
    database: Database, catalog: Catalog, scope: MeaningScope, stale: Mapping[int, set[int]]
) -> int:
    """Count the visible records whose vectors are still to be made, up to a bound."""
    again = sorted(set[int]().union(*stale.values()))
    behind = {sid for sid, _ in scope.fields} & (scope.is_behind | {rid >> RID_SHIFT for rid in again})
    return min(PENDING_MOST, sum(_pending_on(database, catalog, scope, sid, again) for sid in behind))


def _pending_on(
    database: Database, catalog: Catalog, scope: MeaningScope, sid: int, again: Sequence[int]
) -> int:
    shelf, reach = catalog.by_sid[sid], scope.reaches[sid].reach
    rows = scope_of(catalog, Reach(shelf.name, (shelf.connection_id,), (), reach.time, reach.resources))
    assert rows is not None
    first, last = sid << RID_SHIFT, (sid + 1) << RID_SHIFT
    waiting = msgspec.json.encode([rid for rid in again if first < rid < last]).decode()
    sql = database.sql["count_pending"].format(where=rows.where, most=PENDING_MOST)
    return database.value(sql, (first + scope.filled[sid], last, waiting, *rows.values))
