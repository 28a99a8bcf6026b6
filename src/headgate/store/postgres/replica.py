"""Reads from a replica: a server that follows the primary, as long as it is as new as every request needs.

A read is done there only in a state that has everything which the primary had when the request was admitted: the version
that admission saw comes with the beginning of the transaction. So an answer from a replica is one that the primary could
have given, and what was hidden, removed or stored before a request is hidden, gone or there. In every other case, and when
the replica fails, the primary answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import errors as pg

from headgate.errors import IntegrityBroken
from headgate.store.postgres.database import HomePlace, OlderState, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.postgres.readers import PostgresReader
from headgate.store.relational.catalog import Catalog
from headgate.store.relational.database import QUERY_SECONDS, Database

_T = TypeVar("_T")
#: A replica that does not answer is given up soon: the primary is there.
_CONNECTING = {
    "connect_timeout": 2,
    "tcp_user_timeout": 2000,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "application_name": "headgate-replica",
}


class Replica:
    """A server that follows the primary, and whether it is used; threads share it.

    It is left alone from the moment it cannot be reached, or a check finds that it lacks what the primary had at the
    check before, until a check finds that again. Checks come once a second.
    """

    def __init__(self, primary: HomePlace, url: str) -> None:
        self.place = HomePlace(url, primary.home, primary.known)
        self._database = open_replica(self.place)
        self._lock = threading.Lock()
        self._is_used = False
        #: What the primary had at the last check.
        self._had: tuple[int, int] | None = None

    @property
    def is_used(self) -> bool:
        """Whether reads may go there."""
        return self._is_used

    def leave(self) -> None:
        """Leave it alone until the next check that it passes."""
        self._is_used = False

    def check(self) -> None:
        """See whether it can be reached, and has what the primary had at the last check."""
        with self._lock:
            known = self.place.known
            has = known.version, known.latest_time
            self._is_used = self._reaches(self._had or has)
            self._had = has

    def _reaches(self, had: tuple[int, int]) -> bool:
        try:
            row = self._database.one(SQL["replica_state"])
        except psycopg.Error:
            return False
        # A server that follows another primary than this one has neither number, sooner or later.
        return row is not None and all(mine >= theirs for mine, theirs in zip(row, had, strict=True))

    def close(self) -> None:
        """Close the connection of the checks."""
        with self._lock:
            self._is_used = False
            self._database.finish()


def open_replica(place: HomePlace) -> PostgresDatabase:
    """Open a connection to a replica when it is first used."""
    return PostgresDatabase(place, statement_seconds=QUERY_SECONDS, connecting=_CONNECTING)


class ReplicaReader(PostgresReader):
    """A reader with a second connection, to a replica, for the reads that allow it."""

    def __init__(self, place: HomePlace, replica: Replica) -> None:
        super().__init__(place)
        self._replica = replica
        self._there = open_replica(replica.place)

    def read_any(self, work: Callable[[Database, Catalog], _T], seconds: float | None = None) -> _T:
        """Do one read in one state of the store that is as new as the request needs."""
        done = self._read_there(work, seconds) if self._replica.is_used else None
        return self.read(work, seconds) if done is None else done[0]

    def _read_there(self, work: Callable[[Database, Catalog], _T], seconds: float | None) -> tuple[_T] | None:
        """Do a read on the replica; None if it must be done by the primary."""
        there = self._there
        try:
            return (self.read_on(there, work, seconds, there.place.known.version),)
        except OlderState:
            return None
        except pg.QueryCanceled:
            # It takes too long, as it would there. What a replica cancels for its own reasons is another error.
            with translated():
                raise
        except (psycopg.Error, IntegrityBroken):
            if not there.is_connected:
                self._replica.leave()
            return None

    def finish(self) -> None:
        """Close the connections."""
        super().finish()
        self._there.finish()


def reader_maker(replica: Replica | None) -> Callable[[HomePlace], PostgresReader]:
    """Say how readers are made: with a replica, or without one."""
    if replica is None:
        return PostgresReader
    return lambda place: ReplicaReader(place, replica)
