"""Passkeys over HTTP: who may add one, what signs in, and every wrong answer that does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headgate.audit.activity import all_entries, read_event
from headgate.auth.passkeys import PasskeyParty, passkey_names
from headgate.auth.sessions import fresh_link
from tests.console.browsers import PASSWORD, Browser, Shown, signed_in
from tests.console.clients import Client
from tests.console.passkeys import FLAG, Authenticator, options_in
from tests.in_process import LocalProgram, local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
MINUTE = 60 * 1_000_000
HOST = "localhost:8321"
ORIGIN = f"http://{HOST}"
SIGN_IN, ADD, CONFIRM = "/console/sign-in", "/console/settings/passkeys", "/console/confirm"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        yield made


async def owner_of(program: LocalProgram) -> Browser:
    browser = await signed_in(program)
    browser.host = HOST
    return browser


async def options_at(browser: Browser, path: str) -> dict[str, Any]:
    found = options_in((await browser.get(path)).text)
    assert found is not None
    return found


async def with_passkey(program: LocalProgram) -> tuple[Browser, Authenticator]:
    browser, device = await owner_of(program), Authenticator(ORIGIN, "localhost")
    answer = device.make(await options_at(browser, "/console/settings"))
    added = await browser.post(ADD, name="Phone", answer=answer)
    assert added.location == "/console/settings?done=passkey", added.words
    return browser, device


async def sign_in(program: LocalProgram, device: Authenticator, **more: Any) -> Shown:
    browser = Browser(program, host=HOST, **more)
    return await browser.post(f"{SIGN_IN}/passkey", answer=device.sign(await options_at(browser, SIGN_IN)))


async def refusals(program: LocalProgram) -> list[tuple[str, str]]:
    await program.services.pump.flush()
    events = [read_event(one) async for one in all_entries(program.services.ledger)]
    return [(one.via, one.outcome) for one in events if one.outcome != "answered"]


async def test_the_owner_adds_a_passkey_signs_in_with_it_and_removes_it(program: LocalProgram):
    browser, device = await with_passkey(program)
    shown = await browser.get("/console/settings")
    assert "Phone" in shown.words
    stranger = Browser(program, host=HOST)
    answer = device.sign(await options_at(stranger, SIGN_IN))
    signed = await stranger.post(f"{SIGN_IN}/passkey", answer=answer, next="/console/data")
    assert (signed.status, signed.location) == (303, "/console/data")
    assert (await stranger.get("/console/data")).status == 200
    (known,) = await program.services.ledger.owner.passkeys()
    assert (known.name, known.party, known.uses) == ("Phone", "localhost", 1)
    mark = shown.text.partition("/console/settings/passkeys/")[2].partition("/")[0]
    assert (await browser.post(f"{ADD}/{mark}/remove")).status == 303
    assert options_in((await Browser(program, host=HOST).get(SIGN_IN)).text) is None
    assert (await sign_in_again(program, device, answer)).status == 401


async def sign_in_again(program: LocalProgram, _device: Authenticator, answer: str) -> Shown:
    return await Browser(program, host=HOST).post(f"{SIGN_IN}/passkey", answer=answer)


@pytest.mark.hostile("43")
async def test_a_passkey_used_without_verifying_the_user_is_refused_and_logged(program: LocalProgram):
    _, device = await with_passkey(program)
    device.flags = FLAG.UP
    refused = await sign_in(program, device)
    assert (refused.status, refused.header("set-cookie")) == (401, None)
    assert await refusals(program) == [("POST /console/sign-in/passkey", "authentication_error")]


async def test_a_passkey_made_without_verifying_the_user_is_not_stored(program: LocalProgram):
    browser, device = await owner_of(program), Authenticator(ORIGIN, "localhost", flags=FLAG.UP)
    answer = device.make(await options_at(browser, "/console/settings"))
    assert (await browser.post(ADD, name="x", answer=answer)).status == 401
    assert not await program.services.ledger.owner.passkeys()


@pytest.mark.parametrize(
    "wrong", ["another key", "another page", "another name", "another kind", "a count that stands still", "no user"]
)  # fmt: skip
async def test_a_wrong_signature_does_not_sign_in(program: LocalProgram, wrong: str):
    _, device = await with_passkey(program)
    assert (await sign_in(program, device)).status == 303
    browser = Browser(program, host=HOST)
    options = await options_at(browser, SIGN_IN)
    kind = "webauthn.get"
    if wrong == "another key":
        device.key = Authenticator(ORIGIN, "localhost").key
    elif wrong == "another page":
        device.origin = "http://localhost:9999"
    elif wrong == "another name":
        device.party = "evil.example"
    elif wrong == "another kind":
        kind = "webauthn.create"
    elif wrong == "no user":
        device.flags = FLAG.UV
    else:
        device.uses -= 1
    refused = await browser.post(f"{SIGN_IN}/passkey", answer=device.sign(options, kind))
    assert (refused.status, refused.header("set-cookie")) == (401, None)


async def test_a_challenge_is_answered_once_in_time_and_for_what_it_was_given(program: LocalProgram):
    owner, device = await with_passkey(program)
    browser = Browser(program, host=HOST)
    answer = device.sign(await options_at(browser, SIGN_IN))
    assert (await browser.post(f"{SIGN_IN}/passkey", answer=answer)).status == 303
    assert (await sign_in_again(program, device, answer)).status == 401
    # One of our own making, and one for another page of ours.
    forged = device.sign({"challenge": "cGsxLkFBQUFBQUFBQUFBQUFBQUFBQUFB"})
    assert (await sign_in_again(program, device, forged)).status == 401
    confirming = device.sign(await options_at(owner, CONFIRM))
    assert (await sign_in_again(program, device, confirming)).status == 401
    late = await options_at(Browser(program, host=HOST), SIGN_IN)
    program.clock.at += 10 * MINUTE
    assert (await sign_in_again(program, device, device.sign(late))).status == 401


async def test_a_passkey_is_added_only_just_after_the_password_and_in_its_own_session(program: LocalProgram):
    browser, device = await owner_of(program), Authenticator(ORIGIN, "localhost")
    options = await options_at(browser, "/console/settings")
    other = Browser(program, host=HOST)
    await other.post(SIGN_IN, password=PASSWORD)
    await other.get("/console/settings")
    assert (await other.post(ADD, name="x", answer=device.make(options))).status == 401
    program.clock.at += 6 * MINUTE
    late = await browser.post(ADD, name="x", answer=device.make(options))
    assert late.location == "/console/confirm?next=%2Fconsole%2Fsettings"
    assert (await Browser(program, host=HOST).post(ADD, name="x", answer="{}")).status == 303
    assert not await program.services.ledger.owner.passkeys()


async def test_a_passkey_given_again_makes_the_session_fresh_for_a_grant_to_a_new_client(
    program: LocalProgram,
):
    await program.declare("mail", declaration())
    await program.connect("mail", "Home mail")
    browser, device = await with_passkey(program)
    client = Client(program)
    await client.register()
    begun = await browser.get(client.url())
    program.clock.at += 6 * MINUTE
    assert begun.location is not None
    asked = await browser.get(begun.location)
    assert asked.status == 303
    assert asked.location is not None
    assert asked.location.startswith("/console/confirm?next=%2Foauth%2Fconsent%2F")
    answer = device.sign(await options_at(browser, asked.location))
    proved = await browser.post(f"{CONFIRM}/passkey", answer=answer, next=begun.location)
    assert (proved.status, proved.location) == (303, begun.location)
    assert (await browser.get(begun.location)).status == 200
    # The same answer proves nothing a second time.
    assert (await browser.post(f"{CONFIRM}/passkey", answer=answer)).status == 401


@pytest.mark.hostile("42")
async def test_a_hundred_wrong_passwords_keep_neither_the_passkey_nor_the_owners_browser_out(
    program: LocalProgram,
):
    owner, device = await with_passkey(program)
    strangers = [Browser(program, host=HOST, address=f"198.51.100.{n}") for n in range(100)]
    statuses = [(await one.post(SIGN_IN, password="wrong")).status for one in strangers]
    assert statuses == [401] * 20 + [429] * 80
    # Even the right password waits its turn in a browser that was never seen; the passkey does not.
    new = Browser(program, host=HOST, address="198.51.100.200")
    assert (await new.post(SIGN_IN, password=PASSWORD)).status == 429
    assert (await sign_in(program, device, address="198.51.100.200")).status == 303
    assert (await owner.post(SIGN_IN, password=PASSWORD)).status == 303
    assert len(await refusals(program)) == 20


async def test_passkey_answers_of_one_network_are_limited(program: LocalProgram):
    await with_passkey(program)
    stranger = Browser(program, host=HOST, address="198.51.100.7")
    statuses = [(await stranger.post(f"{SIGN_IN}/passkey", answer="{}")).status for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2


async def test_a_reset_removes_the_passkeys(program: LocalProgram):
    await with_passkey(program)
    await program.services.ledger.owner.reset(fresh_link(program.clock.at)[1])
    assert not await program.services.ledger.owner.passkeys()


async def test_by_an_address_passkeys_are_not_offered_and_the_page_says_where_they_are(program: LocalProgram):
    browser = await signed_in(program)
    shown = await browser.get("/console/settings")
    assert options_in(shown.text) is None
    assert "Open this page at localhost" in shown.words
    assert "http://localhost:8321/console/settings#passkeys" in shown.text
    answer = Authenticator(ORIGIN, "localhost").make({"challenge": "eA"})
    assert (await browser.post(ADD, name="x", answer=answer)).status == 401


def test_names_for_passkeys_come_from_the_settings():
    assert passkey_names("https://data.example", "0.0.0.0", 8321) == (
        PasskeyParty("data.example", "https://data.example"),
    )
    assert passkey_names("", "127.0.0.1", 99) == (PasskeyParty("localhost", "http://localhost:99"),)
    assert passkey_names("https://192.0.2.1", "0.0.0.0", 1) == ()
    assert passkey_names("http://data.example", "0.0.0.0", 1) == ()
