"""F3: on a disk without any room a home is read on, grants end, and `/readyz` says that it is degraded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.hostile.store.small_disks import fill_disk, small_disk
from tests.on_socket import MAIL, headgate, line, served_program

_MEBIBYTES = 24


@dataclass(frozen=True)
class FullHome:
    place: Path
    owner: str
    client: str
    grant_id: str
    second_id: str
    ingest: str


@pytest.fixture(scope="module")
def stopped_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullHome]:
    """A home that was served, and killed when its disk had become full."""
    with small_disk(tmp_path_factory.mktemp("full") / "disk", _MEBIBYTES) as disk:
        with served_program(disk) as program:
            mine = program.connect()
            program.ingest(mine, [line(f"k{n}") for n in range(30)])
            client = program.grant()
            program.grant(client="second")
            second_id, grant_id = (one["grant_id"] for one in program.run("grants", "list"))
            assert program.ask("GET", MAIL, client).status == 200
            program.log.unlink()
            fill_disk(disk)
            path = f"/v1/ingest/messages?connection_id={mine}&on_invalid=keep"
            assert program.ask("POST", path, program.owner, line("large", body="x" * 99_999)).status == 507
        yield FullHome(disk, program.owner, client, grant_id, second_id, path)


@pytest.fixture
def full_home(stopped_home: FullHome, tmp_path: Path) -> Iterator[FullHome]:
    """That home, on another disk that is as full."""
    with small_disk(tmp_path / "disk", _MEBIBYTES) as disk:
        shutil.copytree(stopped_home.place, disk, dirs_exist_ok=True)
        fill_disk(disk)
        yield replace(stopped_home, place=disk)


def lines_of(place: Path, *words: str) -> list[str]:
    done = headgate(place, "--home", "home", *words)
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


def states_of(place: Path) -> list[str]:
    """The state of each grant, by the list with its heading."""
    _, *rows = lines_of(place, "grants", "list")
    return [row.split()[1] for row in rows]


def test_a_home_that_was_stopped_by_a_full_disk_is_listed_verified_and_served(full_home: FullHome):
    place = full_home.place
    assert states_of(place) == ["active", "active"]
    assert lines_of(place, "audit", "verify") == ["The log is whole: 1 entries."]
    with served_program(place, owner=full_home.owner) as program:
        assert program.ask("GET", MAIL, full_home.client).status == 200
        assert program.ask("GET", "/readyz").body == {"status": "degraded"}
        refused = program.ask("POST", full_home.ingest, program.owner, line("more"))
        assert (refused.status, refused.body["error"]["code"]) == (507, "storage_full")
        (place / "ballast").unlink()
        assert program.ask("GET", "/readyz").body == {"status": "ready"}
        assert program.ask("POST", full_home.ingest, program.owner, line("more")).status == 200


def test_what_is_read_on_a_full_disk_is_in_the_log(full_home: FullHome):
    with served_program(full_home.place, owner=full_home.owner) as program:
        for _ in range(5):
            assert program.ask("GET", MAIL, full_home.client).status == 200
    assert lines_of(full_home.place, "audit", "verify") == ["The log is whole: 6 entries."]


def test_a_grant_is_revoked_when_there_is_no_room_for_anything_else(full_home: FullHome):
    place = full_home.place
    with served_program(place, owner=full_home.owner) as program:
        assert program.ask("GET", MAIL, full_home.client).status == 200
        # What was set free to open the home is used up as well.
        fill_disk(place)
        assert program.ask("POST", f"/grants/{full_home.grant_id}/revoke", program.owner).status == 200
        assert program.ask("GET", MAIL, full_home.client).status == 403
        fill_disk(place)
        assert program.ask("POST", f"/grants/{full_home.second_id}/revoke", program.owner).status == 200
    states = states_of(place)
    assert states == ["revoked", "revoked"]


def test_a_command_revokes_a_grant_of_a_home_that_could_not_be_opened_for_writing(full_home: FullHome):
    place = full_home.place
    (place / "home" / "reserve").unlink()
    fill_disk(place)
    assert lines_of(place, "grants", "revoke", full_home.grant_id) == [f"{full_home.grant_id} is revoked."]
    assert set(states_of(place)) == {"active", "revoked"}


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_home_without_reserves_is_listed_and_verified_on_a_full_disk(
    full_home: FullHome, *, is_killed: bool
):
    place = full_home.place
    if not is_killed:
        (place / "ballast").unlink()
        states_of(place)
        assert not (place / "home" / "records.db-wal").exists()
    for name in ("reserve", "reserve-revocation"):
        (place / "home" / name).unlink()
    fill_disk(place)
    assert len(states_of(place)) == 2
    (verified,) = lines_of(place, "audit", "verify")
    assert verified.startswith("The log is whole")


def test_an_import_onto_a_full_disk_says_to_run_the_same_command_again(full_home: FullHome, tmp_path: Path):
    table = tmp_path / "table.csv"
    table.write_text("id,note\n" + "".join(f"{n},{'x' * 2_000}\n" for n in range(500)), encoding="utf-8")
    refused = headgate(full_home.place, "--home", "home", "import", str(table), "--yes")
    assert refused.code not in {0, 65}, refused
    assert "run the same command to resume" in refused.err
    assert "batch again" not in refused.err
    (full_home.place / "ballast").unlink()
    assert headgate(full_home.place, "--home", "home", "import", str(table), "--yes").code == 0
