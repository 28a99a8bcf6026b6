"""The database server is killed, or replaced by its standby, while `headgate serve` stores and answers over HTTP.

No acknowledged record is lost or doubled, no read is missing in the log, every refusal is typed, and the same process
goes on as soon as there is a server.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate.audit.activity import all_entries, read_event
from headgate.home import home_in, open_home
from headgate.store.engines import commands
from headgate.store.engines.postgres import PostgresLedger
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.conftest import Figure
from tests.http_clients import HttpAnswer, ask_once
from tests.on_socket import MAIL, ServedProgram, headgate, line, served_program
from tests.store.copies import quiet

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_WRITERS, _READERS, _BATCH = 3, 4, 5
#: How many batches and reads must succeed before and after each fault.
_ROUNDS = 10
_DURABLE = ("shared_buffers=16MB", "max_connections=60")


@dataclass
class Load:
    """Writers and readers that go on, whatever they are answered, until they are stopped."""

    program: ServedProgram
    connection: str
    client: str
    acknowledged: set[str] = field(default_factory=set)
    refused: list[set[str]] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    untyped: list[bytes] = field(default_factory=list)
    refusals: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)
    _progress: threading.Condition = field(default_factory=threading.Condition)

    def write(self, writer: int) -> None:
        path = f"/v1/ingest/messages?connection_id={self.connection}"
        for turn in itertools.takewhile(lambda _: not self._is_over.is_set(), itertools.count()):
            keys = {f"{writer}-{turn}-{n}" for n in range(_BATCH)}
            body = b"\n".join(line(key) for key in keys)
            if self._is_good(self.program.ask("POST", path, self.program.owner, body)):
                self.acknowledged |= keys
            else:
                self.refused.append(keys)

    def read(self, reader: int) -> None:
        for turn in itertools.takewhile(lambda _: not self._is_over.is_set(), itertools.count()):
            name = f"read-{reader}-{turn}"
            headers = {"Request-Id": name}
            if self._is_good(
                ask_once(self.program.address, "GET", f"{MAIL}?limit=3", self.client, headers=headers)
            ):
                self.answered.add(name)

    def _is_good(self, answer: HttpAnswer) -> bool:
        with self._progress:
            if answer.status == 200:
                self._progress.notify_all()
                return True
            self.refusals += 1
            if (answer.status, answer.code) != (503, "storage_unusable"):
                self.untyped.append(answer.content)
            return False

    def _done(self) -> int:
        return min(len(self.acknowledged) // _BATCH, len(self.answered))

    def wait_for_more(self) -> None:
        """Wait until some batches and some reads have succeeded from now."""
        enough = self._done() + _ROUNDS
        with self._progress:
            assert self._progress.wait_for(lambda: self._done() >= enough, timeout=120)

    @contextmanager
    def running(self) -> Generator[None]:
        threads = [threading.Thread(target=self.write, args=(number,)) for number in range(_WRITERS)]
        threads += [threading.Thread(target=self.read, args=(number,)) for number in range(_READERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()


@contextmanager
def new_server(*settings: str) -> Generator[postgres.Server]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-pg-"))
    server = postgres.Server(folder, (*_DURABLE, *settings))
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def restarted() -> Generator[tuple[str, list[Callable[[], None]]]]:
    """One server that is killed and started again."""
    with new_server() as server:
        server.make()
        server.start()

        def restart() -> None:
            server.kill()
            server.start()

        yield server.url, [restart]


@contextmanager
def failed_over() -> Generator[tuple[str, list[Callable[[], None]]]]:
    """A primary that is lost, and its standby, without whose answer it acknowledges nothing."""
    with (
        new_server("synchronous_standby_names=*", "synchronous_commit=on") as primary,
        new_server() as standby,
    ):
        primary.make()
        primary.start()
        standby.follow(primary)
        standby.start()

        def fail_over() -> None:
            primary.kill()
            standby.promote()

        hosts = f"{primary.folder},{standby.folder}"
        url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        yield url, [fail_over]


@pytest.mark.parametrize(
    "faults", [restarted, pytest.param(failed_over, marks=pytest.mark.soak)], ids=["killed", "failed over"]
)
def test_a_server_that_goes_away_under_load_loses_doubles_and_hides_nothing(
    tmp_path: Path, faults: Any, figure: Figure
):
    with ExitStack() as stack:
        url, steps = stack.enter_context(faults())
        settings = tmp_path / "etc" / "headgate" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'store_url = "{url}"\n', encoding="utf-8")
        with served_program(tmp_path) as program:
            load = Load(program, program.connect(), program.grant())
            with load.running():
                load.wait_for_more()
                for step in steps:
                    step()
                    load.wait_for_more()
            listed = keys_of(load)
        assert load.untyped == []
        assert load.refusals > 0
        assert load.acknowledged <= set(listed)
        assert max(Counter(listed).values()) == 1
        assert all(keys <= set(listed) or not keys & set(listed) for keys in load.refused)
        assert headgate(tmp_path, "--home", "home", "audit", "verify").out.startswith("The log is whole")
        logged = asyncio.run(times_logged(url))
        assert {name: logged[name] for name in load.answered} == dict.fromkeys(load.answered, 1)
        home = home_in(open_home(tmp_path / "home"), url, "main")
        assert commands.commands_of(home).check(quiet).damages == ()
    figure(
        "killed",
        f"{len(load.acknowledged)} records acknowledged, {len(load.answered)} reads answered and logged,"
        f" {load.refusals} requests refused, 0 lost, 0 doubled",
    )


def keys_of(load: Load) -> list[str]:
    path: str | None = f"{MAIL}?connection_id={load.connection}&limit=100&changes_since=beginning"
    found: list[str] = []
    while path is not None:
        body = load.program.ask("GET", path, load.program.owner).body
        found += [row["id"] for row in body["data"]]
        path = body["links"]["next"]
    return found


async def times_logged(url: str) -> Counter[Any]:
    ledger = PostgresLedger(open_place(url, "main"), connections=1)
    try:
        return Counter([read_event(entry).request_id async for entry in all_entries(ledger)])
    finally:
        await ledger.close()
