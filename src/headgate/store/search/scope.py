"""Where a search looks: the searched fields of the shelves that its plan reaches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from headgate import memory
from headgate.model.declaration import PEOPLE_FIELDS, TITLE_FIELDS
from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import SearchReach
from headgate.store.format.arrays import np
from headgate.store.format.records import N_MASK
from headgate.store.format.segments import NO_TIME, Numbers
from headgate.store.search.ranking import PEOPLE_WEIGHT, PROSE_WEIGHT, QUOTED_WEIGHT, TITLE_WEIGHT
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which records of a shelf may be seen, where not all of them may."""

    time: TimeConstraint | None
    resources: frozenset[RecordId] | None

    @property
    def is_open(self) -> bool:
        """All records may be seen."""
        return self.time is None and self.resources is None


@dataclass(frozen=True, slots=True)
class SearchedField:
    """One field of one shelf."""

    sid: int
    fid: int
    name: FieldName
    weight: float
    bounds: Bounds
    shows_time: bool
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The searched fields, and which reach each shelf is seen through."""

    fields: Mapping[tuple[int, int], SearchedField]
    reaches: Mapping[int, SearchReach]
    #: The pairs of shelf and field, for a statement.
    pairs: str


def search_scope(catalog: Catalog, reaches: tuple[SearchReach, ...]) -> SearchScope:
    """Return where a search looks; a client sends the same reaches with every search, so that is remembered."""
    known = catalog.memo.search_scopes.get(reaches)
    return known or catalog.memo.search_scopes.remember(reaches, _search_scope(catalog, reaches))


def _search_scope(catalog: Catalog, reaches: Sequence[SearchReach]) -> SearchScope:
    fields: dict[tuple[int, int], SearchedField] = {}
    by_sid: dict[int, SearchReach] = {}
    for reach in reaches:
        bounds = Bounds(reach.reach.time, reach.reach.resources)
        for shelf in catalog.shelves_of(reach.reach):
            by_sid[shelf.sid] = reach
            for name in reach.search_fields:
                fid = shelf.stream.searched.get(name)
                if fid is not None:
                    is_quoted = name in reach.quoted_fields
                    weight = QUOTED_WEIGHT if is_quoted else _weight(name)
                    fields[shelf.sid, fid] = SearchedField(
                        shelf.sid, fid, name, weight, bounds, reach.shows_time, is_quoted
                    )
    return SearchScope(fields, by_sid, msgspec.json.encode(sorted(fields)).decode())


def _weight(name: FieldName) -> float:
    if name in TITLE_FIELDS:
        return TITLE_WEIGHT
    return PEOPLE_WEIGHT if name in PEOPLE_FIELDS else PROSE_WEIGHT


def inside(database: Database, field: SearchedField, numbers: Numbers, times: Numbers) -> Numbers:
    """Return which records of a field, by number and time, may be seen."""
    stays = np.ones(len(numbers), np.bool_)
    time, resources = field.bounds.time, field.bounds.resources
    if time is not None:
        # A record without a time is outside every range; its time is before all others.
        stays &= times >= (NO_TIME + 1 if time.since is None else time.since)
        if time.until is not None:
            stays &= times < time.until
    if resources is not None:
        keys = msgspec.json.encode(sorted(resources)).decode()
        rids = [rid for (rid,) in database.all(database.sql["numbers_by_key"], (field.sid, keys))]
        stays &= np.isin(numbers, np.array(rids, np.int64) & N_MASK)
    return stays


class _Sized(Protocol):
    @property
    def size_bytes(self) -> int: ...


_Key = TypeVar("_Key")
_Value = TypeVar("_Value", bound=_Sized)


class SizedMemory(Generic[_Key, _Value]):
    """What was read and may be needed again, up to so many bytes; the least recently used of it is forgotten first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._values: OrderedDict[_Key, _Value | None] = OrderedDict()
        self._bytes = 0

    def get(self, key: _Key, make: Callable[[], _Value | None]) -> _Value | None:
        """Return a value; one that is not remembered is made."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self._bytes += 0 if value is None else value.size_bytes
        while self._bytes > memory.share(self._most_bytes, 8) and len(self._values) > 1:
            _, gone = self._values.popitem(last=False)
            self._bytes -= 0 if gone is None else gone.size_bytes
        return value
