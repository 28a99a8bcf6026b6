"""The two shelves of a stream of a connection: what may be shown is on one, what a rule hides on the other.

A record is live on one of them at most. One that moves is removed from the one and added to the other: a client
that saw it sees it go, as if it had been deleted, and one that a rule stops hiding comes in for it like a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import ResourceLimit
from headgate.model.ids import ConnectionId, RecordId
from headgate.model.record import Op
from headgate.store.changes.accounts import make_hidden_shelf, make_shelves
from headgate.store.changes.shelf_changes import ShelfChanges, StoredRecord, stored_records
from headgate.store.format.lines import Incoming
from headgate.store.format.row_numbers import MAX_SID
from headgate.store.format.streams import StreamTable
from headgate.store.sql.database import Database

#: By whether it is the shelf of what is hidden, and by key: the records that are stored.
StoredPair = Mapping[bool, Mapping[str, StoredRecord]]


@dataclass(frozen=True, slots=True)
class ShelfPair:
    """Where the records of one stream of one connection are written."""

    database: Database
    stream: StreamTable
    connection_id: ConnectionId
    received_at: int

    def stored(self, keys: Iterable[str]) -> StoredPair:
        """Find the records with one of the keys on both shelves, tombstones among them."""
        asked = list(keys)
        rows = {is_hidden: self._row(is_hidden=is_hidden) for is_hidden in (False, True)}
        return {
            is_hidden: {} if row is None else stored_records(self.database, row[0], asked)
            for is_hidden, row in rows.items()
        }

    def put(self, items: Mapping[RecordId, Incoming], stored: StoredPair) -> None:
        """Write each record on the shelf where it belongs, and remove it from the other."""
        for is_hidden, known in stored.items():
            here = {
                key: item
                for key, item in items.items()
                if (item.op is Op.UPSERT and item.is_hidden is is_hidden) or key in known
            }
            if here:
                self._put_on(here, known, is_hidden=is_hidden)

    def _put_on(
        self, items: Mapping[RecordId, Incoming], known: Mapping[str, StoredRecord], *, is_hidden: bool
    ) -> None:
        changes = self._changes(is_hidden=is_hidden)
        before = changes.seq
        for key, item in items.items():
            old = known.get(key)
            if item.op is Op.UPSERT and item.is_hidden is is_hidden:
                if old is None:
                    changes.add(item)
                else:
                    changes.change(item, old)
            elif old is not None:
                # Of a record that moves, the time of its new state is not to be seen here.
                gone_at = item.emitted_at if item.op is Op.DELETE else self.received_at
                changes.change(Incoming(key, Op.DELETE, gone_at, b"", {}), old)
        if changes.seq != before:
            changes.flush()

    def _changes(self, *, is_hidden: bool) -> ShelfChanges:
        """Begin to change a shelf; one that is not there yet is made."""
        row = self._row(is_hidden=is_hidden)
        if row is None:
            if is_hidden:
                make_hidden_shelf(self.database, self.connection_id, self.stream.stid)
            else:
                make_shelves(self.database, self.stream.connector_key)
            row = self._row(is_hidden=is_hidden)
        assert row is not None
        sid, next_n = row
        if sid > MAX_SID:
            raise ResourceLimit(f"A store holds at most {MAX_SID} streams of connections.")
        seq: int = self.database.value(self.database.sql["change_number"])
        return ShelfChanges(self.database, self.stream, sid, next_n, seq, self.received_at)

    def _row(self, *, is_hidden: bool) -> tuple[int, int] | None:
        """Return the number of a shelf, and of its next record."""
        found = self.database.one(
            self.database.sql["shelf_to_fill"], (self.connection_id, self.stream.stid, int(is_hidden))
        )
        return None if found is None else (found[0], found[1])
