"""SQL statements by name, from the files in an engine's folder ``sql/``.

A block of a file is ``-- name: <name>``, one line that describes the statement, and the statement. In ``planned.sql``
are those that depend on a plan, a stream or a shelf: the code that uses one fills in what stands in braces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files

_START = "-- name: "


def read_statements(texts: Iterable[str]) -> Mapping[str, str]:
    """Read the blocks of SQL files.

    Raises:
        ValueError: a name stands twice, or a block has no description or no statement.
    """
    found: dict[str, str] = {}
    for text in texts:
        for block in text.split(_START)[1:]:
            name, description, sql = (*block.split("\n", maxsplit=2), "", "")[:3]
            if name in found:
                raise ValueError(f"The statement '{name}' is defined twice.")
            if not description.startswith("-- ") or not sql.strip():
                raise ValueError(f"The statement '{name}' has no description or no SQL.")
            found[name] = sql.strip()
    return found


def statements_of(package: str) -> Mapping[str, str]:
    """Read the statements of an engine, by the name of its package."""
    folder = files(package).joinpath("sql")
    return read_statements(
        file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql")
    )
