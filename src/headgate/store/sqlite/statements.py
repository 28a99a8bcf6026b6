"""The fixed SQL statements, by name, from the files in ``sql/``.

A block of a file is ``-- name: <name>``, one line that describes the statement, and the statement. Statements
that depend on a plan, a stream or a shelf are built where they are used and are not here.
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


def _file_texts() -> Iterable[str]:
    for file in files("headgate.store.sqlite").joinpath("sql").iterdir():
        if file.name.endswith(".sql"):
            yield file.read_text(encoding="utf-8")


SQL: Mapping[str, str] = read_statements(_file_texts())
