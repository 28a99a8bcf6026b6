"""How SQLite writes what differs between engines; implements `sql.database.Dialect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.model.query import Scalar
from headgate.store.format.columns import Column, ColumnKind, TypedColumn, bindable
from headgate.store.sql.database import Database
from headgate.store.sql.statements import statements_of

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
        """The fixed statements, and parts of the others, by name."""
        return SQL

    def typed_table(self, stid: int) -> str:
        """Name the table of a stream's typed values."""
        return f"t{stid}"

    def make_typed_table(self, database: Database, stid: int) -> None:
        """Make the typed table of a new stream."""
        database.run(SQL["make_typed_table"].format(table=self.typed_table(stid)))

    def add_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Add a column to the typed table of a stream; one of numbers has one of exact values beside it."""
        table, name = self.typed_table(stid), _name(column)
        database.run(SQL["add_typed_column"].format(table=table, column=name, type=_TYPES[column.kind]))
        if column.kind is ColumnKind.NUMBER:
            self.add_typed_column(database, stid, column.scaled)

    def index_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Let records be found by a typed value that holds the key of another record."""
        database.run(SQL["index_typed_column"].format(table=self.typed_table(stid), column=_name(column)))

    def typed_tables(self, stid: int) -> tuple[str, ...]:
        """Name every table that has rows for the typed values of a stream's records."""
        return (self.typed_table(stid),)

    def put_typed(
        self, database: Database, stid: int, columns: Sequence[TypedColumn], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Store typed rows in place of older ones."""
        names = "".join(f", {_name(column.column)}" for column in columns)
        marks = ", ?" * len(columns)
        table = self.typed_table(stid)
        database.many(SQL["put_typed_row"].format(table=table, names=names, marks=marks), rows)

    def typed_column(self, column: Column) -> str:
        """Name a column of the typed table ``t``."""
        return f"t.{_name(column)}"

    def comparison(self, column: Column, operator: str, value: Scalar) -> tuple[str, Any]:
        """Write the comparison of a typed column with a value, and give the value to bind."""
        return f"{self.typed_column(column)} {operator} ?", bindable(value)

    def key_comparison(self, stid: int, column: Column, value: Any) -> tuple[str, tuple[Any, ...]]:
        """Write the condition that a typed column holds a key, and give what it binds."""
        del stid  # the table is the stream's alone
        return f"{self.typed_column(column)} = ?", (value,)

    def sort_value(self, value: Any) -> Any:
        """Return the stored form of a place in a stream's order: the place itself."""
        return value

    def shown_sort(self, stored: Any) -> Any:
        """Return a place in a stream's order back."""
        return stored


def _name(column: Column) -> str:
    return f"{'s' if column.kind is ColumnKind.SCALED else 'c'}{column.number}"


DIALECT = SqliteDialect()
