"""The authorization server under hostile and clumsy clients: registration, redirects, codes, refresh, documents."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from headgate.audit.activity import all_entries, read_event
from headgate.auth.clients import add_owner_client
from headgate.auth.oauth.service import server_metadata
from headgate.errors import InvalidClientMetadata
from tests.console.browsers import PASSWORD, Browser
from tests.console.clients import CHALLENGE, VERIFIER, Client, approve, change, open_consent, query_of
from tests.console.granting import World, make
from tests.in_process import local_program

pytestmark = pytest.mark.anyio
SECOND = 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with local_program(tmp_path) as program:
        yield await make(program)


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[World]:
    async with local_program(tmp_path, refresh_window="0") as program:
        yield await make(program)


@pytest.mark.parametrize(
    "path", ["oauth-authorization-server", "oauth-authorization-server/mcp", "openid-configuration"]
)
async def test_the_metadata_is_the_same_everywhere_and_every_address_in_it_answers(world: World, path: str):
    answer = await world.program.get(f"/.well-known/{path}")
    document = answer.body
    assert document == server_metadata("http://127.0.0.1")
    resource = (await world.program.get("/.well-known/oauth-protected-resource/mcp")).body
    assert resource["authorization_servers"] == [document["issuer"]]
    for name, address in document.items():
        if name.endswith("_endpoint"):
            method = "GET" if name == "authorization_endpoint" else "POST"
            found = await world.program.ask(method, address.removeprefix("http://127.0.0.1"), body=b"")
            assert found.status not in {404, 405, 500}, name
    assert {"none"} <= set(document["token_endpoint_auth_methods_supported"])
    assert "plain" not in document["code_challenge_methods_supported"]


def test_authlib_accepts_the_metadata_of_a_public_server():
    AuthorizationServerMetadata(server_metadata("https://data.example")).validate()


@pytest.mark.hostile("21", "22")
@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http://evil.example/cb",
        "https://user@good.example/cb", "https://1.2.3.4/cb", "https://0x7f.1/cb", "https://[::1]/cb",
        "https://a.example/cb#f", "http://localhost.evil.example/cb", "http://127.0.0.1@evil.example/",
        "https://good.example\\@evil.example/", "https://a.example/\ncb", "cursor://other/callback", "https://",
        "http://127.0.0.1:123456/", "https://a.example/" + "x" * 600,
    ],
)  # fmt: skip
async def test_a_redirect_that_is_neither_https_nor_loopback_is_not_registered(world: World, uri: str):
    answer = await Client(world.program, redirect=uri).register()
    assert (answer.status, answer.body["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.hostile("22")
async def test_a_look_alike_registers_and_the_page_shows_its_real_host(world: World):
    client = Client(world.program, redirect="https://claude.ai.evil.example/cb")
    assert (await client.register(client_name="Claude")).status == 201
    _, shown = await open_consent(world.browser, client)
    assert "Answer goes to claude.ai.evil.example" in shown.words
    assert "unverified" in shown.words


#: What the clients in use register, and what they then ask for.
CLIENTS = {
    "claude.ai": ("https://claude.ai/api/mcp/auth_callback", "https://claude.ai/api/mcp/auth_callback", {}),
    "claude code": ("http://localhost/callback", "http://localhost:54212/callback", {"resource": "http://127.0.0.1/"}),
    "claude code, no resource": ("http://127.0.0.1/callback", "http://127.0.0.1:1024/callback", {}),
    "chatgpt": ("https://chatgpt.com/connector/oauth/abc", "https://chatgpt.com/connector/oauth/abc", {"resource": "http://127.0.0.1/mcp"}),
    "vs code": ("http://127.0.0.1:33418/", "http://127.0.0.1:50111/", {"resource": "http://127.0.0.1/mcp/"}),
    "vs code, web": ("https://vscode.dev/redirect", "https://vscode.dev/redirect", {}),
    "cursor": ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback", {"resource": "http://127.0.0.1"}),
    "cursor, local": ("http://localhost:8787/callback", "http://localhost:8787/callback", {"scope": "records:read offline_access openid"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CLIENTS)
async def test_every_client_in_use_connects(world: World, name: str):
    registered, redirect, more = CLIENTS[name]
    client = Client(world.program, redirect=registered)
    assert (await client.register(token_endpoint_auth_method="none")).status == 201
    client.redirect = redirect
    location = await approve(world.browser, client, world.key, **more)
    assert location.startswith(f"{redirect}?code=")
    token = await client.redeem(query_of(location)["code"], resource=more.get("resource"), client_secret="")
    assert token.status == 200, token.content
    # Refreshing, some leave the resource out.
    assert (await client.refresh(token.body["refresh_token"])).status == 200


@pytest.mark.hostile("23", "24", "25")
@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        ("http://127.0.0.1/", "http://localhost:5555/"),
        ("http://127.0.0.1/", "http://127.0.0.1:5555/other"),
        ("http://127.0.0.1/", "https://127.0.0.1/"),
        ("https://a.example/cb", "https://a.example/cb?x=1"),
        ("https://a.example/cb", "https://a.example:8443/cb"),
        ("https://a.example/cb", "https://a.example/cb/"),
        ("https://a.example/cb", "https://A.example/cb"),
        ("https://a.example/cb", "https://a.example/cb\"'<>"),
        ("https://a.example/cb", None),
    ],
)
async def test_a_redirect_that_differs_is_answered_with_a_page_and_no_redirect(
    world: World, registered: str, requested: str | None
):
    client = Client(world.program, redirect=registered)
    await client.register(redirect_uris=[registered, "https://second.example/"])
    shown = await world.browser.get(client.url(redirect_uri=requested))
    assert (shown.status, shown.location) == (400, None)
    unknown = await world.browser.get(client.url(client_id="<b>cli_none"))
    assert (unknown.status, unknown.location) == (400, None)
    assert "<b>cli" not in unknown.text


@pytest.mark.hostile("27", "45")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": 'code\u2028" id_token'}, "unsupported_response_type"),
        ({"prompt": "none"}, "interaction_required"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": ["http://127.0.0.1/mcp", "https://evil.example/"]}, "invalid_target"),
        ({"code_challenge": [CHALLENGE, CHALLENGE]}, "invalid_request"),
        ({"request_uri": "https://x.example/"}, "request_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"authorization_details": "{"}, "invalid_authorization_details"),
        ({"authorization_details": '[{"type":"x","source":{"id":"https://a.example/"}}]'}, "invalid_authorization_details"),
    ],
)  # fmt: skip
async def test_a_wrong_request_goes_back_with_an_error_the_state_and_the_issuer(
    world: World, changes: dict[str, Any], error: str
):
    client = Client(world.program)
    await client.register()
    sent = query_of((await world.browser.get(client.url(**changes))).location)
    assert (sent["error"], sent["state"], sent["iss"]) == (error, "s1", "http://127.0.0.1")
    assert "code" not in sent


@pytest.mark.hostile("26")
async def test_an_unknown_client_at_the_token_endpoint_is_answered_with_401(world: World):
    client = Client(world.program, id="cli_unknown")
    answer = await client.redeem("hg_x")
    assert (answer.status, answer.body["error"]) == (401, "invalid_client")
    for header in ("Basic \xff", "Basic " + base64.b64encode(b"\xff:x").decode(), "Bearer hg_x"):
        odd = await client.token(headers=[("authorization", header)], grant_type="refresh_token")
        assert (odd.status, odd.body["error"]) == (401, "invalid_client")


@pytest.mark.hostile("28")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 64}, "invalid_grant"),
        ({"code_verifier": "v" * 42}, "invalid_request"),
        ({"code_verifier": "v" * 129}, "invalid_request"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "https://client.example/other"}, "invalid_grant"),
    ],
)
async def test_a_wrong_verifier_or_redirect_uses_the_code_up(
    world: World, changes: dict[str, Any], error: str
):
    client = Client(world.program)
    await client.register()
    code = await world.code(client)
    assert (await client.redeem(code, **changes)).body["error"] == error
    assert (await client.redeem(code)).body["error"] == "invalid_grant"


@pytest.mark.hostile("28")
async def test_a_code_that_is_used_twice_ends_what_the_first_use_produced(world: World):
    client = Client(world.program)
    await client.register()
    code = await world.code(client)
    first = (await client.redeem(code)).body
    assert await world.reads(first["access_token"]) == 200
    assert (await client.redeem(code)).body["error"] == "invalid_grant"
    assert await world.reads(first["access_token"]) == 401
    assert (await client.refresh(first["refresh_token"])).body["error"] == "invalid_grant"


@pytest.mark.hostile("29", "30")
async def test_a_code_of_another_client_or_too_old_is_refused_and_one_in_time_works(world: World):
    client, other = Client(world.program), Client(world.program)
    await client.register()
    await other.register(client_name="Other")
    assert (await other.redeem(await world.code(client))).body["error"] == "invalid_grant"
    code = await world.code(client)
    world.program.clock.at += 61 * SECOND
    assert (await client.redeem(code)).body["error"] == "invalid_grant"
    code = await world.code(client)
    world.program.clock.at += 59 * SECOND
    assert (await client.redeem(code)).status == 200


@pytest.mark.hostile("30")
async def test_of_twenty_parallel_redemptions_of_a_code_one_succeeds(world: World):
    client = Client(world.program)
    await client.register()
    code = await world.code(client)
    answers = await asyncio.gather(*(client.redeem(code) for _ in range(20)))
    good = [one for one in answers if one.status == 200]
    print(f"20 parallel redemptions: {len(good)} success")  # noqa: T201 - the figure is read in the output
    assert len(good) == 1
    # The others were a second use, which ends it all.
    assert await world.reads(good[0].body["access_token"]) == 401


@pytest.mark.hostile("31")
async def test_a_refresh_token_may_be_used_again_within_the_window_and_not_after_it(world: World):
    client, first = await world.connected()
    second = (await client.refresh(first["refresh_token"])).body
    world.program.clock.at += 599 * SECOND
    sibling = await client.refresh(first["refresh_token"])
    assert sibling.status == 200
    # The window counts from the first use; a repetition does not extend it.
    world.program.clock.at += 2 * SECOND
    assert (await client.refresh(first["refresh_token"])).body["error"] == "invalid_grant"
    for token in (second, sibling.body):
        assert await world.reads(token["access_token"]) == 401
        assert (await client.refresh(token["refresh_token"])).body["error"] == "invalid_grant"
    # The owner sees it in the log, under the client's name.
    await world.program.services.pump.flush()
    events = [read_event(one) async for one in all_entries(world.program.services.ledger)]
    noted = [(one.client_id, one.outcome) for one in events if one.via == "POST /oauth/token"]
    assert noted == [(client.id, "refresh_token_reused")]


@pytest.mark.hostile("31")
async def test_with_strict_rotation_any_second_use_ends_the_session(strict: World):
    client, first = await strict.connected()
    assert first["expires_in"] == 12 * 3600
    second = (await client.refresh(first["refresh_token"])).body
    assert (await client.refresh(first["refresh_token"])).body["error"] == "invalid_grant"
    assert await strict.reads(second["access_token"]) == 401


@pytest.mark.hostile("32")
async def test_of_fifty_parallel_refreshes_all_succeed_in_the_window(world: World):
    client, first = await world.connected()
    answers = await asyncio.gather(*(client.refresh(first["refresh_token"]) for _ in range(50)))
    print(f"50 parallel refreshes, window: {sum(one.status == 200 for one in answers)} successes")  # noqa: T201 - the figure is read in the output
    assert [one.status for one in answers] == [200] * 50
    assert len({one.body["refresh_token"] for one in answers}) == 50
    await world.program.ask(
        "POST", "/oauth/revoke", body=f"client_id={client.id}&token={first['access_token']}".encode()
    )
    assert {await world.reads(one.body["access_token"]) for one in answers} == {401}


@pytest.mark.hostile("32")
async def test_of_fifty_parallel_refreshes_one_succeeds_with_strict_rotation_and_nothing_lives_on(
    strict: World,
):
    client, first = await strict.connected()
    answers = await asyncio.gather(*(client.refresh(first["refresh_token"]) for _ in range(50)))
    good = [one for one in answers if one.status == 200]
    print(f"50 parallel refreshes, strict: {len(good)} success")  # noqa: T201 - the figure is read in the output
    assert len(good) == 1
    assert await strict.reads(good[0].body["access_token"]) == 401


@pytest.mark.hostile("33")
async def test_a_refresh_cannot_widen_scope_or_resource(world: World):
    client, first = await world.connected()
    wider = await client.refresh(first["refresh_token"], scope="records:read offline_access")
    assert wider.body["error"] == "invalid_scope"
    elsewhere = await client.refresh(first["refresh_token"], resource="https://evil.example/mcp")
    assert elsewhere.body["error"] == "invalid_target"
    assert (await client.refresh(first["refresh_token"], scope="records:read")).status == 200


async def test_a_refresh_token_of_another_client_is_refused_and_not_used_up(world: World):
    client, first = await world.connected()
    other = Client(world.program)
    await other.register(client_name="Other")
    assert (await other.refresh(first["refresh_token"])).body["error"] == "invalid_grant"
    assert (await client.refresh(first["refresh_token"])).status == 200


@pytest.mark.hostile("34")
async def test_a_repeated_parameter_or_two_ways_to_authenticate_are_refused(world: World):
    client, first = await world.connected(token_endpoint_auth_method="client_secret_basic")
    answer = await client.token(grant_type=["refresh_token", "refresh_token"], refresh_token="x")
    assert (answer.status, answer.body["error"]) == (400, "invalid_request")
    basic = base64.b64encode(f"{client.id}:{client.secret}".encode()).decode()
    twice = await client.refresh(
        "x", client_secret=client.secret, headers=[("authorization", f"Basic {basic}")]
    )
    assert twice.body["error"] == "invalid_request"
    assert first["error"] == "invalid_client"


async def test_a_client_with_a_secret_is_known_by_it_in_the_header_or_the_body(world: World):
    client = Client(world.program)
    await client.register(token_endpoint_auth_method="client_secret_post")
    code = await world.code(client)
    basic = base64.b64encode(f"{client.id}:{client.secret}".encode()).decode()
    issued = await client.redeem(code, client_id=None, headers=[("authorization", f"Basic {basic}")])
    assert issued.status == 200, issued.content
    token = issued.body["refresh_token"]
    assert (await client.refresh(token, client_secret="wrong")).status == 401
    assert (await client.refresh(token, client_secret=client.secret)).status == 200


async def test_a_client_that_the_owner_registered_connects_with_its_secret(world: World):
    store = world.program.services.oauth_store
    with pytest.raises(InvalidClientMetadata):
        await add_owner_client(store, "Mine", ["http://evil.example/"], now=1, has_secret=False)
    uris = ["https://client.example/callback"]
    made, secret = await add_owner_client(store, "Mine", uris, now=1, has_secret=True)
    client = Client(world.program, id=made.id)
    _, shown = await open_consent(world.browser, client)
    assert "registered by you" in shown.words
    code = await world.code(client)
    assert (await client.redeem(code, client_secret=secret)).status == 200


async def test_a_client_that_registers_itself_never_passes_for_one_that_the_owner_registered(world: World):
    client = Client(world.program)
    uris = [client.redirect]
    store = world.program.services.oauth_store
    made, _ = await add_owner_client(store, "Test client", uris, now=1, has_secret=False)
    await client.register()
    assert client.id != made.id
    _, shown = await open_consent(world.browser, client)
    assert "self-registered, unverified" in shown.words


async def test_a_client_ends_its_own_tokens_and_no_others(world: World):
    client, first = await world.connected()
    other = Client(world.program)
    await other.register(client_name="Other")

    async def revoke(by: Client, token: str) -> int:
        body = f"client_id={by.id}&token={token}".encode()
        return (await world.program.ask("POST", "/oauth/revoke", body=body)).status

    assert await revoke(other, first["access_token"]) == 400
    assert await revoke(client, "hg_unknown") == 200
    assert await world.reads(first["access_token"]) == 200
    assert await revoke(client, first["refresh_token"]) == 200
    assert await world.reads(first["access_token"]) == 401
    assert [one.revoked_at is None for one in await world.program.services.ledger.grants()] == [False]


@pytest.mark.hostile("39")
async def test_a_request_is_decided_by_the_session_that_opened_it_and_once(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"})
    other = Browser(world.program)
    await other.post("/console/sign-in", password=PASSWORD)
    await other.get("/console/confirm")
    assert (await other.get(path)).status == 404
    assert (await change(other, path, shown, decision="approve")).status == 404
    answers = await asyncio.gather(
        *(change(world.browser, path, shown, decision="approve") for _ in range(20))
    )
    codes = [one for one in answers if one.status == 303]
    print(f"20 parallel approvals: {len(codes)} code")  # noqa: T201 - the figure is read in the output
    assert len(codes) == 1
    assert len(await world.program.services.ledger.grants()) == 1


@pytest.mark.hostile("35", "41", "44")
async def test_a_flood_of_registrations_is_slowed_down_and_clients_in_use_go_on(world: World):
    client, first = await world.connected()
    statuses: list[int] = []
    for number in range(40):
        answer = await Client(world.program).register(client_name=f"Flood {number}")
        statuses.append(answer.status)
    assert statuses.count(429) > 0
    assert statuses.count(201) <= 16
    assert answer.headers["retry-after"] == "60"
    # The address of the connection counts, whatever a header claims.
    forged = [("x-forwarded-for", "203.0.113.9"), ("x-forwarded-host", "evil.example")]
    body = json.dumps({"redirect_uris": ["https://a.example/"]}).encode()
    assert (await world.program.ask("POST", "/oauth/register", body=body, headers=forged)).status == 429
    document = (await world.program.get("/.well-known/oauth-authorization-server", headers=forged)).body
    assert document["issuer"] == "http://127.0.0.1"
    assert (await client.refresh(first["refresh_token"])).status == 200


async def test_registering_the_same_twice_gives_the_same_client_and_too_much_is_refused(world: World):
    one, two = Client(world.program), Client(world.program)
    await one.register()
    await two.register()
    assert one.id == two.id
    many = [f"https://a.example/{n}" for n in range(11)]
    assert (await one.register(redirect_uris=many)).body["error"] == "invalid_redirect_uri"
    large = await world.program.ask("POST", "/oauth/register", body=b"x" * 20_000)
    assert large.status == 413
    for body in (b"[]", b"{", b"\xff"):
        odd = await world.program.ask("POST", "/oauth/register", body=body)
        assert (odd.status, odd.body["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/oauth/token", {"grant_type": "authorization_code", "code": "guessed", "code_verifier": VERIFIER}),
        ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": "guessed"}),
        ("/oauth/token", {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"}),
        ("/oauth/token", {"grant_type": "authorization_code", "client_id": "cli_unknown", "code": "x"}),
        ("/oauth/revoke", {"token": "guessed"}),
    ],
)
async def test_what_cannot_succeed_does_not_wait_for_the_writer_and_is_limited(
    world: World, path: str, form: dict[str, str]
):
    client, _ = await world.connected()
    writing, done = threading.Event(), threading.Event()

    def hold(_rows: Any) -> None:
        writing.set()
        assert done.wait(60)

    busy = asyncio.create_task(world.program.services.oauth_store.change(hold))
    await asyncio.to_thread(writing.wait, 60)
    body = urlencode({"client_id": client.id, **form}).encode()
    try:
        async with asyncio.timeout(30):
            answers = [await world.program.ask("POST", path, body=body) for _ in range(250)]
            shown = await Browser(world.program).get(client.url())
    finally:
        done.set()
        await busy
    statuses = {one.status for one in answers[:150]}
    assert 429 not in statuses
    assert statuses <= ({200} if path == "/oauth/revoke" else {400, 401})
    assert answers[-1].status == 429
    assert shown.status == 429, "authorization requests count too"
    world.program.clock.at += 60_000_000
    assert str((await Browser(world.program).get(client.url())).location).startswith("/console/sign-in")
