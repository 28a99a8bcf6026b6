"""The real server on a real socket: slow senders, signals, several workers, many clients."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.web import http
from tests.on_socket import WAIT_SECONDS, headgate, serving
from tests.schema.declarations import declaration


def call(address: str, path: str, token: str, method: str = "GET", body: bytes | None = None):
    request = urllib.request.Request(
        address + path, data=body, method=method, headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


@pytest.fixture
def owner(tmp_path: Path) -> str:
    return json.loads(headgate(tmp_path, "--home", "home", "owner", "token", "--json").out)["access_token"]


def lines(start: int, count: int) -> bytes:
    return b"\n".join(
        json.dumps({"key": f"m{n}", "data": {"id": f"m{n}", "sent_at": "2026-03-01T00:00:00Z"},
                    "emitted_at": "2026-03-01T00:00:00Z"}).encode()
        for n in range(start, start + count)
    )  # fmt: skip


def connect(address: str, owner: str) -> str:
    document = json.dumps(declaration()).encode()
    assert call(address, "/v1/declarations/mail", owner, "PUT", document)[0] == 200
    return call(address, "/v1/connections", owner, "POST", b'{"connector_key":"mail"}')[1]["connection_id"]


def test_the_whole_journey_from_a_connection_to_a_refusal(tmp_path: Path, owner: str):
    home = ("--home", "home")
    with serving(tmp_path) as served:
        connection = connect(served.address, owner)
        path = f"/v1/ingest/messages?connection_id={connection}"
        assert call(served.address, path, owner, "POST", lines(0, 5))[1]["records_accepted"] == 5
        made = headgate(
            tmp_path, *home, "grants", "create", "--client", "agent", "--stream", "messages", "--json"
        )
        issued = json.loads(made.out)
        assert set(issued) == {"access_token", "token_kind", "grant_ids", "package_id", "mcp_url"}
        status, page = call(served.address, "/v1/streams/messages/records", issued["access_token"])
        assert (status, len(page["data"])) == (200, 5)
        shown = headgate(tmp_path, *home, "grants", "show", issued["grant_ids"][0]).out
        assert "agent may read" in shown
        assert "messages" in shown
        assert headgate(tmp_path, *home, "grants", "revoke", issued["grant_ids"][0]).code == 0
        status, refused = call(served.address, "/v1/streams/messages/records", issued["access_token"])
        assert (status, refused["error"]["code"]) == (403, "grant_revoked")
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=WAIT_SECONDS)
        assert served.process.returncode == 0
    listed = json.loads(headgate(tmp_path, *home, "audit", "list", "--json").out)
    assert [entry["outcome"] for entry in listed][:2] == ["grant_revoked", "answered"]
    assert json.loads(headgate(tmp_path, *home, "audit", "verify", "--json").out)["whole"] is True
    readers = json.loads(headgate(tmp_path, *home, "audit", "who-read", "m3", "--json").out)
    assert [reader["client_id"] for reader in readers] == ["agent"]
    assert len(headgate(tmp_path, *home, "audit", "export").out.splitlines()) == len(listed)
    grants = json.loads(headgate(tmp_path, *home, "grants", "list", "--json").out)
    assert [grant["state"] for grant in grants] == ["revoked"]


def test_answers_that_were_sent_are_in_the_log_after_a_kill(tmp_path: Path, owner: str):
    answered = 0
    with serving(tmp_path) as served:
        connect(served.address, owner)
        for _ in range(30):
            answered += call(served.address, "/v1/streams", owner)[0] == 200
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(WAIT_SECONDS)
    listed = json.loads(headgate(tmp_path, "--home", "home", "audit", "list", "--limit", "99", "--json").out)
    assert answered == 30
    assert sum(entry["via"] == "GET /v1/streams" for entry in listed) == 30
    assert json.loads(headgate(tmp_path, "--home", "home", "audit", "verify", "--json").out)["whole"] is True


def test_a_worker_that_cannot_begin_stops_the_server_and_says_why(tmp_path: Path, owner: str):
    (tmp_path / "home" / "records.db").write_bytes(b"no database at all" * 1000)
    done = headgate(tmp_path, "--home", "home", "serve", "--port", "0", "--workers", "2")
    assert done.code != 0
    assert 1 <= done.err.count("in _be_worker") <= 2, "each of the two began once"
    assert "Traceback" in done.err


def test_several_workers_share_one_home(tmp_path: Path, owner: str):
    with serving(tmp_path, "--workers", "2") as served:
        connection = connect(served.address, owner)
        failures: list[object] = []

        def write(start: int) -> None:
            for at in range(5):
                path = f"/v1/ingest/messages?connection_id={connection}"
                status, body = call(served.address, path, owner, "POST", lines(start + at * 10, 10))
                if status != 200:
                    failures.append(body)

        writers = [threading.Thread(target=write, args=(start,)) for start in (0, 1000, 2000, 3000)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert failures == []
        counts = [
            call(served.address, "/v1/streams/messages/aggregate?metric=count", owner)[1]["value"]
            for _ in range(8)
        ]
        assert counts == [200] * 8
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=WAIT_SECONDS)
        assert served.process.returncode == 0


SLOW_SERVER = """
import asyncio, sys
from headgate.web import http, server
http.RECEIVE_SECONDS = 0.3
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(0.8)
    status = 408 if http.BODY_CUT in scope["state"] else 200
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
taken = server.listen("127.0.0.1", 0)
server.serve(app, taken, lambda: print(taken.getsockname()[1], flush=True))
"""


@contextmanager
def running(script: str) -> Iterator[int]:
    """Run a server of a few lines, and give its port."""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def impatient() -> Iterator[int]:
    with running(SLOW_SERVER) as port:
        yield port


def dial(port: int, sent: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
    made.sendall(sent)
    return made


@pytest.mark.hostile("15", "16")
@pytest.mark.parametrize(("headers", "bodies"), [(100, 20), (1000, 0)])
def test_half_a_request_is_not_waited_for_for_ever_and_others_are_served_meanwhile(
    impatient: int, headers: int, bodies: int
):
    half = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345"
    slow = [dial(impatient, b"GET / HTTP/1.1\r\nHost: x\r\n") for _ in range(headers)]
    slow += [dial(impatient, half) for _ in range(bodies)]
    quick = dial(impatient, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert quick.recv(100).startswith(b"HTTP/1.1 200")
    for position, one in enumerate(slow):
        answered = hear_all(one)
        # A body that was begun is answered; there is nothing to answer to half a head.
        assert answered == b"" if position < headers else answered.startswith(b"HTTP/1.1 408")
        one.close()
    quick.close()


def hear_all(made: socket.socket) -> bytes:
    """Read until the other side closes."""
    received = b""
    while piece := made.recv(1000):
        received += piece
    return received


def test_a_body_that_comes_slowly_but_comes_is_taken_whole():
    # Long enough that a busy machine does not make the sender too slow.
    with running(SLOW_SERVER.replace("RECEIVE_SECONDS = 0.3", "RECEIVE_SECONDS = 1.5")) as port:
        slow = dial(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\n")
        for _ in range(30):
            assert not select.select([slow], [], [], 0.08)[0]
            slow.sendall(b"x" * 200)
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        slow.close()


def test_a_body_that_drips_is_answered_and_ended(impatient: int):
    slow = dial(impatient, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1500\r\n\r\n")
    sent = 0
    while not select.select([slow], [], [], 0.02)[0]:
        slow.sendall(b"x")
        sent += 1
    assert sent < 1500
    assert hear_all(slow).startswith(b"HTTP/1.1 408")
    slow.close()


SLOW_READERS = """
import socket
from headgate.web import http, server
http.SEND_SECONDS = 1
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    size = 8_000_000
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": b"x" * size})
taken = server.listen("127.0.0.1", 0)
# The system would take most of the answer at once, and the program would have nothing to judge.
taken.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
server.serve(app, taken, lambda: print(taken.getsockname()[1], flush=True))
"""


def test_a_large_answer_that_is_read_slowly_but_is_read_arrives_whole_and_one_that_is_not_read_is_cut():
    with running(SLOW_READERS) as port:
        slow, idle = (dial(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(2))
        received = 0
        while received < 8_000_000:
            # Three seconds in all, three times as long as an answer without progress has.
            select.select([], [], [], 0.02)
            piece = slow.recv(50_000)
            assert piece, received
            received += len(piece)
        try:
            cut = len(hear_all(idle))
        except ConnectionResetError:
            cut = 0
        assert cut < 8_000_000
        slow.close()
        idle.close()


def test_an_ingest_that_is_cut_short_says_what_is_stored_and_goes_on_with_its_key(tmp_path: Path, owner: str):
    script = (
        "from headgate.web import http; http.RECEIVE_SECONDS = 0.5; from headgate.cli.main import run; run()"
    )
    command = [sys.executable, "-c", script, "--home", str(tmp_path / "home"), "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        connection = connect(address, owner)
        body = lines(0, 5000)
        path = f"/v1/ingest/messages?connection_id={connection}"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {owner}\r\n"
            f"Idempotency-Key: k1\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        half = dial(int(address.rpartition(":")[2]), head + body[: len(body) // 2])
        answer = hear_all(half)
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert answer.startswith(b"HTTP/1.1 408")
        assert (error["code"], error["records_accepted"]) == ("body_cut_short", 2000)
        assert "Idempotency-Key" in error["hint"]
        request = urllib.request.Request(
            address + path, data=body, headers={"Authorization": f"Bearer {owner}", "Idempotency-Key": "k1"}
        )
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as again:
            assert json.loads(again.read())["records_accepted"] == 5000
        count = call(address, "/v1/streams/messages/aggregate?metric=count", owner)[1]["value"]
        assert count == 5000
        half.close()
    finally:
        process.kill()
        process.communicate()


def hear_until(made: socket.socket, end: bytes) -> bool:
    """Head and body may come in separate pieces."""
    received = b""
    while not received.endswith(end):
        piece = made.recv(200)
        if not piece:
            return False
        received += piece
    return True


def test_a_kept_connection_that_is_idle_stays_usable(impatient: int):
    open_socket = dial(impatient, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert hear_until(open_socket, b"ok")
    # Longer than the server waits for the rest of a request.
    open_socket.settimeout(0.8)
    with pytest.raises(TimeoutError):
        open_socket.recv(1)
    open_socket.settimeout(WAIT_SECONDS)
    open_socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert hear_until(open_socket, b"ok")
    open_socket.close()


def test_a_connection_is_closed_when_nothing_was_asked_on_it_for_long_and_no_sooner():
    script = SLOW_SERVER.replace("http.RECEIVE_SECONDS = 0.3", "server._KEEP_ALIVE_SECONDS = 1")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port, request = int(process.stdout.readline()), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        idle, busy = dial(port, request), dial(port, request)
        assert hear_until(idle, b"ok")
        asked = 1
        while not select.select([idle], [], [], 0.1)[0]:
            assert hear_until(busy, b"ok")
            busy.sendall(request)
            asked += 1
        assert idle.recv(1) == b""
        # It was opened no later, but somebody has asked on it since.
        assert asked > 2
        assert hear_until(busy, b"ok")
        assert busy.recv(1) == b""
        process.kill()
    for one in (idle, busy):
        one.close()


@pytest.mark.parametrize("after", [b"\r\n", b"\n\r\n\r\n"])
def test_blank_lines_after_an_answer_do_not_hold_a_connection_open(after: bytes):
    script = SLOW_SERVER.replace("http.RECEIVE_SECONDS = 0.3", "server._KEEP_ALIVE_SECONDS = 1")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        idle = dial(int(process.stdout.readline()), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hear_until(idle, b"ok")
        # However often they come, the time counts from the answer.
        end = time.monotonic() + WAIT_SECONDS
        while not (is_over := bool(select.select([idle], [], [], 0.1)[0])) and time.monotonic() < end:
            idle.sendall(after)
        process.kill()
        assert is_over
        assert idle.recv(1) == b""
    idle.close()


@pytest.mark.hostile("15", "16")
@pytest.mark.parametrize(
    "half", [b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"]
)
def test_half_a_request_after_a_whole_one_is_not_waited_for_for_ever_either(impatient: int, half: bytes):
    open_socket = dial(impatient, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert hear_until(open_socket, b"ok")
    open_socket.sendall(half)
    assert hear_all(open_socket)[:12] in {b"", b"HTTP/1.1 408"}
    open_socket.close()


def test_half_a_request_does_not_end_the_answer_to_the_one_before_it(impatient: int):
    open_socket = dial(impatient, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n")
    # The answer takes longer than the rest of a request may.
    assert hear_until(open_socket, b"ok")
    assert open_socket.recv(100) == b""
    open_socket.close()


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        (b"X: " + b"a" * (2 * http.MAX_HEADER_BYTES), b"HTTP/1.1 431 "),
        (b"".join(b"X%d: 1\r\n" % n for n in range(150)), b""),
    ],
)
def test_headers_without_end_are_cut_off(impatient: int, headers: bytes, answer: bytes):
    made = dial(impatient, b"GET / HTTP/1.1\r\nHost: x\r\n" + headers)
    assert made.recv(100)[:13] == answer
    made.close()
