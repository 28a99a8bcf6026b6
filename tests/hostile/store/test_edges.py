"""Storage rows that only the whole program can show: what clients receive, signals, packed bodies."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from headgate.home import Home
from headgate.model.ids import ConnectionId
from headgate.store.maintenance.sqlite_home import reading_store
from headgate.store.sqlite import FILE
from tests.hostile.store.scene import batch, damages, line
from tests.in_process import LocalProgram, local_program, record
from tests.on_socket import WAIT_SECONDS, headgate, serving
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.web.test_server import call, connect

ROOT = Path(__file__).parents[3]
RECORDS = "/v1/streams/messages/records"


def in_house(place: Path, work: Callable[[LocalProgram], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with local_program(place) as program:
            return await work(program)

    return asyncio.run(run())


async def furnish(program: LocalProgram, count: int = 0) -> str:
    await program.declare("mail", declaration())
    mine = await program.connect("mail", "Home")
    if count:
        lines = [line(f"k{n}", body=f"word{n} word{n}") for n in range(count)]
        await program.services.store.ingest(batch(ConnectionId(mine), lines))
    return mine


# 73

FULL = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from tests.hostile.store.test_edges import RECORDS, furnish
from tests.hostile.store.scene import line
from tests.in_process import local_program
from headgate.audit import journal

# The log has taken room beforehand; here it is little, so that it is soon used up.
journal._FILE_BYTES = 8192

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

async def work(place):
    statuses = {}
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with local_program(place) as program:
        mine = await furnish(program, 30)
        large = b"\\n".join(line(f"large{n}", body="many words " * 800) for n in range(200))
        path = f"/v1/ingest/messages?connection_id={mine}"
        count = lambda answer: answer.body["value"]
        counting = "/v1/streams/messages/aggregate?metric=count"
        limit((program.services.home.path / "records.db").stat().st_size + 65536)
        refused = await program.ask("POST", path, program.owner, body=large)
        statuses["batch"] = [refused.status, refused.code]
        statuses["after"] = count(await program.get(counting, program.owner))
        # When no byte of a disclosure finds room any more, nothing is shown.
        limit(0)
        for answered in range(200):
            refused = await program.get(RECORDS, program.owner)
            if refused.status != 200:
                break
        statuses["read"] = [refused.status, refused.code]
        limit(resource.RLIM_INFINITY)
        statuses["again"] = [(await program.get(RECORDS, program.owner)).status]
        statuses["batch again"] = [(await program.ask("POST", path, program.owner, body=large)).status]
        statuses["at last"] = count(await program.get(counting, program.owner))
    print(json.dumps(statuses))

asyncio.run(work(Path(sys.argv[1])))
"""


def test_row_73_a_full_disk_takes_no_part_of_a_batch_and_shows_nothing_undisclosed(tmp_path: Path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "batch": [507, "storage_full"],
        "after": 30,
        "read": [507, "storage_full"],
        "again": [200],
        "batch again": [200],
        "at last": 230,
    }
    assert damages(Home(tmp_path / "home")) == []


# 75


def test_row_75_a_flipped_byte_is_an_error_of_that_record_alone(tmp_path: Path):
    mine = in_house(tmp_path, lambda program: furnish(program, 30))
    path = tmp_path / "home" / FILE
    content = bytearray(path.read_bytes())
    content[content.index(b'"word7 word7"') + 3] ^= 1
    path.write_bytes(content)

    async def ask(program: LocalProgram) -> list[Any]:
        answers = [
            await program.get(f"{RECORDS}/k{n}?connection_id={mine}", program.owner) for n in range(30)
        ]
        return [answer.status if answer.status == 200 else (answer.status, answer.code) for answer in answers]

    statuses = in_house(tmp_path, ask)
    assert statuses.pop(7) == (500, "integrity_error")
    assert statuses == [200] * 29


# 76


def test_row_76_a_clock_that_jumps_back_revives_nothing_and_reorders_nothing(tmp_path: Path):
    async def work(program: LocalProgram) -> None:
        mine = await furnish(program, 3)
        ours = (ConnectionId(mine),)
        revoked = await program.grant(grant(stream_grant("messages", "id", connections=ours)))
        remaining = await program.grant(grant(stream_grant("messages", "id", connections=ours), id_="grt_2"))
        assert (await program.ask("POST", "/grants/grt_1/revoke", program.owner)).status == 200
        base = f"{RECORDS}?connection_id={mine}"
        first = await program.get(base + "&changes_since=beginning", remaining)
        cursor = (await program.get(base + "&limit=1", remaining)).body["next_cursor"]
        program.clock.at -= 10 * 365 * 24 * 3600 * 1_000_000
        refused = await program.get(RECORDS, revoked)
        assert (refused.status, refused.code) == (403, "grant_revoked")
        await program.ingest(mine, "messages", [record("late", sent_at="2026-03-03T00:00:00Z")])
        mark = quote(first.body["next_changes_since"])
        changed = (await program.get(f"{base}&changes_since={mark}", remaining)).body["data"]
        assert [one["id"] for one in changed] == ["late"]
        assert (await program.get(f"{base}&limit=1&cursor={quote(cursor)}", remaining)).status == 200

    in_house(tmp_path, work)
    assert damages(Home(tmp_path / "home")) == []


# 79


def numbered(number: int) -> bytes:
    return b"\n".join(line(f"{number}/{n}") for n in range(10))


def held(place: Path) -> Counter[int]:
    with reading_store(Home(place / "home")) as database:
        keys = database.all("SELECT record_id FROM record WHERE deleted=0")
    return Counter(int(key.partition("/")[0]) for (key,) in keys)


@pytest.fixture
def owner(tmp_path: Path) -> str:
    return json.loads(headgate(tmp_path, "--home", "home", "owner", "token", "--json").out)["access_token"]


class Load:
    """Senders that go on until the server takes nothing any more."""

    def __init__(self, address: str, owner: str, connection: str) -> None:
        self.safe: list[int] = []
        self.enough = threading.Event()
        self._path = f"/v1/ingest/messages?connection_id={connection}"
        self._ask = lambda number: call(address, self._path, owner, "POST", numbered(number))
        self._threads = [threading.Thread(target=self._send, args=(first,)) for first in range(4)]
        for thread in self._threads:
            thread.start()

    def _send(self, first: int) -> None:
        for number in range(first, 4000, 4):
            try:
                status, _ = self._ask(number)
            except OSError:
                return
            if status != 200:
                return
            self.safe.append(number)
            if len(self.safe) > 12:
                self.enough.set()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_row_79_a_server_asked_to_stop_under_load_keeps_what_it_acknowledged(tmp_path: Path, owner: str):
    with serving(tmp_path) as served:
        load = Load(served.address, owner, connect(served.address, owner))
        assert load.enough.wait(WAIT_SECONDS)
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=WAIT_SECONDS)
        load.join()
        assert served.process.returncode == 0
    found = held(tmp_path)
    print(f"F16: asked to stop under load; {len(load.safe)} batches acknowledged, {len(found)} held")  # noqa: T201
    assert set(load.safe) <= found.keys()
    assert set(found.values()) == {10}
    assert not (tmp_path / "home" / f"{FILE}-wal").exists()
    assert damages(Home(tmp_path / "home")) == []


def test_row_79_a_server_that_is_stopped_twice_ends_at_once_says_so_and_tears_nothing(
    tmp_path: Path, owner: str
):
    with serving(tmp_path) as served:
        load = Load(served.address, owner, connect(served.address, owner))
        assert load.enough.wait(WAIT_SECONDS)
        host, _, port = served.address.removeprefix("http://").partition(":")
        # Half a request keeps the server from ending in good order.
        with socket.create_connection((host, int(port))) as half:
            half.sendall(
                b"POST /v1/ingest/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
            )
            served.process.send_signal(signal.SIGTERM)
            load.join()
            served.process.send_signal(signal.SIGTERM)
            served.process.communicate(timeout=WAIT_SECONDS)
        assert served.process.returncode not in {0, None}
    found = held(tmp_path)
    assert set(load.safe) <= found.keys()
    assert set(found.values()) == {10}
    assert damages(Home(tmp_path / "home")) == []


# 80 and 81: nothing here unpacks an archive or writes CSV, so neither may come in as if it did.


def zipped(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("records.ndjson", content)
    return made.getvalue()


def test_row_80_packed_records_are_refused_and_never_unpacked(tmp_path: Path):
    plain = b"\n".join(line(f"k{n}", body="0" * 100_000) for n in range(100))
    packed = gzip.compress(plain)
    assert len(plain) > 500 * len(packed)

    async def work(program: LocalProgram) -> None:
        mine = await furnish(program)
        path = f"/v1/ingest/messages?connection_id={mine}"
        for encoding in ("gzip", "deflate", "br", "GZIP", "identity, gzip"):
            refused = await program.ask(
                "POST", path, program.owner, body=packed, headers=[("content-encoding", encoding)]
            )
            assert (refused.status, refused.code) == (400, "invalid_request")
        for body in (packed, zipped(plain)):
            answer = await program.ask("POST", path, program.owner, body=body)
            assert answer.body["records_accepted"] == 0
            assert answer.body["records_rejected"] > 0
        accepted = await program.ask(
            "POST", path, program.owner, body=line("fine"), headers=[("content-encoding", "identity")]
        )
        assert accepted.body["records_accepted"] == 1

    in_house(tmp_path, work)


FORMULAS = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1", "\r=1"]


def test_row_81_rows_of_csv_are_refused_and_a_formula_is_a_text_like_any_other(tmp_path: Path):
    async def work(program: LocalProgram) -> None:
        mine = await furnish(program)
        path = f"/v1/ingest/messages?connection_id={mine}"
        table = "id,subject\n" + "\n".join(f'k{n},"{text}"' for n, text in enumerate(FORMULAS[:4]))
        refused = await program.ask("POST", path, program.owner, body=table.encode())
        assert (refused.body["records_accepted"], refused.body["records_rejected"]) == (0, 5)
        for n, text in enumerate(FORMULAS):
            await program.ingest(mine, "messages", [record(f"k{n}", subject=text)])
            answer = await program.get(f"{RECORDS}/k{n}?connection_id={mine}", program.owner)
            assert answer.body["data"]["subject"] == text
            # Given out as JSON alone, which no table program takes for cells.
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"

    in_house(tmp_path, work)
    for command in (("store", "stats"), ("audit", "export")):
        shown = headgate(tmp_path, "--home", "home", *command).out
        assert shown
        assert not any(text[0] in "=+-@" for text in shown.splitlines() if text)
