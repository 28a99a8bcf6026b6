"""The seal keys, rotated by a command while clients hold cursors."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.auth.keys import RingSealer, load_ring
from headgate.home import open_home
from headgate.model.sealed import Kind
from tests.on_socket import headgate


def keys(place: Path, *words: str) -> str:
    done = headgate(place, "--home", str(place / "home"), "keys", *words)
    assert done.code == 0, done.err
    return done.out


def test_a_rotation_seals_with_a_new_key_and_opens_what_the_last_one_sealed(tmp_path: Path):
    (first,) = json.loads(keys(tmp_path, "list", "--json"))
    home = open_home(tmp_path / "home")
    cursor = RingSealer(load_ring(home)).seal(Kind.PAGE, b"position")
    assert f"{first['id']} opens what it sealed" in keys(tmp_path, "rotate")
    assert RingSealer(load_ring(home)).open(Kind.PAGE, cursor) == b"position"
    listed = json.loads(keys(tmp_path, "list", "--json"))
    assert [one["use"] for one in listed] == ["seals and opens", "opens"]
    assert listed[1]["id"] == first["id"]
    assert f"{first['id']} has ended" in keys(tmp_path, "rotate")
    secret = json.loads((home.keys / "seal.json").read_bytes())["keys"][0]
    assert secret not in keys(tmp_path, "list")
