"""The real program in a new process with a clean environment: commands, and a server on a socket."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked_process import ForkedProcess
from tests.forking import shared_parent
from tests.http_clients import HttpAnswer, ask_once
from tests.schema.declarations import declaration

COMMAND = (sys.executable, "-m", "headgate")
ServerProcess = subprocess.Popen[str] | ForkedProcess
#: Only a program that hangs takes as long.
WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers: where, what it printed, and its process."""

    address: str
    announcement: str
    process: ServerProcess


def environment(place: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Everything the program may read lies in the test's own directory."""
    own = {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_CONFIG_HOME": str(place / "etc")}
    # Without a model: making vectors would take the processor from what a test is about.
    return {**own, "HEADGATE_SEMANTIC_MODEL": "off", **extra}


def headgate(place: Path, *arguments: str, **extra: str) -> Outcome:
    """Run a command to its end, forked from a process that has imported the program."""
    if not (
        {"--home", "HEADGATE_HOME"} & {*arguments, *extra}
        or any(word.startswith("--home=") for word in arguments)
    ):
        # The default home was found when the program was imported, from the environment of the tests.
        return headgate_alone(place, *arguments, **extra)
    return Outcome(*shared_parent().run(place, arguments, environment(place, extra), WAIT_SECONDS))


def headgate_alone(place: Path, *arguments: str, **extra: str) -> Outcome:
    """Run a command to its end in a new interpreter, as a terminal does."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=place,
        env=environment(place, extra),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(place: Path, *arguments: str, log: Path | None = None, **extra: str) -> Iterator[Served]:
    """Fork `headgate serve` on a free port and give its address once it answers.

    A server that logs more than a pipe holds needs a file for it, or it waits for a reader.
    """
    process = shared_parent().start(place, _serve(place, arguments), environment(place, extra), log)
    try:
        with _answering(process) as served:
            yield served
    finally:
        process.close()


@contextmanager
def serving_alone(
    place: Path, *arguments: str, log: Path | None = None, most_bytes: int | None = None, **extra: str
) -> Iterator[Served]:
    """Serve in a new interpreter, where its memory is the point. ``most_bytes`` limits its address space."""
    limits = () if most_bytes is None else ("prlimit", f"--as={most_bytes}")
    with nullcontext(subprocess.PIPE) if log is None else log.open("a") as err:
        process = subprocess.Popen(
            [*limits, *COMMAND, *_serve(place, arguments)],
            cwd=place,
            env=environment(place, extra),
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    with _answering(process) as served:
        yield served


def _serve(place: Path, arguments: Sequence[str]) -> list[str]:
    return ["--home", str(place / "home"), "serve", "--port", "0", *arguments]


@contextmanager
def _answering(process: ServerProcess) -> Iterator[Served]:
    """Read where a server answers, and end it afterwards."""
    try:
        assert process.stdout is not None
        announcement = [process.stdout.readline() for _ in range(3)]
        address = re.search(r"http://\S+", announcement[0])
        assert address, process.communicate()
        yield Served(address.group(), "".join(announcement), process)
    finally:
        process.kill()
        process.communicate()


MAIL = "/v1/streams/messages/records"
_UNLIMITED = {"HEADGATE_RATE_LIMIT": "0"}
_LOG = "serve.log"


def line(key: str, **data: Any) -> bytes:
    """Write one record of mail as a line to ingest."""
    values = {"id": key, "sent_at": "2026-03-01T00:00:00Z", **data}
    return json.dumps({"key": key, "data": values, "emitted_at": "2026-03-01T00:00:00Z"}).encode()


@dataclass(frozen=True, slots=True)
class ServedProgram:
    """A served home, with an owner's token and what a test does with it."""

    place: Path
    owner: str
    address: str
    process: ServerProcess
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, method: str, path: str, token: str | None = None, body: bytes = b"") -> HttpAnswer:
        return ask_once(self.address, method, path, token, body=body)

    def run(self, *arguments: str) -> Any:
        """Run a command on the server's home, and read the JSON it prints."""
        done = headgate(self.place, "--home", "home", *arguments, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    def connect(self, name: str = "Home") -> str:
        """Add a connection of mail."""
        document = json.dumps(declaration()).encode()
        assert self.ask("PUT", "/v1/declarations/mail", self.owner, document).status == 200
        body = json.dumps({"connector_key": "mail", "display_name": name}).encode()
        return self.ask("POST", "/v1/connections", self.owner, body).body["connection_id"]

    def ingest(self, connection: str, lines: list[bytes]) -> None:
        path = f"/v1/ingest/messages?connection_id={connection}&on_invalid=keep"
        taken = self.ask("POST", path, self.owner, b"\n".join(lines))
        assert (taken.status, taken.body["records_accepted"]) == (200, len(lines)), taken

    def grant(self, *options: str, client: str = "agent") -> str:
        """Give a client all mail, or what the options say of it."""
        made = self.run("grants", "create", "--client", client, "--stream", "messages", *options)
        return made["access_token"]

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory_mib(self) -> float:
        """Give the resident memory of the server's process."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        found = next(one for one in status.splitlines() if one.startswith("VmRSS:"))
        return int(found.split()[1]) / 1024


def owner_of(place: Path) -> str:
    """Make a token for the owner of a home."""
    made = headgate(place, "--home", "home", "owner", "token", "--json")
    assert made.code == 0, made.err
    return json.loads(made.out)["access_token"]


@contextmanager
def served_program(
    place: Path, *arguments: str, owner: str | None = None, most_bytes: int | None = None, **extra: str
) -> Iterator[ServedProgram]:
    """Serve a home, without a rate limit unless one is given; with a limit of its memory in a new interpreter."""
    settings = _UNLIMITED | extra
    if most_bytes is None:
        server = serving(place, *arguments, log=place / _LOG, **settings)
    else:
        server = serving_alone(place, *arguments, log=place / _LOG, most_bytes=most_bytes, **settings)
    with _program_of(place, owner, server) as program:
        yield program


@contextmanager
def served_program_alone(place: Path, *arguments: str, **extra: str) -> Iterator[ServedProgram]:
    """Serve a home in a new interpreter, whose memory is measured."""
    server = serving_alone(place, *arguments, log=place / _LOG, **_UNLIMITED | extra)
    with _program_of(place, None, server) as program:
        yield program


@contextmanager
def _program_of(
    place: Path, owner: str | None, server: AbstractContextManager[Served]
) -> Iterator[ServedProgram]:
    token = owner or owner_of(place)
    with server as served:
        yield ServedProgram(place, token, served.address, served.process, place / _LOG)
