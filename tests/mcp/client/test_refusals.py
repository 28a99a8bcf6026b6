"""Servers that refuse a token, and tokens that are refused here."""

import asyncio

import pytest

from headgate.errors import AdapterConfigInvalid, AdapterError, CallError
from headgate.mcp.client.from_mcp import from_mcp
from headgate.operations.registration import OperationContext
from headgate.operations.secrets import Capabilities
from tests.hostile.server import LEGACY, MODERN, answers, faulty_server, http
from tests.mcp.client.importing import call, importing

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])


@ERAS
@pytest.mark.parametrize(("status", "code"), [(401, "MCP_UNAUTHORIZED"), (403, "MCP_TRANSPORT_ERROR")])
async def test_a_refusal_keeps_status_challenge_and_the_words_of_the_server(era, status, code):
    token = "canary-5f1d-token"
    challenge = 'Bearer error="insufficient_scope", scope="mail:read"'
    escaped = "".join(f"\\u{ord(character):04x}" for character in token)
    body = f'{{"error": "insufficient_scope", "text": "{token} {escaped}"}}'.encode()
    refusal = answers(http(status, body, www_authenticate=challenge))
    known = {"status": status, "www_authenticate": challenge}
    async with importing(era=era, token=token, faults={"tools/call": refusal}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.code == code
    assert known.items() <= caught.value.details.items()
    words = caught.value.details["server_message"]
    assert words == '{"error": "insufficient_scope", "text": "[REDACTED] [REDACTED]"}'
    async with faulty_server(era=era, faults={"tools/list": refusal}) as server:
        with pytest.raises(AdapterError) as failed:
            await from_mcp(server.url, "ns", token)
    assert {**known, "server_message": words}.items() <= failed.value.details.items()


async def test_a_refusal_whose_words_do_not_end_is_reported_all_the_same():
    async def drips_words(seen, writer):
        writer.write(b"HTTP/1.1 401 No\r\ncontent-length: 1000000\r\n\r\n")
        while True:
            writer.write(b"no " * 1000)
            await writer.drain()
            await asyncio.sleep(0)

    async with importing(faults={"tools/call": drips_words}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.code == "MCP_UNAUTHORIZED"
    assert caught.value.details["server_message"].startswith("no no")
    assert len(caught.value.details["server_message"]) == 500


@pytest.mark.parametrize("token", ["", "a", "1234567"])
async def test_a_token_too_short_to_be_redacted_is_refused_as_configuration(token):
    async with faulty_server() as server:
        with pytest.raises(AdapterConfigInvalid):
            await from_mcp(server.url, "ns", token)
        assert server.seen == []
        async with await from_mcp(server.url, "ns") as imported:
            given = Capabilities().with_http_token("ns", token)
            with pytest.raises(CallError) as caught:
                await imported[0].handler({}, OperationContext("request-1", capabilities=given))
        assert caught.value.code == "ADAPTER_CONFIG"
        assert server.calls("tools/call") == []
