"""Check many plain records at once, a column at a time: several times faster than one by one.

A match is exact. A mismatch means only that each record has to be checked: one may be damaged, or unusual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from headgate.model.ids import FieldName
from headgate.store.projection import is_spellable
from headgate.store.relational.catalog import StreamTable
from headgate.store.relational.column_values import ColumnKind, column_value, text_hash
from headgate.store.relational.database import Dialect
from headgate.store.relational.maintenance.stored_rows import StoredColumns, typed_index
from headgate.store.relational.write.derive import digest_of, sort_of, ts_of

#: One value for each record.
_Values = Sequence[Any]


class BulkCheck:
    """The check for the records of one stream."""

    __slots__ = ("_decode", "_kinds", "_names", "_shown", "_sort_index", "_stream", "_time_index")

    def __init__(self, stream: StreamTable, dialect: Dialect) -> None:
        self._stream = stream
        self._shown = dialect.shown_sort
        self._names: list[FieldName] = list(stream.columns)
        self._kinds = [column.kind for column in stream.columns.values()]
        self._sort_index = typed_index(stream, stream.declaration.cursor_field)
        self._time_index = typed_index(stream, stream.time_field)
        #: None: the records of this stream can only be checked one by one.
        self._decode = _decoder(self._names) if all(map(is_spellable, self._names)) else None

    def matches(self, sid: int, columns: StoredColumns) -> bool:
        """Compare plain records with their digests, their typed values, their order and their times."""
        if not columns.rids:
            return True
        bodies = [body for body in columns.bodies if body is not None]
        if (
            set(columns.sids) != {sid}
            or columns.typed_rids != columns.rids
            or len(bodies) < len(columns.rids)
        ):
            return False
        digests = map(digest_of, columns.record_ids, columns.longs, bodies)
        return tuple(digests) == columns.digests and self._has_values(bodies, columns)

    def _has_values(self, bodies: Sequence[bytes], columns: StoredColumns) -> bool:
        if self._decode is None:
            return False
        try:
            decoded = self._decode(b"[%b]" % b",".join(bodies))
        except msgspec.MsgspecError:
            return False
        if len(decoded) != len(bodies):
            return False
        found = [list(map(attrgetter(f"f{number}"), decoded)) for number in range(len(self._names))]
        return (
            all(map(_match, self._kinds, found, columns.typed))
            and list(map(self._shown, columns.sorts)) == self._sorts(found, columns)
            and list(columns.times) == self._times(found, columns)
        )

    def _sorts(self, found: Sequence[_Values], columns: StoredColumns) -> list[Any]:
        """Derive the order; a typed value that was compared already holds it without parsing again."""
        if self._sort_index is not None:
            return list(columns.typed[self._sort_index])
        return [sort_of(self._stream, document) for document in self._documents(found)]

    def _times(self, found: Sequence[_Values], columns: StoredColumns) -> list[Any]:
        if self._time_index is not None:
            return list(columns.typed[self._time_index])
        return [ts_of(self._stream, document) for document in self._documents(found)]

    def _documents(self, found: Sequence[_Values]) -> list[Mapping[str, Any]]:
        return [dict(zip(self._names, values, strict=True)) for values in zip(*found, strict=True)]


def _decoder(names: Sequence[FieldName]) -> Callable[[bytes], list[Any]]:
    """Make a decoder of a list of bodies, which skips members that have no column."""
    fields = [(f"f{number}", Any, None) for number in range(len(names))]
    renamed = {f"f{number}": str(name) for number, name in enumerate(names)}
    row = msgspec.defstruct("Row", fields, rename=renamed)
    return msgspec.json.Decoder(list[row]).decode


def _match(kind: ColumnKind, values: list[Any], typed: _Values) -> bool:
    """Compare decoded values with typed ones: first by a quick rule that may miss a match, then by the exact one."""
    held = list(typed)
    return _QUICK[kind](values, held) or [column_value(kind, value) for value in values] == held


def _match_words(values: list[Any], held: list[Any]) -> bool:
    # The column holds nothing but text, and no other value equals a text.
    return values == held


def _match_hashes(values: list[Any], held: list[Any]) -> bool:
    try:
        return [None if value is None else text_hash(value) for value in values] == held
    except AttributeError:
        # A value of another type.
        return False


def _match_numbers(values: list[Any], held: list[Any]) -> bool:
    # True and False equal 1 and 0, but no number.
    return values == held and bool not in set(map(type, values))


def _match_booleans(values: list[Any], held: list[Any]) -> bool:
    return values == held and set(map(type, values)) <= {bool, type(None)}


def _match_times(values: list[Any], held: list[Any]) -> bool:
    # Times that all end in Z, as most do, are parsed by one call.
    if [value is None for value in values] != [value is None for value in held]:
        return False
    texts = [value for value in values if value is not None]
    if not all(type(text) is str and text[-1:] == "Z" for text in texts):
        return False
    try:
        found = np.array([text[:-1] for text in texts], "datetime64[us]")
    except (ValueError, UserWarning):
        return False
    return found.astype(np.int64).tolist() == [value for value in held if value is not None]


_QUICK: Mapping[ColumnKind, Callable[[list[Any], list[Any]], bool]] = {
    ColumnKind.WORD: _match_words,
    ColumnKind.HASH: _match_hashes,
    ColumnKind.TIME: _match_times,
    ColumnKind.BOOLEAN: _match_booleans,
    ColumnKind.NUMBER: _match_numbers,
    ColumnKind.INTEGER: _match_numbers,
}
