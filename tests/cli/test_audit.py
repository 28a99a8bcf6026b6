"""``headgate audit verify``: whole, changed, or not to be checked here; and what backups carry for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests import postgres
from tests.hostile.store.scene import filled, line
from tests.on_socket import Outcome, headgate

WHOLE, CHANGED, UNCHECKED = 0, 1, 69
IN_FILE: Mapping[str, str] = {}


def in_database() -> dict[str, str]:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return {"HEADGATE_STORE_URL": postgres.database_url(), "HEADGATE_STORE_HOME": postgres.new_home_name()}


def run(home: Path, *words: str, where: Mapping[str, str] = IN_FILE) -> Outcome:
    return headgate(home.parent, "--home", str(home), *words, **where)


def logged(home: Path, where: Mapping[str, str] = IN_FILE) -> Path:
    """Make a home with two entries in its log."""
    for _ in range(2):
        assert run(home, "owner", "reset", "--yes", where=where).code == 0
    assert verified(home, where) == WHOLE
    return home


def verified(home: Path, where: Mapping[str, str] = IN_FILE) -> int:
    """Give how the check ends; what it cannot find whole it reports in one line."""
    done = run(home, "audit", "verify", where=where)
    assert done.err.count("\n") == (done.code != WHOLE), done
    return done.code


def test_a_changed_log_has_another_exit_code_than_one_that_cannot_be_checked(tmp_path: Path):
    home = logged(tmp_path / "home")
    shutil.copytree(home, tmp_path / "without")
    (tmp_path / "without" / "keys" / "audit").unlink()
    with closing(apsw.Connection(str(home / "records.db"))) as database:
        database.execute("DROP TRIGGER audit_keeps")
        database.execute("UPDATE audit SET events = CAST(replace(events, 'reset', 'token') AS BLOB)")
    assert (verified(home), verified(tmp_path / "without")) == (CHANGED, UNCHECKED)
    changed = json.loads(run(home, "audit", "verify", "--json").out)
    unchecked = json.loads(run(tmp_path / "without", "audit", "verify", "--json").out)
    assert (changed["broken_at"], bool(changed["problem"]), changed["unchecked"]) == (1, True, None)
    assert (unchecked["broken_at"], unchecked["problem"], bool(unchecked["unchecked"])) == (None, None, True)


@pytest.mark.parametrize("engine", ["file", "database"])
def test_a_log_whose_key_was_lost_is_not_called_changed_here_or_where_it_is_restored(
    tmp_path: Path, engine: str
):
    where = IN_FILE if engine == "file" else in_database()
    home = logged(tmp_path / "home", where)
    (home / "keys" / "audit").unlink()
    assert verified(home, where) == UNCHECKED
    assert run(home, "store", "backup", str(tmp_path / "copy"), where=where).code == 0
    assert run(tmp_path / "other", "store", "restore", str(tmp_path / "copy")).code == 0
    assert verified(tmp_path / "other") == UNCHECKED


@pytest.mark.parametrize("engine", ["file", "database"])
def test_a_log_is_checked_as_before_where_its_backup_is_restored(tmp_path: Path, engine: str):
    where, there = (IN_FILE, IN_FILE) if engine == "file" else (in_database(), in_database())
    home, other = logged(tmp_path / "home", where), tmp_path / "other"
    copy, words = str(tmp_path / "copy"), tmp_path / "words"
    words.write_text("six green boats\n", encoding="utf-8")
    words.chmod(0o600)
    secret = ("--passphrase-file", str(words))
    assert ", with keys" in run(home, "store", "backup", copy, "--encrypt", *secret, where=where).out
    assert ", with keys" in run(other, "store", "restore", copy, *secret, where=there).out
    assert verified(other, there) == WHOLE
    for name in ("audit-head.json", "keys/audit"):
        assert (other / name).read_bytes() == (home / name).read_bytes()


@pytest.mark.parametrize("size", [0, 31])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("audit", "audit list"),
        ("seal.json", "keys list"),
        ("introspection", "serve --port 0"),
        ("erase.key", "store erase {connection} messages k1 --yes"),
    ],
)
def test_a_key_that_is_empty_or_short_is_refused_in_one_line_and_left_alone(
    tmp_path: Path, name: str, command: str, size: int
):
    home, connection = filled(tmp_path, [line("k1")])
    key = home.keys / name
    key.write_bytes(b"k" * size)
    key.chmod(0o600)
    done = run(home.path, *command.format(connection=connection).split())
    assert (done.code, done.out, done.err.count("\n")) == (78, "", 1), done
    assert str(key) in done.err
    assert key.read_bytes() == b"k" * size


def test_a_new_home_has_a_whole_log_and_one_whose_log_and_head_were_removed_has_not(tmp_path: Path):
    assert run(tmp_path / "new", "keys", "list").code == 0
    assert verified(tmp_path / "new") == WHOLE
    home = logged(tmp_path / "home")
    first = (tmp_path / "new" / "audit-head.json").read_bytes()

    def remove(*counts: str) -> int:
        with closing(apsw.Connection(str(home / "records.db"))) as database:
            database.execute("DROP TRIGGER IF EXISTS audit_stays; DELETE FROM audit")
            for count in counts:
                database.execute(f"DELETE FROM {count}")
        (home / "audit-head.json").unlink(missing_ok=True)
        return verified(home)

    assert remove() == CHANGED, "the entries are counted beside the chain"
    assert run(home, "owner", "reset", "--yes").code == 0
    assert verified(home) == CHANGED, "also after the log goes on"
    assert remove("meta WHERE k = 'audit_entries'") == UNCHECKED, "a key without a noted end is a fault"
    (home / "audit-head.json").write_bytes(first)
    (home / "audit-head.json").chmod(0o600)
    assert verified(home) == CHANGED, "the beginning of another home is not this one's"
