from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.home import Home
from headgate.model.ids import ConnectionId
from headgate.store.sqlite.engine import SqliteStore
from headgate.store.sqlite.maintenance.opening import reading_store, writing_store
from tests.hostile.store.scene import MAIL, damages, filled, line, with_store
from tests.on_socket import COMMAND, WAIT_SECONDS, Outcome, environment, headgate
from tests.schema.declarations import declaration

CHECKED = r"Checked 10 records in [0-9.]+ s \([0-9,]+ a second\); found 0 damages\.\n"


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
    assert store(other, "restore", copy).out.startswith("Restored 10 records")
    assert damages(other) == []


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
    assert "headgate.store.sqlite.maintenance.stats" in imported
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
    assert "Nothing yet (cin_" in shown
    assert "messages (no longer declared)" in shown
    assert shown.splitlines()[-1].startswith("10 records of 2 connections; ")
