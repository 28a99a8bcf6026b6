"""Let the server count what the tables hold, so that it chooses the right index.

Servers do this themselves about once a minute. A large import into new tables would be read badly until then. Only the
owner of the tables can ask for it; for a role that serves one home the server's own rhythm must do.
"""

from __future__ import annotations

from headgate.store.postgres.dialect import SQL
from headgate.store.relational.database import Database

#: A table that has grown by so much since it was last counted is counted again.
_TIMES_LARGER = 4


class Statistics:
    """An idle task."""

    name = "statistics"

    def __init__(self) -> None:
        #: How large the tables were when this process last had them counted.
        self._pages = 0

    def plan(self, database: Database) -> bool:
        """Say whether the tables have grown enough since they were last counted."""
        pages, counted = database.all(SQL["table_size"])[0]
        return pages > _TIMES_LARGER * max(self._pages, counted)

    def step(self, database: Database) -> bool:
        """Count them; returns whether more is left to do."""
        self._pages = database.all(SQL["table_size"])[0][0]
        database.run(SQL["gather_statistics"])
        return False
