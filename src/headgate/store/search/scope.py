"""Where a search looks: the searched fields of the shelves that its plan reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from headgate.model.declaration import PEOPLE_FIELDS, TITLE_FIELDS
from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import SearchReach
from headgate.store.search.ranking import PEOPLE_WEIGHT, PROSE_WEIGHT, TITLE_WEIGHT
from headgate.store.sql.catalog import Catalog


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
                    weight = _weight(name)
                    fields[shelf.sid, fid] = SearchedField(
                        shelf.sid, fid, name, weight, bounds, reach.shows_time
                    )
    return SearchScope(fields, by_sid, msgspec.json.encode(sorted(fields)).decode())


def _weight(name: FieldName) -> float:
    if name in TITLE_FIELDS:
        return TITLE_WEIGHT
    return PEOPLE_WEIGHT if name in PEOPLE_FIELDS else PROSE_WEIGHT
