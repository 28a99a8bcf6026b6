"""Read stored records whole, for work over all records of a shelf; it goes around damaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headgate.store.format.long_texts import long_notes
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.format.streams import StreamTable
from headgate.store.sql.database import Database

_AT_ONCE = 1000


_VALUES = msgspec.json.Decoder(dict[str, Any])


def stored_rows(
    database: Database, stream: StreamTable, sid: int
) -> Iterator[list[tuple[int, int | None, Mapping[str, Any] | None]]]:
    """Return the live records of a shelf in portions: row number, time, and what `values_of` reads."""
    after = sid << RID_SHIFT
    while rows := database.all(
        database.sql["live_records"],
        (after, (sid + 1) << RID_SHIFT, _AT_ONCE),
    ):
        yield [(rid, ts, values_of(database, stream, rid, long, body)) for rid, ts, long, body in rows]
        after = rows[-1][0]


def values_of(
    database: Database, stream: StreamTable, rid: int, long: bytes | None, body: bytes | None
) -> Mapping[str, Any] | None:
    """Return the values of a stored record, its long texts put back in; None: it is damaged, and is never shown.

    Work over many records goes around a damaged one: it costs itself, and not the others.
    """
    if body is None:
        return None
    try:
        values = _VALUES.decode(body)
        for name in long_notes(long):
            values[name] = whole_text(database, rid, stream.fids[name])
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, *database.damage):
        return None
    return values


def whole_text(database: Database, rid: int, fid: int) -> str:
    """Put a long text together again."""
    pieces = database.all(database.sql["long_text"], (rid, fid))
    return "".join(piece for (piece,) in pieces)
