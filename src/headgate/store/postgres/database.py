"""One connection to PostgreSQL that works for one home: transactions, deadlines, and what its failures mean here."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from headgate import memory
from headgate.errors import (
    HeadgateError,
    IntegrityBroken,
    QueryTimeout,
    StorageFull,
    StorageReadOnly,
    StorageUnusable,
)
from headgate.store.postgres.dialect import DIALECT, SQL, PostgresDialect, numbered
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import QUERY_SECONDS, WaitingTexts

_CONNECT_SECONDS = 5
_LOCK_SECONDS = 30
#: A row may be a block of the log, or a segment of an index.
_FETCH_ROWS = 32
#: Plans are made once for a statement: the values of a read never change which index serves it.
_OPTIONS = (
    f"-c plan_cache_mode=force_generic_plan -c lock_timeout={_LOCK_SECONDS}s -c jit=off -c timezone=UTC"
)
_tuple: Any = tuple
_Row = TypeVar("_Row", bound=tuple[Any, ...])


class KnownTime:
    """The latest time that a machine of the home has seen, as far as this process knows; threads share it."""

    __slots__ = ("_lock", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In microseconds since 1970.
        self.value = 0

    def note(self, at: int) -> None:
        """Note a time that the database holds as the latest."""
        # Most are known: then no thread waits for another.
        if at > self.value:
            with self._lock:
                self.value = max(self.value, at)


@dataclass(frozen=True, slots=True)
class HomePlace:
    """Where a home's records are: a database, and the number of the home in it."""

    url: str
    home: int
    #: Through any connection of this process.
    latest_time: KnownTime = field(default_factory=KnownTime, compare=False, repr=False)


class StateMoved(Exception):
    """The statements of a read saw different states of the store, or need a transaction."""


class Watched:
    """The state that every statement of a read must have seen."""

    __slots__ = ("catalog_number", "version")

    def __init__(self, catalog_number: int) -> None:
        self.catalog_number = catalog_number
        #: None: no statement has seen anything yet.
        self.version: int | None = None

    def compare(self, catalog_number: int, version: int) -> None:
        """Compare with what a statement saw."""
        if catalog_number != self.catalog_number or self.version not in {None, version}:
            raise StateMoved
        self.version = version


class PostgresDatabase:
    """Implements `sql.database.Database`; a connection that was lost is made again by the next transaction."""

    def __init__(self, place: HomePlace, *, statement_seconds: float = math.inf) -> None:
        self.place = place
        #: The most that a statement outside of a transaction may take.
        self._statement_seconds = statement_seconds
        self.texts = WaitingTexts()
        self.most_bytes = sys.maxsize
        self._connection: Any | None = None
        #: Of that connection, or of the one before.
        self._cursor: Any | None = None
        #: Whether the block of a transaction is under way, whatever became of its connection.
        self._is_within = False
        #: The numbers of the catalog and of the state, as the transaction that is under way sees them.
        self._seen: tuple[int, int] | None = None
        self._watched: Watched | None = None
        self.known_catalog: Catalog | None = None

    @property
    def dialect(self) -> PostgresDialect:
        return DIALECT

    @property
    def sql(self) -> Mapping[str, str]:
        return SQL

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        return (pg.DataCorrupted, pg.IndexCorrupted)

    # Statements

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._fetch(sql, values)

    def rows(self, kind: type[_Row], sql: str, values: Sequence[Any] = ()) -> list[_Row]:
        return list(map(partial(_tuple.__new__, kind), self._fetch(sql, values)))

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        if self._watched is not None:
            # Portions come from a transaction alone.
            raise StateMoved
        connection = self.connected()
        if not self.in_transaction:
            yield from self.all(sql, values)
            return
        server_cursor: Any = psycopg.RawServerCursor
        cursor = server_cursor(connection, "each")
        cursor.itersize = _FETCH_ROWS
        try:
            cursor.execute(numbered(sql), (self.place.home, *values), binary=True)
            yield from cursor
        finally:
            _close(cursor)

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._execute(sql, values)

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        rows = self._fetch(sql, values)
        return rows[0] if rows else None

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        row = self.one(sql, values)
        if row is None:
            raise IntegrityBroken("The store's tables are damaged.")
        return row[0]

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for rows of values: once with arrays where it takes arrays, else once for each row."""
        if not rows:
            return
        if "[])" in sql:
            self._execute(sql, [list(column) for column in zip(*rows, strict=True)])
            return
        cursor = self.connected().cursor()
        cursor.executemany(numbered(sql), [(self.place.home, *row) for row in rows])

    def _fetch(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self._watched is None:
            return self._execute(sql, values).fetchall()
        rows = self._short_rows(_with_state(sql), values)
        catalog_number, version, is_found, *_ = rows[0]
        self._watched.compare(catalog_number, version)
        return [row[3:] for row in rows] if is_found else []

    def _short_rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a short read, through one cursor: to make one takes a fifth of such a read."""
        connection, cursor = self.connected(), self._cursor
        if cursor is None or cursor.connection is not connection:
            cursor = self._cursor = connection.cursor()
        return cursor.execute(numbered(sql), (self.place.home, *values), binary=True).fetchall()

    def _execute(self, sql: str, values: Sequence[Any]) -> Any:
        text = numbered(sql)
        if not values and "$1" not in text:
            return self.connected().execute(text, binary=True)
        return self.connected().execute(text, (self.place.home, *values), binary=True)

    # Transactions

    @property
    def in_transaction(self) -> bool:
        connection = self._connection
        if connection is None or connection.closed:
            return False
        return connection.info.transaction_status in {
            psycopg.pq.TransactionStatus.INTRANS,
            psycopg.pq.TransactionStatus.INERROR,
        }

    def catalog_number(self) -> int:
        if self._watched is not None:
            return self._watched.catalog_number
        return self.value(SQL["catalog_number"]) if self._seen is None else self._seen[0]

    def snapshot_version(self) -> int:
        if self._watched is not None:
            if self._watched.version is None:
                self._fetch("SELECT 1", ())
            assert self._watched.version is not None
            return self._watched.version
        assert self._seen is not None, "asked for inside a read"
        return self._seen[1]

    @contextmanager
    def watching(self, catalog_number: int) -> Generator[Watched]:
        """Read without a transaction: each statement also gives the state that it saw, which must always be the same.

        It saves two messages to the server, which take longer than most reads. Statements raise `StateMoved` if
        another process has written since the first one, or the catalog is another one.
        """
        self._watched = Watched(catalog_number)
        try:
            yield self._watched
        finally:
            self._watched = None

    @contextmanager
    def reading(self, seconds: float = QUERY_SECONDS) -> Generator[None]:
        # One message and one answer: the transaction, its deadline, and the numbers that caches are compared with.
        cursor = self._begin(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SET LOCAL statement_timeout={_milliseconds(seconds)}; {numbered_for(SQL['state_numbers'], self.place.home)}"
        )
        while cursor.nextset():
            pass
        numbers = dict(cursor.fetchall())
        self._seen = int(numbers["catalog"]), int(numbers["version"])
        self._is_within = True
        try:
            yield
        finally:
            self._seen, self._is_within = None, False
            self._end("COMMIT")

    @contextmanager
    def writing(self) -> Generator[None]:
        with self.changing(SQL["raise_version"]):
            yield

    @contextmanager
    def changing(self, first: str) -> Generator[int]:
        """Do the block in one transaction; its first statement raises a number, and keeps others of its kind waiting."""
        self._begin("BEGIN")
        self._is_within = True
        try:
            yield self.value(first)
            self.texts.flush(self)
            self.connected().execute("COMMIT")
        except BaseException:
            self.texts.forget_after(0)
            self.known_catalog = None
            self._end("ROLLBACK")
            raise
        finally:
            self._is_within = False

    def _begin(self, statement: str) -> Any:
        """Begin a transaction; a connection that was lost since the last one is made again first."""
        try:
            return self.connected().execute(statement)
        except psycopg.OperationalError:
            if not self.is_lost:
                raise
        return self.connected().execute(statement)

    @property
    def is_lost(self) -> bool:
        """Whether there was a connection and it is closed."""
        return self._connection is not None and self._connection.closed

    def _end(self, statement: str) -> None:
        if self.in_transaction:
            with contextlib.suppress(psycopg.OperationalError):
                self.connected().execute(statement)

    def connected(self) -> Any:
        """Return the connection; makes it if there is none, or it was lost outside of a transaction."""
        connection = self._connection
        if connection is None or connection.closed:
            if self._is_within:
                # On another connection the rest of the block would be done without its beginning.
                raise psycopg.OperationalError("the connection was lost within a transaction")
            connection = connect(self.place.url, self._statement_seconds)
            self._connection = connection
        return connection

    # For the writer

    @contextmanager
    def translating(self) -> Generator[None]:
        with translated():
            yield

    def tidy(self) -> None:
        """Do nothing: the server looks after its files."""

    def finish(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _close(cursor: Any) -> None:
    """Close a cursor of the server; one whose connection is lost is gone, which only a second call notices."""
    try:
        cursor.close()
    except psycopg.OperationalError:
        cursor.close()
        raise


def numbered_for(sql: str, home: int) -> str:
    """Write a statement whose only value is the home, for a message with several statements."""
    return sql.replace(":home", str(home))


@lru_cache(maxsize=1024)
def _with_state(sql: str) -> str:
    return SQL["with_state"].format(statement=sql)


def _milliseconds(seconds: float) -> int:
    """Write a limit as the server does, for which 0 is none."""
    return 0 if math.isinf(seconds) else int(seconds * 1000)


def connect(url: str, statement_seconds: float = math.inf, **options: Any) -> Any:
    """Open a connection that prepares what it runs often; options are those of the driver, before the usual ones."""
    usual: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "application_name": "headgate"}
    connection: Any = psycopg.connect(
        url,
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
        prepare_threshold=2,
        options=f"{_OPTIONS} -c statement_timeout={_milliseconds(statement_seconds)}",
        **{**usual, **options},
    )
    connection.prepared_max = 200
    # One type for all whole numbers: else a statement is prepared once for each size of each value.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    return connection


@contextmanager
def translated() -> Generator[None]:
    """Raise this program's errors in place of PostgreSQL's."""
    try:
        yield
    except MemoryError as error:
        raise memory.out_of_memory() from error
    except psycopg.Error as error:
        raise meaning_of(error) from error


def meaning_of(error: psycopg.Error) -> HeadgateError:
    """Return what a failure of PostgreSQL means here."""
    for kinds, make in _MEANINGS:
        if isinstance(error, kinds):
            return make()
    return StorageUnusable(f"The database failed ({type(error).__name__}).")


_MEANINGS: Sequence[tuple[tuple[type[psycopg.Error], ...], Callable[[], HeadgateError]]] = (
    ((pg.DiskFull,), StorageFull),
    ((pg.QueryCanceled,), QueryTimeout),
    ((pg.DataCorrupted, pg.IndexCorrupted), lambda: IntegrityBroken("The store's tables are damaged.")),
    ((pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege), StorageReadOnly),
    (
        (pg.LockNotAvailable, pg.SerializationFailure, pg.DeadlockDetected),
        lambda: StorageUnusable("The store is busy.", hint="Try again in a moment."),
    ),
    (
        (psycopg.OperationalError, psycopg.InterfaceError),
        lambda: StorageUnusable("The database cannot be reached.", hint="Try again in a moment."),
    ),
)
