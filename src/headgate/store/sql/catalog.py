"""The catalog: what is declared and connected, and where in the file it lies.

Loaded whole, and loaded again when its number in the file has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from headgate.errors import (
    ConnectionNotFound,
    GrantInvalid,
    IntegrityBroken,
    InvalidDeclaration,
    StreamNotDeclared,
)
from headgate.model.declaration import SourceDeclaration, StreamDeclaration
from headgate.model.hiding import HidingRule
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName
from headgate.model.plan import Reach, SearchReach
from headgate.model.record import Connection
from headgate.schema.declare import read_declaration
from headgate.store.format.columns import Column, ColumnKind
from headgate.store.format.streams import Shelf, StreamTable
from headgate.store.sql.database import Database, Dialect

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


#: How many records a reach covers, where that is not known anyway, the first and the last time of them, and when the last
#: of them was emitted.
ReachCount = tuple[int, tuple[int, int] | None, int | None]


class BoundedMemo(dict[_Key, _Value]):
    """A dictionary that starts again when it is full: what is used often is soon in it again."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def remember(self, key: _Key, value: _Value) -> _Value:
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value


@dataclass(frozen=True, slots=True)
class CatalogMemo:
    """What was compiled against one catalog. It ends with the catalog, which every change of it replaces."""

    #: By reach and length of previews: the statement that finds one record (`queries.pages.Finder`).
    finders: BoundedMemo[tuple[Reach, int | None], Any] = field(default_factory=lambda: BoundedMemo(1024))
    #: By reach: its SQL conditions (`queries.scope.SqlScope`); None: it covers nothing.
    scopes: BoundedMemo[Reach, Any] = field(default_factory=lambda: BoundedMemo(1024))
    #: By reach: the numbers of the last changes of its shelves, and what it covered then.
    counts: BoundedMemo[Reach, tuple[tuple[int, ...], ReachCount]] = field(
        default_factory=lambda: BoundedMemo(1024)
    )
    #: By the reaches of a search: which fields of which shelves it looks at (`search.scope.SearchScope`).
    search_scopes: BoundedMemo[tuple[SearchReach, ...], Any] = field(default_factory=lambda: BoundedMemo(256))


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything declared and connected, as of one number."""

    number: int
    #: The newest version of each.
    declarations: Mapping[ConnectorKey, SourceDeclaration]
    connections: Mapping[ConnectionId, Connection]
    streams: Mapping[tuple[ConnectorKey, StreamName], StreamTable]
    shelves: Mapping[tuple[ConnectionId, StreamName], Shelf]
    #: The shelves of what rules hide, where there is any.
    hidden_shelves: Mapping[tuple[ConnectionId, StreamName], Shelf]
    by_sid: Mapping[int, Shelf]
    #: What an older version declared and the newest does not: stored, and out of every reach.
    retired: Mapping[tuple[ConnectorKey, StreamName], StreamTable]
    retired_shelves: tuple[Shelf, ...]
    #: Every version that was declared, the newest last.
    versions: Mapping[ConnectorKey, Sequence[SourceDeclaration]]
    #: What no client ever sees.
    rules: tuple[HidingRule, ...]
    #: How the engine writes its SQL.
    dialect: Dialect = field(compare=False, repr=False)
    memo: CatalogMemo = field(default_factory=CatalogMemo, compare=False, repr=False)

    @property
    def all_shelves(self) -> tuple[Shelf, ...]:
        """Every shelf of the file, with those of streams that are declared no longer."""
        return (*self.by_sid.values(), *self.retired_shelves)

    def stream_of(self, connection_id: ConnectionId, stream: StreamName) -> StreamTable:
        connection = self.connections.get(connection_id)
        if connection is None:
            raise ConnectionNotFound
        table = self.streams.get((connection.connector_key, stream))
        if table is None:
            raise StreamNotDeclared(f"There is no stream '{stream}'.")
        return table

    def shelves_of(self, reach: Reach) -> list[Shelf]:
        """Return the shelves that a reach covers and that hold anything; refuse a bound they cannot keep."""
        keys = [(connection_id, reach.stream) for connection_id in reach.connection_ids]
        shelves = [shelf for key in keys if (shelf := self.shelves.get(key)) is not None]
        if reach.with_hidden:
            shelves += [shelf for key in keys if (shelf := self.hidden_shelves.get(key)) is not None]
        if reach.time is not None and any(shelf.stream.time_field != reach.time.field for shelf in shelves):
            raise GrantInvalid(f"Time cannot be bounded by '{reach.time.field}' in this stream.")
        return shelves

    def shelves_at(self, connection_id: ConnectionId, stream: StreamName) -> list[Shelf]:
        """Return both shelves of a stream of a connection: that of what may be shown, and that of what is hidden."""
        key = (connection_id, stream)
        return [at[key] for at in (self.shelves, self.hidden_shelves) if key in at]


def current(database: Database) -> Catalog:
    """Return the catalog as of now: the one that the connection saw last, if it still is."""
    known, number = database.known_catalog, database.catalog_number()
    if known is None or known.number != number:
        known = database.known_catalog = load(database, number)
    return known


def bump_catalog(database: Database) -> None:
    """Raise the number of the catalog, inside a writer's transaction: every cache of it, in any process, ends.

    Whatever changes declarations, connections, shelves or rules must call this, after the change.
    """
    database.run(database.sql["raise_catalog_number"])
    note_catalog_sum(database)


def load(database: Database, number: int) -> Catalog:
    """Read the whole catalog."""
    versions = {key: versions_of(database, key) for key in _connector_keys(database)}
    declarations = {key: known[-1] for key, known in versions.items()}
    connections = {
        ConnectionId(row[0]): Connection(ConnectionId(row[0]), ConnectorKey(row[1]), row[2], row[3])
        for row in database.all(database.sql["connections"])
    }
    known = _streams(database, versions)
    retired = {key for key in known if key[1] not in declarations[key[0]].streams}
    by_stid = {stream.stid: stream for stream in known.values()}
    rows = database.all(database.sql["shelves"])
    shelves = [
        Shelf(sid, ConnectionId(connection), by_stid[stid], bool(hidden))
        for sid, connection, stid, hidden in rows
    ]
    live = [shelf for shelf in shelves if _key_of(shelf.stream) not in retired]
    return Catalog(
        number,
        declarations,
        dict(sorted(connections.items(), key=lambda item: (item[1].created_at, item[0]))),
        {key: stream for key, stream in known.items() if key not in retired},
        {(shelf.connection_id, shelf.name): shelf for shelf in live if not shelf.is_hidden},
        {(shelf.connection_id, shelf.name): shelf for shelf in live if shelf.is_hidden},
        {shelf.sid: shelf for shelf in live},
        {key: known[key] for key in retired},
        tuple(shelf for shelf in shelves if _key_of(shelf.stream) in retired),
        versions,
        _rules(database),
        database.dialect,
    )


def _rules(database: Database) -> tuple[HidingRule, ...]:
    rows = database.all(database.sql["hiding_rules"])
    try:
        return tuple(msgspec.json.decode(document, type=HidingRule) for (document,) in rows)
    except msgspec.MsgspecError as error:
        # A rule that cannot be read would hide nothing.
        raise IntegrityBroken("A stored rule is damaged.", hint="Restore a backup.") from error


def _key_of(stream: StreamTable) -> tuple[ConnectorKey, StreamName]:
    return stream.connector_key, stream.declaration.name


def _connector_keys(database: Database) -> list[ConnectorKey]:
    return [ConnectorKey(key) for (key,) in database.all(database.sql["connector_keys"])]


def versions_of(database: Database, key: ConnectorKey) -> list[SourceDeclaration]:
    """Return every declaration of a connector, the newest last."""
    rows = database.all(database.sql["declaration_documents"], (key,))
    return [_read(document) for (document,) in rows]


@lru_cache(maxsize=256)
def _read(document: bytes) -> SourceDeclaration:
    """Read a stored declaration; checking one again is slow, and it never changes."""
    try:
        return read_declaration(msgspec.json.decode(document, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidDeclaration) as error:
        raise IntegrityBroken("A stored declaration is damaged.", hint="Restore a backup.") from error


def _streams(
    database: Database, versions: Mapping[ConnectorKey, Sequence[SourceDeclaration]]
) -> dict[tuple[ConnectorKey, StreamName], StreamTable]:
    """Return every stream, each as the newest version that has it declares it."""
    fields: dict[int, list[tuple[Any, ...]]] = {}
    for stid, *row in database.all(database.sql["fields"]):
        fields.setdefault(stid, []).append(tuple(row))
    tables: dict[tuple[ConnectorKey, StreamName], StreamTable] = {}
    for stid, key, name in database.all(database.sql["streams"]):
        declared = [version.streams[name] for version in versions[key] if name in version.streams][-1]
        table = stream_table(stid, key, declared, fields.get(stid, []))
        tables[key, name] = replace(table, foreign_keys=foreign_keys(versions[key], name))
    return tables


def foreign_keys(versions: Iterable[SourceDeclaration], name: StreamName) -> frozenset[FieldName]:
    """Find the fields of a stream that hold the key of a record of another one."""
    streams = (stream for version in versions for stream in version.streams.values())
    relations = (relation for stream in streams for relation in stream.relationships)
    return frozenset(relation.foreign_key for relation in relations if relation.stream == name)


def stream_table(
    stid: int, connector_key: ConnectorKey, declared: StreamDeclaration, rows: Sequence[tuple[Any, ...]]
) -> StreamTable:
    """Put a stream's declaration and its rows of the field table together."""
    return StreamTable(
        stid,
        connector_key,
        declared,
        {FieldName(name): fid for name, fid, _, _, _ in rows},
        {FieldName(name): Column(col, ColumnKind(kind)) for name, _, col, kind, _ in rows if col is not None},
        {FieldName(name): fid for name, fid, _, _, slot in rows if slot is not None},
    )


#: The checksum of the catalog, which nothing else in the store repeats: a flipped byte in a declaration still parses, but
#: changes its meaning. It is written with every change of the catalog, and compared by a check.
_FACT = "catalog_sum"
_TABLES = ("all_declarations", "connections", "streams", "fields", "shelves", "hiding_rules")
_encode = msgspec.msgpack.Encoder().encode


def note_catalog_sum(database: Database) -> None:
    """Write the checksum of the catalog as it is, inside a writer's transaction."""
    database.run(database.sql["put_fact"], (_FACT, catalog_sum(database)))


def is_catalog_changed(database: Database) -> bool:
    """Return whether the catalog is another one than was written; a store of an older version cannot tell."""
    noted = dict(database.all(database.sql["facts"])).get(_FACT)
    return noted is not None and noted != catalog_sum(database)


def catalog_sum(database: Database) -> int:
    """Compute the checksum; it is the same in every engine."""
    rows = [sorted(map(_encode, database.all(database.sql[name]))) for name in _TABLES]
    return int.from_bytes(sha256(_encode(rows)).digest()[:8], signed=True)
