"""The gateway of a real ``headgate serve``: a remote server goes in at one end and comes out at the other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headgate import wiring
from headgate.errors import CallError, ConfigInvalid
from headgate.home import open_home
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.operations.registration import OperationContext, expose
from headgate.operations.registry import Registry
from headgate.operations.secrets import Capabilities
from headgate.operations.spec import AccessControl
from tests.hostile.server import faulty_server, tool
from tests.mcp.client.importing import until
from tests.mcp.serve.product import settings_for
from tests.peers.test_import_headgate import shown

pytestmark = pytest.mark.anyio

DECLARED = tool("weather", outputSchema={"type": "object", "properties": {"celsius": {"type": "number"}}})
REMOTE: dict[str, Any] = {
    "tools": [DECLARED, tool("fails"), tool("echo")],
    "results": {
        "weather": {"structuredContent": {"celsius": 4.5}, "content": []},
        "fails": {"content": [{"type": "text", "text": "No such city."}], "isError": True},
    },
    "token": "upstream-token-1",
}


def servers_file(folder: Path, url: str) -> Path:
    token = folder / "token"
    token.write_text("upstream-token-1")
    token.chmod(0o600)
    headers = {"Authorization": f"Bearer ${{file:{token}}}"}
    block = {
        "remote": {"type": "http", "url": url, "headers": headers},
        "away": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
        "program": {"command": "npx"},
    }
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": block}))
    return path


async def found(far: Registry) -> list[str]:
    """Search until the server in the background has been imported."""
    async with asyncio.timeout(20):
        while True:
            operations = (await far.call("far/search", {}))["operations"]
            if operations:
                return [operation["id"] for operation in operations]
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_remote_server_is_offered_again_and_its_errors_come_through(era: str, tmp_path: Path):
    async with faulty_server(**REMOTE) as remote:
        file = servers_file(tmp_path, remote.url)
        how = {"HEADGATE_GATEWAY_SERVERS": str(file), "HEADGATE_GATEWAY_CLIENTS": "demo-agent"}
        async with shown(**how) as (address, token):
            options = ImportOptions(era=era)
            url = f"{address}/gateway"
            async with await from_mcp(url, "far", token, options=options) as imported:
                assert [item.local_name for item in imported] == ["search", "schema", "call", "batch", "read"]
                far = Registry(expose(item, access_control=AccessControl()) for item in imported)
                assert await found(far) == ["remote/echo", "remote/fails", "remote/weather"]
                await _answers_come_through(far)
                await _errors_come_through(far)
                await _only_its_clients_see_anything(imported[0], imported[2])
            assert all(
                seen.headers["authorization"] == "Bearer upstream-token-1"
                for seen in remote.calls("tools/call")
            )
            assert not any(token in str(seen.headers) + str(seen.body) for seen in remote.seen)


async def _answers_come_through(far: Registry) -> None:
    described = (await far.call("far/schema", {"operation": "remote/weather", "outputs": True}))["operation"]
    assert described["output_schema"] == DECLARED["outputSchema"]
    answer = await far.call("far/call", {"operation": "remote/weather", "input": {}})
    assert answer == {"output": {"celsius": 4.5}}
    calls = [{"operation": "remote/echo", "input": {"n": 1}}, {"operation": "remote/none", "input": {}}]
    batch = await far.call("far/batch", {"calls": calls})
    assert [entry["isError"] for entry in batch["results"]] == [False, True]


async def _errors_come_through(far: Registry) -> None:
    failed = await far.execute("far/call", {"operation": "remote/fails"})
    assert failed.is_error
    assert failed.data["error"]["code"] == "MCP_TOOL_ERROR"
    assert failed.meta.content == [{"type": "text", "text": "No such city."}]
    for wanted, code in (("remote/none", "NOT_FOUND"), ("away/anything", "NOT_FOUND")):
        with pytest.raises(CallError) as caught:
            await far.call("far/call", {"operation": wanted})
        assert caught.value.details["structuredContent"]["error"]["code"] == code


async def _only_its_clients_see_anything(search: Any, call: Any) -> None:
    for capabilities in (Capabilities(), Capabilities().with_http_token("far", "hg_nobody-has-this")):
        context = OperationContext("r", capabilities=capabilities)
        for handler, value in ((search.handler, {}), (call.handler, {"operation": "remote/echo"})):
            with pytest.raises(CallError) as refused:
                await handler(value, context)
            assert refused.value.code == "MCP_UNAUTHORIZED"


async def test_a_client_that_is_not_named_sees_nothing(tmp_path: Path):
    async with faulty_server(**REMOTE) as remote:
        how = {"HEADGATE_GATEWAY_SERVERS": str(servers_file(tmp_path, remote.url))}
        async with (
            shown(**how, HEADGATE_GATEWAY_CLIENTS="somebody-else") as (address, token),
            await from_mcp(f"{address}/gateway", "far", token) as imported,
        ):
            await until(lambda: remote.calls("tools/list"))
            context = OperationContext("r", capabilities=imported[0].capabilities)
            assert (await imported[0].handler({}, context)).data == {"operations": [], "total": 0}
            refused = await imported[2].handler({"operation": "remote/echo"}, context)
            assert refused.data["error"]["code"] == "NOT_FOUND"
            assert remote.calls("tools/call") == []


async def test_there_is_no_gateway_unless_it_was_asked_for():
    async with shown() as (address, token), httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{address}/gateway", headers={"Authorization": f"Bearer {token}"}, json={})
        assert answer.status_code == 404


async def test_the_door_of_the_gateway_is_as_strict_as_the_others(tmp_path: Path):
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {}}')
    async with (
        shown(HEADGATE_GATEWAY_SERVERS=str(file), HEADGATE_RATE_LIMIT="1") as (address, token),
        httpx2.AsyncClient(trust_env=False) as http,
    ):
        url, bearer = f"{address}/gateway", {"Authorization": f"Bearer {token}"}
        assert (await http.get(url, headers=bearer)).status_code == 405
        assert (await http.delete(url, headers=bearer)).status_code == 405
        assert (await http.post(url, headers={"Host": "evil.example"})).status_code == 421
        assert (await http.post(url, headers={"Origin": "https://evil.example"})).status_code == 403
        statuses = [(await http.post(url, headers=bearer, json={})).status_code for _ in range(6)]
        assert statuses[-1] == 429


@pytest.mark.parametrize("content", [None, "not json", "[]", '{"servers": {}}'])
def test_a_file_that_cannot_be_used_is_named_at_once(content: str | None, tmp_path: Path):
    file = tmp_path / "servers.json"
    if content is not None:
        file.write_text(content)
    settings = settings_for(tmp_path / "home", gateway_servers=str(file))
    with pytest.raises(ConfigInvalid) as caught:
        _ = wiring.build_services(settings, open_home(settings.home)).gateway
    assert str(file) in caught.value.message
    assert caught.value.param == "gateway_servers"
