"""F19: those who send slowly or never read are cut off, and the others do not notice."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headgate.web import http
from tests.conftest import Figure
from tests.on_socket import MAIL, ServedProgram, line, served_program_alone

#: The server's own patience, and some for a busy machine.
PATIENCE = http.RECEIVE_SECONDS + 15
LONG_PATIENCE = http.SEND_SECONDS + 30


def dial(served: ServedProgram, sent: str) -> socket.socket:
    place = urlsplit(served.address)
    made = socket.socket()
    # A receiver that takes little, so that an answer which is not read soon has nowhere to go.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((place.hostname, place.port))
    made.sendall(sent.replace("HOST", place.netloc).encode())
    return made


def is_over(one: socket.socket) -> bool:
    """Say whether the other side has hung up on somebody who was not answered."""
    try:
        return one.recv(65536, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def wait_for_the_end(
    slow: list[socket.socket], served: ServedProgram, token: str
) -> tuple[float, list[float]]:
    """Wait until all are cut off, while another asks on; gives how long that took, and its answers."""
    begun, answers = time.monotonic(), list[float]()
    left, watch = list(slow), select.poll()
    for one in slow:
        watch.register(one, select.POLLIN)
    while left and time.monotonic() - begun < PATIENCE:
        asked = time.monotonic()
        assert served.ask("GET", f"{MAIL}?limit=5", token).status == 200
        answers.append(time.monotonic() - asked)
        watch.poll(50)
        left = [one for one in left if not is_over(one)]
    assert left == []
    return time.monotonic() - begun, answers


def p99_ms(seconds: list[float]) -> float:
    return round(sorted(seconds)[len(seconds) * 99 // 100] * 1000, 1)


def loiter(place: Path, heads: int, bodies: int, figure: Figure) -> None:
    with served_program_alone(place, HEADGATE_LOG_LEVEL="warning") as served, contextlib.ExitStack() as stack:
        served.ingest(served.connect(), [line(f"m{n}") for n in range(10)])
        token = served.grant()
        alone = [0.0] * 200
        for n in range(200):
            asked = time.monotonic()
            served.ask("GET", f"{MAIL}?limit=5", token)
            alone[n] = time.monotonic() - asked
        head = "GET /v1/streams HTTP/1.1\r\nHost: HOST\r\n"
        body = f"POST /v1/blobs HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {served.owner}\r\nContent-Length: 9\r\n\r\n1"
        slow = [stack.enter_context(dial(served, head)) for _ in range(heads)]
        slow += [stack.enter_context(dial(served, body)) for _ in range(bodies)]
        memory = served.memory_mib()
        seconds, answers = wait_for_the_end(slow, served, token)
        figures = {
            "half_headers": heads, "one_byte_bodies": bodies, "all_closed_after_s": round(seconds, 1),
            "others_asked": len(answers), "others_p99_ms": p99_ms(answers), "alone_p99_ms": p99_ms(alone),
            "grown_mib": round(served.memory_mib() - memory, 1),
        }  # fmt: skip
        figure("F19", json.dumps(figures))
        assert served.ask("GET", MAIL, token).status == 200


def test_half_requests_are_cut_off_while_others_are_answered(tmp_path: Path, figure: Figure):
    loiter(tmp_path, 200, 50, figure)


@pytest.mark.soak
def test_a_thousand_half_requests_are_cut_off_while_others_are_answered(tmp_path: Path, figure: Figure):
    loiter(tmp_path, 1000, 200, figure)


@pytest.mark.soak
def test_those_who_never_read_their_answers_are_cut_off(tmp_path: Path, figure: Figure):
    with (
        served_program_alone(tmp_path, HEADGATE_LOG_LEVEL="warning") as served,
        contextlib.ExitStack() as stack,
    ):
        served.ingest(served.connect(), [line(f"m{n}", body="long " * 20_000) for n in range(100)])
        token = served.grant()
        before = served.open_files()
        ask = f"GET {MAIL}?limit=100 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {token}\r\n\r\n"
        for _ in range(20):
            stack.enter_context(dial(served, ask))
        begun = time.monotonic()
        assert served.ask("GET", f"{MAIL}?limit=1&fields=id", token).status == 200
        assert served.open_files() >= before + 20
        while served.open_files() > before and time.monotonic() - begun < LONG_PATIENCE:
            assert served.ask("GET", f"{MAIL}?limit=1&fields=id", token).status == 200
        figure("F19", f"20 who never read were cut off after {time.monotonic() - begun:.1f} s")
        assert served.open_files() <= before
