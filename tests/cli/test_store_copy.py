"""``headgate store`` with records in PostgreSQL, from a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.home import Home
from tests import postgres
from tests.hostile.store.scene import damages, filled, line
from tests.on_socket import Outcome, headgate

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


def _store(home: Home, *arguments: str, **variables: str) -> Outcome:
    return headgate(home.path.parent, "--home", str(home.path), "store", *arguments, **variables)


def test_a_home_moves_to_a_database_is_looked_after_there_and_moves_back(tmp_path: Path):
    home, connection_id = filled(tmp_path, [line(f"k{n}") for n in range(1, 11)])
    url, name = postgres.database_url(), postgres.new_home_name()
    there = {"HEADGATE_STORE_URL": url, "HEADGATE_STORE_HOME": name}
    copied = _store(home, "copy", "--to", url, HEADGATE_STORE_HOME=name)
    assert copied.out == "Copied 10 records, change 10, and compared every row.\n"
    again = _store(home, "copy", "--to", url, HEADGATE_STORE_HOME=name)
    assert (again.code, again.err.count("\n")) == (1, 1)
    (home.path / "records.db").unlink()
    assert json.loads(_store(home, "stats", "--json", **there).out)["record_count"] == 10
    assert "in the database of all homes" in _store(home, "stats", **there).out
    assert _store(home, "fsck", **there).code == 0
    erased = _store(home, "erase", connection_id, "messages", "k3", "--yes", **there)
    assert erased.out == "Erased 1 record and 0 files.\n"
    assert _store(home, "backup", str(tmp_path / "copy"), **there).out.startswith("Backed up 9 records")
    other = Home(tmp_path / "other")
    assert _store(other, "restore", str(tmp_path / "copy")).out.startswith("Restored 9 records")
    back = json.loads(_store(home, "copy", "--from", url, "--json", HEADGATE_STORE_HOME=name).out)
    assert (back["record_count"], back["missing_count"]) == (9, 0)
    assert damages(home) == damages(other) == []


def test_a_copy_needs_one_direction_and_a_home_that_is_there(tmp_path: Path):
    home, _ = filled(tmp_path, [line("k1")])
    url = postgres.database_url()
    assert _store(home, "copy").code == 64
    assert _store(home, "copy", "--to", url, "--from", url).code == 64
    assert _store(home, "copy", "--to", "mysql://x").code != 0
    missing = _store(Home(tmp_path / "new"), "copy", "--from", url, HEADGATE_STORE_HOME="nobody's")
    assert missing.code != 0
    assert "nobody's" in missing.err


def test_the_role_of_a_home_sees_that_home_and_no_other(tmp_path: Path):
    home, _ = filled(tmp_path, [line(f"k{n}") for n in range(1, 4)])
    url, name, other = postgres.database_url(), postgres.new_home_name(), postgres.new_home_name()
    for one in (name, other):
        assert _store(home, "copy", "--to", url, HEADGATE_STORE_HOME=one).code == 0
    (home.path / "records.db").unlink()
    made = _store(home, "role", HEADGATE_STORE_URL=url, HEADGATE_STORE_HOME=name)
    *_, role, password = made.out.splitlines()[-1].split(":")
    as_role = postgres.server().url_of("headgate", role)
    assert (made.code, len(password)) == (0, 32)
    found = _store(home, "stats", "--json", HEADGATE_STORE_URL=as_role, HEADGATE_STORE_HOME=name)
    assert json.loads(found.out)["record_count"] == 3
    hidden = _store(home, "stats", "--json", HEADGATE_STORE_URL=as_role, HEADGATE_STORE_HOME=other)
    assert (hidden.code, hidden.out) == (78, "")


def test_a_home_in_a_file_needs_no_role(tmp_path: Path):
    home, _ = filled(tmp_path, [line("k1")])
    refused = _store(home, "role")
    assert (refused.code, refused.err.count("\n")) == (78, 1)
    assert "store_url" in refused.err
