from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from headgate.mcp.serve.tools import INSTRUCTIONS, TOOLS
from tests.mcp.serve.hosting import ask, hosted, hosted_on_a_socket
from tests.mcp.serve.prepared import CountingPort, found, hit, page, record, window

MODES = ["legacy", "2026-07-28", "auto"]


def port() -> CountingPort:
    return CountingPort(
        schema={"object": "schema", "connectors": []},
        records=page(record(), has_more=True, next_cursor="pg1.x"),
        record=record(),
        window=window("text", start=5),
        aggregate={"object": "aggregation", "stream": "messages", "metric": "count", "value": 4},
        search=found(hit()),
    )


@pytest.mark.requirement("S2-06", "S2-10")
@pytest.mark.parametrize("mode", MODES)
def test_a_real_client_of_each_era_lists_and_calls_all_six(mode: str):
    async def go(address: str) -> None:
        headers = {"Authorization": "Bearer client"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [tool["name"] for tool in TOOLS]
            sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
            assert [tool["inputSchema"] for tool in sent] == [tool["inputSchema"] for tool in TOOLS]
            # A client that is pinned to a version asks for nothing before it calls.
            assert client.instructions == (None if mode == "2026-07-28" else INSTRUCTIONS)
            for name, arguments in ALL_SIX.items():
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                assert result.content[0].text
                assert result.structured_content
            templates = await client.list_resource_templates()
            assert len(templates.resource_templates) == 4
            uri = (
                await client.call_tool("read_record_field", ALL_SIX["read_record_field"])
            ).structured_content
            read = await client.read_resource(uri["resource"]["next_uri"])
            assert "text" in read.contents[0].text

    with hosted_on_a_socket(port()) as address:
        asyncio.run(go(address))


ALL_SIX: dict[str, dict[str, Any]] = {
    "schema": {},
    "query_records": {"stream": "messages"},
    "aggregate": {"stream": "messages", "metric": "count"},
    "search": {"q": "bridge"},
    "fetch": {"id": "cin_a/messages:m1"},
    "read_record_field": {"id": "cin_a/messages:m1", "field_path": "text", "offset_chars": 5},
}


def request(method: str = "tools/list", **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def headers(**changes: str | None) -> list[tuple[bytes, bytes]]:
    given: dict[str, str | None] = {
        "host": "gate.example",
        "authorization": "Bearer client",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return [(name.encode(), value.encode()) for name, value in given.items() if value is not None]


HttpAnswer = tuple[int, dict[str, str], Any]


@pytest.fixture
def post() -> Callable[..., HttpAnswer]:
    """Give a function that sends one request, to a server in process."""

    def send(
        given: list[tuple[bytes, bytes]],
        *,
        method: str = "POST",
        body: bytes | None = None,
        through: CountingPort | None = None,
    ) -> HttpAnswer:
        async def go() -> HttpAnswer:
            app = hosted(through or port(), "http://gate.example")
            async with app.running():
                content = request() if body is None else body
                status, found, answer = await ask(app, content, given, method=method)
            return status, found, json.loads(answer) if answer else None

        return asyncio.run(go())

    return send


METADATA = "http://gate.example/.well-known/oauth-protected-resource/mcp"


@pytest.mark.parametrize(
    "given",
    [
        headers(authorization=None),
        headers(authorization="Bearer unknown"),
        headers(authorization="Basic client"),
        headers(authorization="client"),
        headers(authorization="Bearer "),
        headers(authorization="Bearer revoked"),
    ],
)
def test_without_a_valid_token_there_is_a_challenge_and_no_read(
    post: Callable[..., HttpAnswer], given: list[tuple[bytes, bytes]]
):
    through = port()
    status, found, answer = post(given, through=through)
    assert status == 401
    assert found["www-authenticate"].startswith(
        f'Bearer resource_metadata="{METADATA}", scope="records:read"'
    )
    assert answer["error"]["resource_metadata"] == METADATA
    assert answer["error"]["type"] == "authentication_error"
    assert through.calls == []


def test_two_tokens_are_refused_and_nothing_is_read(post: Callable[..., HttpAnswer]):
    through = port()
    assert post([*headers(), (b"authorization", b"Bearer client")], through=through)[0] == 400
    assert through.calls == []


def test_the_challenge_without_a_token_names_no_error(post: Callable[..., HttpAnswer]):
    assert "error=" not in post(headers(authorization=None))[1]["www-authenticate"]
    assert 'error="invalid_token"' in post(headers(authorization="Bearer unknown"))[1]["www-authenticate"]


@pytest.mark.requirement("S2-16", "S2-17", "S2-18")
def test_an_owners_token_is_refused_and_nothing_is_processed(post: Callable[..., HttpAnswer]):
    through = port()
    body = request("tools/call", name="schema", arguments={})
    status, _, answer = post(headers(authorization="Bearer owner"), body=body, through=through)
    assert (status, answer["error"]["code"]) == (403, "permission_error")
    assert "result" not in answer
    assert through.calls == []


def test_a_package_without_members_is_challenged_to_ask_the_owner_again(post: Callable[..., HttpAnswer]):
    status, found, answer = post(headers(authorization="Bearer empty"))
    assert (status, answer["error"]["code"]) == (401, "package_revoked")
    assert 'error_description="package_revoked"' in found["www-authenticate"]


def test_a_package_is_named_in_the_answer(post: Callable[..., HttpAnswer]):
    status, found, _ = post(headers(authorization="Bearer package"))
    assert status == 200
    assert found["x-pdpp-grant-package-id"] == "pkg_1"
    assert found["link"] == '<http://gate.example/icon.svg>; rel="icon"; type="image/svg+xml"'


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_only_posts_are_answered(post: Callable[..., HttpAnswer], method: str):
    status, found, _ = post(headers(), method=method)
    assert (status, found["allow"]) == (405, "POST")


def test_a_body_that_is_too_large_is_not_read(post: Callable[..., HttpAnswer]):
    assert post(headers(content_length=str(5_000_000)))[0] == 413


def test_a_token_over_its_rate_gets_the_time_to_wait(post: Callable[..., HttpAnswer]):
    status, found, _ = post(headers(authorization="Bearer hasty"))
    assert (status, found["retry-after"]) == (429, "1")


@pytest.mark.parametrize(
    ("body", "changes", "status", "code"),
    [
        (b"[" * 200_000, {}, 400, -32700),
        (b"[" * 200_000, {"mcp_protocol_version": "2026-07-28"}, 400, -32700),
        (b"[" + request() + b"]", {"mcp_protocol_version": "2026-07-28"}, 400, -32600),
        (request(), {"mcp_protocol_version": "2099-01-01", "mcp_method": "tools/list"}, 400, -32022),
    ],
)
def test_broken_messages_are_errors_of_the_protocol(
    post: Callable[..., HttpAnswer], body: bytes, changes: dict[str, str], status: int, code: int
):
    answered, _, answer = post(headers(**changes), body=body)
    assert (answered, answer["error"]["code"]) == (status, code)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_both_spellings_of_the_address_are_served_without_a_redirect(path: str):
    with hosted_on_a_socket(port()) as address:
        given = {name.decode(): value.decode() for name, value in headers() if name != b"host"}
        answer = httpx2.post(address + path, content=request(), headers=given, trust_env=False)
        assert answer.status_code == 200
        assert len(answer.json()["result"]["tools"]) == 6
        without = httpx2.post(address + path, content=request(), trust_env=False)
        assert without.status_code == 401


def test_a_get_is_answered_at_once():
    with (
        hosted_on_a_socket(port()) as address,
        socket.create_connection(("127.0.0.1", int(address[17:]))) as raw,
    ):
        raw.settimeout(5)
        raw.sendall(f"GET /mcp HTTP/1.1\r\nHost: {address[7:]}\r\nAccept: text/event-stream\r\n\r\n".encode())
        assert b"405" in raw.recv(100)


def test_a_resource_that_is_not_there_is_an_error_with_its_uri(post: Callable[..., HttpAnswer]):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = request("resources/read", uri="pdpp://record/nope", _meta=meta)
    given = headers(
        mcp_protocol_version="2026-07-28", mcp_method="resources/read", mcp_name="pdpp://record/nope"
    )
    _, _, answer = post(given, body=body)
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["uri"] == "pdpp://record/nope"
    assert answer["error"]["data"]["error"]["code"] == "invalid_resource_uri"


def test_what_is_cached_is_private(post: Callable[..., HttpAnswer]):
    _, _, answer = post(
        headers(mcp_protocol_version="2026-07-28", mcp_method="tools/list"),
        body=request(
            _meta={
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        ),
    )
    assert answer["result"]["cacheScope"] == "private"
    assert answer["result"]["ttlMs"] > 0


IDS = [
    *((fit, 200) for fit in ("1", '"a"', "-1", "0", "9007199254740993", json.dumps("x" * 256), json.dumps("世" * 256))),
    *((unfit, 400) for unfit in ("1.5", "null", "true", "[]", "{}", "1e400", "9" * 30, json.dumps("x" * 257))),
]  # fmt: skip


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize(("written", "status"), IDS)
def test_an_id_is_a_short_text_or_an_integer_in_every_era(written: str, status: int, version: str):
    params: dict[str, Any] = {"name": "schema", "arguments": {}}
    headers = [
        *((b"host", b"gate.example"), (b"authorization", b"Bearer client"), (b"content-type", b"application/json")),
        *((b"accept", b"application/json, text/event-stream"), (b"mcp-protocol-version", version.encode())),
    ]  # fmt: skip
    if version == "2026-07-28":
        headers += [(b"mcp-method", b"tools/call"), (b"mcp-name", b"schema")]
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}
    body = f'{{"jsonrpc":"2.0","id":{written},"method":"tools/call","params":{json.dumps(params)}}}'.encode()

    async def go() -> None:
        app = hosted(port(), "http://gate.example")
        async with app.running():
            answered, _, content = await ask(app, body, [*headers, (b"content-length", b"%d" % len(body))])
        assert answered == status
        assert ("result" in json.loads(content)) == (status == 200)
        # A refused id does not come back.
        assert status == 200 or len(content) < 200

    asyncio.run(go())


def test_a_body_beyond_the_limit_is_refused_with_a_code_also_without_a_length():
    headers = [
        *((b"host", b"gate.example"), (b"authorization", b"Bearer client"), (b"content-type", b"application/json")),
        *((b"accept", b"application/json, text/event-stream"), (b"transfer-encoding", b"chunked")),
    ]  # fmt: skip

    async def go() -> None:
        app = hosted(port(), "http://gate.example")
        async with app.running():
            status, _, content = await ask(app, b" " * (4 * 1024 * 1024 + 1), headers)
        assert (status, json.loads(content)["error"]["code"]) == (413, "resource_limit")

    asyncio.run(go())
