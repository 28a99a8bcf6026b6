"""The owner's sign-in over HTTP: the link, the password, the session, its cookies and its forms."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.browsers import PASSWORD, Browser, Shown, open_link, signed_in
from tests.in_process import LocalProgram, local_program

pytestmark = pytest.mark.anyio
MINUTE = 60 * 1_000_000
HOUR = 60 * MINUTE
INSIDE = "/console/confirm"
OTHER = "another password entirely"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        yield made


def is_sent_to_sign_in(shown: Shown) -> bool:
    return shown.status == 303 and (shown.location or "").startswith("/console/sign-in?next=")


async def is_inside(browser: Browser) -> bool:
    shown = await browser.get(INSIDE)
    assert shown.status == 200 or is_sent_to_sign_in(shown)
    return shown.status == 200


async def test_a_link_sets_the_password_and_signs_in(program: LocalProgram):
    browser, link = Browser(program), await open_link(program)
    assert "Choose a password" in (await browser.get(link)).words
    assert (await browser.get(link)).status == 200, "looking at the page must not use the link up"
    shown = await browser.post(link, password=PASSWORD, again=PASSWORD)
    assert (shown.status, shown.location) == (303, "/console")
    assert await is_inside(browser)


async def test_a_link_has_128_random_bits_and_is_stored_as_a_digest(program: LocalProgram):
    link = (await open_link(program)).rpartition("/")[2]
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", link)
    stored = await program.services.ledger.owner.link()
    assert stored is not None
    assert link.encode() not in stored.digest


@pytest.mark.parametrize("how", ["used", "late", "wrong", "replaced"])
async def test_a_link_that_has_ended_sets_no_password(program: LocalProgram, how: str):
    link = await open_link(program)
    if how == "used":
        assert (await Browser(program).post(link, password=OTHER, again=OTHER)).status == 303
    elif how == "late":
        program.clock.at += 15 * MINUTE
    elif how == "wrong":
        link += "x"
    else:
        await open_link(program)
    browser = Browser(program)
    assert (await browser.get(link)).status == 410
    assert (await browser.post(link, password=PASSWORD, again=PASSWORD)).status == 410
    assert not await is_inside(browser)


@pytest.mark.parametrize(("password", "again"), [("short", "short"), (PASSWORD, OTHER)])
async def test_a_bad_first_password_is_explained_and_the_link_stays(
    program: LocalProgram, password: str, again: str
):
    browser, link = Browser(program), await open_link(program)
    assert (await browser.post(link, password=password, again=again)).status == 400
    assert (await browser.post(link, password=PASSWORD, again=PASSWORD)).status == 303


async def test_the_password_signs_in_and_another_one_does_not(program: LocalProgram):
    await signed_in(program)
    browser = Browser(program)
    wrong = await browser.post("/console/sign-in", password=OTHER)
    assert (wrong.status, wrong.header("set-cookie")) == (401, None)
    assert not await is_inside(browser)
    right = await browser.post("/console/sign-in", password=PASSWORD, next="/console/data?q=roof")
    assert (right.status, right.location) == (303, "/console/data?q=roof")
    assert await is_inside(browser)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "console", ""],
)
async def test_a_sign_in_never_leads_to_another_site(program: LocalProgram, target: str):
    await signed_in(program)
    shown = await Browser(program).post("/console/sign-in", password=PASSWORD, next=target)
    assert (shown.status, shown.location) == (303, "/console")


async def test_cookies_of_this_machine_are_plain_and_those_of_https_are_bound_to_the_host(
    program: LocalProgram,
):
    await signed_in(program)
    for scheme, prefix, secure in (("http", "", ""), ("https", "__Host-", "; Secure")):
        browser = Browser(program, scheme=scheme)
        shown = await browser.post("/console/sign-in", password=PASSWORD)
        cookies = [value for name, value in shown.headers if name == "set-cookie"]
        ends = rf"; Path=/; HttpOnly; SameSite=Lax{secure}"
        assert re.fullmatch(rf"{prefix}headgate-[0-9a-f]{{8}}=[\w-]{{43}}{ends}", cookies[0])
        assert re.fullmatch(
            rf"{prefix}headgate-[0-9a-f]{{8}}-browser=[\w-]{{43}}; Max-Age=31536000{ends}", cookies[1]
        )
        assert await is_inside(browser)


async def test_a_session_is_found_among_cookies_of_other_programs_written_in_any_way(program: LocalProgram):
    browser = await signed_in(program)
    ((name, value), *_) = browser.cookies.items()
    others = [
        'prefs={"a":1}',
        "city=M\xfcnchen",
        "a b=c d",
        "flag",
        "=x",
        'q="',
        "x=a,b;;",
        "k[0]=(1)",
        "$v=1",
    ]
    for before in others:
        for after in others:
            cookie = f"{before}; {name}={value}; {after}"
            shown = await Browser(program, {}).get("/console", ("cookie", cookie))
            assert shown.status == 200, cookie


async def test_two_homes_on_one_machine_do_not_sign_each_other_out(tmp_path: Path):
    async with local_program(tmp_path / "one") as one, local_program(tmp_path / "two") as two:
        first, second = await signed_in(one), await signed_in(two)
        # Ports share the cookies of their host.
        first.cookies |= second.cookies
        second.cookies = first.cookies
        assert await is_inside(first)
        assert await is_inside(second)
        await second.get("/console")
        assert (await second.post("/console/sign-out")).status == 303
        assert not await is_inside(second)
        assert await is_inside(first)


async def test_a_plain_cookie_is_not_taken_over_https(program: LocalProgram):
    browser = await signed_in(program)
    assert not await is_inside(Browser(program, dict(browser.cookies), scheme="https"))


async def test_no_password_is_taken_over_an_open_line(program: LocalProgram):
    await signed_in(program)
    browser = Browser(program, host="192.168.1.20")
    assert "not encrypted" in (await browser.get("/console/sign-in")).words
    shown = await browser.post("/console/sign-in", password=PASSWORD)
    assert (shown.status, shown.header("set-cookie")) == (403, None)
    link = await open_link(program)
    assert (await browser.post(link, password=PASSWORD, again=PASSWORD)).status == 403


async def test_a_session_ends_after_twelve_hours_without_use_and_after_thirty_days(program: LocalProgram):
    browser = await signed_in(program)
    for _ in range(62):
        program.clock.at += 12 * HOUR
        if not await is_inside(browser):
            break
    else:
        raise AssertionError("a session that is used must end after thirty days")
    assert program.clock.at > 1_800_000_000_000_000 + 29 * 24 * HOUR
    idle = Browser(program)
    await idle.post("/console/sign-in", password=PASSWORD)
    program.clock.at += 12 * HOUR + 1
    assert not await is_inside(idle)


@pytest.mark.parametrize("path", ["/console/activity", "/console/connect"])
async def test_a_page_that_asks_by_itself_does_not_keep_its_session_alive(program: LocalProgram, path: str):
    browser = await signed_in(program)
    polls = ("hx-request", "true"), ("headgate-poll", "true")
    assert "Headgate-Poll" in (await browser.get(path)).text
    for _ in range(12):
        program.clock.at += HOUR
        assert (await browser.get(path, *polls)).status == 200
    program.clock.at += HOUR
    assert (await browser.get(path, *polls)).header("hx-redirect") == "/console/sign-in"
    assert not await is_inside(browser)


async def test_a_clock_that_goes_back_revives_no_session(program: LocalProgram):
    browser = await signed_in(program)
    program.clock.at += 13 * HOUR
    assert not await is_inside(browser)
    program.clock.at -= 13 * HOUR
    assert not await is_inside(browser)


async def test_signing_out_ends_the_session_on_the_server(program: LocalProgram):
    browser = await signed_in(program)
    held = dict(browser.cookies)
    shown = await browser.post("/console/sign-out")
    assert (shown.status, shown.location) == (303, "/console/sign-in")
    assert not await is_inside(Browser(program, held))


async def test_a_new_sign_in_ends_the_session_that_the_browser_had(program: LocalProgram):
    browser = await signed_in(program)
    held = dict(browser.cookies)
    await browser.post("/console/sign-in", password=PASSWORD)
    assert await is_inside(browser)
    assert not await is_inside(Browser(program, held))


@pytest.mark.parametrize("key", ["", "0" * 64, "another session's"])
async def test_a_form_without_the_key_of_its_session_is_refused(program: LocalProgram, key: str):
    browser = await signed_in(program)
    if key == "another session's":
        other = Browser(program)
        await other.post("/console/sign-in", password=PASSWORD)
        await other.get(INSIDE)
        key = other.form_key
    browser.form_key = key
    assert (await browser.post("/console/sign-out")).status == 403
    assert await is_inside(browser)


@pytest.mark.parametrize(
    "header",
    [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site"),
     ("sec-fetch-site", "same-site")],
)  # fmt: skip
async def test_a_form_of_another_site_is_refused_even_with_the_key(
    program: LocalProgram, header: tuple[str, str]
):
    browser = await signed_in(program)
    assert (await browser.post("/console/sign-out", header)).status == 403
    assert (await browser.post("/console/sign-in", header, password=PASSWORD)).status == 403
    assert await is_inside(browser)


async def test_guesses_of_a_network_are_slowed_down_and_the_owners_browser_is_not(program: LocalProgram):
    owner = await signed_in(program)
    stranger = Browser(program, address="198.51.100.7")
    statuses = [(await stranger.post("/console/sign-in", password=OTHER)).status for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2
    assert (await stranger.post("/console/sign-in", password=PASSWORD)).status == 429
    owner.address = stranger.address
    assert (await owner.post("/console/sign-in", password=PASSWORD)).status == 303


async def test_a_reset_forgets_the_password_and_ends_every_session(program: LocalProgram):
    browser = await signed_in(program)
    owner = program.services.ledger.owner
    stored = await owner.link()
    assert stored is None
    await program.services.sessions.make_link()
    stored = await owner.link()
    assert stored is not None
    await owner.reset(stored)
    assert not await is_inside(browser)
    assert (await Browser(program).post("/console/sign-in", password=PASSWORD)).status == 401
    assert "No password is set yet" in (await Browser(program).get("/console/sign-in")).words


async def test_the_password_that_is_asked_for_again_makes_the_session_fresh(program: LocalProgram):
    browser = await signed_in(program)
    sessions = program.services.sessions
    program.clock.at += 6 * MINUTE
    assert (await browser.post(INSIDE, password=OTHER, next="/console")).status == 401
    assert (
        await browser.post(INSIDE, password=PASSWORD, next="/console/agents")
    ).location == "/console/agents"
    assert await sessions.has_password()


async def test_every_page_forbids_frames_caches_and_foreign_files(program: LocalProgram):
    browser = await signed_in(program)
    for shown in (await Browser(program).get("/console/sign-in"), await browser.get(INSIDE)):
        policy = shown.header("content-security-policy")
        assert policy is not None
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert shown.header("x-frame-options") == "DENY"
        assert shown.header("cache-control") == "no-store"


async def test_a_session_is_no_token_of_the_rest_interface(program: LocalProgram):
    browser = await signed_in(program)
    assert (await browser.get("/v1/streams")).status == 401
    secret = next(iter(browser.cookies.values()))
    assert (await program.get("/v1/streams", secret)).status == 401
    assert (await program.ask("POST", "/mcp", secret, body=b"{}")).status == 401


async def test_static_files_are_served_by_name_alone(program: LocalProgram):
    shown = await Browser(program).get("/console/static/console.css")
    assert (shown.status, shown.header("content-type")) == (200, "text/css; charset=utf-8")
    assert (await Browser(program).get("/console/static/..%2f__init__.py")).status == 404


async def test_the_page_of_an_ended_link_offers_to_sign_in_first_and_resets_no_other_home(
    program: LocalProgram,
):
    home = program.services.home.path
    ended = (await Browser(program).get("/console/welcome/none")).text
    assert ended.index("/console/sign-in") < ended.index("owner reset")
    assert f"headgate --home {home} owner reset" in ended
    assert f"headgate --home {home} owner reset" in (await Browser(program).get("/console/sign-in")).text
    browser = await signed_in(program)
    wrong = await Browser(program).post("/console/sign-in", password=OTHER)
    assert f"headgate --home {home} owner reset" in wrong.words
    assert f"headgate --home {home} owner token" in (await browser.get("/console/settings")).text
    # Strangers do not learn where it is.
    for path in ("/console/sign-in", "/console/welcome/none"):
        for stranger in (Browser(program, address="192.0.2.9"), Browser(program, host="192.168.1.20")):
            shown = (await stranger.get(path)).text
            assert str(home) not in shown
            assert "headgate owner reset" not in shown
