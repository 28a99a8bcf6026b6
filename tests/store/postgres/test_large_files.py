"""Large files in PostgreSQL: never whole in memory, and read on connections that are open."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres import database as databases
from headgate.store.postgres.migrate import open_place
from tests import postgres

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]
_MIB = 1024 * 1024
_SIZE_MIB = 48


async def _content() -> AsyncIterator[bytes]:
    for number in range(_SIZE_MIB * 4):
        yield bytes([number]) * (_MIB // 4)


async def test_a_large_file_passes_through_little_memory_and_few_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = PostgresStore(open_place(postgres.database_url(), str(tmp_path)), lambda: 0, connections=1)
    connect, connections = databases.connect, 0

    def counting(*values: object, **options: object) -> object:
        nonlocal connections
        connections += 1
        return connect(*values, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(databases, "connect", counting)
    tracemalloc.start()
    try:
        blob_id, size = await store.put_blob(_content(), "application/octet-stream")
        hashed = hashlib.sha256()
        async for piece in store.read_blob(blob_id):
            hashed.update(piece)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        await store.close()
    assert (size, blob_id) == (_SIZE_MIB * _MIB, f"blob_{hashed.hexdigest()}")
    assert most < 16 * _MIB
    # One to write the parts, one to note the file, one for reads, and those of idle tasks: none for each part.
    assert connections < _SIZE_MIB / 4
