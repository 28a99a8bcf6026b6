"""A SQLite store as one end of a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import apsw

from headgate.errors import Conflict
from headgate.home import Home
from headgate.model.ids import BlobId
from headgate.store.changes import word_index
from headgate.store.maintenance.copying import Conversion
from headgate.store.sqlite import BLOBS, FILE
from headgate.store.sqlite.blobs import BlobFiles
from headgate.store.sqlite.database import SQL, SqliteDatabase, connect, open_writer, translate_errors
from headgate.store.sqlite.migrate import all_migrations, migrate

#: The tables that never give a number twice, by the name of the number.
_COUNTED = {"sid": "shelf", "gid": "word_segment", "bid": "vector_block"}


class SqliteSide:
    """Implements `maintenance.copying.StoreSide`."""

    def __init__(self, database: SqliteDatabase, blobs: BlobFiles) -> None:
        self.database = database
        self.blobs = blobs

    def columns(self, table: str) -> Mapping[str, str]:
        return dict(self.database.all(SQL["columns_of_table"].format(table=table)))

    def key_column(self, table: str, column: str) -> str:
        del table
        return column

    def shown(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        del table
        return [None for _ in columns]

    def stored(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        del table
        return [None for _ in columns]

    def insertion(self, table: str, columns: Sequence[str]) -> str:
        """Write the statement that adds a row."""
        marks = ", ".join("?" for _ in columns)
        return SQL["insert_row"].format(table=table, names=", ".join(columns), marks=marks)

    def given_numbers(self) -> Mapping[str, int]:
        last = dict(self.database.all(SQL["given_numbers"]))
        numbers = {name: last.get(table, 0) for name, table in _COUNTED.items()}
        return numbers | {"stid": self.database.value(SQL["last_stream"])}

    def put_given_numbers(self, numbers: Mapping[str, int]) -> None:
        for name, table in _COUNTED.items():
            self.database.run(SQL["forget_given_number"], (table,))
            self.database.run(SQL["put_given_number"], (table, numbers[name]))

    def has_blob(self, blob_id: BlobId) -> bool:
        return self.blobs.path(blob_id).exists()

    def empty(self) -> None:
        """Make the file anew. Files that records refer to stay: they are named by their content."""
        path = self.database.path
        self.database.db.close()
        for name in ("", "-wal", "-shm"):
            Path(f"{path}{name}").unlink(missing_ok=True)
        self.database = open_new(path)


def open_new(path: Path) -> SqliteDatabase:
    """Open a file for writing, of the newest schema; one that is not there is made."""
    database = open_writer(path)
    try:
        with translate_errors(database):
            migrate(database, all_migrations())
            word_index.bring_up_to_date(database)
    except BaseException:
        database.db.close()
        raise
    return database


def side_to_fill(home: Home) -> SqliteSide:
    """Open the store of a home as the target of a copy; one that is not there is made."""
    _refuse_store(home.path / FILE)
    return SqliteSide(open_new(home.path / FILE), BlobFiles(home.path / BLOBS))


def _refuse_store(path: Path) -> None:
    """Refuse a store before it is brought to the newest schema."""
    if not path.exists():
        return
    with closing(connect(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as known, translate_errors():
        if not known.execute("PRAGMA user_version").fetchone()[0]:
            return
        is_copy = known.execute(SQL["unfinished_copy"]).fetchone() is not None
        if not is_copy and known.execute(SQL["connector_keys"]).fetchone() is not None:
            raise Conflict(
                f"{path.parent} has a store.", hint="Move its records.db away, or choose another home."
            )


def finish_file(database: SqliteDatabase) -> None:
    """Leave a file without a WAL, that can be copied as it is."""
    database.run("PRAGMA journal_mode=delete")
    database.db.close()
