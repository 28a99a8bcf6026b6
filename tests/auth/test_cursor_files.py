from __future__ import annotations

from pathlib import Path

import pytest

from headgate.auth import keys
from headgate.auth.keys import CursorFiles, HomeSealer, short_name
from headgate.errors import SealBroken
from headgate.home import Home, open_home
from headgate.model.sealed import Failure, Kind


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def put(files: CursorFiles, token: str) -> str:
    name = short_name(token)
    assert files.put(name, token)
    return name


def test_every_process_finds_what_others_keep(home: Home):
    first, second = CursorFiles(home), CursorFiles(home)
    names = [put(first, "pg1.one"), put(second, "pg1.two")]
    assert sorted(path.name for path in home.cursors.iterdir() if path.name.isdigit()) == ["0", "1"]
    for files in (first, second, CursorFiles(home)):
        assert [files.get(name) for name in names] == ["pg1.one", "pg1.two"]


def test_the_next_process_goes_on_with_the_file_of_one_that_ended(home: Home):
    first = CursorFiles(home)
    name = put(first, "pg1.one")
    del first
    second = CursorFiles(home)
    other = put(second, "pg1.two")
    assert [path.name for path in home.cursors.iterdir() if path.name.isdigit()] == ["0"]
    assert [second.get(one) for one in (name, other)] == ["pg1.one", "pg1.two"]


def test_what_is_new_takes_the_place_of_the_oldest(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keys, "_BUCKETS", 1)
    files = CursorFiles(home)
    tokens = [f"se1.{n:03}{'x' * (n % 7 * 60)}" for n in range(100)]
    names = [put(files, token) for token in tokens]
    stored = [files.get(name) for name in names]
    assert stored[-12:] == tokens[-12:]
    assert not any(stored[:60])
    assert {*stored} <= {*tokens, None}
    assert sum(path.stat().st_size for path in home.cursors.iterdir()) <= keys._BUCKET_BYTES


def test_a_token_is_found_beside_the_rest_of_an_earlier_copy(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keys, "_BUCKETS", 1)
    files = CursorFiles(home)
    name = put(files, "pg1.one")
    put(files, "pg1.one")
    content = (home.cursors / "0").read_bytes()
    (home.cursors / "0").write_bytes(content.replace(b"pg1.one", b"pg1.two", 1))
    assert files.get(name) == "pg1.one"


def test_a_token_that_is_larger_than_its_place_is_not_kept(home: Home):
    token = f"pg1.{'x' * keys._BUCKET_BYTES}"
    assert not CursorFiles(home).put(short_name(token), token)


def test_what_somebody_wrote_into_the_file_is_not_taken_for_a_token(home: Home):
    files = CursorFiles(home)
    name = put(files, "pg1.one")
    (path,) = (one for one in home.cursors.iterdir() if one.name == "0")
    content = path.read_bytes()
    for changed in (
        content.replace(b"pg1.one", b"pg1.two"),
        content.replace(b"\0\x07pg1", b"\0\x03pg1"),
        content.replace(b"\0\x07pg1", b"\xff\xffpg1"),
        bytes(len(content)),
        b"\xff" * len(content),
    ):
        assert len(changed) == len(content)
        path.write_bytes(changed)
        assert files.get(name) is None
    put(files, "pg1.one")
    assert files.get(name) == "pg1.one"


def test_a_kept_token_has_its_kind_and_its_binding(home: Home):
    sealer = HomeSealer(home)
    name = sealer.shortened(sealer.seal(Kind.PAGE, b"place", binding=b"a"))
    assert sealer.open(Kind.PAGE, name, binding=b"a") == b"place"
    for kind, binding, failure in (
        (Kind.SEARCH, b"a", Failure.WRONG_KIND),
        (Kind.PAGE, b"b", Failure.NOT_OURS),
    ):
        with pytest.raises(SealBroken) as refused:
            sealer.open(kind, name, binding=binding)
        assert refused.value.reason == failure


def test_files_are_for_their_owner_alone(home: Home):
    put(CursorFiles(home), "pg1.one")
    assert home.cursors.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in home.cursors.iterdir()} == {0o600}
