"""Damage to what a store holds: rows changed behind its back, and pages of SQLite's file that cannot be read."""

from __future__ import annotations

from pathlib import Path

import apsw
import psycopg

from headgate.store.postgres.migrate import open_place
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import PAGE_BYTES
from tests import postgres


def change_rows(engine: str, directory: Path, sql: str) -> None:
    """Run a statement on the tables of a home; it ends with a condition."""
    if engine == "sqlite":
        with apsw.Connection(str(directory / FILE)) as file:
            file.execute(sql)
        return
    place = open_place(postgres.database_url(), str(directory))
    with psycopg.connect(place.url) as connection:
        connection.execute(f"{sql} AND home={place.home}".encode())


def damage_page(home: Path, marker: bytes) -> None:
    """Make the page of the file that holds a text unreadable."""
    file = apsw.Connection(str(home / FILE))
    file.pragma("wal_checkpoint(TRUNCATE)")
    file.close()
    content = bytearray((home / FILE).read_bytes())
    assert content.count(marker) == 1
    content[content.index(marker) // PAGE_BYTES * PAGE_BYTES] = 0
    (home / FILE).write_bytes(content)


#: What fills a page with one record, so that damage to the page costs no other.
FILLER = "x" * (PAGE_BYTES * 5 // 8)
