"""SQL statements by name: those of both engines in ``store/sql/``, and what truly differs in an engine's folder ``sql/``.

A block of a file is ``-- name: <name>``, one line that describes the statement, and the statement. In ``planned.sql``
are those that depend on a plan, a stream or a shelf: the code that uses one fills in what stands in braces.
Shared statements also have macros in braces, which each engine writes in its way:

- ``{home}``, also ``r.{home}``: the condition that a row belongs to the home, and AND. A file holds one home.
- ``{home_column}``, ``{home_value}``: the home as the first column, and as the first value.
- ``{live}``, also ``r.{live}``: the condition that a record is not deleted.
- ``{index name}``: the index that SQLite must use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

_START = "-- name: "


def read_statements(texts: Iterable[str]) -> Mapping[str, str]:
    """Read the blocks of SQL files."""
    statements: dict[str, str] = {}
    for text in texts:
        for block in text.split(_START)[1:]:
            name, description, sql = (*block.split("\n", maxsplit=2), "", "")[:3]
            if name in statements:
                raise ValueError(f"The statement '{name}' is defined twice.")
            if not description.startswith("-- ") or not sql.strip():
                raise ValueError(f"The statement '{name}' has no description or no SQL.")
            statements[name] = sql.strip()
    return statements


def statements_of(engine: str, macros: Mapping[str, str]) -> Mapping[str, str]:
    """Read the statements of an engine, by the name of its package; macros are patterns with what takes their place."""
    return read_statements([*_expanded(macros), *_texts(engine)])


def _expanded(macros: Mapping[str, str]) -> Iterator[str]:
    for text in _texts("headgate.store"):
        for pattern, written in macros.items():
            text = re.sub(pattern, written, text)  # noqa: PLW2901 - one macro after the other
        yield text


def _texts(package: str) -> Iterator[str]:
    for file in files(package).joinpath("sql").iterdir():
        if file.name.endswith(".sql"):
            yield file.read_text(encoding="utf-8")
