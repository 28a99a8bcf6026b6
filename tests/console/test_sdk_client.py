"""The MCP SDK's own OAuth client, from the first 401 through the page of consent to a read, and to the end of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.console.browsers import signed_in
from tests.console.clients import change, query_of
from tests.in_process import local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "schema", "arguments": {}}}
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Storage:
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def test_the_sdks_oauth_client_connects_through_the_page_of_consent_and_is_stopped(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        key = f"{await program.connect('mail', 'Home mail')}/messages"
        browser, storage, opened = await signed_in(program), Storage(), list[str]()
        answer: dict[str, str] = {}

        async def open_page(url: str) -> None:
            opened.append(url)
            begun = await browser.get(url.removeprefix("http://127.0.0.1"))
            assert begun.location is not None
            shown = await browser.get(begun.location)
            shown = await change(browser, begun.location, shown, **{f"pick/{key}": "1"})
            decided = await change(browser, begun.location, shown, decision="approve")
            answer.update(query_of(decided.location))

        async def wait() -> AuthorizationCodeResult:
            return AuthorizationCodeResult(**answer)

        metadata = OAuthClientMetadata(client_name="SDK", redirect_uris=[AnyUrl("http://127.0.0.1:3030/cb")])
        provider = OAuthClientProvider("http://127.0.0.1/mcp", metadata, storage, open_page, wait)
        transport = httpx2.ASGITransport(app=program.app)
        async with httpx2.AsyncClient(transport=transport, auth=provider) as client:

            async def call() -> Any:
                return await client.post("http://127.0.0.1/mcp", content=json.dumps(CALL), headers=HEADERS)

            read = await call()
            assert read.status_code == 200
            assert "messages" in read.text
            assert len(opened) == 1
            assert "resource=http%3A%2F%2F127.0.0.1%2Fmcp" in opened[0]
            # It goes on with its token, and asks the owner again only after the grant has ended.
            await call()
            assert len(opened) == 1
            (issued,) = await program.services.ledger.grants()
            await program.services.ledger.revoke(issued.grant.id, program.clock.at)
            assert storage.tokens is not None
            refused = await program.ask(
                "POST",
                "/mcp",
                storage.tokens.access_token,
                body=json.dumps(CALL).encode(),
                headers=HEADERS.items(),
            )
            assert refused.status == 401
