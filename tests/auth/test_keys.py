from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from headgate.audit.chain import load_audit_key
from headgate.auth.documents import load_secret
from headgate.auth.keys import HomeSealer, RingSealer, load_ring, rotate_ring
from headgate.errors import ConfigInvalid, SealBroken
from headgate.home import open_home
from headgate.model.sealed import Kind


def test_a_new_home_gets_a_ring_that_stays(tmp_path: Path):
    home = open_home(tmp_path / "home")
    assert load_ring(home) == load_ring(home)
    assert load_ring(home).previous is None


def test_the_key_file_is_for_its_owner_alone(tmp_path: Path):
    home = open_home(tmp_path / "home")
    load_ring(home)
    assert (home.keys / "seal.json").stat().st_mode & 0o777 == 0o600


def test_a_rotation_on_disk_keeps_the_tokens_of_the_last_key(tmp_path: Path):
    home = open_home(tmp_path / "home")
    token = RingSealer(load_ring(home)).seal(Kind.PAGE, b"x")
    first = load_ring(home).current
    assert rotate_ring(home) == load_ring(home)
    assert load_ring(home).previous == first
    assert RingSealer(load_ring(home)).open(Kind.PAGE, token) == b"x"


def test_two_homes_never_share_a_key(tmp_path: Path):
    assert load_ring(open_home(tmp_path / "a")) != load_ring(open_home(tmp_path / "b"))


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path):
    home = open_home(tmp_path / "home")
    load_ring(home)
    (home.keys / "seal.json").chmod(0o644)
    with pytest.raises(ConfigInvalid) as refused:
        load_ring(home)
    assert "chmod 600" in refused.value.hint


def test_a_key_file_behind_a_link_is_refused(tmp_path: Path):
    home = open_home(tmp_path / "home")
    load_ring(home)
    (home.keys / "seal.json").rename(tmp_path / "elsewhere")
    (home.keys / "seal.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigInvalid):
        load_ring(home)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"keys":[]}', b'{"keys":["AAAA"]}', b'{"keys":"x"}', b"\xff"]
)
def test_a_damaged_key_file_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    home = open_home(tmp_path / "home")
    load_ring(home)
    (home.keys / "seal.json").write_bytes(content)
    with pytest.raises(ConfigInvalid):
        load_ring(home)
    assert (home.keys / "seal.json").read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"p" * 31, b" " * 40, b"p" * 31 + b"\n\n", b"\xff" * 40])
def test_a_damaged_password_of_resource_servers_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    home = open_home(tmp_path / "home")
    assert load_secret(home) == load_secret(home)
    (home.keys / "introspection").write_bytes(content)
    with pytest.raises(ConfigInvalid):
        load_secret(home)
    assert (home.keys / "introspection").read_bytes() == content


def test_a_rotation_counts_in_a_process_that_runs(tmp_path: Path):
    home = open_home(tmp_path / "home")
    running = HomeSealer(home)
    token = running.seal(Kind.PAGE, b"x")
    rotate_ring(home)
    assert running.open(Kind.PAGE, token) == b"x"
    after = running.seal(Kind.PAGE, b"y")
    assert RingSealer(load_ring(home)).open(Kind.PAGE, after) == b"y"
    rotate_ring(home)
    with pytest.raises(SealBroken):
        running.open(Kind.PAGE, token)
    assert running.open(Kind.PAGE, after) == b"y"


@pytest.mark.parametrize("content", [None, b"{", b""])
def test_a_ring_that_is_lost_or_damaged_does_not_stop_a_process_that_has_it(
    tmp_path: Path, content: bytes | None
):
    home = open_home(tmp_path / "home")
    running = HomeSealer(home)
    token = running.seal(Kind.PAGE, b"x")
    (home.keys / "seal.json").unlink()
    if content is not None:
        (home.keys / "seal.json").write_bytes(content)
    assert running.open(Kind.PAGE, token) == b"x"


_MAKERS = (load_ring, load_secret, load_audit_key)


def _read_keys(place: Path, barrier: Any, found: Any) -> None:
    """Start on a new home, as one process of several."""
    home = open_home(place)
    keys = []
    for make in _MAKERS:
        barrier.wait(60)
        keys.append(repr(make(home) if make is not load_ring else load_ring(home).current.secret))
    found.put(keys)


def test_processes_that_start_together_on_a_new_home_have_the_same_keys(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    open_home(tmp_path / "home")
    for number in range(5):
        barrier, found = context.Barrier(4), context.Queue()
        given = (tmp_path / f"home{number}", barrier, found)
        open_home(given[0])
        workers = [context.Process(target=_read_keys, args=given) for _ in range(4)]
        for worker in workers:
            worker.start()
        keys = [found.get(timeout=60) for _ in workers]
        for worker in workers:
            worker.join()
        assert all(one == keys[0] for one in keys)
        assert not (given[0] / "audit-start.json").exists()
