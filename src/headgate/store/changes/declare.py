"""Register declarations: make the tables and columns that a stream needs, and change nothing that is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headgate.errors import InvalidDeclaration
from headgate.model.declaration import Field, FieldKind, SourceDeclaration, StreamDeclaration
from headgate.model.ids import ConnectorKey, FieldName
from headgate.model.record import MAX_KEYS
from headgate.schema.declare import read_declaration, refuse_unusable_schemas
from headgate.store.changes.accounts import make_shelves
from headgate.store.changes.record_check import RecordCheck, invalid_rows
from headgate.store.changes.stored_rows import put_typed_rows, stored_rows
from headgate.store.changes.word_index import put_texts
from headgate.store.format.columns import Column, ColumnKind
from headgate.store.format.records import typed_row
from headgate.store.format.streams import StreamTable
from headgate.store.sql.catalog import current, foreign_keys, stream_table, versions_of
from headgate.store.sql.database import Database

_KINDS = {
    FieldKind.INTEGER: ColumnKind.INTEGER,
    FieldKind.NUMBER: ColumnKind.NUMBER,
    FieldKind.BOOLEAN: ColumnKind.BOOLEAN,
    FieldKind.DATE: ColumnKind.TIME,
    FieldKind.DATE_TIME: ColumnKind.TIME,
}


def declare(database: Database, key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
    """Register a declaration, inside the writer's transaction."""
    source = read_declaration(document)
    text = msgspec.json.encode(document, order="deterministic")
    known = database.one(database.sql["declared_document"], (key, source.version))
    if known is not None:
        if known[0] != text:
            raise _refused("duplicate_version", f"Version '{source.version}' was declared otherwise before.")
        return source
    refuse_unusable_schemas(source)
    catalog = current(database)
    for version in versions_of(database, key):
        for stream in source.streams.values():
            existing = version.streams.get(stream.name)
            if existing is not None:
                _refuse_another_meaning(existing, stream)
    database.run(database.sql["insert_declaration"], (key, source.version, text))
    for stream in source.streams.values():
        place = (key, stream.name)
        old = catalog.streams.get(place) or catalog.retired.get(place)
        _refuse_too_many_fields(stream, old)
        stid = _lay_out(database, key, stream, old)
        _index_foreign_keys(database, stid, foreign_keys([source], stream.name))
    make_shelves(database, key)
    return source


def _refuse_another_meaning(old: StreamDeclaration, new: StreamDeclaration) -> None:
    for member in ("primary_key", "semantics", "cursor_field", "consent_time_field"):
        if getattr(old, member) != getattr(new, member):
            raise _refused("incompatible_change", f"Stream '{new.name}' cannot change its {member}.")
    for name in old.fields.keys() & new.fields.keys():
        if old.fields[name].kind is not new.fields[name].kind:
            raise _refused(
                "incompatible_change", f"Field '{name}' of stream '{new.name}' cannot change its type."
            )


def _refuse_too_many_fields(stream: StreamDeclaration, old: StreamTable | None) -> None:
    """Refuse more fields, over all versions, than a record can have: each has a column, and tables have few of them."""
    if len({*stream.fields, *(old.fids if old else ())}) > MAX_KEYS:
        raise _refused("invalid_schema", f"Stream '{stream.name}' has more than {MAX_KEYS} fields.")


def _lay_out(
    database: Database, key: ConnectorKey, stream: StreamDeclaration, old: StreamTable | None
) -> int:
    if old is None:
        stid: int = database.value(database.sql["insert_stream"], (key, stream.name))
        database.dialect.make_typed_table(database, stid)
    else:
        stid = old.stid
    added = [
        _add_field(database, stid, field, kind_of(field, stream), old) for field in stream.fields.values()
    ]
    searched = _add_searched(database, stid, stream, old)
    if old is not None and (any(added) or searched):
        _refill(database, _laid_out(database, old, stream), searched)
    return stid


def _laid_out(database: Database, old: StreamTable, stream: StreamDeclaration) -> StreamTable:
    rows = database.all(database.sql["fields_of_stream"], (old.stid,))
    return stream_table(old.stid, old.connector_key, stream, rows)


def _add_field(
    database: Database, stid: int, field: Field, kind: ColumnKind | None, old: StreamTable | None
) -> bool:
    """Number a field and add its column; returns whether a column was added."""
    known = old is not None and field.name in old.fids
    column = old.columns.get(field.name) if old is not None else None
    if known and (column.kind if column else None) is kind:
        return False
    if not known:
        fid: int = database.value(database.sql["next_fid"], (stid,))
        database.run(database.sql["insert_field"], (stid, field.name, fid))
    if kind is None or (column is not None and column.kind is ColumnKind.WORD):
        return False
    number: int = database.value(database.sql["next_column"], (stid,))
    database.dialect.add_typed_column(database, stid, Column(number, kind))
    database.run(database.sql["set_field_column"], (number, kind.value, stid, field.name))
    if kind is ColumnKind.NUMBER:
        database.run(database.sql["set_column_scale"], (0, stid, number))
    return True


def kind_of(field: Field, stream: StreamDeclaration) -> ColumnKind | None:
    """Return how a field's values are held for comparing, if they compare at all."""
    if field.kind is not FieldKind.TEXT:
        return _KINDS.get(field.kind)
    aggregations = stream.query.aggregations
    grouped = (*aggregations.group_by, *aggregations.count_distinct) if aggregations else ()
    return ColumnKind.WORD if field.name in grouped else ColumnKind.HASH


def _add_searched(
    database: Database, stid: int, stream: StreamDeclaration, old: StreamTable | None
) -> list[FieldName]:
    """Note which fields are searched; returns those that were not before."""
    added = [name for name in stream.query.lexical_fields if old is None or name not in old.searched]
    for name in added:
        database.run(database.sql["mark_searched_field"], (stid, name))
    return added


def _index_foreign_keys(database: Database, stid: int, names: frozenset[FieldName]) -> None:
    """Children are found by the field that holds their parent's key."""
    for name, column, kind in database.all(database.sql["typed_fields_of_stream"], (stid,)):
        if name in names:
            database.dialect.index_typed_column(database, stid, Column(column, ColumnKind(kind)))


def _refused(code: str, message: str) -> InvalidDeclaration:
    problem = {"code": f"source.declaration.{code}", "pointer": "", "message": message}
    return InvalidDeclaration(message, data={"problems": [problem]})


def _refill(database: Database, stream: StreamTable, searched: Iterable[FieldName]) -> None:
    """Derive a stream's rows again, inside the writer's transaction, and index fields that were not searched before."""
    unreadable = RecordCheck(stream).unreadable
    fids = frozenset(stream.searched[name] for name in searched)
    for (sid,) in database.all(database.sql["shelves_of_stream"], (stream.stid,)):
        for rows in stored_rows(database, stream, sid):
            intact = [(rid, values) for rid, _, values in rows if values is not None]
            put_typed_rows(database, stream, [typed_row(stream, *row) for row in intact])
            for rid, values in intact:
                database.many(
                    database.sql["mark_record"], list(invalid_rows(stream, rid, unreadable(values)))
                )
        if fids:
            put_texts(database, stream, sid, fids)
