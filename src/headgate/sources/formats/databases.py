"""SQLite files of other programs, opened so that reading them changes nothing and runs nothing of theirs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import apsw

from headgate.errors import InvalidRequest

HEADER = b"SQLite format 3\x00"
#: What a query may fail with because the file is damaged, locked or not what it looks like.
DatabaseError = apsw.Error


class ForeignDatabase:
    """A database that another program wrote; its functions, triggers and extensions are not run."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a query of ours, row by row; text that is not UTF-8 is an error of its row."""
        return self._connection.execute(sql, tuple(values))

    def tables(self) -> list[str]:
        named = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name"
        return [name for (name,) in self.rows(named) if not name.startswith("sqlite_")]

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))]


@contextmanager
def opened(path: Path) -> Generator[ForeignDatabase]:
    """Open a database for reading.

    Raises:
        InvalidRequest: it is no database, or it is damaged.
    """
    # Immutable: no lock, no journal and no index file is made beside it, even if its program is running.
    address = f"file:{quote(str(path.resolve()))}?immutable=1"
    try:
        connection: Any = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        raise InvalidRequest(f"{path.name} is no database that can be read: {error}.") from None
    try:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.execute("PRAGMA cell_size_check = ON").fetchall()
        yield ForeignDatabase(connection)
    except apsw.Error as error:
        raise InvalidRequest(f"{path.name} is no database that can be read: {error}.") from None
    finally:
        connection.close()


class NewDatabase:
    """A database for other programs, written as a file that must not exist yet or was begun by this one."""

    def __init__(self, path: Path) -> None:
        self._connection: Any = apsw.Connection(str(path))

    def __enter__(self) -> Self:
        self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()

    def table(
        self, name: str, columns: Mapping[str, str], cell: Callable[[Any], Any]
    ) -> Callable[[Sequence[Mapping[str, Any]]], None]:
        """Add a table with a column for each member of a row, and return the function that adds rows to it."""
        quoted = ['"' + column.replace('"', '""') + '"' for column in columns.values()]
        table = '"' + name.replace('"', '""') + '"'
        self._connection.execute(f"CREATE TABLE {table} ({', '.join(quoted)})")
        insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - names are quoted

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            self._connection.executemany(
                insert, [[cell(row.get(column)) for column in columns] for row in rows]
            )

        return write
