"""Open the file with its limits: read-only or not, how long a query may take, what a statement may do."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import apsw

from headgate import memory
from headgate.errors import (
    HeadgateError,
    IntegrityBroken,
    QueryTimeout,
    StorageFull,
    StorageReadOnly,
    StorageUnusable,
)
from headgate.model.query import Scalar
from headgate.store.format.columns import Column, ColumnKind, TypedColumn, bindable
from headgate.store.sql.database import QUERY_SECONDS, Database, WaitingTexts
from headgate.store.sql.statements import statements_of
from headgate.system import open_private

if TYPE_CHECKING:
    # Importing the catalog takes longer than all that 'headgate store stats' does.
    from headgate.store.sql.catalog import Catalog

#: How the macros of shared statements are written here.
_MACROS = {
    r"(\w+\.)?\{home\} ": "",
    r"\{home_(column|value)\}": "",
    r"(\w+\.)?\{live\}": r"\1deleted=0",
    r"\{index (\S+)\}": r"INDEXED BY \1",
}
SQL: Mapping[str, str] = statements_of("headgate.store.sqlite", _MACROS)
_TYPES = {
    ColumnKind.WORD: "TEXT",
    ColumnKind.HASH: "INTEGER",
    ColumnKind.INTEGER: "INTEGER",
    ColumnKind.NUMBER: "REAL",
    ColumnKind.BOOLEAN: "INTEGER",
    ColumnKind.TIME: "INTEGER",
    ColumnKind.SCALED: "INTEGER",
}


class SqliteDialect:
    """A stream has a table for its typed values, with a column for each; SQLite compares values of any types."""

    __slots__ = ()

    @property
    def sql(self) -> Mapping[str, str]:
        return SQL

    def typed_table(self, stid: int) -> str:
        return f"t{stid}"

    def make_typed_table(self, database: Database, stid: int) -> None:
        database.run(SQL["make_typed_table"].format(table=self.typed_table(stid)))

    def add_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Add a column to the typed table of a stream; one of numbers has one of exact values beside it."""
        table, name = self.typed_table(stid), _name(column)
        database.run(SQL["add_typed_column"].format(table=table, column=name, type=_TYPES[column.kind]))
        if column.kind is ColumnKind.NUMBER:
            self.add_typed_column(database, stid, column.scaled)

    def index_typed_column(self, database: Database, stid: int, column: Column) -> None:
        database.run(SQL["index_typed_column"].format(table=self.typed_table(stid), column=_name(column)))

    def typed_tables(self, stid: int) -> tuple[str, ...]:
        return (self.typed_table(stid),)

    def put_typed(
        self, database: Database, stid: int, columns: Sequence[TypedColumn], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        names = "".join(f", {_name(column.column)}" for column in columns)
        marks = ", ?" * len(columns)
        table = self.typed_table(stid)
        database.many(SQL["put_typed_row"].format(table=table, names=names, marks=marks), rows)

    def typed_column(self, column: Column) -> str:
        return f"t.{_name(column)}"

    def comparison(self, column: Column, operator: str, value: Scalar) -> tuple[str, Any]:
        return f"{self.typed_column(column)} {operator} ?", bindable(value)

    def key_comparison(self, stid: int, column: Column, value: Any) -> tuple[str, tuple[Any, ...]]:
        del stid  # the table is the stream's alone
        return f"{self.typed_column(column)} = ?", (value,)

    def sort_value(self, value: Any) -> Any:
        return value

    def shown_sort(self, stored: Any) -> Any:
        return stored


def _name(column: Column) -> str:
    return f"{'s' if column.kind is ColumnKind.SCALED else 'c'}{column.number}"


DIALECT = SqliteDialect()


#: Older ones may lose a write when the WAL is reset while two connections use it.
OLDEST_SAFE = 3_051_003
PAGE_BYTES = 8192
#: How a log begins (https://sqlite.org/fileformat2.html#the_write_ahead_log).
_LOG_MAGIC = {b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"}
_LOG_HEADER_BYTES = 32
MAX_VALUE_BYTES = 64 * 1024 * 1024
#: A larger one makes no import faster, whose pages are in the system's cache, and takes its size in memory.
WRITER_CACHE_KIB = 16_384
BUSY_MS = 30_000
_STEPS_BETWEEN_LOOKS = 20_000
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1024,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 2000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
}
_EVERY = (
    f"busy_timeout={BUSY_MS}",
    "synchronous=FULL",
    "temp_store=memory",
    "trusted_schema=0",
    "cell_size_check=1",
    "secure_delete=1",
    "mmap_size=0",
    "foreign_keys=1",
)

_NEVER = float("inf")
_tuple: Any = tuple
_Row = TypeVar("_Row", bound=tuple[Any, ...])


class SqliteDatabase:
    """One SQLite connection, whose queries are interrupted at a deadline; implements `sql.database.Database`."""

    __slots__ = ("_deadline", "_frozen", "db", "known_catalog", "most_bytes", "path", "texts")

    def __init__(self, path: Path, db: Any, *, frozen: tuple[int, int] | None = None) -> None:
        self.path = path
        self.db = db
        self.texts = WaitingTexts()
        self.known_catalog: Catalog | None = None
        #: How much a read may load here; a larger one would keep the event loop waiting, and belongs in a thread.
        self.most_bytes = sys.maxsize
        self._deadline = _NEVER
        #: Time and size of the file when it was opened as read-only for everyone; None: others may write it.
        self._frozen = frozen
        db.set_progress_handler(self._is_late, _STEPS_BETWEEN_LOOKS)

    @property
    def dialect(self) -> SqliteDialect:
        return DIALECT

    @property
    def sql(self) -> Mapping[str, str]:
        return SQL

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        return (apsw.CorruptError,)

    def all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return self.db.execute(sql, values).fetchall()

    def rows(self, kind: type[_Row], sql: str, values: Any = ()) -> list[_Row]:
        # Half the time of `_make`, which counts the columns of every row again.
        return list(map(partial(_tuple.__new__, kind), self.db.execute(sql, values).fetchall()))

    def each(self, sql: str, values: Any = ()) -> Iterator[tuple[Any, ...]]:
        return self.db.execute(sql, values)

    def run(self, sql: str, values: Any = ()) -> None:
        self.db.execute(sql, values).fetchall()

    def one(self, sql: str, values: Any = ()) -> tuple[Any, ...] | None:
        return self.db.execute(sql, values).fetchone()

    def value(self, sql: str, values: Any = ()) -> Any:
        row = self.db.execute(sql, values).fetchone()
        if row is None:
            raise IntegrityBroken("The store's file is damaged.")
        return row[0]

    def many(self, sql: str, rows: Any) -> None:
        self.db.executemany(sql, rows)

    def version(self) -> int:
        """Return the version; it differs after every write of another connection."""
        if self._frozen is not None:
            self._refuse_if_changed()
        return self.db.execute("PRAGMA data_version").fetchone()[0]

    def catalog_number(self) -> int:
        return self.value(SQL["catalog_number"])

    def snapshot_version(self) -> int:
        """Return the version of the state that the last statement saw, without looking at the file again.

        The same number as `version`, on a connection that does not write.
        """
        return self.db.data_version()

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

    @property
    def is_lost(self) -> bool:
        """A file is not lost."""
        return False

    def translating(self) -> translate_errors:
        return translate_errors(self)

    def tidy(self) -> None:
        """Keep the WAL short."""
        _shorten_wal(self)

    def finish(self) -> None:
        """Move the WAL into the file and close the connection."""
        try:
            _checkpoint(self, apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self.db.close()

    def reading(self, seconds: float = QUERY_SECONDS) -> Reading:
        return Reading(self, seconds)

    def begin(self, seconds: float) -> None:
        """See one state of the store from now on."""
        self._refuse_if_changed()
        self._deadline = time.monotonic() + seconds
        self.db.execute("BEGIN")

    def end(self) -> None:
        """See the newest state of the store again."""
        self._deadline = _NEVER
        # The end of a read that met a damaged page reports the damage again, and ends the transaction all the same.
        with suppress(apsw.CorruptError):
            if self.db.in_transaction:
                self.db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Generator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.texts.flush(self)
            self.db.execute("COMMIT")
        except BaseException:
            self.texts.forget_after(0)
            self.known_catalog = None
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    @property
    def is_immutable(self) -> bool:
        """Whether the file was opened as read-only for everyone."""
        return self._frozen is not None

    def _refuse_if_changed(self) -> None:
        """Refuse a file that was opened as immutable and has changed: SQLite would not notice."""
        if self._frozen is not None and self._frozen != _fingerprint(self.path):
            raise StorageUnusable(
                "The store could not be written when it was opened, but was written since.",
                hint="Start the program again.",
            )

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline


class Reading:
    """A block that sees one state of the store. A class, not a generator: every read passes through it."""

    __slots__ = ("_database", "_seconds")

    def __init__(self, database: SqliteDatabase, seconds: float) -> None:
        self._database = database
        self._seconds = seconds

    def __enter__(self) -> None:
        self._database.begin(self._seconds)

    def __exit__(self, *_failure: object) -> None:
        self._database.end()


def create_private(path: Path) -> None:
    """Make the file readable for its owner alone before SQLite opens it; the WAL files take its mode."""
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    os.close(handle)


def open_writer(path: Path, *, vfs: str | None = None) -> SqliteDatabase:
    """Open the store for writing."""
    refuse_old_sqlite()
    with translate_errors():
        create_private(path)
        _refuse_lost_log(path)
        opened = _open(str(path), apsw.SQLITE_OPEN_READWRITE, vfs, cache_kib=WRITER_CACHE_KIB)
        if vfs is not None:
            # A recording file system has no shared memory: one connection alone can do without.
            opened.pragma("locking_mode", "exclusive")
        opened.pragma("page_size", PAGE_BYTES)
        opened.pragma("journal_mode", "wal")
        # The writer alone moves the WAL into the file, at moments it chooses.
        opened.pragma("wal_autocheckpoint", 0)
        return SqliteDatabase(path, opened)


def open_reader(path: Path, *, register: Callable[[Any], None] | None = None) -> SqliteDatabase:
    """Open the store for reading alone."""
    with translate_errors():
        _refuse_lost_log(path)
        frozen = None
        try:
            opened = _open_for_reading(str(path), apsw.SQLITE_OPEN_READWRITE)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
            if isinstance(error, apsw.IOError) and not _is_without_space(error):
                raise
            opened, frozen = _open_frozen(path)
        if register is not None:
            register(opened)
        return SqliteDatabase(path, opened, frozen=frozen)


def _open_for_reading(name: str, flags: int) -> Any:
    opened = _open(name, flags, None, cache_kib=65_536)
    opened.pragma("query_only", 1)
    opened.pragma("wal_autocheckpoint", 0)
    # Only a first read shows whether the WAL can be read.
    opened.execute("SELECT 1 FROM sqlite_schema").fetchone()
    return opened


def _open_frozen(path: Path) -> tuple[Any, tuple[int, int]]:
    """Open a file beside which no WAL can be made. One that has a WAL is read with it, or not at all."""
    log = Path(f"{path}-wal")
    fingerprint = _fingerprint(path)
    immutable = "" if log.exists() and log.stat().st_size else "&immutable=1"
    address = f"file:{quote(str(path))}?mode=ro{immutable}"
    return _open_for_reading(address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI), fingerprint


def _fingerprint(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def refuse_old_sqlite() -> None:
    """Refuse to write with a SQLite that is known to lose writes."""
    version = apsw.SQLITE_VERSION_NUMBER
    if version < OLDEST_SAFE:
        raise StorageUnusable(f"SQLite {version} is too old.", hint="Upgrade the apsw package.")


def _refuse_lost_log(path: Path) -> None:
    """Refuse a log (WAL) of garbage or beside an emptied file: SQLite would remove it, and records with it."""
    log = path.with_name(f"{path.name}-wal")
    try:
        with log.open("rb") as file:
            header = file.read(_LOG_HEADER_BYTES + 1)
    except FileNotFoundError:
        return
    # A header that is not whole, or not followed by anything, is what a power cut leaves.
    if len(header) <= _LOG_HEADER_BYTES:
        return
    is_empty = not path.stat().st_size
    if is_empty or header[:4] not in _LOG_MAGIC:
        raise IntegrityBroken(
            "The store's file is empty, but its log is not."
            if is_empty
            else "The log beside the store is damaged.",
            hint="Put the right files back, or restore a backup; nothing was changed.",
        )


def _open(name: str, flags: int, vfs: str | None, *, cache_kib: int) -> Any:
    opened = connect(name, flags=flags, vfs=vfs)
    for pragma in _EVERY:
        opened.execute(f"PRAGMA {pragma}").fetchall()
    opened.execute(f"PRAGMA cache_size=-{memory.share(cache_kib * 1024, 32) // 1024}").fetchall()
    for limit, most in _LIMITS.items():
        opened.limit(limit, most)
    opened.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    opened.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    opened.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    # Plan a statement once and not for the values that are bound to it: else it is planned again for each.
    opened.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return opened


def connect(path: str, **options: Any) -> Any:
    """Open a bare connection. Its type is left open: the driver's own hints are incomplete."""
    return apsw.Connection(path, **options)


class translate_errors:  # noqa: N801 - it reads as what it does, like the blocks of contextlib
    """Raise this program's errors in place of SQLite's and the system's.

    SQLite reports a failed write without its reason; the connection knows the system's error number.
    """

    __slots__ = ("_database",)

    def __init__(self, database: SqliteDatabase | None = None) -> None:
        self._database = database

    def __enter__(self) -> None:
        """Do nothing: only failures matter."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MemoryError | apsw.NoMemError):
            raise memory.out_of_memory() from error
        if isinstance(error, apsw.Error):
            number: int = 0 if self._database is None else self._database.db.system_errno
            raise _translated(error, number) from error
        if isinstance(error, OSError):
            # Any other error of the system is a fault of the program.
            named = _BY_ERRNO.get(error.errno or 0)
            if named is not None:
                raise named() from error


def _translated(error: apsw.Error, number: int) -> HeadgateError:
    if isinstance(error, apsw.IOError) and number in _BY_ERRNO:
        return _BY_ERRNO[number]()
    if _is_without_space(error):
        return StorageFull()
    for kinds, make in _BY_SQLITE_ERROR:
        if isinstance(error, kinds):
            return make()
    return StorageUnusable(f"The store failed ({type(error).__name__}).")


def _is_without_space(error: apsw.Error) -> bool:
    """Return whether there was no space for the memory that processes share: then no connection can be asked why."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


#: By the system's error number, where SQLite reports only that writing failed.
_BY_ERRNO: Mapping[int, Callable[[], HeadgateError]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EFBIG: StorageFull,
    errno.EROFS: StorageReadOnly,
    errno.EACCES: StorageReadOnly,
    errno.EPERM: StorageReadOnly,
}
_BY_SQLITE_ERROR: Sequence[tuple[tuple[type[apsw.Error], ...], Callable[[], HeadgateError]]] = (
    ((apsw.FullError,), StorageFull),
    ((apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError), StorageReadOnly),
    ((apsw.InterruptError,), QueryTimeout),
    ((apsw.CorruptError, apsw.NotADBError), lambda: IntegrityBroken("The store's file is damaged.")),
    (
        (apsw.BusyError, apsw.LockedError),
        lambda: StorageUnusable("The store is busy.", hint="Try again in a moment."),
    ),
)


#: When the WAL is copied into the file, and when readers are asked to let go of it so that it starts again.
WAL_BYTES = 32 * 1024 * 1024
WAL_BYTES_MOST = 48 * 1024 * 1024
_WAL_WAIT_MS = 1000


def _shorten_wal(database: SqliteDatabase) -> None:
    """Copy a long WAL into the file; ask readers to let go of a very long one."""
    wal = Path(f"{database.path}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size >= WAL_BYTES:
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    if size >= WAL_BYTES_MOST:
        _checkpoint(database, apsw.SQLITE_CHECKPOINT_RESTART)


def _checkpoint(database: SqliteDatabase, mode: int) -> None:
    """Wait a moment for readers to let go of the WAL."""
    waited: int = database.value("PRAGMA busy_timeout")
    database.run(f"PRAGMA busy_timeout={_WAL_WAIT_MS}")
    try:
        database.db.wal_checkpoint(mode=mode)
    finally:
        database.run(f"PRAGMA busy_timeout={waited}")
