"""The page of consent and the flow around it, from the client's request to the token and its end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.console.browsers import PASSWORD, Browser, signed_in
from tests.console.clients import Client, approve, change, form_of, open_consent, query_of
from tests.in_process import LocalProgram, local_program, record
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "schema", "arguments": {}}}


DAY = 86_400_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class World:
    def __init__(self, program: LocalProgram, connection: str, browser: Browser) -> None:
        self.program, self.connection, self.browser = program, connection, browser
        self.key = f"{connection}/messages"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        await program.ingest(
            connection,
            "messages",
            [record(f"m{n}", body=f"secret {n}", sent_at=f"2026-0{n}-01T00:00:00Z") for n in range(1, 6)],
        )
        yield World(program, connection, await signed_in(program))


async def mcp(program: LocalProgram, token: str | None) -> Any:
    headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
    return await program.ask("POST", "/mcp", token, body=json.dumps(CALL).encode(), headers=headers)


async def test_a_client_is_approved_reads_refreshes_and_is_refused_after_the_owner_revokes(world: World):
    client = Client(world.program)
    await client.register()
    location = await approve(world.browser, client, world.key)
    sent = query_of(location)
    assert location.startswith("https://client.example/callback?")
    assert (sent["state"], sent["iss"]) == ("s1", "http://127.0.0.1")
    issued = await client.redeem(sent["code"])
    assert issued.status == 200, issued.content
    assert issued.headers["cache-control"] == "no-store"
    assert (issued.body["token_type"], issued.body["scope"]) == ("Bearer", "records:read")
    assert (await mcp(world.program, issued.body["access_token"])).status == 200
    renewed = await client.refresh(issued.body["refresh_token"])
    assert (await mcp(world.program, renewed.body["access_token"])).status == 200
    await world.program.services.ledger.revoke(issued.body["grant_id"], world.program.clock.at)
    refused = await mcp(world.program, renewed.body["access_token"])
    assert refused.status == 401
    assert "resource_metadata" in refused.headers["www-authenticate"]
    assert (await client.refresh(renewed.body["refresh_token"])).body["error"] == "invalid_grant"


async def test_nothing_is_chosen_for_a_picker_and_approve_is_off_until_something_is(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    assert "Home mail" in shown.words
    assert not [name for name in form_of(shown) if name.startswith("pick/")]
    assert 'value="approve" disabled' in shown.text
    assert "self-registered, unverified" in shown.words
    assert "client.example" in shown.words
    forced = await change(world.browser, path, shown, decision="approve")
    assert forced.status == 200
    assert not await world.program.services.ledger.grants()


async def test_the_page_counts_dates_samples_and_strikes_out_what_is_withheld(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"})
    assert "5 records, 1 Jan 2026 to 1 May 2026" in shown.words
    assert "<s>" not in shown.text
    fields = [one for one in form_of(shown)[f"fields/{world.key}"] if one != "body"]
    shown = await change(world.browser, path, shown, **{f"fields/{world.key}": fields})
    assert "<s>secret 5</s>" in shown.text
    narrowed = {f"time/{world.key}": "since", f"since/{world.key}": "2026-04-01"}
    shown = await change(world.browser, path, shown, **narrowed)
    assert "2 records, 1 Apr 2026 to 1 May 2026; only from 1 Apr 2026 on" in shown.words
    decided = await change(world.browser, path, shown, decision="approve")
    (issued,) = await world.program.services.ledger.grants()
    assert decided.status == 303
    assert "body" not in issued.grant.streams[0].fields
    time = issued.grant.streams[0].time
    assert time is not None
    assert time.since == 1_775_001_600_000_000


async def test_an_approval_of_anything_else_than_what_was_shown_is_refused_and_shown_first(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"})
    for other in ({"days": "365"}, {f"time/{world.key}": "90"}, {"daily_records": "5"}, {"review": ""}):
        stale = await change(world.browser, path, shown, decision="approve", **other)
        assert stale.status == 200
        assert "differs from what you last saw" in stale.words
    assert not await world.program.services.ledger.grants()
    again = await change(world.browser, path, stale, decision="approve")
    assert again.status == 303


async def test_an_approval_of_a_new_client_on_a_page_that_was_open_too_long_needs_the_password_again(
    world: World,
):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"})
    world.program.clock.at += 301 * 1_000_000
    late = await change(world.browser, path, shown, decision="approve")
    assert (late.status, late.location) == (303, f"/console/confirm?next={quote(path, safe='')}")
    assert not await world.program.services.ledger.grants()
    await world.browser.post("/console/confirm", password=PASSWORD, next=path)
    shown = await change(world.browser, path, await world.browser.get(path), **{f"pick/{world.key}": "1"})
    approved = await change(world.browser, path, shown, decision="approve")
    assert "code=" in (approved.location or "")


async def test_neither_the_use_of_a_session_nor_a_wrong_password_is_a_new_sign_in(world: World):
    client = Client(world.program)
    await client.register()
    # Longer than a use goes unnoted.
    world.program.clock.at += 11 * 60 * 1_000_000
    begun = await world.browser.get(client.url())
    path = begun.location or ""
    confirm = f"/console/confirm?next={quote(path, safe='')}"
    for _ in range(2):
        assert (await world.browser.get(path)).location == confirm
    assert (await world.browser.post("/console/confirm", password="wrong", next=path)).status == 401
    assert (await world.browser.get(path)).location == confirm
    picked = {f"pick/{world.key}": "1", "decision": "approve"}
    assert (await world.browser.post(path, **picked)).location == confirm
    assert not await world.program.services.ledger.grants()
    assert (await world.browser.post("/console/confirm", password=PASSWORD, next=path)).location == path
    assert (await world.browser.get(path)).status == 200


async def test_a_denial_goes_back_to_the_client_with_state_and_issuer_and_grants_nothing(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    denied = await change(world.browser, path, shown, decision="deny")
    sent = query_of(denied.location)
    assert (sent["error"], sent["state"], sent["iss"]) == ("access_denied", "s1", "http://127.0.0.1")
    assert not await world.program.services.ledger.grants()
    # Once decided, it is decided.
    assert (await change(world.browser, path, shown, decision="approve")).status == 404


async def test_a_precise_request_shows_exactly_what_was_asked_and_cannot_be_widened(world: World):
    client = Client(world.program)
    await client.register()
    source = world.program.services.reads
    (found,) = (await source.catalog()).declarations.values()
    detail = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": found.source_id},
        "access_mode": "single_use",
        "purpose_description": "Find <b>invoices</b>",
        "streams": [{"name": "messages", "fields": ["id", "sent_at"], "time_range": {"since": "2026-03-01"}}],
    }
    path, shown = await open_consent(world.browser, client, authorization_details=json.dumps([detail]))
    form = form_of(shown)
    assert form[f"pick/{world.key}"] == ["1"]
    assert form["access_mode"] == ["single_use"]
    assert "3 records" in shown.words
    assert "Find &lt;b&gt;invoices&lt;/b&gt;" in shown.text
    wider = {f"fields/{world.key}": ["id", "sent_at", "body"], f"time/{world.key}": "365"}
    shown = await change(world.browser, path, shown, **wider)
    decided = await change(world.browser, path, shown, decision="approve")
    (issued,) = await world.program.services.ledger.grants()
    assert "body" not in issued.grant.streams[0].fields
    assert issued.grant.streams[0].time is not None
    assert issued.grant.streams[0].time.since == 1_772_323_200_000_000
    token = (await client.redeem(query_of(decided.location)["code"])).body
    assert "refresh_token" not in token
    assert token["authorization_details"][0]["streams"][0]["name"] == "messages"
    assert (await mcp(world.program, token["access_token"])).status == 200


@pytest.mark.parametrize(
    ("chosen", "days", "mode", "daily"),
    [
        ({}, 30, "continuous", None),
        ({"days": "revoked"}, None, "continuous", None),
        ({"days": "7", "daily_records": "5"}, 7, "continuous", 5),
        ({"access_mode": "single_use"}, 30, "single_use", None),
    ],
)
async def test_a_grant_lasts_and_allows_what_the_owner_chose(
    world: World, chosen: dict[str, str], days: int | None, mode: str, daily: int | None
):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"}, **chosen)
    done = await change(world.browser, path, shown, decision="approve")
    issued = await client.redeem(query_of(done.location)["code"])
    (made,) = await world.program.services.ledger.grants()
    lasts = None if made.grant.expires_at is None else made.grant.expires_at - made.grant.issued_at
    assert (lasts, made.grant.access_mode, made.daily_records) == (days and days * DAY, mode, daily)
    # What is for one use has nothing to come back with.
    assert ("refresh_token" in issued.body) is (mode == "continuous")


async def test_presets_narrow_the_picked_streams(world: World):
    client = Client(world.program)
    await client.register()
    path, shown = await open_consent(world.browser, client)
    shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"}, preset="no_bodies")
    assert "body" not in form_of(shown)[f"fields/{world.key}"]
    shown = await change(world.browser, path, shown, preset="last_90_days")
    assert form_of(shown)[f"time/{world.key}"] == ["90"]


@pytest.mark.hostile("38", "39", "40")
async def test_the_page_is_not_framed_its_form_needs_its_key_and_session_and_names_are_escaped(world: World):
    client = Client(world.program, redirect="http://127.0.0.1:7777/cb")
    await client.register(client_name="<script>alert(1)</script>\u202e" + "x" * 5000)
    path, shown = await open_consent(world.browser, client)
    policy = shown.header("content-security-policy")
    assert policy is not None
    assert "frame-ancestors 'none'" in policy
    # Chromium applies form-action to the redirect that the approval ends in.
    assert "form-action" not in policy
    assert (shown.header("x-frame-options"), shown.header("cache-control")) == ("DENY", "no-store")
    assert "<script>alert" not in shown.text
    assert "&lt;script&gt;" in shown.text
    assert "x" * 81 not in shown.text
    assert "\u202e" not in shown.text
    assert "unverified" in shown.words
    assert "the computer this browser runs on" in shown.words
    form = {**form_of(shown), f"pick/{world.key}": ["1"], "decision": ["deny"]}
    forged = await world.browser.post(path, **{**form, "form_key": "0" * 64})
    assert forged.status == 403
    crossed = await world.browser.post(path, ("sec-fetch-site", "cross-site"), **form)
    assert crossed.status == 403
    other = Browser(world.program)
    assert (await other.get(path)).location is not None
    assert (await change(world.browser, path, shown, decision="deny")).status == 303


async def test_a_browser_that_is_not_signed_in_signs_in_first_and_comes_back(world: World):
    client = Client(world.program)
    await client.register()
    stranger = Browser(world.program)
    asked = await stranger.get(client.url())
    assert asked.location is not None
    assert asked.location.startswith("/console/sign-in?next=%2Foauth%2Fauthorize%3F")


async def test_a_device_waits_until_the_owner_types_its_code_and_approves(world: World):
    program, client = world.program, Client(world.program)
    kind = "urn:ietf:params:oauth:grant-type:device_code"
    answer = await client.register(grant_types=[kind, "refresh_token"], redirect_uris=[])
    assert answer.status == 201, answer.content
    begun = await program.ask("POST", "/oauth/device_authorization", body=f"client_id={client.id}".encode())
    assert begun.status == 200, begun.content
    device = begun.body["device_code"]

    async def poll() -> Any:
        program.clock.at += 6_000_000
        return await client.token(grant_type=kind, device_code=device)

    assert (await poll()).body["error"] == "authorization_pending"
    assert (await client.token(grant_type=kind, device_code=device)).body["error"] == "slow_down"
    found = await world.browser.post("/oauth/device", user_code=begun.body["user_code"].lower())
    assert found.location is not None
    shown = await world.browser.get(found.location)
    shown = await change(world.browser, found.location, shown, **{f"pick/{world.key}": "1"})
    assert (await change(world.browser, found.location, shown, decision="approve")).status == 200
    token = await poll()
    assert (await mcp(program, token.body["access_token"])).status == 200
    assert (await poll()).body["error"] == "invalid_grant"


async def test_a_device_is_refused_when_the_owner_denies_or_its_code_has_ended(world: World):
    client, kind = Client(world.program), "urn:ietf:params:oauth:grant-type:device_code"
    await client.register(grant_types=[kind])

    async def begin() -> dict[str, Any]:
        body = f"client_id={client.id}".encode()
        return (await world.program.ask("POST", "/oauth/device_authorization", body=body)).body

    denied = await begin()
    found = await world.browser.post("/oauth/device", user_code=denied["user_code"])
    assert found.location is not None
    await world.browser.get(found.location)
    done = await world.browser.post(found.location, decision="deny")
    assert "You denied the request." in done.words
    answer = await client.token(grant_type=kind, device_code=denied["device_code"])
    assert answer.body["error"] == "access_denied"
    late = await begin()
    world.program.clock.at += 601 * 1_000_000
    assert (await world.browser.post("/oauth/device", user_code=late["user_code"])).status == 404
    answer = await client.token(grant_type=kind, device_code=late["device_code"])
    assert answer.body["error"] == "expired_token"
    assert not await world.program.services.ledger.grants()


@pytest.mark.parametrize("last", ["approve", "deny"])
async def test_a_device_that_is_open_in_two_tabs_is_decided_once(world: World, last: str):
    client, kind = Client(world.program), "urn:ietf:params:oauth:grant-type:device_code"
    await client.register(grant_types=[kind])
    body = f"client_id={client.id}".encode()
    begun = (await world.program.ask("POST", "/oauth/device_authorization", body=body)).body
    tabs = [await world.browser.post("/oauth/device", user_code=begun["user_code"]) for _ in range(2)]
    statuses: list[int] = []
    for path, decision in zip([str(tab.location) for tab in tabs], ("approve", last), strict=True):
        shown = await world.browser.get(path)
        shown = await change(world.browser, path, shown, **{f"pick/{world.key}": "1"})
        statuses.append((await change(world.browser, path, shown, decision=decision)).status)
    assert statuses == [200, 404]
    (issued,) = await world.program.services.ledger.grants()
    token = (await client.token(grant_type=kind, device_code=begun["device_code"])).body["access_token"]
    assert (await world.program.services.admission.admit(token, "")).grant_ids == (issued.grant.id,)


@pytest.mark.parametrize("between", ["", " ", "\N{EN DASH}", "\N{NO-BREAK SPACE}-\N{NO-BREAK SPACE}"])
async def test_a_device_code_is_found_however_it_is_typed(world: World, between: str):
    client = Client(world.program)
    await client.register(grant_types=["urn:ietf:params:oauth:grant-type:device_code"])
    body = f"client_id={client.id}".encode()
    begun = (await world.program.ask("POST", "/oauth/device_authorization", body=body)).body
    typed = begun["user_code"].lower().replace("-", between)
    assert (await world.browser.post("/oauth/device", user_code=f" {typed} ")).status == 303
    assert (await world.browser.post("/oauth/device", user_code=typed[:-1])).status == 404


async def test_only_a_client_that_registered_for_devices_gets_their_codes(world: World):
    client = Client(world.program)
    await client.register()
    body = f"client_id={client.id}".encode()
    refused = await world.program.ask("POST", "/oauth/device_authorization", body=body)
    assert (refused.status, refused.body["error"]) == (400, "unauthorized_client")
    await client.register(grant_types=["urn:ietf:params:oauth:grant-type:device_code"])
    elsewhere = f"client_id={client.id}&resource=https://evil.example".encode()
    refused = await world.program.ask("POST", "/oauth/device_authorization", body=elsewhere)
    assert refused.body["error"] == "invalid_target"
