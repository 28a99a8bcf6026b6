"""Check records against the schema that their stream declares, before they are stored. Pure.

Beside the schema's own rules every value must be one that its typed column can hold: JSON Schema takes any text
for a time, and a number of any size for an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from headgate.errors import SchemaParse
from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.pointers import escape
from headgate.model.rows import RecordProblem
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.guard import OWN
from headgate.store.format.columns import Converter
from headgate.store.format.streams import StreamTable

#: A longer pointer is cut: names in a record are foreign, and may be megabytes long.
_POINTER_CHARS = 1000
#: Kinds of which a value can fit the schema and not the column.
_UNSURE = frozenset({FieldKind.DATE, FieldKind.DATE_TIME, FieldKind.INTEGER})
_UNREADABLE = {
    FieldKind.DATE: "This is not a date.",
    FieldKind.DATE_TIME: "This is not a time.",
    FieldKind.INTEGER: "The number does not fit into an integer.",
}


class RecordCheck:
    """The check for the records of one stream."""

    __slots__ = ("_columns", "_kinds", "_schema", "_unsure")

    def __init__(self, stream: StreamTable) -> None:
        fields = stream.declaration.fields
        self._schema = _compiled(msgspec.json.encode(stream.declaration.schema))
        self._kinds = {name: field.kind for name, field in fields.items()}
        # A field that only an older version declares is not checked.
        self._columns: list[tuple[FieldName, Converter]] = [
            (name, convert) for name, convert in stream.converters if name in fields
        ]
        self._unsure = [
            (name, convert)
            for name, convert in self._columns
            if self._schema is None or self._kinds[name] in _UNSURE
        ]

    def problems(self, values: Mapping[str, Any]) -> tuple[RecordProblem, ...]:
        """List where a record breaks its schema; nothing when it does not."""
        if self._schema is None or self._schema.is_valid(values):
            get = values.get
            for name, convert in self._unsure:
                if (value := get(name)) is not None and convert(value) is None:
                    break
            else:
                return ()
        problems = {problem.pointer: problem for problem in self._broken_rules(values)}
        for problem in self.unreadable(values):
            rule = problems.get(problem.pointer)
            problems[problem.pointer] = problem if rule is None else replace(problem, message=rule.message)
        return tuple(problems.values())

    def unreadable(self, values: Mapping[str, Any]) -> Iterator[RecordProblem]:
        """List the values that their columns cannot hold."""
        for name, convert in self._columns:
            if (value := values.get(name)) is not None and convert(value) is None:
                yield RecordProblem(_pointer(f"/{escape(name)}"), self._sentence(name), name)

    def _broken_rules(self, values: Mapping[str, Any]) -> Iterator[RecordProblem]:
        for issue in () if self._schema is None else self._schema.issues(values):
            yield RecordProblem(_pointer(issue.pointer), f"The value {issue.message}.")

    def _sentence(self, name: FieldName) -> str:
        kind = self._kinds[name]
        return _UNREADABLE.get(kind, f"The value is not of type {kind.value}.")


def invalid_rows(
    stream: StreamTable, rid: int, problems: Iterable[RecordProblem]
) -> Iterator[tuple[int, str, int | None, str]]:
    """Yield the rows that mark a record as invalid."""
    for problem in problems:
        yield (
            rid,
            problem.pointer,
            None if problem.unreadable is None else stream.fids[problem.unreadable],
            problem.message,
        )


def _pointer(inside: str) -> str:
    pointer = f"/data{inside}"
    return pointer if len(pointer) <= _POINTER_CHARS else f"{pointer[:_POINTER_CHARS]}…"


# By the schema's text: a catalog is loaded again at every change, and its schemas are the same for long.
@lru_cache(maxsize=256)
def _compiled(schema: bytes) -> CompiledSchema | None:
    """Compile a schema; None for one that was stored before schemas had to compile."""
    try:
        return compile_schema(msgspec.json.decode(schema), OWN)
    except SchemaParse:
        return None
