"""Backups that a passphrase opens, as the owner makes and restores them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.auth.keys import load_ring
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId
from tests.hostile.store.scene import damages, filled, line
from tests.on_socket import Outcome, headgate

CANARY = "a canary in the text"


@pytest.fixture
def made(tmp_path: Path) -> tuple[Home, ConnectionId]:
    return filled(tmp_path, [line(f"k{n}", body=CANARY) for n in range(1, 11)])


def store(home: Home, *arguments: str) -> Outcome:
    return headgate(home.path.parent, "--home", str(home.path), "store", *arguments)


def passphrase_file(place: Path, text: str = "six green boats", mode: int = 0o600) -> str:
    file = place / f"passphrase-{mode}-{len(text)}"
    file.write_text(f"{text}\n", encoding="utf-8")
    file.chmod(mode)
    return str(file)


def test_an_encrypted_backup_is_one_private_file_without_plain_text_and_comes_back_whole(
    made: tuple[Home, ConnectionId], tmp_path: Path
):
    home, _ = made
    ring = load_ring(open_home(home.path))
    file, words = tmp_path / "copy.age", passphrase_file(tmp_path)
    saved = store(home, "backup", str(file), "--encrypt", "--passphrase-file", words)
    assert (saved.code, saved.err) == (0, "")
    assert "encrypted" in saved.out
    content = file.read_bytes()
    assert content.startswith(b"age-encryption.org/v1\n-> scrypt ")
    assert CANARY.encode() not in content
    assert b"SQLite format" not in content
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.glob(".*")] == []
    verified = json.loads(
        store(home, "restore", str(file), "--verify", "--passphrase-file", words, "--json").out
    )
    assert verified["record_count"] == 10
    other = Home(tmp_path / "other")
    restored = store(other, "restore", str(file), "--passphrase-file", words)
    assert restored.out.startswith("Restored 10 records")
    assert damages(other) == []
    assert load_ring(open_home(other.path)) == ring
    for one in (home, other):
        assert not list(one.path.glob(".backup*")), "no plain copy is left behind"


def test_what_cannot_work_is_one_line_that_says_what_to_do(made: tuple[Home, ConnectionId], tmp_path: Path):
    home, _ = made
    file, words = tmp_path / "copy.age", passphrase_file(tmp_path)
    short, public = passphrase_file(tmp_path, "short"), passphrase_file(tmp_path, mode=0o644)
    nowhere = store(home, "backup", str(file), "--encrypt")
    assert (nowhere.code, nowhere.err) == (
        78,
        "headgate: There is no terminal to ask for the passphrase. Pass --passphrase-file FILE.\n",
    )
    assert "at least 10" in store(home, "backup", str(file), "--encrypt", "--passphrase-file", short).err
    assert (
        "open to other users"
        in store(home, "backup", str(file), "--encrypt", "--passphrase-file", public).err
    )
    assert not file.exists()
    assert store(home, "backup", str(file), "--passphrase-file", words).code == 64
    assert store(home, "backup", str(file), "--encrypt", "--passphrase-file", words).code == 0
    again = store(home, "backup", str(file), "--encrypt", "--passphrase-file", words)
    assert (again.code, again.err.count("\n")) == (1, 1)
    wrong = passphrase_file(tmp_path, "six green boots!")
    refused = store(Home(tmp_path / "other"), "restore", str(file), "--passphrase-file", wrong)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "not the passphrase" in refused.err
    file.write_bytes(file.read_bytes()[:-1])
    cut = store(Home(tmp_path / "other"), "restore", str(file), "--passphrase-file", words)
    assert "damaged" in cut.err
    assert not (tmp_path / "other" / "records.db").exists()
    (tmp_path / "note").write_text("no backup", encoding="utf-8")
    assert "is no backup" in store(home, "restore", str(tmp_path / "note"), "--verify").err
