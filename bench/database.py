"""The PostgreSQL server of the benchmarks: started from Debian's package, and kept in .cache/bench with its databases.

Its settings are those of a new cluster, which are Debian's: 128 MB of shared buffers, 100 connections, every commit
on the disk before it is acknowledged. It listens on a socket in its folder alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString, cast

import psycopg
from psycopg import sql

from bench.homes import CACHE
from headgate.home import Home, HomeInDatabase, home_in
from headgate.store.engines.commands import copy_store
from tests.postgres import Server

FOLDER = CACHE / "postgres"


@contextmanager
def running(folder: Path = FOLDER, settings: Sequence[str] = ()) -> Generator[Server]:
    """Run the server while the block runs; one that runs already is used and left running."""
    server = Server(folder.resolve(), settings)
    if not server.data.exists():
        server.folder.mkdir(parents=True, exist_ok=True)
        server.make()
    if _answers(server):
        yield server
        return
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _answers(server: Server) -> bool:
    try:
        psycopg.connect(server.url).close()
    except psycopg.OperationalError:
        return False
    return True


def postmaster(server: Server) -> int:
    """Give the process that the server's other processes are children of."""
    return int((server.data / "postmaster.pid").read_text().split("\n", 1)[0])


def fresh_database(server: Server, name: str) -> str:
    """Make an empty database in place of one that may be there; returns its address."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in ("DROP DATABASE IF EXISTS {} WITH (FORCE)", "CREATE DATABASE {}"):
            text = cast("LiteralString", statement)
            connection.execute(sql.SQL(text).format(sql.Identifier(name)))
    return server.url_of(name)


def copied(server: Server, home: Home, number: int, name: str) -> HomeInDatabase:
    """Copy a home into a database, unless it is there with this change number; the server has counted its rows."""
    there = home_in(home, server.url_of(name), "main")
    assert isinstance(there, HomeInDatabase)
    if _change_number(server, name) != number:
        print(f"copying {home.path} into PostgreSQL (once)")
        fresh_database(server, name)
        copy_store(home, there, lambda _done, _total: None)
        # What the server's own rhythm does within minutes is done before anything is measured.
        with psycopg.connect(there.url, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")
    return there


def _change_number(server: Server, name: str) -> int | None:
    """Give the change number of the complete copy that a database holds; None if it holds none."""
    with psycopg.connect(server.url) as connection:
        known = connection.execute("SELECT FROM pg_database WHERE datname=%s", (name,)).fetchone()
    if known is None:
        return None
    with psycopg.connect(server.url_of(name)) as connection:
        if connection.execute("SELECT to_regclass('meta')").fetchone() == (None,):
            return None
        facts = dict(connection.execute("SELECT k, v FROM meta WHERE home=1").fetchall())
    return None if "copying" in facts else facts.get("seq")
