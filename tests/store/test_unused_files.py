"""The bytes of files go when no record uses them any more, some time later."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import BlobNotFound, StorageUnusable
from headgate.home import open_home
from headgate.model.ids import BlobId
from headgate.store.changes.retention import HOUR_US, WAIT_US
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.engines.store import Store
from headgate.store.postgres.migrate import open_place
from headgate.store.sqlite import BLOBS
from tests import postgres
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger


class Clock:
    """A clock that a test moves."""

    at = NOW

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(engine: str, tmp_path: Path, clock: Clock) -> Generator[Ledger]:
    home = tmp_path / "home"
    if engine == "sqlite":
        bare: Store = SqliteStore(open_home(home), clock)
    else:
        bare = PostgresStore(open_place(postgres.database_url(), str(home)), clock, connections=1)
    store = Driven(engine, home, bare)
    yield Ledger(store, connections=2)
    store.close()


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _put(ledger: Ledger, content: bytes) -> BlobId:
    return ledger.store.put_blob(_pieces(content), "text/plain")[0]


def _exists(ledger: Ledger, blob_id: BlobId) -> bool:
    async def read() -> bytes:
        return b"".join([piece async for piece in ledger.store.bare.read_blob(blob_id)])

    try:
        return bool(ledger.store.run(read()))
    except BlobNotFound:
        return False


def _look(ledger: Ledger) -> None:
    """Let the store look for unused files, as it does when it is idle."""
    writer: Any = ledger.store.bare._writer  # type: ignore[attr-defined]
    (task,) = [one for one in writer._idle_tasks if one.name == "unused files"]
    ledger.store.run(writer.run(task.step, in_transaction=False))


def _wait(ledger: Ledger, clock: Clock) -> None:
    """Let the time pass after which a file that was and is unused is gone."""
    clock.at += WAIT_US
    for _ in range(2):
        clock.at += HOUR_US
        _look(ledger)


def test_a_file_goes_with_the_last_record_that_uses_it(ledger: Ledger, clock: Clock):
    shared, own = _put(ledger, b"shared"), _put(ledger, b"own")
    ledger.put({"id": "a", "file": {"blob_id": shared}}, {"id": "b", "file": {"blob_id": own}})
    ledger.put({"id": "a", "file": {"blob_id": shared}}, connection=1)
    _wait(ledger, clock)
    assert (_exists(ledger, shared), _exists(ledger, own)) == (True, True)
    ledger.remove("a", "b")
    _wait(ledger, clock)
    assert (_exists(ledger, shared), _exists(ledger, own)) == (True, False)
    ledger.store.delete_connection(ledger.ids[1])
    _wait(ledger, clock)
    assert not _exists(ledger, shared)


def test_a_file_waits_for_its_record_and_for_those_that_read_it(ledger: Ledger, clock: Clock):
    waiting, read = _put(ledger, b"waiting"), _put(ledger, b"read")
    ledger.put({"id": "a", "file": {"blob_id": read}})
    for _ in range(3):
        clock.at += HOUR_US
        _look(ledger)
    assert _exists(ledger, waiting)
    clock.at += WAIT_US
    _look(ledger)
    clock.at += 2 * HOUR_US
    again = _put(ledger, b"waiting")
    ledger.remove("a")
    _look(ledger)
    assert (again, _exists(ledger, waiting), _exists(ledger, read)) == (waiting, True, True)
    clock.at += HOUR_US
    _look(ledger)
    assert (_exists(ledger, waiting), _exists(ledger, read)) == (True, False)


def test_a_file_that_was_removed_can_be_stored_again(ledger: Ledger, clock: Clock):
    blob_id = _put(ledger, b"content")
    _wait(ledger, clock)
    assert not _exists(ledger, blob_id)
    assert _put(ledger, b"content") == blob_id
    assert _exists(ledger, blob_id)


def test_a_file_that_is_removed_while_it_is_stored_is_reported(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    async def gone(_: BlobId) -> bool:
        return False

    monkeypatch.setattr(ledger.store.bare._files, "exists", gone)  # type: ignore[attr-defined]
    with pytest.raises(StorageUnusable):
        _put(ledger, b"content")


def test_what_killed_uploads_left_goes_and_what_goes_on_stays(tmp_path: Path, clock: Clock):
    store = Driven("sqlite", tmp_path / "home", SqliteStore(open_home(tmp_path / "home"), clock))
    left, going_on = (tmp_path / "home" / BLOBS / f".incoming.{name}" for name in ("left", "going-on"))
    for path in (left, going_on):
        path.write_bytes(b"half")
    os.utime(left, (0, 0))
    # Before a store is closed it does what it does when it is idle.
    store.close()
    assert (left.exists(), going_on.exists()) == (False, True)
