"""A primary server is lost and a standby takes its place: nothing acknowledged is lost, and no process starts again."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from headgate.errors import StorageUnusable
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_DURABLE = ("shared_buffers=16MB", "max_connections=40")


@pytest.fixture
def servers() -> Generator[tuple[postgres.Server, postgres.Server]]:
    """A primary server, and a standby without whose answer it acknowledges nothing."""
    folders = [Path(tempfile.mkdtemp(prefix="headgate-pg-")) for _ in range(2)]
    primary = postgres.Server(folders[0], (*_DURABLE, "synchronous_standby_names=*", "synchronous_commit=on"))
    standby = postgres.Server(folders[1], _DURABLE)
    primary.make()
    primary.start()
    standby.follow(primary)
    standby.start()
    try:
        yield primary, standby
    finally:
        for server in (primary, standby):
            server.kill()
            shutil.rmtree(server.folder, ignore_errors=True)


def test_what_was_acknowledged_by_a_primary_that_is_lost_is_there_after_its_standby_took_over(
    servers: tuple[postgres.Server, postgres.Server],
):
    primary, standby = servers
    url = (
        f"postgresql://postgres@/postgres?host={primary.folder},{standby.folder}"
        "&target_session_attrs=read-write"
    )
    store = Driven("postgres", Path(), PostgresStore(open_place(url, "one"), itertools.count(NOW).__next__))
    ledger = Ledger(store, connections=1)
    acknowledged: set[str] = set()
    for n in range(200):
        ledger.put({"id": f"before-{n}", "title": "canal"})
        acknowledged.add(f"before-{n}")
    primary.kill()
    with pytest.raises(StorageUnusable):
        ledger.put({"id": "while there is none"})
    standby.promote()
    for n in range(20):
        ledger.put({"id": f"after-{n}", "title": "canal"})
        acknowledged.add(f"after-{n}")
    assert set(ledger.keys(limit=1000)) - {"while there is none"} == acknowledged
    with psycopg.connect(standby.url) as connection:
        count = connection.execute("SELECT count(*) FROM record").fetchone()
    assert count is not None
    assert count[0] in {len(acknowledged), len(acknowledged) + 1}
    store.close()
