"""``headgate import``: files become records, once."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from headgate.cli.import_text import progress_text
from headgate.sources.importing import ImportProgress
from tests.on_socket import COMMAND, WAIT_SECONDS, environment, headgate, served_program

CARDS = "".join(
    f"BEGIN:VCARD\nVERSION:3.0\nUID:u{number}\nFN:{name}\nEND:VCARD\n"
    for number, name in enumerate(("Ada", "Grace", "Mary"))
)


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    path = tmp_path / "cards.vcf"
    path.write_text(CARDS, encoding="utf-8")
    return path


def imported(place: Path, *arguments: str) -> dict:
    done = headgate(place, "--home", "home", "import", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_file_is_imported_once_and_the_command_that_is_printed_grants_it(tmp_path: Path, cards: Path):
    first = headgate(tmp_path, "--home", "home", "import", str(cards))
    assert (first.code, first.err) == (0, "")
    assert "contacts: 3 new" in first.out
    again = imported(tmp_path, str(cards))
    (report,) = again["imports"]
    assert report["streams"] == {"contacts": {"accepted": 3, "added": 0, "removed": 0, "known": 3}}
    program, *words = shlex.split(first.out.splitlines()[-1])
    assert program == "headgate"
    granted = headgate(tmp_path, *words, "--json")
    assert granted.code == 0, granted.err
    assert again["next"] == shlex.join(["headgate", *words])


PHOTO = "PHOTO;ENCODING=b;TYPE=PNG:iVBORw0KGgo="


def test_files_of_a_repeated_import_are_not_reported_as_stored(tmp_path: Path):
    path = tmp_path / "cards.vcf"
    path.write_text(CARDS.replace("FN:Ada\n", f"FN:Ada\n{PHOTO}\n"), encoding="utf-8")
    first = headgate(tmp_path, "--home", "home", "import", str(path))
    again = headgate(tmp_path, "--home", "home", "import", str(path))
    for done in (first, again):
        assert "\n  with 1 file\n" in done.out
        assert "stored" not in done.out
    assert "contacts: 0 new, 3 known already" in again.out


@pytest.mark.parametrize("kind", ["file", "directory", "archive"])
def test_files_whose_names_are_not_unicode_are_imported(tmp_path: Path, kind: str):
    table = tmp_path / os.fsdecode(b"in \xff") / os.fsdecode(b"table \xff.csv")
    table.parent.mkdir()
    table.write_text("id,name\n1,a\n", encoding="utf-8")
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        archive.add(table, table.name)
    given = {"file": table, "directory": table.parent, "archive": tmp_path / "in.tar"}[kind]
    (report,) = imported(tmp_path, str(given))["imports"]
    assert [one["added"] for one in report["streams"].values()] == [1]
    assert "\\udcff" in report["display_name"]


def test_a_dry_run_shows_columns_and_rows_and_stores_nothing(tmp_path: Path, cards: Path):
    shown = headgate(tmp_path, "--home", "home", "import", str(cards), "--dry-run")
    assert shown.code == 0
    assert "stream 'contacts'" in shown.out
    assert "Grace" in shown.out
    (one,) = imported(tmp_path, str(cards), "--dry-run")["imports"]
    assert [row["name"] for row in one["streams"][0]["rows"]] == ["Ada", "Grace", "Mary"]
    assert not (tmp_path / "home").exists()


def test_a_dry_run_has_room_for_five_rows_of_long_values(tmp_path: Path):
    names = [f"{letter * 3}{'o' * 60}" for letter in "abcdef"]
    rows = "".join(f'"{name}","{name} and more","2026-03-0{n + 1}"\n' for n, name in enumerate(names))
    (tmp_path / "t.csv").write_text(f"name,a_column_with_a_long_name,day\n{rows}", encoding="utf-8")
    shown = headgate(tmp_path, "--home", "home", "import", "t.csv", "--dry-run").out
    line = next(line for line in shown.splitlines() if line.strip().startswith("name "))
    assert [word[:3] for word in line.split()[-5:]] == ["aaa", "bbb", "ccc", "ddd", "eee"]
    assert max(map(len, shown.splitlines())) <= 114
    assert (shown.splitlines()[1].strip(), shown.splitlines()[-1].split()[1]) == ("stream 't'", "date")


def on_terminal(place: Path, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal, on which a person answers once; gives what the terminal showed."""
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("this machine has no terminals to give")
    process = subprocess.Popen(
        [*COMMAND, "--home", "home", *arguments],
        cwd=place,
        env=environment(place, {}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # A terminal whose other side is closed is at its end.
        while piece := os.read(ours, 65536):
            shown += piece
            if b"[Y/n]" in piece or b"[y/N]" in piece:
                os.write(ours, answer)
    os.close(ours)
    return process.wait(WAIT_SECONDS), shown.decode()


def test_on_a_terminal_it_asks_which_way_money_went_that_nothing_says(tmp_path: Path):
    path = tmp_path / "card.csv"
    path.write_text("Date,Description,Amount\n2026-03-01,Mill,36.33\n", encoding="utf-8")
    code, shown = on_terminal(tmp_path, b"y\n", "import", str(path))
    assert code == 0, shown
    assert "card.csv: no amount of 'Amount' says which way it went. Is it money that went out?" in shown
    assert headgate(tmp_path, "--home", "home", "export", "Bank statements", "out").code == 0
    assert json.loads((tmp_path / "out" / "transactions.jsonl").read_text())["amount"] == -36.33


def test_on_a_terminal_it_shows_what_it_understood_asks_and_shows_how_far_it_is(tmp_path: Path):
    path = table(tmp_path / "t.csv", 3000)
    code, shown = on_terminal(tmp_path, b"n\n", "import", str(path))
    assert code != 0
    assert "stream 't'" in shown
    assert not (tmp_path / "home").exists()
    code, shown = on_terminal(tmp_path, b"\n", "import", str(path))
    assert code == 0
    asked, _, after = shown.partition("Import this?")
    assert "word4" in asked
    assert re.search(r"\rimporting \[#{14}\] 100 %, 3,000 rows, [\d,]+ a second, 0:00 left *\r +\r", after), (
        after
    )
    assert "t: 3,000 new" in after


@pytest.mark.parametrize(
    ("rows", "done", "total", "text"),
    [
        (500, 0, 0, "importing  500 rows, 50 a second"),
        (500, 25, 100, "importing [####----------] 25 %, 500 rows, 50 a second, 0:30 left"),
        (36_100, 1, 722, "importing [--------------] 0 %, 36,100 rows, 3,610 a second, 2:00:10 left"),
    ],
)
def test_the_line_of_progress_has_the_rate_and_the_time_left(rows: int, done: int, total: int, text: str):
    assert progress_text(ImportProgress(rows, 0, done, total), 10.0) == text


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path):
    (tmp_path / "a.vcf").write_text(CARDS.replace("Ada", "A\x1b[2Jda\u202e"), encoding="utf-8")
    shown = headgate(tmp_path, "--home", "home", "import", "a.vcf", "--dry-run")
    assert "A [2Jda" in shown.out
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out


def test_a_name_chooses_the_connection(tmp_path: Path, cards: Path):
    names = [
        imported(tmp_path, str(cards), "--connection", name)["imports"][0]["connection_id"]
        for name in ("Home", "Work", "Home")
    ]
    assert names[0] == names[2] != names[1]


def test_a_file_that_nothing_reads_is_named_and_an_unknown_source_is_a_usage_error(
    tmp_path: Path, cards: Path
):
    (tmp_path / "x.xyz").write_bytes(b"\x00\x01")
    alone = headgate(tmp_path, "--home", "home", "import", "x.xyz")
    assert alone.code == 1
    assert "No source reads x.xyz." in alone.err
    beside = headgate(tmp_path, "--home", "home", "import", "x.xyz", str(cards))
    assert beside.code == 0
    assert "x.xyz" in beside.err
    assert headgate(tmp_path, "--home", "home", "import", str(cards), "--source", "no").code == 64


def _locked(path: Path) -> None:
    """Write a zip whose one member needs a password: the flag in both of its headers says so."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bank.csv", "date,amount\n2026-01-01,3\n")
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.csv", b"", "empty.csv (empty)"),
        ("cut.mbox.gz", gzip.compress(CARDS.encode() * 99, mtime=0)[:60], "cut.mbox (damaged: "),
        ("cut.zip", b"PK\x03\x04 and no more", "cut.zip is an archive that cannot be read"),
        ("locked.zip", None, "bank.csv (encrypted: unpack the archive with its password"),
        ("folder", None, "There is no file in folder."),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_with_the_reason(
    tmp_path: Path, name: str, content: bytes | None, reason: str
):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    elif path.suffix:
        _locked(path)
    else:
        path.mkdir()
    refused = headgate(tmp_path, "--home", "home", "import", name)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert reason in refused.err


def test_what_cannot_be_read_stops_no_other_file_and_the_command_ends_with_65(tmp_path: Path, cards: Path):
    place = tmp_path / "export"
    (place / "private").mkdir(parents=True, mode=0o000)
    (place / "private.vcf").write_text(CARDS)
    (place / "private.vcf").chmod(0o000)
    cards.rename(place / "cards.vcf")
    _locked(place / "later.zip")
    # Root reads everything, unless it gives this power away.
    powers = "--bounding-set=-dac_override,-dac_read_search"
    plain = () if os.geteuid() else ("setpriv", powers)
    done = subprocess.run(
        [*plain, *COMMAND, "--home", "home", "import", "export"],
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, "contacts: 3 new" in done.stdout) == (65, True), done.stderr
    assert "private and 1 more (Permission denied)" in done.stderr
    assert "later.zip (an archive in a directory; import it by its own path)" in done.stderr


def test_a_compressed_file_goes_to_the_connection_of_the_file(tmp_path: Path, cards: Path):
    (first,) = imported(tmp_path, str(cards))["imports"]
    (tmp_path / "cards.vcf.gz").write_bytes(gzip.compress(cards.read_bytes()))
    (again,) = imported(tmp_path, "cards.vcf.gz")["imports"]
    assert again["connection_id"] == first["connection_id"]
    assert again["streams"] == {"contacts": {"accepted": 3, "added": 0, "removed": 0, "known": 3}}


def test_an_import_beside_a_running_server_is_served_at_once(tmp_path: Path, cards: Path):
    with served_program(tmp_path) as program:
        report = program.run("import", str(cards))
        program.run("import", str(cards))
        token = program.run(*shlex.split(report["next"])[3:])["access_token"]
        found = program.ask("GET", "/v1/streams/contacts/records", token).body
        assert sorted(one["data"]["name"] for one in found["data"]) == ["Ada", "Grace", "Mary"]


def table(path: Path, rows: int) -> Path:
    path.write_text(
        "n,text,day\n" + "".join(f"{n % 1000},word{n},2026-01-{n % 28 + 1:02}\n" for n in range(rows)),
        encoding="utf-8",
    )
    return path


def count(place: Path) -> int:
    done = headgate(place, "--home", "home", "store", "stats", "--json")
    return json.loads(done.out)["record_count"]


ROWS = 20_000


def stopped(place: Path, path: Path, signal_number: int) -> subprocess.Popen[str]:
    """Import a file, and end the process by a signal while it stores: when the store's log has some of the rows."""
    process = subprocess.Popen(
        [*COMMAND, "--home", "home", "import", str(path)],
        cwd=place,
        env=environment(place, {}),
        stderr=subprocess.PIPE,
        text=True,
    )
    log = place / "home" / "records.db-wal"
    while process.poll() is None and not (log.exists() and log.stat().st_size > 3_000_000):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    process.send_signal(signal_number)
    return process


def test_an_import_that_is_killed_goes_on_and_every_row_is_there_once(tmp_path: Path):
    path = table(tmp_path / "big.csv", ROWS)
    stopped(tmp_path, path, signal.SIGKILL).communicate()
    before = count(tmp_path)
    assert 0 < before < ROWS
    (report,) = imported(tmp_path, str(path))["imports"]
    assert report["streams"]["big"]["added"] == ROWS - before
    assert count(tmp_path) == ROWS


def test_an_interrupted_import_says_that_it_can_go_on(tmp_path: Path):
    path = table(tmp_path / "big.csv", ROWS)
    process = stopped(tmp_path, path, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "run the same command to resume" in err
    assert "Traceback" not in err
    (report,) = imported(tmp_path, str(path))["imports"]
    assert report["is_resumed"]
    assert count(tmp_path) == ROWS


def test_rejected_rows_are_listed_and_the_command_ends_with_65(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n1,2,3\n3,4\n5,6\n", encoding="utf-8")
    done = headgate(tmp_path, "--home", "home", "import", "t.csv")
    assert done.code == 65
    assert "t.csv line 3: It has 3 cells, and the table has 2 columns." in done.out
    assert "t: 3 new" in done.out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("conversations.json", '[{"mapping":'),
        ("conversations.json", '{"mapping": {}}'),
        ("empty.ics", "BEGIN:VCALENDAR\nEND:VCALENDAR\n"),
        ("head.csv", "day,amount\n"),
    ],
)
def test_an_import_that_reads_nothing_says_so_and_ends_with_65(tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content, encoding="utf-8")
    for _ in range(2):
        done = headgate(tmp_path, "--home", "home", "import", name, "--json")
        assert done.code == 65, done.out
        assert json.loads(done.out)["imports"][0]["rejects"]


def test_a_file_of_corrections_changes_types_and_one_that_does_not_fit_is_refused(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    (tmp_path / "good.toml").write_text('[t]\nkey = ["a"]\n[t.types]\nb = "text"\n', encoding="utf-8")
    (shown,) = imported(tmp_path, "t.csv", "--declare", "good.toml", "--dry-run")["imports"]
    columns = {one["name"]: (one["type"], one["roles"]) for one in shown["streams"][0]["columns"]}
    assert columns == {"a": ("integer", ["key"]), "b": ("string", [])}
    (tmp_path / "bad.toml").write_text('[t]\nkey = ["c"]\n', encoding="utf-8")
    refused = headgate(tmp_path, "--home", "home", "import", "t.csv", "--declare", "bad.toml")
    assert refused.code == 1
    assert "'c' is no column of 't'; columns are a, b" in refused.err


def test_the_owner_imports_over_http_with_the_same_preview_and_report(tmp_path: Path):
    with served_program(tmp_path) as program:
        address = "/v1/imports?file_name=cards.vcf"
        shown = program.ask("POST", f"{address}&dry_run=true", program.owner, CARDS.encode())
        assert (shown.status, shown.body["object"]) == (200, "import_preview")
        assert [row["name"] for row in shown.body["imports"][0]["streams"][0]["rows"]] == [
            "Ada",
            "Grace",
            "Mary",
        ]
        for added in (3, 0):
            done = program.ask("POST", f"{address}&display_name=Friends", program.owner, CARDS.encode())
            assert done.status == 200, done.body
            (report,) = done.body["imports"]
            assert (report["display_name"], report["streams"]["contacts"]["added"]) == ("Friends", added)
            found = program.ask("GET", f"/v1/imports/{done.body['import_id']}", program.owner).body
            assert (found["status"], found["rows"], found["received_bytes"]) == ("done", 3, len(CARDS))
            assert found["done_bytes"] == found["total_bytes"] == len(CARDS)
            assert found["imports"] == done.body["imports"]
        refused = [
            program.ask("POST", f"/v1/imports?file_name={name}", program.owner, b"x").status
            for name in ("x.xyz", "..%2Fa.csv", ".a.csv", "a.csv&source=no")
        ]
        assert refused == [400, 400, 400, 400]
        client = program.run("grants", "create", "--client", "agent", "--yes")["access_token"]
        assert program.ask("POST", address, client, b"x").status == 403
        assert program.ask("GET", "/v1/imports/imp_12345678", client).status == 403
        missing = [
            program.ask("GET", f"/v1/imports/{one}", program.owner).status for one in ("imp_12345678", "a")
        ]
        assert missing == [404, 400]
