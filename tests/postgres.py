"""A real PostgreSQL server for tests, started from Debian's package; one for each test process, stopped at its end."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

_USER = "postgres"
_FAST = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=64MB",
    "max_connections=200",
    "autovacuum=off",
)
_names = itertools.count(1)


def programs() -> Path | None:
    """Find the server's programs; None: it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Server:
    """One server, on a socket in its folder."""

    def __init__(self, folder: Path, settings: Sequence[str] = _FAST) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its first database is."""
        return self.url_of("postgres")

    def url_of(self, database: str, user: str = _USER) -> str:
        """Where one of its databases is."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def make(self, *options: str) -> None:
        """Make an empty cluster."""
        self._own()
        usual = ("-U", _USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self._do("initdb", "-D", str(self.data), *usual, *options)

    def follow(self, primary: Server) -> None:
        """Make a copy of another server that goes on following it."""
        self._own()
        source = ("-h", str(primary.folder), "-U", _USER)
        self._do("pg_basebackup", "-D", str(self.data), "-R", "-X", "stream", "-c", "fast", *source)

    def promote(self) -> None:
        """Let a server that follows another take its place."""
        self._do("pg_ctl", "promote", "-D", str(self.data), "-w")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [
            f"-c{setting}"
            for setting in (*self._settings, "listen_addresses=", f"unix_socket_directories={self.folder}")
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                **_account(),
                cwd=self.folder,
            )
        self._do("pg_isready", "-h", str(self.folder), "-t", "30", tries=300)

    def kill(self) -> None:
        """End the server as a power cut would."""
        self._stop(signal.SIGQUIT)

    def stop(self) -> None:
        """End the server and its connections."""
        self._stop(signal.SIGINT)

    def wait(self) -> None:
        """Wait until the server ends by itself."""
        assert self._process is not None
        self._process.wait()
        self._process = None

    def _own(self) -> None:
        give_to_server(self.folder)

    def _stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def _do(self, name: str, *arguments: str, tries: int = 1) -> None:
        for left in reversed(range(tries)):
            done = subprocess.run(
                [_program(name), *arguments], capture_output=True, **_account(), cwd=self.folder, check=False
            )
            if done.returncode == 0:
                return
            if not left:
                raise RuntimeError(done.stderr.decode())


def _program(name: str) -> str:
    folder = programs()
    assert folder is not None
    return str(folder / name)


def _account() -> dict[str, int]:
    """Name the account that the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return {}
    entry = pwd.getpwnam(_USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid}


def give_to_server(folder: Path) -> None:
    """Let the account of the server have a folder."""
    os.chown(folder, *(_account().values() or (-1, -1)))


@functools.cache
def server() -> Server:
    """Start the server of this process, once."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-pg-"))
    made = Server(folder)
    made.make()
    made.start()

    def end() -> None:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return made


@functools.cache
def database_url() -> str:
    """Make the database that the tests of this process share; each of them has a home in it."""
    with psycopg.connect(server().url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE headgate")
    return server().url_of("headgate")


def new_home_name() -> str:
    """Give a name that no home has yet."""
    return f"home-{next(_names)}"
