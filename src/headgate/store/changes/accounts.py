"""Connections: the owner's accounts, with their shelves and states. All inside the writer's transaction."""

from __future__ import annotations

from hashlib import sha256

from headgate.errors import ConnectionNotFound
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey
from headgate.model.readable import connection_ids
from headgate.model.record import Connection
from headgate.store.changes.word_index import delete_texts
from headgate.store.format.records import shelf_rows
from headgate.store.format.streams import Shelf
from headgate.store.sql.catalog import bump_catalog, current
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import delete_vectors


def create(database: Database, connector_key: ConnectorKey, display_name: str, *, at: int) -> Connection:
    """Add a connection under the best id that no connection of this home has or had."""
    free = (name for name in connection_ids(display_name, connector_key) if not _was_used(database, name))
    connection = Connection(next(free), connector_key, display_name, at)
    database.run(
        database.sql["insert_connection"],
        (connection.id, connection.connector_key, connection.display_name, connection.created_at),
    )
    make_shelves(database, connector_key)
    return connection


def is_gone(database: Database, connection_id: ConnectionId) -> bool:
    """Return whether a connection of that id was removed."""
    return database.one(database.sql["connection_gone"], (_digest(connection_id),)) is not None


def _was_used(database: Database, connection_id: ConnectionId) -> bool:
    exists = database.one(database.sql["connection_exists"], (connection_id,)) is not None
    return exists or is_gone(database, connection_id)


def _digest(connection_id: ConnectionId) -> bytes:
    """Return what stays of an id: it is made of a name, which must not be in the store after an erasure."""
    return sha256(connection_id.encode(errors="surrogatepass")).digest()


def make_shelves(database: Database, connector_key: ConnectorKey) -> None:
    """Make the shelves that the connections of a connector lack, in the order the connections were made.

    Their numbers settle ties between connections. If a shelf were numbered when its first record comes in, the
    order of ties would show which connection had a record first, even a hidden one.
    """
    database.run(database.sql["make_shelves"], (connector_key,))
    bump_catalog(database)


def make_hidden_shelf(database: Database, connection_id: ConnectionId, stid: int) -> None:
    """Make the shelf for what rules hide of a stream of a connection."""
    database.run(database.sql["make_hidden_shelf"], (connection_id, stid))
    bump_catalog(database)


def rename(database: Database, connection_id: ConnectionId, display_name: str) -> None:
    _must_exist(database, connection_id)
    database.run(database.sql["rename_connection"], (display_name, connection_id))
    bump_catalog(database)


def delete(database: Database, connection_id: ConnectionId) -> None:
    """Remove a connection, its records and everything stored beside them."""
    _must_exist(database, connection_id)
    catalog = current(database)
    for shelf in catalog.all_shelves:
        if shelf.connection_id == connection_id:
            _empty(database, shelf)
    database.run(database.sql["delete_connection"], (connection_id,))
    # Grants, clients and the log still name it: the id must never mean another connection.
    database.run(database.sql["note_connection_gone"], (_digest(connection_id),))
    bump_catalog(database)


def _empty(database: Database, shelf: Shelf) -> None:
    stream, between = shelf.stream, shelf_rows(shelf.sid)
    delete_texts(database, shelf)
    delete_vectors(database, shelf.sid)
    for table in (
        *database.dialect.typed_tables(stream.stid),
        "chunk",
        "blob_use",
        "invalid",
        "life",
        "record",
    ):
        database.run(database.sql["delete_rows_between"].format(table=table), between)
    database.run(database.sql["delete_shelf_times"], (shelf.sid,))
    database.run(database.sql["delete_shelf"], (shelf.sid,))


def state(database: Database, connection_id: ConnectionId) -> bytes | None:
    """Return the document that a collector last stored for itself.

    Raises:
        ConnectionNotFound: there is none of that id.
    """
    row = database.one(database.sql["connection_state"], (connection_id,))
    if row is None:
        raise ConnectionNotFound
    return row[0]


def put_state(database: Database, connection_id: ConnectionId, document: bytes) -> None:
    """Store a document for a collector, to be read by its next run."""
    _must_exist(database, connection_id)
    database.run(database.sql["set_connection_state"], (document, connection_id))


def note_blob(database: Database, blob_id: BlobId, mime_type: str, size_bytes: int, *, at: int) -> None:
    """Note a file whose bytes are stored, and when."""
    database.run(database.sql["insert_blob"], (blob_id, mime_type, size_bytes, at))


def _must_exist(database: Database, connection_id: ConnectionId) -> None:
    if database.one(database.sql["connection_exists"], (connection_id,)) is None:
        raise ConnectionNotFound
