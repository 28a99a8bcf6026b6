"""A check sum of the catalog, so that a change behind the program's back is found.

Records are checked against digests that they carry. The catalog decides to whom they belong, what their fields mean and
what is hidden, and nothing else repeats it. A migration that changes its tables has to delete the sum from ``meta``.
"""

from __future__ import annotations

import hashlib
from typing import Any

from headgate.store.relational.database import Database

#: The fact that holds the sum.
CATALOG_SUM = "catalog_sum"
#: What both engines store as one number.
_SUM_BYTES = 7
_PARTS = ("all_declarations", "connections", "streams", "fields", "shelves", "hiding_rules")


def catalog_sum(database: Database) -> int:
    """Compute the sum of what is stored now; it is the same in every engine."""
    hashed = hashlib.sha256()
    for part in _PARTS:
        rows = sorted(repr(tuple(map(_plain, row))) for row in database.all(database.sql[part]))
        hashed.update(f"{part} {len(rows)} {rows}".encode())
    return int.from_bytes(hashed.digest()[:_SUM_BYTES])


def _plain(value: Any) -> Any:
    # An engine may give bytes as another type, and truth as a number.
    return int(value) if isinstance(value, bool) else value if isinstance(value, str | int) else _bytes(value)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def note_catalog_sum(database: Database) -> None:
    """Write the sum, at the end of a change of the catalog and in its transaction."""
    database.run(database.sql["put_fact"], (CATALOG_SUM, catalog_sum(database)))


def is_catalog_as_noted(database: Database) -> bool:
    """Compare the catalog with its sum; a store that has none yet was made by an earlier version."""
    noted = database.one(database.sql["noted_catalog_sum"])
    return noted is None or noted[0] == catalog_sum(database)
