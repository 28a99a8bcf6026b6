"""A home in PostgreSQL as one end of a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.model.ids import BlobId
from headgate.store.maintenance.copied_tables import TABLES
from headgate.store.maintenance.copying import Conversion
from headgate.store.postgres.blobs import BlobRows
from headgate.store.postgres.database import PostgresDatabase
from headgate.store.postgres.dialect import DIALECT, SQL

#: Columns that hold the digest of another one.
_DIGESTS = {"record": ("key", "record_id"), "invalid": ("place", "pointer")}
_NUMBERS = ("sid", "stid", "gid", "bid")
#: What belongs to a home and is copied by other means than row by row.
_OTHER_TABLES = ("typed", "child_key", "blob_part")


class PostgresSide:
    """Implements `maintenance.copying.StoreSide`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self.blobs = BlobRows(database.place)
        self._known: dict[str, Mapping[str, str]] = {}

    def columns(self, table: str) -> Mapping[str, str]:
        if table not in self._known:
            self._known[table] = dict(self.database.all(SQL["columns_of_table"].format(table=table)))
        return self._known[table]

    def key_column(self, table: str, column: str) -> str:
        return f'{column} COLLATE "C"' if self.columns(table)[column] == "text" else column

    def shown(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        return [self._conversion(table, column, int, DIALECT.shown_sort) for column in columns]

    def stored(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        return [self._conversion(table, column, bool, DIALECT.sort_value) for column in columns]

    def _conversion(
        self, table: str, column: str, of_booleans: Conversion, of_places: Conversion
    ) -> Conversion:
        if (table, column) == ("record", "sort"):
            return of_places
        return of_booleans if self.columns(table)[column] == "boolean" else None

    def insertion(self, table: str, columns: Sequence[str]) -> str:
        names = list(columns)
        marks = [f"?{place}" for place, _ in enumerate(columns, 1)]
        name, of = _DIGESTS.get(table, ("", ""))
        if name and name not in columns:
            names.append(name)
            marks.append(f"sha256(convert_to(?{columns.index(of) + 1}, 'UTF8'))")
        return SQL["insert_row"].format(table=table, names=", ".join(names), marks=", ".join(marks))

    def given_numbers(self) -> Mapping[str, int]:
        facts = dict(self.database.all(SQL["facts"]))
        return {name: facts[name] for name in _NUMBERS}

    def put_given_numbers(self, numbers: Mapping[str, int]) -> None:
        for name in _NUMBERS:
            self.database.run(SQL["put_fact"], (name, numbers[name]))

    def has_blob(self, blob_id: BlobId) -> bool:
        return self.database.one(SQL["blob_part"], (blob_id, 0)) is not None

    def empty(self) -> None:
        names = [*(table.name for table in TABLES if self.columns(table.name)), *_OTHER_TABLES]
        with self.database.writing():
            for name in names:
                self.database.run(SQL["delete_all_rows"].format(table=name))
            self.database.run(SQL["delete_fact"], ("copying",))
