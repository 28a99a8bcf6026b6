"""A parser that crashes, hangs or takes all memory costs what it read: not the import, not the server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.model.ids import StreamName
from headgate.model.plan import Reach
from headgate.sources import parser_process
from headgate.sources.importing import Importer, ImportReport
from headgate.sources.parsers import FileChoice, FileParser
from tests.on_socket import COMMAND, Outcome, environment, headgate, served_program
from tests.sources.troublesome import install
from tests.store.engines import ENGINES, NOW, Driven

CRASHED = "The parser crashed while it read it."


@pytest.fixture
def troubled(tmp_path: Path) -> dict[str, str]:
    return install(tmp_path)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driven]:
    driven = Driven(request.param, tmp_path / "store")
    yield driven
    driven.close()


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.trouble").write_text(text, encoding="utf-8")
    return directory


def imported(place: Path, path: str, extra: dict[str, str]) -> tuple[Outcome, Any]:
    done = headgate(place, "--home", "home", "import", path, "--json", **extra)
    return done, json.loads(done.out) if done.out else None


def run(store: Driven, path: Path, notes: Path | None = None) -> ImportReport:
    with FileParser(FileChoice(paths=[path], given_at=NOW, notes=notes)) as parser:
        (planned,) = parser.plan().imports
        return store.run(Importer(store.bare, clock=lambda: NOW).run(planned.job))


def places(report: dict[str, Any]) -> dict[str, str]:
    return {one["place"]: one["reason"] for one in report["rejects"]}


def test_what_ends_its_process_is_rejected_with_the_reason_and_all_else_is_imported(tmp_path: Path, troubled):
    write(
        tmp_path / "files",
        a="one\ntwo\ncrash\nfour\n",
        b="one\nallocate\n",
        c="fail\n",
        d="one\ntwo\nthree\n",
    )
    done, document = imported(tmp_path, "files", troubled)
    assert done.code == 65, done.err
    (report,) = document["imports"]
    assert places(report) == {
        "a.trouble": CRASHED,
        "b.trouble": "Reading it needs more than 1,024 MB of memory.",
        "c.trouble": "The parser failed: RuntimeError.",
    }
    # Two before the crash, one before the memory was full, and all of the last file; each was counted once.
    assert report["streams"]["lines"] == {"accepted": 6, "added": 6, "removed": 0, "known": 0}
    assert report["reject_count"] == 3
    assert report["failure"] == ""
    again, document = imported(tmp_path, "files", troubled)
    assert again.code == 65
    assert document["imports"][0]["streams"]["lines"]["added"] == 0


def test_a_file_that_crashes_the_process_while_it_is_recognised_is_named_and_others_are_read(
    tmp_path: Path, troubled
):
    write(tmp_path / "files", a="at once\n", b="one\n")
    done, document = imported(tmp_path, "files", troubled)
    assert done.code == 65, done.err
    assert document["unknown_files"] == [f"a.trouble ({CRASHED})"]
    assert document["imports"][0]["streams"]["lines"]["added"] == 1
    write(tmp_path / "one", a="at once\n")
    refused = headgate(tmp_path, "--home", "home", "import", "one", **troubled)
    assert refused.code == 1
    assert "a.trouble" in refused.err
    assert "Traceback" not in refused.err


# Where the rows go makes little difference to a process that gives none; `make soak` uses the other engine too.
@pytest.mark.parametrize(
    "store",
    [name if name == "sqlite" else pytest.param(name, marks=pytest.mark.soak) for name in ENGINES],
    indirect=True,
)
@pytest.mark.parametrize("trouble", ["loop", "hold"])
def test_reading_without_progress_is_ended_and_the_rest_is_imported(
    tmp_path: Path, troubled, store: Driven, monkeypatch, trouble: str
):
    monkeypatch.setenv("PYTHONPATH", troubled["PYTHONPATH"])
    monkeypatch.setattr(parser_process, "IDLE_SECONDS", 3.0)
    write(tmp_path / "files", a=f"one\n{trouble}\n", b="one\ntwo\n")
    report = run(store, tmp_path / "files")
    assert [(one.place, one.reason) for one in report.rejects] == [
        ("a.trouble", "Reading it made no progress for 3 seconds.")
    ]
    assert report.streams["lines"].added == 3


def test_what_was_received_before_a_crash_is_not_given_twice(
    tmp_path: Path, troubled, store: Driven, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", troubled["PYTHONPATH"])
    # More than one part before the crash, marks on the way, and some lines after the last mark.
    lines = "".join(f"line {number}\n" for number in range(5500))
    write(tmp_path / "files", a=f"{lines}crash\nnever\n", b=lines)
    report = run(store, tmp_path / "files")
    assert report.streams["lines"].accepted == report.streams["lines"].added == 11_000
    assert [one.place for one in report.rejects] == ["a.trouble"]
    (shelf,) = store.summaries([Reach(StreamName("lines"), (report.connection_id,), ())])
    assert shelf.record_count == 11_000


def killed_while_reading(place: Path, path: str, extra: dict[str, str], pid_file: Path) -> int:
    """Kill an import with its whole group while a file holds it, as the system does when memory is short."""
    pid_file.unlink(missing_ok=True)
    process = subprocess.Popen(
        [*COMMAND, "--home", "home", "import", path],
        cwd=place,
        env=environment(place, extra),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return int(pid_file.read_text(encoding="utf-8"))


def test_what_was_being_read_at_two_kills_of_the_whole_program_is_rejected_the_third_time(
    tmp_path: Path, troubled
):
    pid_file = tmp_path / "pid"
    write(tmp_path / "files", a=f"pid {pid_file}\nlinger\n", b="one\ntwo\n")
    for _ in range(2):
        killed_while_reading(tmp_path, "files", troubled, pid_file)
        (note,) = (tmp_path / "home" / "parsing").iterdir()
        assert note.stat().st_mode & 0o077 == 0
    done, document = imported(tmp_path, "files", troubled)
    assert done.code == 65, done.err
    (report,) = document["imports"]
    assert places(report) == {"a.trouble": "The program ended while it read it, more than once."}
    assert report["streams"]["lines"]["added"] == 2
    assert list((tmp_path / "home" / "parsing").iterdir()) == []


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_stays_behind_when_the_import_is_ended(tmp_path: Path, troubled, signal_number: int):
    pid_file = tmp_path / "pid"
    write(tmp_path / "files", a=f"pid {pid_file}\nlinger\n")
    process = subprocess.Popen(
        [*COMMAND, "--home", "home", "import", "files"],
        cwd=tmp_path,
        env=environment(tmp_path, troubled),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    parser = int(pid_file.read_text(encoding="utf-8"))
    assert is_alive(parser)
    process.send_signal(signal_number)
    process.communicate()
    # It ends at its next step, although it has nothing to send.
    while is_alive(parser):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    assert not Path(f"{pid_file}.lingered").exists()


def test_the_process_has_no_secret_of_the_program_and_no_argument_of_the_data(
    tmp_path: Path, troubled, store: Driven, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", troubled["PYTHONPATH"])
    monkeypatch.setenv("MAIL_PASSWORD", "correct-horse")
    pid_file = tmp_path / "pid"
    write(tmp_path / "files", a=f"pid {pid_file}\n" + "line\n" * 50_000)
    with FileParser(FileChoice(paths=[tmp_path / "files"], given_at=NOW)) as parser:
        (planned,) = parser.plan().imports
        parts = planned.job.read({}, planned.job.form)
        next(parts)
        process = Path("/proc") / pid_file.read_text(encoding="utf-8")
        assert b"MAIL_PASSWORD" not in (process / "environ").read_bytes()
        arguments = (process / "cmdline").read_bytes().split(b"\0")
        assert arguments[1:] == [b"-P", b"-m", b"headgate.sources.parser_process", b""]
        assert "Max address space         1073741824" in (process / "limits").read_text(encoding="utf-8")


def test_a_server_goes_on_when_an_upload_ends_its_parser_at_the_preview_and_at_the_import(
    tmp_path: Path, troubled
):
    with served_program(tmp_path, **troubled) as program:
        address = "/v1/imports?file_name=a.trouble"
        body = b"one\ntwo\ncrash\n"
        shown = program.ask("POST", f"{address}&dry_run=true", program.owner, body)
        assert (shown.status, shown.body["imports"][0]["rejects"]) == (
            200,
            [{"place": "a.trouble", "reason": CRASHED}],
        )
        done = program.ask("POST", address, program.owner, body)
        assert done.status == 200, done.body
        (report,) = done.body["imports"]
        assert (places(report), report["streams"]["lines"]["added"]) == ({"a.trouble": CRASHED}, 2)
        assert program.ask("POST", address, program.owner, b"at once\n").status == 400
        assert program.ask("GET", "/healthz").status == 200
        assert program.process.poll() is None
        # A preview is read by another process: it waits for no import.
        with_pid = f"pid {tmp_path / 'pid'}\nlinger\n".encode()
        with program_import(program, with_pid, tmp_path / "pid"):
            shown = program.ask("POST", f"{address}&dry_run=true", program.owner, b"one\n")
            assert [row["text"] for row in shown.body["imports"][0]["streams"][0]["rows"]] == ["one"]


def test_a_server_answers_while_an_upload_is_recognised(tmp_path: Path, troubled):
    pid_file = tmp_path / "pid"
    with served_program(tmp_path, **troubled) as program:
        with program_import(program, f"at first\n{pid_file}\n".encode(), pid_file):
            assert program.ask("GET", "/healthz").status == 200
            assert not Path(f"{pid_file}.lingered").exists()
        assert program.process.poll() is None


@contextlib.contextmanager
def program_import(program: Any, body: bytes, pid_file: Path) -> Iterator[None]:
    """Import a file that is never read to its end, for the length of a block."""
    thread = threading.Thread(
        target=lambda: program.ask("POST", "/v1/imports?file_name=b.trouble", program.owner, body)
    )
    thread.start()
    while thread.is_alive() and not (pid_file.exists() and pid_file.read_text(encoding="utf-8")):
        thread.join(0.01)
    try:
        yield
    finally:
        os.kill(int(pid_file.read_text(encoding="utf-8")), signal.SIGKILL)
        thread.join()
