"""The same read over REST, hosted MCP and stdio gives the same body."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from headgate.auth.credentials import credential_path, home_credential_path, write_token
from headgate.model.plan import HIT_CHARS
from headgate.text.writing import HITS_BYTES, page_bytes
from tests import postgres
from tests.mcp.serve.product import Product, product


def in_database() -> dict[str, str]:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return {"store_url": postgres.database_url(), "store_home": postgres.new_home_name()}


#: The ways in which the program can be set up.
KINDS: Mapping[str, Callable[[], dict[str, str]]] = {"file": dict[str, str], "postgres": in_database}


@pytest.fixture(scope="module", params=list(KINDS))
def shipped(request: pytest.FixtureRequest) -> Iterator[Product]:
    with product(rate_limit="0", **KINDS[request.param]()) as made:
        yield made


def reads(shipped: Product) -> dict[str, tuple[str, dict[str, Any]]]:
    """Addresses, and the tools that read the same."""
    connection = shipped.connections["Home mail"]
    record = f"/v1/streams/messages/records/m00001?connection_id={connection}"
    return {
        "/v1/streams/messages/records?limit=3&count=exact": (
            "query_records",
            {"stream": "messages", "limit": 3, "count": "exact"},
        ),
        "/v1/streams/messages/records?filter[sender]=Aiko+Mori&limit=2": (
            "query_records",
            {"stream": "messages", "filter": {"sender": "Aiko Mori"}, "limit": 2},
        ),
        "/v1/streams/messages/aggregate?metric=count&group_by=sender": (
            "aggregate",
            {"stream": "messages", "metric": "count", "group_by": "sender"},
        ),
        "/v1/streams/messages/aggregate?metric=count&group_by=sender&connector_key=mail": (
            "aggregate",
            {"stream": "messages", "metric": "count", "group_by": "sender", "connector_key": "mail"},
        ),
        "/v1/streams/messages/records?limit=3&connector_key=mail": (
            "query_records",
            {"stream": "messages", "limit": 3, "connector_key": "mail"},
        ),
        "/v1/search?q=bridge&limit=4&connector_key=mail": (
            "search",
            {"q": "bridge", "limit": 4, "connector_key": "mail"},
        ),
        "/v1/search?q=bridge&connector_key=none": ("search", {"q": "bridge", "connector_key": "none"}),
        "/v1/search?q=bridge&limit=4": ("search", {"q": "bridge", "limit": 4}),
        "/v1/schema?view=compact&stream=messages": ("schema", {"stream": "messages"}),
        record + "&fields=nope": ("fetch", {"id": f"{connection}/messages:m00001", "fields": ["nope"]}),
        "/v1/streams/secrets/records": ("query_records", {"stream": "secrets"}),
    }


async def clients(shipped: Product, root: Path, stack: AsyncExitStack) -> dict[str, Client]:
    headers = {"Authorization": f"Bearer {shipped.mail}"}
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, trust_env=False))
    for path in (credential_path(root, shipped.address), home_credential_path(root, shipped.settings.home)):
        write_token(path, shipped.address, {"access_token": shipped.mail}, created_at="2026-01-01T00:00:00Z")
    settings = shipped.settings
    program = ["-m", "headgate", "--home", str(shipped.settings.home), "mcp", "--cache-root", str(root)]
    ways = {
        "hosted": streamable_http_client(shipped.url, http_client=http),
        "stdio": StdioServerParameters(
            command=sys.executable,
            args=program,
            env={
                "HEADGATE_SEMANTIC_MODEL": "off",
                "HEADGATE_STORE_URL": settings.store_url,
                "HEADGATE_STORE_HOME": settings.store_home,
            },
        ),
        "remote": StdioServerParameters(
            command=sys.executable, args=[*program, "--provider-url", shipped.address]
        ),
    }
    return {way: await stack.enter_async_context(Client(how)) for way, how in ways.items()}


@pytest.mark.requirement("S2-06", "S2-14", "S1-33")
def test_every_surface_gives_the_same_body(shipped: Product, tmp_path: Path):
    async def go() -> None:
        async with AsyncExitStack() as stack:
            made = await clients(shipped, tmp_path, stack)
            lists = [await client.list_tools() for client in made.values()]
            assert lists[0].tools == lists[1].tools == lists[2].tools
            for path, (tool, arguments) in reads(shipped).items():
                expected = bare(rest(shipped, path))
                for way, client in made.items():
                    answer = (await client.call_tool(tool, arguments)).structured_content
                    found = bare(answer)
                    assert found == expected, (way, path)

    asyncio.run(go())


def rest(shipped: Product, path: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {shipped.mail}"}
    # The form for models, which the tools ask for as well.
    headers["Prefer"] = f"preview-chars={HIT_CHARS}, page-bytes={page_bytes(10, 10, HITS_BYTES)}"
    answer = httpx2.get(shipped.address + path, headers=headers, trust_env=False)
    body = answer.json()
    return body if "error" in body else {"data": body}


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what names one request, what only MCP adds, and what it shows beside the ids of hits."""
    if "error" in answer:
        return {key: answer["error"][key] for key in ("type", "code", "message")}
    data = answer["data"]
    data.pop("field_capability_legend", None)
    for row in data.get("data", ()):
        for member in ("line", "read", "fetch_id"):
            row.pop(member, None)
    # A cursor holds the second at which it ends.
    cursor, links = data.pop("next_cursor", None), data.pop("links", None)
    assert links is None or bool(cursor) == bool(links.get("next"))
    return {**data, "goes_on": bool(cursor)}
