"""What the shared code needs of an engine: a connection that runs statements, and how the engine writes its SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from headgate.errors import StorageUnusable

if TYPE_CHECKING:
    from headgate.model.query import Scalar
    from headgate.store.format.columns import Column, TypedColumn
    from headgate.store.sql.catalog import Catalog
    from headgate.store.sql.database import WaitingTexts

_Row = TypeVar("_Row", bound=tuple[Any, ...])

#: How long a read may take unless it says otherwise.
QUERY_SECONDS = 5.0


class Dialect(Protocol):
    """How an engine writes what differs between engines. Statements bind their values to ``?`` in both."""

    @property
    def sql(self) -> Mapping[str, str]:
        """The fixed statements, and parts of the others, by name."""
        ...

    def typed_table(self, stid: int) -> str:
        """Name the table of a stream's typed values."""
        ...

    def typed_tables(self, stid: int) -> tuple[str, ...]:
        """Name every table that has rows for the typed values of a stream's records."""
        ...

    def put_typed(
        self, database: Database, stid: int, columns: Sequence[TypedColumn], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Store typed rows, each a row number and a value for each column, in place of older ones."""

    def typed_column(self, column: Column) -> str:
        """Name a column of the typed table ``t``."""
        ...

    def make_typed_table(self, database: Database, stid: int) -> None:
        """Make room for the typed values of a new stream."""

    def add_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Make room for one more typed value of a stream."""

    def index_typed_column(self, database: Database, stid: int, column: Column) -> None:
        """Let records be found by a typed value that holds the key of another record."""

    def comparison(self, column: Column, operator: str, value: Scalar) -> tuple[str, Any]:
        """Write the comparison of a typed column with a value; returns it with the value to bind."""
        ...

    def key_comparison(self, stid: int, column: Column, value: Any) -> tuple[str, tuple[Any, ...]]:
        """Write the condition that a typed column holds a key, in a form that an index serves, and what it binds."""
        ...

    def sort_value(self, value: Any) -> Any:
        """Return the stored form of a place in a stream's order."""
        ...

    def shown_sort(self, stored: Any) -> Any:
        """Return a place in a stream's order back as it was before it was stored."""
        ...


class Database(Protocol):
    """One connection to a store, whose reads end at a deadline."""

    #: Texts that wait to be put into the word index before the transaction ends.
    texts: WaitingTexts
    #: How much a read may load here; a larger one belongs in another thread.
    most_bytes: int
    #: The catalog that was seen last; None: none was, or the transaction that changed it was undone.
    known_catalog: Catalog | None

    @property
    def dialect(self) -> Dialect:
        """How this engine writes its SQL."""
        ...

    @property
    def sql(self) -> Mapping[str, str]:
        """The fixed statements by name."""
        ...

    @property
    def damage(self) -> tuple[type[Exception], ...]:
        """The failures of a statement that meets a damaged part of the store."""
        ...

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        ...

    def rows(self, kind: type[_Row], sql: str, values: Sequence[Any] = ()) -> list[_Row]:
        """Run a statement and return all its rows as named tuples; the kind has one member for each column."""
        ...

    def each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Run a statement and return its rows one by one."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement for its effect."""

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run a statement and return its first row, if it has one."""
        ...

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return the one value it must have."""
        ...

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""

    def catalog_number(self) -> int:
        """Return the number that every change of the catalog raises."""
        ...

    def snapshot_version(self) -> int:
        """Return the version of the state that the last statement saw; it differs after every write."""
        ...

    def reading(self, seconds: float = QUERY_SECONDS) -> AbstractContextManager[None]:
        """See one state of the store until the end of the block, and take no longer than allowed."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Change the store: all of the block, durably, or nothing of it."""
        ...


def refuse_unfinished_copy(database: Database) -> None:
    """Refuse to open a store while records are being copied into it."""
    if database.one(database.sql["unfinished_copy"]) is not None:
        raise StorageUnusable(
            "The store is a copy that is not complete.",
            hint="Run 'headgate store copy' again: it goes on where it stopped.",
        )


class TextChange(NamedTuple):
    """A text of one field of a record that enters the index, or, without a text, leaves it."""

    rid: int
    fid: int
    time: int | None
    text: str | None


@dataclass(slots=True)
class WaitingTexts:
    """Texts to be put into the index, and texts to be taken out, in the order in which they came."""

    rows: list[TextChange] = field(default_factory=list[TextChange])

    def put(self, rid: int, time: int | None, texts: Iterable[tuple[int, str]]) -> None:
        """Let the texts of a record wait to be put in."""
        self.rows.extend(TextChange(rid, fid, time, text) for fid, text in texts)

    def take_out(self, rid: int, fids: Iterable[int]) -> None:
        """Let texts of a record wait to be taken out."""
        self.rows.extend(TextChange(rid, fid, None, None) for fid in fids)

    def forget_after(self, length: int) -> None:
        """Drop the texts that came after a point: their job has failed."""
        del self.rows[length:]

    def flush(self, database: Database) -> None:
        """Write everything that waits."""
        if not self.rows:
            return
        # Slow to import, and a program that only reads does without.
        from headgate.store.sql.word_segments import write_changes  # noqa: PLC0415

        rows, self.rows = self.rows, []
        write_changes(database, rows)
