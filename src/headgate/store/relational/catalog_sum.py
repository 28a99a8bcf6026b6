"""A checksum over the tables of the catalog, which nothing else in the store repeats.

It is written with every change of the catalog and compared by a check: a declaration in which one letter is another
one can still be read, and would only say something else.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from headgate.store.relational.database import Database

_FACT = "catalog_sum"
_TABLES = ("all_declarations", "connections", "streams", "fields", "shelves", "hiding_rules")
_encode = msgspec.msgpack.Encoder().encode


def note_catalog_sum(database: Database) -> None:
    """Write the checksum of the catalog as it is, inside a writer's transaction."""
    database.run(database.sql["put_fact"], (_FACT, catalog_sum(database)))


def is_catalog_changed(database: Database) -> bool:
    """Say whether the catalog is another one than was written; a store of an older version cannot tell."""
    noted = dict(database.all(database.sql["facts"])).get(_FACT)
    return noted is not None and noted != catalog_sum(database)


def catalog_sum(database: Database) -> int:
    """Compute the checksum; it is the same in every engine."""
    rows = [sorted(map(_encode, database.all(database.sql[name]))) for name in _TABLES]
    return int.from_bytes(sha256(_encode(rows)).digest()[:8], signed=True)
