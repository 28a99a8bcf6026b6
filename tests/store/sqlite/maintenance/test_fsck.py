from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.home import Home
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.fsck import check_store
from headgate.store.maintenance.sqlite_home import blob_files, reading_store, writing_store
from headgate.store.sqlite import FILE
from tests.hostile.store.scene import batch, damages, deletion, filled, line, with_store
from tests.store.declared import ODD
from tests.store.engines import Driven
from tests.store.ledger import Ledger

LONG = "".join(f"word{n} " for n in range(8000))


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A store with plain, long, changed and deleted records and a file."""
    home, connection_id = filled(
        tmp_path_factory.mktemp("intact"),
        [line(f"k{n}", size=n, sender=f"s{n % 3}", weight=n / 7) for n in range(20)]
        + [line("long", body=LONG), line("timeless", sent_at=None), line("gone"), line("changed")],
    )

    async def work(store: SqliteStore) -> None:
        await store.ingest(batch(connection_id, [deletion("gone"), line("changed", size=1)]))
        await store.put_blob(_pieces(b"a file"), "text/plain")

    with_store(home, work)
    return home


@pytest.fixture
def home(intact: Home, tmp_path: Path) -> Home:
    """A copy of it that may be damaged."""
    shutil.copytree(intact.path, tmp_path / "home")
    return Home(tmp_path / "home")


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def test_an_intact_store_has_no_damage(home: Home):
    assert damages(home) == []


def test_a_check_changes_no_byte(home: Home):
    before = {path: path.read_bytes() for path in home.path.rglob("*.db")}
    damages(home)
    assert {path: path.read_bytes() for path in home.path.rglob("*.db")} == before


def test_every_record_is_counted(home: Home):
    with reading_store(home) as database:
        reports: list[tuple[int, int]] = []
        found = check_store(database, blob_files(home), lambda done, total: reports.append((done, total)))
    assert found.record_count == 23
    assert reports[-1] == (23, 23)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "UPDATE record SET body=CAST(replace(body, 'subject of k3', 'subject of x3') AS BLOB) WHERE record_id='k3'",
            "digest",
        ),
        ("UPDATE record SET record_id='k33' WHERE record_id='k3'", "digest"),
        ("UPDATE record SET digest=zeroblob(32) WHERE record_id='k3'", "digest"),
        ("UPDATE record SET sort=5 WHERE record_id='k3'", "place"),
        ("DELETE FROM {typed} WHERE rid=(SELECT rid FROM record WHERE record_id='k3')", "typed"),
        ("UPDATE {typed} SET {size}=99 WHERE rid=(SELECT rid FROM record WHERE record_id='k3')", "typed"),
        ("UPDATE chunk SET text=replace(text, 'word9 ', 'ward9 ')", "text"),
        ("DELETE FROM chunk WHERE n=1", "text"),
        ("UPDATE shelf SET live=live+1", "count"),
        ("UPDATE {typed} SET {exact}=5 WHERE rid=(SELECT rid FROM record WHERE record_id='k3')", "typed"),
        ("UPDATE {typed} SET {exact}=NULL WHERE rid=(SELECT rid FROM record WHERE record_id='k0')", "typed"),
        ("UPDATE field SET scale=7 WHERE name='weight'", "typed"),
    ],
)
def test_planted_damage_is_found_and_named(home: Home, statement: str, found: str):
    with writing_store(home) as database:
        ((stid, column),) = database.all("SELECT stid, col FROM field WHERE name='size'")
        with database.writing():
            exact: int = database.value("SELECT col FROM field WHERE name='weight'")
            database.run(statement.format(typed=f"t{stid}", size=f"c{column}", exact=f"s{exact}"))
    kinds = damages(home)
    assert found in {kind for kind, _ in kinds}
    if "record_id='k3'" in statement:
        assert {record_id for kind, record_id in kinds if kind == found} <= {"k3", "k33"}


@pytest.mark.parametrize("letter", [b"x", b"\x88"])
def test_a_damaged_name_of_a_column_is_found(home: Home, letter: bytes):
    """No statement of ours needs the names of these columns, so nothing else would notice."""
    content = (home.path / FILE).read_bytes()
    before = b"fid INTEGER, message TEXT NOT NULL"
    assert content.count(before) == 1
    (home.path / FILE).write_bytes(content.replace(before, before.replace(b"mess", b"mes" + letter)))
    assert "file" in {kind for kind, _ in damages(home)}


def test_a_record_that_the_index_has_lost_is_named(home: Home):
    with writing_store(home) as database, database.writing():
        rid, ts = database.all("SELECT rid, ts FROM record WHERE record_id='k3'")[0]
        database.run("UPDATE record SET ts=ts+86400000000 WHERE rid=?", (rid,))
        assert ts is not None
    assert ("index", "k3") in damages(home)


def test_a_missing_and_a_changed_file_are_found(home: Home):
    digest = hashlib.sha256(b"a file").hexdigest()
    path = home.path / "blobs" / digest[:2] / digest
    path.write_bytes(b"b file")
    assert [kind for kind, _ in damages(home)] == ["blob"]
    path.unlink()
    assert [kind for kind, _ in damages(home)] == ["blob"]


def test_a_stream_with_a_field_that_no_type_can_name_is_checked_too(tmp_path: Path):
    store = Driven("sqlite", tmp_path / "home")
    Ledger(store, connections=1).put({"id": "a", ODD: "x"}, {"id": "b", ODD: "y"})
    store.close()
    home = Home(store.directory)
    assert damages(home) == []
    with writing_store(home) as database:
        database.run("UPDATE record SET digest=zeroblob(32) WHERE record_id='b'")
    assert damages(home) == [("digest", "b")]
