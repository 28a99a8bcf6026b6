"""What comes to ``/mcp`` of the whole product and should not get in."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import resource
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headgate import wiring
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from tests.mcp.serve.product import Product, product
from tests.on_socket import headgate, serving as started

MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "schema"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield made


def body(**changes: Any) -> bytes:
    params = {"name": "schema", "arguments": {}, "_meta": META}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **changes}
    ).encode()


def post(
    shipped: Product,
    content: bytes | None = None,
    *,
    path: str = "/mcp",
    token: str | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], Any]:
    connection = http.client.HTTPConnection(urlsplit(shipped.address).netloc, timeout=20)
    given = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        **MODERN,
        **({} if token is None else {"Authorization": f"Bearer {token}"}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection.request("POST", path, body() if content is None else content, given)
    answer = connection.getresponse()
    document = answer.read()
    found = {name.lower(): value for name, value in answer.getheaders()}
    connection.close()
    is_json = found.get("content-type", "").startswith("application/json")
    return answer.status, found, json.loads(document) if document and is_json else document


def ask(shipped: Product, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(shipped.address).netloc, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_a_good_call_is_answered(shipped: Product):
    status, found, document = post(shipped, token=shipped.package)
    assert (status, "isError" in document["result"]) == (200, False)
    assert found["request-id"] == document["result"]["structuredContent"]["request_id"]
    assert found["x-pdpp-grant-package-member-count"] == "2"


def test_a_refusal_has_the_request_id_that_the_log_has(shipped: Product):
    params = {"name": "query_records", "arguments": {"stream": "nope"}, "_meta": META}
    status, found, document = post(shipped, body(params=params), token=shipped.mail, Mcp_Name="query_records")
    assert (status, document["result"]["isError"]) == (200, True)
    assert document["result"]["structuredContent"]["request_id"] == found["request-id"]


def test_nothing_else_lies_below_the_address(shipped: Product):
    assert post(shipped, path="/mcp/more", token=shipped.package)[0] == 404


@pytest.mark.requirement("S2-01")
@pytest.mark.hostile("1")
def test_without_a_token_there_is_a_challenge_that_leads_to_metadata(shipped: Product):
    status, found, document = post(shipped)
    assert (status, document["error"]["code"]) == (401, "authentication_error")
    metadata = f"{shipped.address}/.well-known/oauth-protected-resource/mcp"
    assert found["www-authenticate"] == f'Bearer resource_metadata="{metadata}", scope="records:read"'
    _, content = ask(shipped, "GET", urlsplit(metadata).path)
    document = json.loads(content)
    assert document["resource"] == shipped.url
    assert set(re.findall(r'https?://[^"]*/mcp[^"]*', content.decode())) == {shipped.url}
    assert document["authorization_servers"]
    assert "profile" not in json.dumps(document).replace("profile_free", "")


@pytest.mark.hostile("2")
@pytest.mark.parametrize("token", ["x" * 43, "hg_" + "A" * 43, "é", ""])
def test_an_unknown_token_gets_an_answer_that_says_so(shipped: Product, token: str):
    status, _, document = post(shipped, token=token)
    assert status == 401
    assert document["error"]["code"] == "authentication_error"


@pytest.mark.hostile("2", "4")
def test_unknown_tokens_and_tokens_of_another_server_get_the_same_answer(shipped: Product):
    with product(rate_limit="0") as elsewhere:
        assert post(elsewhere, token=elsewhere.mail)[0] == 200
        foreign = elsewhere.mail
    answers = [
        unsigned(post(shipped, token=token)) for token in ("x" * 43, secrets.token_urlsafe(32), foreign)
    ]
    assert answers[0][0] == 401
    assert answers[0] == answers[1] == answers[2]
    status, _ = ask(shipped, "GET", "/v1/schema", Authorization=f"Bearer {foreign}")
    assert status == 401


def unsigned(answer: tuple[int, dict[str, str], Any]) -> tuple[int, str, Any]:
    status, found, document = answer
    document["error"].pop("request_id", None)
    return status, found["www-authenticate"], document


@pytest.mark.hostile("3")
def test_a_grant_that_ended_a_second_ago_has_ended(shipped: Product):
    day = 24 * 3600 * 1_000_000

    async def ended(seconds_ago: int) -> str:
        async with wiring.open_stores(shipped.settings) as stores:
            mails = (shipped.connections["Home mail"], shipped.connections["Work mail"])
            issued = await issue(
                stores.ledger,
                Choice(connection_ids=mails),
                Conditions("agent", days=1),
                catalog=await stores.catalog(),
                now=now() - day - seconds_ago * 1_000_000,
            )
            return issued.access_token

    alive, over = asyncio.run(ended(-3600)), asyncio.run(ended(1))
    assert post(shipped, token=alive)[0] == 200
    status, found, document = post(shipped, token=over)
    assert (status, document["error"]["code"]) == (401, "grant_expired")
    assert 'error="invalid_token"' in found["www-authenticate"]
    status, content = ask(shipped, "GET", "/v1/schema", Authorization=f"Bearer {over}")
    assert (status, json.loads(content)["error"]["code"]) == (403, "grant_expired")


@pytest.mark.hostile("5")
def test_a_token_in_the_address_is_no_token_and_is_not_logged(tmp_path: Path):
    command = ("--home", str(tmp_path / "home"), "owner", "token", "--json")
    token = json.loads(headgate(tmp_path, *command).out)["access_token"]
    with started(tmp_path) as served:
        host = urlsplit(served.address).netloc
        for path in ("/mcp", "/v1/schema"):
            connection = http.client.HTTPConnection(host, timeout=20)
            connection.request(
                "POST" if path == "/mcp" else "GET", f"{path}?access_token={token}", body(), MODERN
            )
            assert connection.getresponse().status == 401
            connection.close()
        served.process.terminate()
        out, logged = served.process.communicate(timeout=20)
    assert "/mcp" in logged
    assert token not in out + logged
    assert "access_token" not in out + logged


@pytest.mark.hostile("64", "T18")
def test_an_owner_is_turned_away(shipped: Product):
    status, _, document = post(shipped, token=shipped.owner)
    assert (status, document["error"]["code"]) == (403, "permission_error")


def test_a_package_reads_and_does_nothing_that_only_the_owner_may(shipped: Product):
    bearer = f"Bearer {shipped.package}"
    assert ask(shipped, "GET", "/v1/schema", Authorization=bearer)[0] == 200
    assert ask(shipped, "POST", "/v1/connections", Authorization=bearer)[0] == 403
    assert ask(shipped, "GET", "/metrics", Authorization=bearer)[0] == 403


@pytest.mark.hostile("6")
def test_two_tokens_are_none(shipped: Product):
    host, port = urlsplit(shipped.address).netloc.split(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        content = body()
        raw.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {shipped.package}\r\n"
            f"Authorization: Bearer {shipped.mail}\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        assert raw.recv(12) in {b"HTTP/1.1 400", b"HTTP/1.1 401"}


@pytest.mark.hostile("8", "9", "10", "11")
@pytest.mark.parametrize(
    ("headers", "expected", "code"),
    [
        ({"Origin": "https://evil.example"}, 403, "permission_error"),
        ({"Origin": "null"}, 403, "permission_error"),
        ({"Host": "evil.example"}, 421, "misdirected_request"),
        ({"Mcp_Name": "fetch"}, 400, -32020),
        ({"MCP_Protocol_Version": "2099-01-01"}, 400, -32022),
    ],
)
def test_strange_headers_are_refused(
    shipped: Product, headers: dict[str, str], expected: int, code: int | str
):
    status, _, document = post(shipped, token=shipped.package, **headers)
    assert (status, document["error"]["code"]) == (expected, code)
    assert "result" not in document


@pytest.mark.hostile("12", "13", "17")
@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"[" + body() + b"]", 400, -32600),
        (b"[" * 200_000, 400, -32700),
        (body(id=None), 400, -32600),
        (b"", 400, -32700),
        (body(method="nope"), 400, -32020),
    ],
)
def test_strange_bodies_are_errors_of_the_protocol(shipped: Product, content: bytes, status: int, code: int):
    answered, _, document = post(shipped, content, token=shipped.package)
    assert (answered, document["error"]["code"]) == (status, code)


@pytest.mark.hostile("13")
def test_a_body_of_nothing_but_brackets_takes_little_memory(shipped: Product):
    post(shipped, b"[" * 200_000, token=shipped.package)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        assert post(shipped, b"[" * 200_000, token=shipped.package)[0] == 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


@pytest.mark.hostile("14")
def test_a_body_of_five_megabytes_is_refused(shipped: Product):
    status, _, document = post(shipped, b" " * 5_000_000, token=shipped.package)
    assert (status, document["error"]["code"]) == (413, "resource_limit")


@pytest.mark.hostile("18")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_there_are_no_sessions_that_could_be_taken_over(shipped: Product, version: str):
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    legacy = {"MCP_Protocol_Version": "2025-11-25"}
    opened = post(shipped, body(method="initialize", params=params), token=shipped.package, **legacy)
    assert opened[0] == 200
    assert "mcp-session-id" not in opened[1]
    taken = {"MCP_Protocol_Version": version, "Mcp_Session_Id": "the-session-of-somebody-else"}
    for token, keys in ((shipped.mail, {"mail"}), (shipped.package, {"mail", "chat"})):
        status, found, document = post(shipped, token=token, **taken)
        assert status in {200, 404}
        assert "mcp-session-id" not in found
        if status == 200:
            connectors = document["result"]["structuredContent"]["data"]["connectors"]
            assert {one["connector_key"] for one in connectors} == keys
    assert post(shipped, **taken)[0] == 401


@pytest.mark.hostile("19")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_open_and_no_session_to_end(shipped: Product, method: str, path: str):
    status, _ = ask(shipped, method, path, Authorization=f"Bearer {shipped.package}", **MODERN)
    assert status == 405


@pytest.mark.hostile("20")
def test_the_other_spelling_is_served_but_not_past_the_door(shipped: Product):
    assert post(shipped, path="/mcp/", token=shipped.package)[0] == 200
    assert post(shipped, path="/mcp/")[0] == 401


@pytest.mark.hostile("7")
def test_a_revoked_grant_ends_with_the_next_request():
    with product(rate_limit="0") as own:
        assert post(own, token=own.mail)[0] == 200
        own.revoke(own.mail)
        status, _, document = post(own, token=own.mail)
        assert (status, document["error"]["code"]) == (401, "grant_revoked")
        own.revoke(own.package)
        status, _, document = post(own, token=own.package)
        assert (status, document["error"]["code"]) == (401, "package_revoked")
