"""Clients that are known by the address of a document: where it may lie, what it may say, and who connects by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from headgate.auth.oauth.client_documents import ClientDocuments, FetchedDocument
from headgate.auth.oauth.clients import is_document_url
from headgate.errors import AddressBlocked, UpstreamUnreachable
from headgate.mcp.client.documents import fetch_document
from headgate.mcp.client.network import DialOptions
from tests.console.browsers import Browser
from tests.console.clients import Client, approve, open_consent, query_of
from tests.console.granting import make
from tests.in_process import local_program

pytestmark = pytest.mark.anyio
SECOND = 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


#: The clients that are known by a document: its address, what it lists, what they then ask for.
BY_DOCUMENT = {
    "claude.ai": ("https://claude.ai/oauth/mcp-oauth-client-metadata", ["https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"], "https://claude.com/api/mcp/auth_callback", {"resource": "http://127.0.0.1/mcp"}),
    "claude code": ("https://claude.ai/oauth/claude-code-client-metadata", ["http://localhost/callback", "http://127.0.0.1/callback"], "http://localhost:49152/callback", {}),
    "chatgpt": ("https://chatgpt.com/oauth/client.json", ["https://chatgpt.com/connector/oauth/abc"], "https://chatgpt.com/connector/oauth/abc", {"resource": "http://127.0.0.1/mcp"}),
    "vs code": ("https://vscode.dev/oauth/client-metadata.json", ["http://127.0.0.1/", "http://127.0.0.1:33418/", "https://vscode.dev/redirect"], "http://127.0.0.1:61234/", {"resource": "http://127.0.0.1/mcp/"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_DOCUMENT)
async def test_every_client_in_use_connects_by_its_document(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url, registered, redirect, more = BY_DOCUMENT[name]
    document = {"client_id": url, "client_name": name, "redirect_uris": registered, "logo_uri": "https://x"}
    fetched: list[str] = []

    async def fetch(asked: str) -> FetchedDocument:
        fetched.append(asked)
        return FetchedDocument(200, "application/json", "max-age=3600", json.dumps(document).encode())

    monkeypatch.setattr("headgate.mcp.client.documents.fetch_document", fetch)
    async with local_program(tmp_path) as program:
        world, client = await make(program), Client(program, id=url, redirect=redirect)
        # No one but the signed-in owner makes the server call out.
        stranger = await Browser(program).get(client.url(**more))
        assert (stranger.location or "").startswith("/console/sign-in?")
        assert (await client.redeem("hg_x")).body["error"] == "invalid_client"
        assert fetched == []
        _, shown = await open_consent(world.browser, client, **more)
        host = url.split("/")[2]
        assert f"verified {host}" in shown.words
        assert "unverified" not in shown.words
        location = await approve(world.browser, client, world.key, **more)
        assert location.startswith(f"{redirect}?code=")
        token = await client.redeem(query_of(location)["code"], resource=more.get("resource"))
        assert token.status == 200, token.content
        # Parallel sessions share a refresh token, and come back with it minutes later.
        program.clock.at += 465 * SECOND
        again = [await client.refresh(token.body["refresh_token"]) for _ in range(3)]
        assert [one.status for one in again] == [200] * 3
        assert await world.reads(again[0].body["access_token"]) == 200
        assert fetched == [url]


@pytest.mark.hostile("35")
@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/a", "https://[::1]/a", "http://client.example/a", "https://localhost/a",
        "https://x.localhost/a", "https://client.example", "https://client.example:8443/a",
        "https://u@client.example/a", "https://client.example/a#b", "https://client.example/../a",
        "https://2130706433/a",
    ],
)  # fmt: skip
async def test_a_document_at_a_wrong_address_is_never_fetched(url: str):
    async def fetch(_url: str) -> FetchedDocument:
        pytest.fail("it was fetched")

    assert not is_document_url(url)
    assert await ClientDocuments(fetch, lambda: 0).client(url) is None


@pytest.mark.hostile("36")
async def test_a_name_that_leads_to_a_private_address_is_not_called():
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["10.0.0.7", "127.0.0.1", "64:ff9b::7f00:1"]

    with pytest.raises(AddressBlocked):
        await fetch_document("https://client.example/a", DialOptions(resolve=resolve))


@pytest.mark.hostile("36")
async def test_only_the_address_that_was_checked_is_called_whatever_the_name_leads_to_next(
    monkeypatch: pytest.MonkeyPatch,
):
    answers = [["93.184.216.34", "10.0.0.7"], ["127.0.0.1"], ["192.168.0.1"]]
    called: list[str] = []

    async def resolve(_host: str, _port: int) -> list[str]:
        return answers.pop(0)

    async def connect(_self: object, host: str, *_more: object, **_named: object) -> None:
        called.append(host)
        raise httpcore2.ConnectError

    monkeypatch.setattr("httpcore2.AnyIOBackend.connect_tcp", connect)
    for error in (UpstreamUnreachable, AddressBlocked, AddressBlocked):
        with pytest.raises(error):
            await fetch_document("https://client.example/a", DialOptions(resolve=resolve))
    assert called == ["93.184.216.34"]


URL = "https://client.example/mcp.json"
DOCUMENT = {"client_id": URL, "client_name": "Good", "redirect_uris": ["https://client.example/cb"]}


def answered(status: int = 200, kind: str = "application/json", **changes: Any) -> FetchedDocument:
    return FetchedDocument(status, kind, "max-age=600", json.dumps({**DOCUMENT, **changes}).encode())


@pytest.mark.hostile("37")
@pytest.mark.parametrize(
    "found",
    [
        answered(302), answered(404), answered(kind="text/html"), answered(client_id=URL + "x"),
        answered(redirect_uris=[]), answered(redirect_uris="https://client.example/cb"),
        answered(redirect_uris=["javascript:x"]), answered(client_secret="x"), answered(padding="x" * 6000),
        answered(token_endpoint_auth_method="private_key_jwt"), FetchedDocument(200, "application/json", "", b"[]"),
    ],
)  # fmt: skip
async def test_a_document_that_is_not_right_makes_no_client_and_is_not_fetched_again_at_once(
    found: FetchedDocument,
):
    fetched: list[str] = []
    clock = [0]

    async def fetch(url: str) -> FetchedDocument:
        fetched.append(url)
        return found

    documents = ClientDocuments(fetch, lambda: clock[0])
    assert await documents.client(URL) is None
    assert await documents.client(URL) is None
    assert len(fetched) == 1
    clock[0] += 31 * SECOND
    await documents.client(URL)
    assert len(fetched) == 2


async def test_a_client_with_a_document_is_verified_by_its_host_and_remembered_as_its_headers_say():
    fetched: list[str] = []
    clock = [0]

    async def fetch(url: str) -> FetchedDocument:
        fetched.append(url)
        return answered()

    documents = ClientDocuments(fetch, lambda: clock[0])
    client = await documents.client(URL)
    assert client is not None
    assert client.verified_host == "client.example"
    clock[0] += 599 * SECOND
    await documents.client(URL)
    assert len(fetched) == 1
    clock[0] += 2 * SECOND
    await documents.client(URL)
    assert len(fetched) == 2


async def test_where_no_document_can_be_fetched_the_page_says_so_and_clients_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url, registered, redirect, _ = BY_DOCUMENT["claude code"]
    is_offline = True

    async def fetch(asked: str) -> FetchedDocument:
        if is_offline:
            raise UpstreamUnreachable("There is no way out.")
        document = {"client_id": asked, "client_name": "x", "redirect_uris": registered}
        return FetchedDocument(200, "application/json", "", json.dumps(document).encode())

    monkeypatch.setattr("headgate.mcp.client.documents.fetch_document", fetch)
    async with local_program(tmp_path) as program:
        world, client = await make(program), Client(program, id=url, redirect=redirect)

        async def takes_documents() -> bool:
            document = (await program.get("/.well-known/oauth-authorization-server")).body
            return document["client_id_metadata_document_supported"]

        assert await takes_documents()
        shown = await world.browser.get(client.url())
        assert shown.status == 400
        assert "The document at claude.ai" in shown.words
        assert "could not be fetched" in shown.words
        assert "headgate connect" in shown.words
        assert not await takes_documents()
        fresh = Client(program, redirect=redirect)
        assert (await fresh.register(client_name="Claude Code")).status == 201
        assert (await open_consent(world.browser, fresh))[1].status == 200
        is_offline = False
        program.clock.at += 60 * SECOND
        assert (await open_consent(world.browser, client))[1].status == 200
        assert await takes_documents()
        is_offline = True
        program.clock.at += 600 * SECOND
        assert (await world.browser.get(client.url())).status == 400
        assert not await takes_documents()
        program.clock.at += 3601 * SECOND
        assert await takes_documents()
