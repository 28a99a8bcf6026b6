"""Requests that are sent without waiting for answers: few of them are parsed, and the bytes of the others are bounded."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.conftest import Figure
from tests.on_socket import MAIL, ServedProgram, line, served_program
from tests.web.test_after_answers import SERVER

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#: Fewer bytes than a read brings at most.
REQUESTS = 2_000
DIGITS = 10
MOST_WAITING = 200_000
#: A little more than a piece holds that is parsed at once.
MOST_PARSED = 100
WATCHED = (
    SERVER.replace(
        "async def app",
        """
most = 0
ended = http.LimitedHttpProtocol.on_response_complete
def watched(self):
    global most
    most = max(most, len(self.pipeline))
    ended(self)
http.LimitedHttpProtocol.on_response_complete = watched
async def app""",
    )
    .replace("http.RECEIVE_SECONDS = 0.3", "")
    .replace('b"2")', f'b"{DIGITS}")')
    .replace('b"ok"', f'b"%0{DIGITS}d" % most')
)


def most_parsed(port: int) -> int:
    """Send requests twice, the second time after an answer; gives how many waited at most, as the last answer says."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        peer.sendall(REQUEST * REQUESTS)
        received = peer.recv(1)
        peer.sendall(REQUEST * REQUESTS)
        while (answers := received.split(b"\r\n\r\n"))[2 * REQUESTS :] == [] or len(answers[-1]) < DIGITS:
            received += peer.recv(1 << 20)
        return int(answers[-1])


def test_a_flood_of_requests_is_parsed_only_as_far_as_it_was_read():
    process = subprocess.Popen([sys.executable, "-c", WATCHED], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        most = most_parsed(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()
    assert 0 < most <= MOST_PARSED


#: The first request on a connection is not answered to others than those who ask for the number of waiting bytes.
HELD = (
    SERVER.replace("http.RECEIVE_SECONDS = 0.3", f"http.MAX_WAITING_BYTES = {MOST_WAITING}")
    .replace("server._KEEP_ALIVE_SECONDS = 1", "import asyncio")
    .replace(
        "while (await receive())",
        'if scope["path"] == "/held":\n        await asyncio.Event().wait()\n    while (await receive())',
    )
    .replace('b"2")', f'b"{DIGITS}")')
    .replace('b"ok"', f'b"%0{DIGITS}d" % http.LimitedHttpProtocol._all_unparsed_bytes')
)


def waiting_bytes(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        peer.sendall(REQUEST)
        received = b""
        while len(received.partition(b"\r\n\r\n")[2]) < DIGITS:
            received += peer.recv(1 << 16)
        return int(received[-DIGITS:])


def is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_what_all_connections_sent_ahead_is_bounded_and_a_connection_that_adds_more_is_closed():
    with subprocess.Popen([sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        peers = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(20)]
        try:
            for peer in peers:
                with suppress(ConnectionError):
                    peer.sendall(REQUEST.replace(b"/", b"/held", 1) + REQUEST * REQUESTS)
            closed, _, _ = select.select(peers, [], [], 60)
            assert closed
            assert all(map(is_closed, closed))
            assert 0 < waiting_bytes(port) <= MOST_WAITING
        finally:
            for peer in peers:
                peer.close()
            process.kill()


def slowest_ms(program: ServedProgram, token: str) -> float:
    slowest = 0.0
    for _ in range(30):
        begun = time.monotonic()
        assert program.ask("GET", f"{MAIL}?limit=5", token).status == 200
        slowest = max(slowest, time.monotonic() - begun)
    return slowest * 1000


def flood(address: str, end: threading.Event) -> None:
    """Send requests without a token and without a pause, and drop the answers."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    while not end.is_set():
        with socket.create_connection((host, int(port)), timeout=60) as peer:
            sending = threading.Thread(target=peer.sendall, args=(REQUEST * 500,))
            sending.start()
            left = 500
            while left > 0 and (piece := peer.recv(1 << 20)):
                left -= piece.count(b"HTTP/1.1")
            sending.join()


def test_others_are_answered_beside_floods_without_a_token(tmp_path: Path, figure: Figure):
    with served_program(tmp_path, HEADGATE_LOG_LEVEL="error") as program:
        program.ingest(program.connect(), [line(f"m{n}") for n in range(10)])
        token = program.grant()
        alone = slowest_ms(program, token)
        end = threading.Event()
        floods = [threading.Thread(target=flood, args=(program.address, end)) for _ in range(8)]
        for one in floods:
            one.start()
        beside = slowest_ms(program, token)
        end.set()
        for one in floods:
            one.join()
        figure(
            "floods", f"slowest of 30 answers: {alone:.0f} ms alone, {beside:.0f} ms beside 8 (goal: 200 ms)"
        )
