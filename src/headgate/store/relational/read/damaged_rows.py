"""Rows on damaged pages of the file: what can be read of the others, and what the indexes know of the lost ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from headgate.model.ids import RecordId
from headgate.store.relational.database import Database
from headgate.store.relational.read.rows import FoundColumns, read_rows
from headgate.store.relational.row_numbers import RID_SHIFT


class LostRow(NamedTuple):
    """What the index of a stream's order holds of a live record."""

    record_id: RecordId
    sort: Any


def readable_rows(database: Database, rids: Sequence[int]) -> dict[int, FoundColumns]:
    """Read the rows of records; if a page of the file is damaged one by one, without those on it."""
    try:
        return read_rows(database, rids)
    except database.damage:
        return {rid: row for rid in rids if (row := _row(database, rid)) is not None}


def _row(database: Database, rid: int) -> FoundColumns | None:
    try:
        return read_rows(database, [rid]).get(rid)
    except database.damage:
        return None


def readable_keys(database: Database, rids: Sequence[int], asked: str) -> dict[int, RecordId]:
    """Read the keys of records; ``asked`` are their numbers as JSON. Those of damaged rows come from an index."""
    try:
        return dict(database.all(database.sql["keys_by_number"], (asked,)))
    except database.damage:
        return {rid: key for rid in rids if (key := _key(database, rid)) is not None}


def _key(database: Database, rid: int) -> RecordId | None:
    try:
        key: RecordId | None = database.value(database.sql["record_key"], (rid,))
    except database.damage:
        lost = lost_row(database, rid)
        return None if lost is None else lost.record_id
    return key


def born_until(database: Database, rids: Sequence[int], horizon: int) -> set[int]:
    """Return which records came in until a change; those of damaged rows count among them, for a warning to name them."""
    asked = msgspec.json.encode(rids).decode()
    try:
        return {rid for (rid,) in database.all(database.sql["born_until"], (asked, horizon))}
    except database.damage:
        if len(rids) == 1:
            return set(rids)
        return {rid for one in rids for rid in born_until(database, [one], horizon)}


def lost_row(database: Database, rid: int) -> LostRow | None:
    """Find a live record whose row cannot be read; None: it is not live, or the index is damaged as well."""
    try:
        rows: Iterable[LostRow] = database.rows(LostRow, database.sql["lost_record"], (rid >> RID_SHIFT, rid))
    except database.damage:
        return None
    return next(iter(rows), None)
