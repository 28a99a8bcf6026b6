"""Whatever a peer sends after an answer, the connection is answered on or closed: it never stays open for nothing."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

#: Long after every limit of the server below, also on a busy machine.
WAIT_SECONDS = 30
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SERVER = """
from headgate.web import http, server
http.RECEIVE_SECONDS = 0.3
http.SEND_SECONDS = 0.3
server._KEEP_ALIVE_SECONDS = 1
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
bound = server.listen("127.0.0.1", 0)
server.serve(app, bound, lambda: print(bound.getsockname()[1], flush=True))
"""
#: Pieces of what HTTP is made of, and anything.
PIECES = st.one_of(
    st.sampled_from(
        (
            b"\r\n", b"\n", b"\r", b" ", b"\0", b"G", b"GET", b"GET / HTTP/1.1\r\n", b"Host: x\r\n", b"Host", REQUEST,
            b"POST / HTTP/1.1\r\nHost: x\r\n", b"Content-Length: 5\r\n\r\n", b"Content-Length: 5\r\n\r\nabcde", b"abc",
            b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n", b"ffffffff\r\n",
            b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Expect: 100-continue\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00", b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n",
        )
    ),
    st.binary(max_size=20),
)  # fmt: skip
SENT = st.lists(PIECES, min_size=1, max_size=6)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def answered(port: int) -> socket.socket:
    """Open a connection on which a request was answered."""
    made = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
    made.sendall(REQUEST)
    received = b""
    while not received.endswith(b"ok"):
        received += made.recv(1000)
    return made


def send(one: socket.socket, pieces: list[bytes]) -> None:
    try:
        for piece in pieces:
            one.sendall(piece)
    except ConnectionError:
        # It has hung up already.
        return


def is_over(one: socket.socket) -> bool:
    try:
        return one.recv(65536) == b""
    except ConnectionError:
        return True


def left_open(connections: dict[socket.socket, list[bytes]]) -> list[list[bytes]]:
    """Wait for the ends; gives what was sent on connections that have none."""
    end = time.monotonic() + WAIT_SECONDS
    while connections and (left := end - time.monotonic()) > 0:
        for one in select.select(list(connections), [], [], left)[0]:
            if is_over(one):
                del connections[one]
                one.close()
    return list(connections.values())


# A failure waits as long as a server may: it is not made smaller.
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(st.lists(SENT, min_size=20, max_size=20))
def test_no_bytes_after_an_answer_hold_a_connection_open(port: int, sequences: list[list[bytes]]):
    connections = {answered(port): pieces for pieces in sequences}
    for one, pieces in connections.items():
        send(one, pieces)
    assert left_open(connections) == []
