"""Compare all records with the owner's rules again, where another version compared them before.

What a rule finds depends on how texts are folded, and which shelf a record is on was decided when it came in, or when
the rule was added.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from headgate.policy import hiding as rules
from headgate.store.relational.catalog import Catalog, current
from headgate.store.relational.database import Database
from headgate.store.relational.row_numbers import RID_SHIFT
from headgate.store.relational.write.hiding import move

_AT_ONCE = 500


class RuleComparison:
    """An idle task: put records that this version of the rules hides, or hides no longer, where they belong."""

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
        """Compare some records; returns whether more are left."""
        with database.writing():
            rows = database.all(database.sql["live_records_after"], (self._after, _AT_ONCE))
            catalog = current(database, Catalog())
            shelves = {shelf.sid: shelf for shelf in (*catalog.by_sid.values(), *catalog.retired_shelves)}
            for sid, found in groupby((rid for rid, *_ in rows), lambda rid: rid >> RID_SHIFT):
                move(database, catalog, shelves[sid], list(found), at=self._now())
            if not rows:
                database.run(database.sql["set_rules_version"], (rules.VERSION,))
        self._after = rows[-1][0] if rows else 0
        return bool(rows)
