"""``headgate sources`` and ``headgate export``: what was brought in, and how it leaves."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import apsw
import pytest

from tests.on_socket import headgate

ROWS = "id,name,note,n\n1,Ada,=cmd(),-5\n2,Grace,@x,7\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(ROWS, encoding="utf-8")
    assert headgate(tmp_path, "--home", "home", "import", "t.csv").code == 0
    return tmp_path


def run(place: Path, *arguments: str):
    done = headgate(place, "--home", "home", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_connections_and_sources_are_listed_and_shown_and_removed(place: Path):
    listed = run(place, "sources", "list")
    (one,) = listed["connections"]
    assert (one["display_name"], one["is_interrupted"], one["live_source"]) == ("t", False, None)
    assert one["finished_at"] is not None
    assert listed["sources"]["files"]["tables"] == "Tables"
    assert "host" in listed["sources"]["live"]["imap"]
    assert run(place, "sources", "show", "t")["streams"] == {"t": 2}
    facts = headgate(place, "--home", "home", "sources", "show", "t").out.splitlines()
    assert [line.split("  ")[0] for line in facts] == ["connection", "name", "source", "last import", "t"]
    assert facts[-1].split() == ["t", "2", "records"]
    missing = headgate(place, "--home", "home", "sources", "show", "nothing")
    assert (missing.code, "There is no connection 'nothing'." in missing.err) == (1, True)
    assert run(place, "sources", "remove", one["connection_id"], "--yes") == {"removed": one["connection_id"]}
    assert run(place, "sources", "list")["connections"] == []


def test_an_account_is_added_with_its_settings_and_fetching_reports_what_fails(place: Path):
    wrong = headgate(place, "--home", "home", "sources", "add", "imap", "--set", "hots=x")
    assert (wrong.code, "There is no setting 'hots'." in wrong.err) == (1, True)
    missing = headgate(place, "--home", "home", "sources", "add", "imap", "--set", "user=ada")
    assert (missing.code, "is missing" in missing.err) == (1, True)
    settings = ("host=127.0.0.1", "port=9", "user=ada@example.org", "secret=env:NO_SUCH", "security=none")
    words = ("sources", "add", "imap", "--every", "15m")
    added = run(place, *words, *(word for one in settings for word in ("--set", one)))
    assert added["display_name"] == "Mail of ada@example.org"
    shown = run(place, "sources", "show", added["connection_id"])
    assert (shown["live_source"], shown["settings"]["user"]) == ("imap", "ada@example.org")
    assert (shown["every_seconds"], shown["freshness"]) == (900, None)
    failed = headgate(place, "--home", "home", "sources", "sync")
    assert failed.code == 65
    assert "Reading ended early: env:NO_SUCH holds no secret." in failed.out
    assert "Traceback" not in failed.err
    fresh = run(place, "sources", "show", added["connection_id"])["freshness"]
    assert (fresh["error"], fresh["failures"], fresh["succeeded_at"]) == (
        "env:NO_SUCH holds no secret.",
        1,
        None,
    )
    listed = headgate(place, "--home", "home", "sources", "list").out
    at, following = (f"{fresh[one][:19]}Z" for one in ("attempted_at", "next_at"))
    assert f"failed {at}: env:NO_SUCH holds no secret.  next {following}" in listed


@pytest.mark.parametrize("pause", ["15", "0m", "soon", "-1h"])
def test_a_pause_that_is_none_is_refused(place: Path, pause: str):
    done = headgate(place, "--home", "home", "sources", "add", "imap", "--every", pause)
    assert (done.code, "15m, 2h, 1d or never" in done.err) == (64, True)


def test_records_leave_as_json_lines(place: Path):
    assert run(place, "export", "t", "out") == {"records": {"t": 2}, "file_count": 0, "missing_file_count": 0}
    lines = (place / "out" / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["Ada", "Grace"]
    assert stat.S_IMODE((place / "out").stat().st_mode) == 0o700
    again = headgate(place, "--home", "home", "export", "t", "out")
    assert (again.code, "Give a new directory." in again.err) == (1, True)
    nowhere = headgate(place, "--home", "home", "export", "t", "nowhere/out")
    assert (nowhere.code, "There is no directory nowhere." in nowhere.err) == (1, True)


def test_a_cell_that_a_spreadsheet_would_run_is_prefixed_and_numbers_are_not(place: Path):
    run(place, "export", "t", "out", "--format", "csv")
    with (place / "out" / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["note"], row["n"]) for row in rows] == [("'=cmd()", "-5"), ("'@x", "7")]


def test_records_leave_as_a_database(place: Path):
    run(place, "export", "t", "out", "--format", "sqlite", "--stream", "t")
    database = apsw.Connection(str(place / "out" / "records.db"))
    assert list(database.execute("SELECT id, name, n FROM t ORDER BY id")) == [
        (1, "Ada", -5),
        (2, "Grace", 7),
    ]
    database.close()
    wrong = headgate(place, "--home", "home", "export", "t", "other", "--stream", "no")
    assert (wrong.code, "Streams are t." in wrong.err) == (1, True)


def test_files_leave_with_the_records_that_refer_to_them(place: Path):
    photo = "iVBORw0KGgo="
    card = f"BEGIN:VCARD\nVERSION:3.0\nUID:u\nFN:Ada\nPHOTO;ENCODING=b;TYPE=PNG:{photo}\nEND:VCARD\n"
    (place / "c.vcf").write_text(card, encoding="utf-8")
    name = run(place, "import", "c.vcf")["imports"][0]["display_name"]
    assert run(place, "export", name, "out")["file_count"] == 1
    (file,) = (place / "out" / "files").iterdir()
    assert file.read_bytes() == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("secret", ["hunter2", "hunter2:", "ENV:hunter2", "hunter2:env:X"])
@pytest.mark.parametrize("source", ["imap", "calendar"])
def test_a_secret_in_place_of_its_reference_is_refused_and_stored_nowhere(
    tmp_path: Path, source: str, secret: str
):
    settings = {
        "imap": ("host=127.0.0.1", "user=ada@example.org", f"secret={secret}"),
        "calendar": ("url=https://calendar.example", "user=ada", f"secret={secret}"),
    }[source]
    options = [word for one in settings for word in ("--set", one)]
    refused = headgate(tmp_path, "--home", "home", "sources", "add", source, *options)
    assert refused.code == 78
    assert "env:NAME, file:PATH or keyring:SERVICE/USER" in refused.err
    assert "hunter2" not in refused.err + refused.out
    assert run(tmp_path, "sources", "list")["connections"] == []
    stored = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    assert b"hunter2" not in stored
