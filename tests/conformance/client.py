"""What the conformance suite runs as "the client": ``from_mcp`` and its operations only.

Getting a token is not the import's duty but the assembling program's, so the scenarios on authorization put
the SDK's OAuth client under ``from_mcp`` as its injected transport.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from headgate.errors import OperationError
from headgate.mcp.client.from_mcp import ImportedOperations, ImportOptions, from_mcp
from headgate.mcp.client.questions import Question, Reply
from headgate.operations.registration import HandlerRegistration, OperationContext
from tests.peers.serving import sample

CALLBACK = "http://localhost:3000/callback"
ECHO = "json_schema_echo"
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def run_scenario(asked: dict[str, str]) -> None:
    """Run one scenario."""
    url, scenario = asked["URL"], asked.get("SCENARIO", "")
    context = json.loads(asked.get("CONTEXT") or "{}")
    modern = asked.get("PROTOCOL_VERSION", "") >= "2026-07-28"
    http = SignedIn(url, context) if scenario.startswith("auth/") else None
    options = ImportOptions(on_bad_tool="skip", era="modern" if modern else "legacy")
    try:
        async with await from_mcp(url, "conformance", http=http, answer=agrees, options=options) as imported:
            await call_all(imported, context)
    finally:
        if http is not None:
            await http.aclose()


async def agrees(question: Question) -> Reply:
    """Accept, and leave every value to its default."""
    return Reply.accept()


async def call_all(imported: ImportedOperations, context: dict[str, Any]) -> None:
    tools = {registration.local_name: registration for registration in imported}
    planned = context.get("toolCalls") or [
        {"name": name, "arguments": sample(tool.input_schema)} for name, tool in tools.items()
    ]
    if ECHO in tools:
        # The scenario wants the schema of the other tool back, exactly as it was imported.
        others = [tool.input_schema for name, tool in tools.items() if name != ECHO]
        planned = [{"name": ECHO, "arguments": {"schema": schema}} for schema in others]
    for call in planned:
        with contextlib.suppress(OperationError):
            await run(tools[call["name"]], call["arguments"])


async def run(tool: HandlerRegistration, arguments: Any) -> None:
    await tool.handler(arguments, OperationContext(str(uuid.uuid4()), capabilities=tool.capabilities))


class Memory:
    """Holds the SDK's token and registration in memory."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.token: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class SignedIn(httpx2.AsyncBaseTransport):
    """A transport that gets a token when the server demands one; the owner always consents."""

    def __init__(self, url: str, context: dict[str, Any]) -> None:
        self._location = ""
        registered = context.get("client_id")
        known = (
            None
            if registered is None
            else OAuthClientInformationFull(
                client_id=registered,
                client_secret=context.get("client_secret"),
                redirect_uris=[CALLBACK],
                token_endpoint_auth_method="client_secret_basic" if context.get("client_secret") else "none",
            )
        )
        self._client = httpx2.AsyncClient(
            auth=OAuthClientProvider(
                server_url=url,
                client_metadata=OAuthClientMetadata(
                    client_name="headgate",
                    redirect_uris=[CALLBACK],
                    grant_types=["authorization_code", "refresh_token"],
                ),
                storage=Memory(known),
                redirect_handler=self._visit,
                callback_handler=self._returned,
                client_metadata_url=CLIENT_DOCUMENT,
            ),
            trust_env=False,
            timeout=30,
            # The suite speaks plain http; settings for TLS would only take time to make.
            verify=False,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _visit(self, address: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=False) as browser:
            self._location = (await browser.get(address, follow_redirects=False)).headers.get("location", "")

    async def _returned(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self._location).query)
        return AuthorizationCodeResult(
            code=query["code"][0], state=query.get("state", [None])[0], iss=query.get("iss", [None])[0]
        )
