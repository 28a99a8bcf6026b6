from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from headgate.audit.chain import load_audit_key, seal_block, write_head
from headgate.auth.documents import load_secret
from headgate.auth.keys import load_ring
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId
from headgate.store.engines.opening import open_engine
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import reading_store, writing_store
from tests.hostile.store.scene import MAIL, damages, filled, line, with_store
from tests.on_socket import COMMAND, WAIT_SECONDS, Outcome, environment, headgate
from tests.schema.declarations import declaration

CHECKED = r"Checked 10 records in [0-9.]+ s \([0-9,]+ a second\); found no damage\.\n"


@pytest.fixture
def made(tmp_path: Path) -> tuple[Home, ConnectionId]:
    return filled(tmp_path, [line(f"k{n}", sent_at=f"2026-01-{n:02}T00:00:00Z") for n in range(1, 11)])


def store(home: Home, *arguments: str) -> Outcome:
    return headgate(home.path.parent, "--home", str(home.path), "store", *arguments)


def test_stats_show_an_owner_what_is_there(made: tuple[Home, ConnectionId]):
    home, connection_id = made
    shown = store(home, "stats")
    assert (shown.code, shown.err) == (0, "")
    row = shown.out.splitlines()[1]
    for word in (connection_id, "messages", "10", "2026-01-01", "2026-01-10"):
        assert word in row
    document = json.loads(store(home, "stats", "--json").out)
    (connection,) = document["connections"]
    assert connection["connection_id"] == connection_id
    assert connection["streams"][0]["record_count"] == document["record_count"] == 10
    assert document["database_bytes"] > 0


def test_backup_verify_and_restore_bring_the_records_back(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made
    copy = str(tmp_path / "copy")
    assert json.loads(store(home, "backup", copy, "--json").out)["record_count"] == 10
    assert store(home, "restore", copy, "--verify").code == 0
    again = store(home, "restore", copy)
    assert (again.code, again.err.count("\n")) == (1, 1)
    other = Home(tmp_path / "other")
    # This home has no attached files; the files of the backup are those of the home.
    assert re.match(r"Restored 10 records, [\d.]+ \w+ in \d+ files?, ", store(other, "restore", copy).out)
    assert damages(other) == []


def test_a_grant_that_was_revoked_after_a_backup_does_not_come_back_with_it(
    made: tuple[Home, ConnectionId], tmp_path: Path
):
    home, _ = made
    place = home.path.parent
    granted = json.loads(
        headgate(place, "--home", str(home.path), "grants", "create", "--client", "a", "--yes", "--json").out
    )
    copy = str(tmp_path / "copy")
    assert store(home, "backup", copy).code == 0
    other, unchanged = Home(tmp_path / "other"), Home(tmp_path / "unchanged")
    restored = store(other, "restore", copy)
    assert (restored.code, restored.err.count("\n")) == (0, 1)
    assert restored.err.startswith("Ended 1 grant, because")
    assert "grants create" in restored.err
    (listed,) = json.loads(headgate(place, "--home", str(other.path), "grants", "list", "--json").out)
    assert (listed["grant_id"], listed["state"]) == (granted["grant_ids"][0], "revoked")
    assert store(unchanged, "restore", copy, "--keep-grants").err == ""
    (listed,) = json.loads(headgate(place, "--home", str(unchanged.path), "grants", "list", "--json").out)
    assert listed["state"] == "active"


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def test_a_backup_has_the_keys_or_says_that_it_has_not(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made
    load_ring(home)
    load_audit_key(home)
    load_secret(home)
    with_key, without = tmp_path / "with", tmp_path / "without"
    assert ", with keys." in store(home, "backup", str(with_key)).out
    assert "without keys" in store(home, "backup", str(without), "--without-keys").out
    assert not (without / "keys").exists()
    other, bare = Home(tmp_path / "other"), Home(tmp_path / "bare")
    assert ", with keys." in store(other, "restore", str(with_key)).out
    assert "without keys" in store(bare, "restore", str(without)).out
    for name in ("seal.json", "audit", "introspection"):
        assert (other.keys / name).read_bytes() == (home.keys / name).read_bytes()
        assert (other.keys / name).stat().st_mode & 0o777 == 0o600
    assert list(bare.keys.iterdir()) == []


def test_keys_that_are_there_are_not_replaced_by_those_of_a_backup(
    made: tuple[Home, ConnectionId], tmp_path: Path
):
    home, _ = made
    load_audit_key(home)
    store(home, "backup", str(tmp_path / "copy"))
    other = open_home(tmp_path / "other")
    mine = load_audit_key(other)
    refused = store(other, "restore", str(tmp_path / "copy"))
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert load_audit_key(other) == mine
    assert not (other.path / "records.db").exists()


def test_a_restored_home_is_private_whatever_the_umask(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made

    async def work(opened: SqliteStore) -> None:
        await opened.put_blob(_pieces(b"a file"), "text/plain")

    with_store(home, work)
    before = os.umask(0)
    try:
        store(home, "backup", str(tmp_path / "copy"))
        store(Home(tmp_path / "other"), "restore", str(tmp_path / "copy"))
    finally:
        os.umask(before)
    found = [tmp_path / "other", *(tmp_path / "other").rglob("*"), *(tmp_path / "copy").rglob("*")]
    assert any(path.parent.parent.name == "blobs" for path in found)
    assert [path for path in found if path.stat().st_mode & 0o077] == []


def test_a_log_that_cannot_be_checked_here_has_its_own_exit_code(
    made: tuple[Home, ConnectionId], tmp_path: Path
):
    home, _ = made
    key = load_audit_key(home)

    def verified(of: Home) -> Outcome:
        return headgate(tmp_path, "--home", str(of.path), "audit", "verify")

    async def log() -> None:
        opened = open_engine(home, lambda: 0)
        line = b'{"at":1,"grant_ids":[]}\n'
        write_head(home, await opened.ledger.append("a.journal", 0, line, partial(seal_block, key)))
        await opened.ledger.close()
        await opened.store.close()

    asyncio.run(log())
    assert verified(home).code == 0
    for name, words in (("with", ()), ("without", ("--without-keys",))):
        store(home, "backup", str(tmp_path / name), *words)
        store(Home(tmp_path / f"of-{name}"), "restore", str(tmp_path / name))
    assert verified(Home(tmp_path / "of-with")).code == 0
    unchecked = verified(Home(tmp_path / "of-without"))
    assert (unchecked.code, unchecked.err.count("\n")) == (69, 1)
    assert "cannot be checked here" in unchecked.err
    (home.path / "audit-head.json").write_bytes(b"{")
    damaged = verified(home)
    assert (damaged.code, damaged.err.count("\n")) == (69, 1)


def test_a_restore_that_is_given_again_is_done(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made
    headgate(home.path.parent, "--home", str(home.path), "grants", "create", "--client", "a", "--yes")
    copy, other = str(tmp_path / "copy"), Home(tmp_path / "other")
    store(home, "backup", copy)
    assert [store(other, "restore", copy).code for _ in range(2)] == [0, 0]
    assert store(other, "restore", copy, "--keep-grants").code == 1


def test_fsck_names_what_is_damaged_and_ends_with_1(made: tuple[Home, ConnectionId]):
    home, connection_id = made
    assert re.fullmatch(CHECKED, store(home, "fsck").out)
    with writing_store(home) as database, database.writing():
        database.run("UPDATE record SET digest=zeroblob(32) WHERE record_id='k3'")
    shown = store(home, "fsck")
    assert (shown.code, shown.err.count("\n")) == (1, 1)
    assert f'{connection_id}/messages:"k3"' in shown.out
    document = json.loads(store(home, "fsck", "--json").out)
    assert [damage["record_id"] for damage in document["damages"]] == ["k3"]


def test_erase_takes_one_record_or_a_connection(made: tuple[Home, ConnectionId]):
    home, connection_id = made
    gone = store(home, "erase", connection_id, "messages", "k3", "--yes", "--json")
    assert json.loads(gone.out) == {"record_count": 1, "blob_count": 0, "copy_count": 0}
    assert store(home, "erase", connection_id, "messages", "k3", "--yes").code == 1
    assert store(home, "erase", connection_id, "--yes").out == "Erased 9 records and 0 files.\n"
    with reading_store(home) as database:
        assert database.value("SELECT count(*) FROM record") == 0


def test_the_id_of_an_erased_connection_is_not_taken_for_the_name_of_another(made: tuple[Home, ConnectionId]):
    home, connection_id = made
    store(home, "erase", connection_id, "--yes")

    async def work(stores: SqliteStore) -> None:
        assert (await stores.create_connection(MAIL, connection_id)).id == f"{connection_id}-2"

    with_store(home, work)
    # As in a script that was stopped, and is run again.
    again = store(home, "erase", connection_id, "--yes")
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert f"{connection_id}-2" in store(home, "stats").out
    assert store(home, "erase", f"{connection_id}-2", "--yes").code == 0


def test_erase_without_a_yes_erases_nothing(made: tuple[Home, ConnectionId]):
    home, connection_id = made
    shown = store(home, "erase", connection_id)
    assert shown.code == 130
    assert store(home, "erase", connection_id, "messages").code == 64
    assert json.loads(store(home, "stats", "--json").out)["record_count"] == 10


@pytest.mark.parametrize("words", [("stats",), ("fsck",), ("backup", "copy"), ("erase", "cin_1", "--yes")])
def test_a_home_without_a_store_is_reported_and_none_is_made(tmp_path: Path, words: tuple[str, ...]):
    shown = store(Home(tmp_path / "home"), *words)
    assert (shown.code, shown.out) == (78, "")
    assert shown.err.count("\n") == 1
    assert not (tmp_path / "home" / "records.db").exists()


def test_a_damaged_file_is_one_line_and_no_traceback(made: tuple[Home, ConnectionId]):
    home, _ = made
    (home.path / "records.db").write_bytes(b"garbage " * 4096)
    for words in (("stats",), ("fsck",), ("backup", "copy")):
        shown = store(home, *words)
        assert (shown.code, shown.err.count("\n")) == (1, 1), shown
        assert "Traceback" not in shown.err


def test_progress_is_shown_on_a_terminal_alone(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("this machine has no terminals to give")
    command = [*COMMAND, "--home", str(home.path), "store", "fsck"]
    shown = subprocess.run(
        command,
        env=environment(tmp_path, {}),
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=WAIT_SECONDS,
        check=True,
    )
    os.close(theirs)
    assert b"checking 100 %" in os.read(ours, 4096)
    os.close(ours)
    assert re.fullmatch(CHECKED, shown.stdout.decode())
    assert store(home, "fsck").err == ""


def test_stats_import_only_what_they_need(made: tuple[Home, ConnectionId]):
    home, _ = made
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "headgate", "--home", str(home.path), "store", "stats"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert "headgate.store.maintenance.stats" in imported
    slow = {"numpy", "asyncio", "mcp", "starlette", "headgate.wiring", "headgate.operations"}
    assert imported & slow == set()


def test_stats_show_connections_without_records_and_streams_that_are_no_longer_declared(
    made: tuple[Home, ConnectionId],
):
    home, _ = made

    async def work(store: SqliteStore) -> None:
        await store.create_connection(MAIL, "Nothing yet")
        document = declaration()
        document["declaration_version"] = "2026-08-12"
        document["selection_presets"] = []
        document["streams"] = [one for one in document["streams"] if one["name"] != "messages"]
        for one in document["streams"]:
            one.pop("relationships", None)
        await store.declare(MAIL, document)

    with_store(home, work)
    shown = store(home, "stats").out
    assert "Nothing yet (nothing-yet)" in shown
    assert "messages (no longer declared)" in shown
    assert shown.splitlines()[-1].startswith("10 records of 2 connections; ")
