"""Streams and shelves: how a store holds the records of one stream of one connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.model.declaration import StreamDeclaration
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName
from headgate.store.format.columns import CONVERTERS, Column, Converter


@dataclass(frozen=True, slots=True)
class StreamTable:
    """One stream of a connector, and how the file holds it."""

    stid: int
    connector_key: ConnectorKey
    declaration: StreamDeclaration
    fids: Mapping[FieldName, int]
    columns: Mapping[FieldName, Column]
    #: The fields whose texts are in the word index, with their numbers.
    searched: Mapping[FieldName, int]
    #: The fields that hold the key of a record of another stream.
    foreign_keys: frozenset[FieldName] = frozenset()
    #: The fields that are compared by meaning, with their numbers.
    with_vectors: Mapping[FieldName, int] = field(init=False, compare=False, repr=False)
    #: The fields that have a column, in the order of the columns, each with what stores its values.
    converters: Sequence[tuple[FieldName, Converter]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Look up once what every record that is stored needs."""
        with_vectors = {name: self.fids[name] for name in self.declaration.query.meaning_fields}
        object.__setattr__(self, "with_vectors", with_vectors)
        converters = [(name, CONVERTERS[column.kind]) for name, column in self.columns.items()]
        object.__setattr__(self, "converters", converters)

    @property
    def time_field(self) -> FieldName | None:
        """The field whose time places a record: what consent is bounded by, else what pages are ordered by."""
        return time_field(self.declaration)


@dataclass(frozen=True, slots=True)
class Shelf:
    """One stream of one connection; what rules hide of it is on another shelf than the rest."""

    sid: int
    connection_id: ConnectionId
    stream: StreamTable
    #: It holds the records that a rule of the owner hides from every client.
    is_hidden: bool = False
    #: The stream's name.
    name: StreamName = field(init=False)

    def __post_init__(self) -> None:
        """Look the name up once; every row of a page needs it."""
        object.__setattr__(self, "name", self.stream.declaration.name)


def time_field(stream: StreamDeclaration) -> FieldName | None:
    """Return which field places a stream's records in time, if one does."""
    if stream.consent_time_field is not None:
        return stream.consent_time_field
    cursor = stream.cursor_field
    return cursor if cursor is not None and stream.fields[cursor].kind.is_time else None
