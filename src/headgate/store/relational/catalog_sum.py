"""A checksum of the catalog, so that a change behind the program's back is found.

Records are checked against digests that they carry. The catalog decides to whom they belong, what their fields mean and
what is hidden, and nothing else repeats it. A migration that changes its tables has to delete the sum from ``meta``.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from headgate.store.relational.database import Database

#: The fact that holds the sum.
CATALOG_SUM = "catalog_sum"
#: What both engines store as one number.
_SUM_BYTES = 7
_TABLES = ("all_declarations", "connections", "streams", "fields", "shelves", "hiding_rules")
_encode = msgspec.msgpack.Encoder().encode


def catalog_sum(database: Database) -> int:
    """Compute the sum of what is stored now; it is the same in every engine."""
    rows = [sorted(map(_encode, database.all(database.sql[name]))) for name in _TABLES]
    return int.from_bytes(sha256(_encode(rows)).digest()[:_SUM_BYTES])


def note_catalog_sum(database: Database) -> None:
    """Write the sum, at the end of a change of the catalog and in its transaction."""
    database.run(database.sql["put_fact"], (CATALOG_SUM, catalog_sum(database)))


def is_catalog_as_noted(database: Database) -> bool:
    """Compare the catalog with its sum; a store that has none yet was made by an earlier version."""
    noted = database.one(database.sql["noted_catalog_sum"])
    return noted is None or noted[0] == catalog_sum(database)
