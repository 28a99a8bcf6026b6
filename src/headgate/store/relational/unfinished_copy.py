"""Refuse a copy of a store that is not complete: it would answer as if the rest did not exist."""

from __future__ import annotations

from headgate.errors import StorageUnusable
from headgate.store.relational.database import Database


def refuse_unfinished_copy(database: Database) -> None:
    """Refuse to open a store while records are being copied into it.

    Raises:
        StorageUnusable: the copy is not complete.
    """
    if database.one(database.sql["unfinished_copy"]) is not None:
        raise StorageUnusable(
            "The store is a copy that is not complete.",
            hint="Run 'headgate store copy' again: it goes on where it stopped.",
        )
