"""Both directions meet: a real ``headgate serve``, imported with ``from_mcp`` and called through a registry."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate import wiring
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from headgate.errors import CallError, Unauthorized
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.operations.envelope import McpMeta
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl, OutputKind
from tests.mcp.serve.product import settings_for
from tests.on_socket import serving
from tests.peers.journeys import (
    NAMES,
    PeerResult,
    finds_its_way_out_of_ambiguity,
    lists_exactly_six,
    pages_by_text,
    reads_a_long_field_by_structure,
    reads_a_long_field_by_text,
)
from tests.stitched import fill

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


@asynccontextmanager
async def shown(*flags: str, **environment: str) -> AsyncIterator[tuple[str, str]]:
    """Run ``headgate serve`` in a process on stitched records; yield its address and a token for all of them."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "home"
        token = await _filled(home)
        settings = {"HEADGATE_RATE_LIMIT": "0", "HEADGATE_LOG_LEVEL": "error", **environment}
        with serving(Path(directory), *flags, **settings) as served:
            yield served.address, token


async def _filled(home: Path) -> str:
    async with wiring.open_stores(settings_for(home)) as stores:
        await fill(stores.store)
        conditions = Conditions("demo-agent")
        issued = await issue(stores.ledger, Choice(), conditions, catalog=await stores.catalog(), now=now())
        return issued.access_token


class OperationsPeer:
    """The operations of an import, as a client that goes on journeys."""

    def __init__(self, registry: Registry, names: list[str]) -> None:
        self._registry = registry
        self._names = names

    async def tools(self) -> list[str]:
        return self._names

    async def call(self, tool: str, **arguments: Any) -> PeerResult:
        envelope = await self._registry.execute(f"own/{tool}", arguments)
        assert isinstance(envelope.meta, McpMeta)
        assert envelope.issues == ()
        return PeerResult(envelope.meta.content[0]["text"], envelope.data, envelope.is_error)

    async def read(self, uri: str) -> str:
        raise NotImplementedError(uri)


@ERAS
async def test_the_six_tools_of_headgate_are_imported_and_each_is_called(era: str):
    async with shown() as (address, token):
        options = ImportOptions(era=era)
        async with await from_mcp(f"{address}/mcp", "own", token, options=options) as imported:
            assert [item.local_name for item in imported] == NAMES
            assert {item.output_kind for item in imported} == {OutputKind.DECLARED}
            assert imported.skipped == ()
            registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
            await _each_is_called(registry)
            peer = OperationsPeer(registry, [item.local_name for item in imported])
            for journey in (
                lists_exactly_six,
                pages_by_text,
                reads_a_long_field_by_text,
                reads_a_long_field_by_structure,
                finds_its_way_out_of_ambiguity,
            ):
                await journey(peer)
            await _errors_are_typed(registry)
        with pytest.raises(Unauthorized):
            await from_mcp(f"{address}/mcp", "own", "hg_nobody-has-this-token", options=options)


async def _each_is_called(registry: Registry) -> None:
    schema = await registry.call("own/schema", {})
    assert "messages" in str(schema)
    found = await registry.call("own/search", {"query": "minutes", "limit": 3})
    first = found["results"][0]
    opened = await registry.call("own/fetch", {"id": first["id"]})
    assert opened["id"] == first["id"]
    place = {"id": first["id"], **first["match_windows"][0]["read"]["args"]}
    assert found["content_ladder"]["read_tool"] == "read_record_field"
    window = await registry.call("own/read_record_field", place)
    assert "minutes" in window["window"]["text"].lower()
    with pytest.raises(CallError) as caught:
        await registry.call("own/query_records", {"stream": "messages", "limit": 2})
    connection = caught.value.details["structuredContent"]["error"]["available_connections"][0]
    place = {"stream": "messages", "connection_id": connection["connection_id"]}
    page = await registry.call("own/query_records", {**place, "limit": 2})
    assert len(page["data"]["data"]) == 2
    count = await registry.call("own/aggregate", {**place, "metric": "count"})
    assert count["data"]["value"] > 2


async def _errors_are_typed(registry: Registry) -> None:
    """A tool's refusal is its result; input that breaks the tool's schema is never sent."""
    envelope = await registry.execute("own/fetch", {"id": "no such id"})
    assert envelope.is_error
    assert envelope.error is not None
    assert envelope.error.code == "MCP_TOOL_ERROR"
    assert envelope.data["error"]["code"]
    with pytest.raises(CallError) as caught:
        await registry.execute("own/search", {"limit": 10_000})
    assert caught.value.code == "INVALID_INPUT"
