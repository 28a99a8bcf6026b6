"""HTTP on a real socket: answers in one piece and in their order, connections kept and ended as agreed."""

from __future__ import annotations

import itertools
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.web.http import MAX_HEADER_BYTES, MAX_HEADERS
from tests.on_socket import WAIT_SECONDS, headgate, serving

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


class Line:
    """One connection, and what comes back on it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        self._received = b""

    def send(self, content: bytes) -> None:
        self._socket.sendall(content)

    def answer(self, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        while b"\r\n\r\n" not in self._received:
            self._hear()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
        size = int(headers.get("content-length", "0")) if has_body else 0
        while len(self._received) < size:
            self._hear()
        body, self._received = self._received[:size], self._received[size:]
        return int(first.split()[1]), headers, body

    def has_ended(self) -> bool:
        assert self._received == b""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._socket.close()

    def _hear(self) -> None:
        piece = self._socket.recv(65536)
        assert piece, self._received
        self._received += piece


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wire")


@pytest.fixture(scope="module")
def owner(place: Path, port: int) -> bytes:
    """The token of the owner of the home that is served."""
    assert port
    made = headgate(place, "--home", str(place / "home"), "owner", "token", "--json")
    return json.loads(made.out)["access_token"].encode()


@pytest.fixture(scope="module")
def port(place: Path) -> Iterator[int]:
    with serving(place, log=place / "log") as served:
        found = re.search(r":(\d+)$", served.address)
        assert found is not None
        yield int(found[1])


@pytest.fixture
def line(port: int) -> Iterator[Line]:
    made = Line(port)
    yield made
    made.close()


def test_requests_that_are_sent_ahead_are_answered_in_their_order(line: Line):
    names = [f"ahead-{number}" for number in range(20)]
    paths = (b"/healthz", b"/v1/none", b"/openapi.json")
    line.send(
        b"".join(
            b"GET %b HTTP/1.1\r\nHost: localhost\r\nRequest-Id: %b\r\n\r\n"
            % (paths[number % 3], name.encode())
            for number, name in enumerate(names)
        )
    )
    answers = [line.answer() for _ in names]
    assert [headers["request-id"] for _, headers, _ in answers] == names
    assert [status for status, _, _ in answers] == [(200, 404, 200)[number % 3] for number in range(20)]
    assert all(json.loads(body) for _, _, body in answers)


def test_a_head_that_is_asked_for_alone_comes_without_a_body_and_the_connection_goes_on(line: Line):
    line.send(HEALTH.replace(b"GET", b"HEAD") + b"\r\n")
    status, headers, _ = line.answer(has_body=False)
    assert (status, int(headers["content-length"]) > 0) == (200, True)
    line.send(HEALTH + b"\r\n")
    assert json.loads(line.answer()[2])["status"] == "ok"


@pytest.mark.parametrize(
    "request_head",
    [HEALTH + b"Connection: close\r\n\r\n", b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"],
)
def test_a_connection_that_is_not_to_be_kept_ends_with_its_answer(line: Line, request_head: bytes):
    line.send(request_head)
    status, headers, body = line.answer()
    assert (status, json.loads(body)["status"]) == (200, "ok")
    assert headers["connection"] == "close"
    assert line.has_ended()


def test_every_answer_has_the_headers_of_all_answers_once(line: Line):
    paths = (b"/", b"/healthz", b"/v1/schema", b"/v1/none", b"/nothing", b"/mcp", b"/docs", b"/console")
    for path in (*paths, b"/icon.svg", b"/console/sign-in", b"/console/none", b"/openapi.json"):
        line.send(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
        _, headers, _ = line.answer()
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert re.fullmatch(r"req_[0-9a-f]{16}", headers["request-id"])
        assert headers["date"].endswith("GMT")


def test_a_large_body_is_not_taken_for_headers(line: Line):
    body = b"x" * (3 * MAX_HEADER_BYTES)
    head = b"POST /introspect HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    for _ in range(2):
        line.send(head + body)
        assert line.answer()[0] == 401
        # The next head begins in the same piece as nothing of the body, and is small.
        line.send(HEALTH)
        line.send(b"\r\n")
        assert line.answer()[0] == 200


LONG_HEADER = b"X: %b\r\n" % (b"x" * (MAX_HEADER_BYTES // 2))
LENGTH = 2 * MAX_HEADER_BYTES
POST = b"POST /introspect HTTP/1.1\r\nHost: localhost\r\n"
#: What may come before headers in one piece, and how many answers it gets.
BEFORE = {
    "requests": ((HEALTH + LONG_HEADER + b"\r\n") * 4, 4),
    "a body": (POST + b"Content-Length: %d\r\n\r\n%b" % (LENGTH, b"x" * LENGTH), 1),
    "a body in chunks": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (LENGTH, b"x" * LENGTH),
        1,
    ),
}


@pytest.mark.parametrize("kind", BEFORE)
def test_what_comes_before_headers_in_one_piece_is_not_taken_for_headers(line: Line, kind: str):
    content, answers = BEFORE[kind]
    # How much the server reads at once is left to the system; of several times one is a large piece.
    for _ in range(5):
        line.send(content + HEALTH)
        assert {line.answer()[0] for _ in range(answers)} <= {200, 401}
        line.send(b"\r\n")
        assert line.answer()[0] == 200


def test_only_a_proxy_that_the_owner_named_is_believed_about_scheme_and_client(tmp_path: Path):
    forwarded = b"X-Forwarded-Proto: https\r\nX-Forwarded-For: 9.9.9.9\r\n"
    for proxies, scheme in (("", "http"), ("127.0.0.1", "https")):
        with serving(tmp_path, HEADGATE_TRUSTED_PROXIES=proxies) as served:
            line = Line(int(served.address.rpartition(":")[2]))
            line.send(b"GET /v1/schema HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % forwarded)
            status, answered, _ = line.answer()
            assert status == 401
            assert f'resource_metadata="{scheme}://localhost/' in answered["www-authenticate"]
            line.close()


def test_callers_of_the_public_address_use_its_scheme_whatever_the_proxy_says(tmp_path: Path):
    with serving(tmp_path, HEADGATE_PUBLIC_URL="https://records.example.org") as served:
        line = Line(int(served.address.rpartition(":")[2]))
        for host, origin in (
            (b"records.example.org", "https://records.example.org"),
            (b"Records.Example.org", "https://Records.Example.org"),
            (b"localhost", "http://localhost"),
        ):
            path = b"/.well-known/oauth-protected-resource/mcp"
            line.send(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (path, host))
            assert json.loads(line.answer()[2])["resource"] == f"{origin}/mcp"
            # Where a form of the console comes from is compared with it.
            form = b"Origin: %b\r\nContent-Length: 0\r\n" % origin.encode()
            line.send(b"POST /console/sign-in HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (host, form))
            assert b"Pages of that origin" not in line.answer()[2]
        line.close()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://localhost/healthz", 200),
        (b"http://LOCALHOST/healthz", 200),
        (b"http://evil.example/healthz", 400),
        (b"http://localhost@evil.example/healthz", 400),
        (b"http:///healthz", 400),
        (b"HTTP://localhost/healthz", 200),
        (b"ftp://localhost/healthz", 400),
        (b"http://localhost\\@evil.example/healthz", 400),
        (b"http://[::1/healthz", 400),
        (b"localhost:443", 400),
    ],
)
def test_a_target_with_a_host_agrees_with_the_header(line: Line, target: bytes, status: int):
    line.send(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    assert line.answer()[0] == status


@pytest.mark.parametrize(
    "host", [b"evil.example", b"localhost:evil.example", b"127.0.0.1:80@evil.example", b"[::1].evil.example"]
)
def test_a_host_that_is_not_ours_is_refused_at_every_address_and_does_not_come_back(line: Line, host: bytes):
    for request in (
        *(b"GET /v1/schema", b"POST /mcp", b"POST /introspect", b"GET /nothing/here", b"PUT /mcp"),
        *(b"GET /console/sign-in", b"GET /oauth/authorize", b"POST /oauth/token", b"GET /"),
        *(b"GET /.well-known/oauth-protected-resource/mcp", b"OPTIONS /oauth/register"),
    ):
        line.send(b"%b HTTP/1.1\r\nHost: %b\r\nContent-Length: 0\r\n\r\n" % (request, host))
        status, headers, body = line.answer()
        assert (status, json.loads(body)["error"]["code"]) == (421, "misdirected_request"), request
        assert "evil" not in f"{headers} {body}", request


@pytest.mark.parametrize("size", [70_000, 2_000_000])
def test_a_target_that_is_too_long_for_a_head_is_not_read_and_answered_414(line: Line, size: int):
    line.send(b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * size))
    status, headers, _ = line.answer()
    assert (status, headers["connection"]) == (414, "close")
    assert line.has_ended()


LARGE_HEADS = {
    "many": b"".join(b"X%d: 1\r\n" % number for number in range(MAX_HEADERS)),
    "long": b"X: %b\r\n" % (b"a" * MAX_HEADER_BYTES),
    "long in parts": b"".join(b"X%d: %b\r\n" % (n, b"a" * 1024) for n in range(MAX_HEADER_BYTES // 1024)),
}


def asked_for_health(port: int, owner: bytes) -> list[str]:
    """Give what the program counted of requests for its health."""
    line = Line(port)
    line.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % owner)
    _, _, metrics = line.answer()
    line.close()
    return [one for one in metrics.decode().splitlines() if "requests_total" in one and "/healthz" in one]


@pytest.mark.parametrize("kind", LARGE_HEADS)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_request_with_too_large_a_head_is_not_run_alone_or_behind_others(
    line: Line, port: int, owner: bytes, kind: str, before: int
):
    for _ in range(before):
        line.send(HEALTH + b"\r\n")
        assert line.answer()[0] == 200
    counted = asked_for_health(port, owner)
    # What comes behind it is not run either.
    line.send(HEALTH + LARGE_HEADS[kind] + b"\r\n" + HEALTH + b"\r\n")
    assert line.answer()[0] == 431
    assert line.has_ended()
    assert asked_for_health(port, owner) == counted
    assert counted or not before


def test_requests_before_one_with_too_large_a_head_are_answered_first(line: Line):
    line.send((HEALTH + b"\r\n") * 3 + HEALTH + LARGE_HEADS["many"] + b"\r\n")
    assert [line.answer()[0] for _ in range(4)] == [200, 200, 200, 431]
    assert line.has_ended()


def test_every_request_on_a_connection_is_judged_by_its_own_headers(line: Line, owner: bytes):
    heads = {
        b"Host: localhost\r\nAuthorization: Bearer %b\r\n" % owner: 200,
        b"Host: localhost\r\nAuthorization: Bearer hg_other\r\n": 401,
        b"Host: localhost\r\n": 401,
        b"Host: elsewhere.example\r\nAuthorization: Bearer %b\r\n" % owner: 421,
        b"Host: localhost\r\nAuthorization: Bearer %b\r\nOrigin: http://evil.example\r\n" % owner: 403,
        b"Host: localhost\r\nAuthorization: Bearer %b\r\nAuthorization: Bearer x\r\n" % owner: 400,
    }
    for one, other in itertools.permutations(heads, 2):
        for head in (one, one, other, one):
            line.send(b"GET /v1/schema?view=compact HTTP/1.1\r\n%b\r\n" % head)
            assert line.answer()[0] == heads[head], head


def test_every_call_of_a_tool_on_a_connection_is_judged_by_its_own_headers(line: Line, owner: bytes):
    heads = {
        b"Authorization: Bearer %b\r\n" % owner: 403,
        b"Authorization: Bearer hg_other\r\n": 401,
        b"": 401,
    }
    for head in (*heads, *reversed(heads), *heads):
        line.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: 2\r\n\r\n{}" % head)
        assert line.answer()[0] == heads[head], head
    # The same headers, but for a length that is not taken.
    line.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: 9999999\r\n\r\n" % head)
    assert line.answer()[0] == 413


def test_bodies_of_any_length_are_read_whole_behind_the_same_headers(line: Line, owner: bytes):
    head = b"POST /v1/connections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % owner
    for size in (0, 1, 300, 10_000, 300, 5):
        body = b'{"display_name": "x", %b"connector_key": "none%d"}' % (b" " * size, size)
        for way in (b"", b"Expect: 100-continue\r\n", b"Expect: 100-continue\r\n"):
            line.send(head + way + b"Content-Length: %d\r\n\r\n" % len(body))
            if way:
                assert line.answer(has_body=False)[0] == 100
            line.send(body)
            status, _, content = line.answer()
            # What stands at its end was read.
            assert (status, f"'none{size}'" in content.decode()) == (404, True), content


@pytest.mark.parametrize(
    "lengths",
    [b"Content-Length: 2\r\nContent-Length: 2\r\n", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"],
)
def test_a_body_whose_length_is_given_twice_is_refused(line: Line, lengths: bytes):
    line.send(b"POST /introspect HTTP/1.1\r\nHost: localhost\r\n%b\r\n{}" % lengths)
    assert line.answer()[0] == 400
    assert line.has_ended()


def test_what_comes_behind_a_body_is_no_header(line: Line):
    for _ in range(2):
        line.send(
            b"POST /introspect HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\nOrigin: http://evil.example\r\nHost: elsewhere.example\r\n\r\n"
        )
        assert line.answer()[0] == 401
        line.send(HEALTH + b"\r\n")
        assert line.answer()[0] == 200


GARBAGE = {
    "no request": b"\x00\x01 what\r\n\r\n",
    "no method": b"garbage garbage garbage\r\n\r\n",
    "another host": b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a body without a size": POST + b"Transfer-Encoding: chunked\r\n\r\nno size\r\n",
}


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("before", [1, 4])
def test_requests_before_what_is_not_http_are_answered_by_what_they_did(
    line: Line, port: int, owner: bytes, kind: str, before: int
):
    """A request that is run has to be answered as run: a client that reads 400 sends it again."""
    body = b'{"name": "a", "days": 1}'
    head = b"POST /v1/owner/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % owner
    request = head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    line.send(request * before + GARBAGE[kind])
    alone = Line(port)
    alone.send(request)
    expected = alone.answer()[0]
    alone.close()
    assert [line.answer()[0] for _ in range(before + 1)] == [expected] * before + [400]
    assert line.has_ended()


def test_what_is_not_http_ends_the_connection_with_one_answer(line: Line):
    line.send(
        b"POST /v1/connections HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"
    )
    assert line.answer()[0] == 400
    assert line.has_ended()
