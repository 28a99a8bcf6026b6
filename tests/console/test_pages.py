"""Every page of the console over HTTP: who sees it, what it shows, and what its forms do."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote
from zipfile import ZipFile

import pytest

from headgate.console.addresses import console_addresses
from headgate.model.ids import ConnectionId
from headgate.sources import uploads
from tests.console.browsers import PASSWORD, Browser, Shown, signed_in
from tests.console.clients import Client, approve, query_of
from tests.in_process import LocalProgram, local_program, record
from tests.journeys.test_first_minutes import BANK
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
OPEN = {"/console/sign-in", "/console/sign-in/passkey", "/console/welcome/{link}", "/console/static/{file}"}
TRICK = "<script>alert('x')</script> roof"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    browser: Browser
    connection: str
    token: str
    grant_id: str

    async def agent_reads(self) -> None:
        path = f"/v1/streams/messages/records/m1?connection_id={self.connection}"
        answer = await self.program.get(path, self.token)
        assert answer.status == 200, answer.content


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        rows = [
            record("m1", subject=TRICK, sender="Ada", body="The roof leaks."),
            record("m2", subject="Second", sender="Bo", body="Nothing to see."),
        ]
        await program.ingest(connection, "messages", rows)
        made = grant(stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),)))
        token = await program.grant(made, daily_records=10)
        yield Scene(program, await signed_in(program), connection, token, made.id)


async def test_no_page_of_the_owner_is_shown_without_a_session(scene: Scene):
    rows = console_addresses(scene.program.services)
    own = [row for row in rows if row.path not in OPEN]
    assert len(own) > 15
    for row in own:
        path = re.sub(r"\{\w+\}", "x", row.path)
        stranger = Browser(scene.program)
        shown = await (stranger.get(path) if row.method == "GET" else stranger.post(path))
        assert shown.status == 303, row.route
        assert (shown.location or "").startswith("/console/sign-in?next="), row.route
        held = Browser(scene.program, dict.fromkeys(scene.browser.cookies, "guess"))
        shown = await (held.get(path) if row.method == "GET" else held.post(path))
        assert shown.status == 303, row.route


async def test_no_form_is_taken_without_its_key(scene: Scene):
    scene.browser.form_key = "0" * 64
    for row in console_addresses(scene.program.services):
        if row.method == "POST" and row.path not in OPEN:
            shown = await scene.browser.post(re.sub(r"\{\w+\}", "x", row.path))
            assert shown.status == 403, row.route


async def test_home_shows_what_there_is_and_what_agents_read(scene: Scene):
    await scene.agent_reads()
    await scene.program.services.pump.flush()
    shown = await scene.browser.get("/console")
    assert shown.status == 200
    assert "Home mail 2 records in " in shown.words
    assert "agent read 1 record : 1 message of Home mail." in shown.words
    assert 'class="series-1"' in shown.text


async def test_search_finds_records_and_escapes_their_text(scene: Scene):
    for path, more in (("/console/search?q=roof", ()), ("/console/search?q=roof", (("hx-request", "true"),))):
        shown = await scene.browser.get(path, *more)
        assert f"/console/records/messages/m1?connection_id={scene.connection}" in shown.text
        assert "<script>alert" not in shown.text
        assert "<mark>roof</mark>" in shown.text
    assert "Nothing matches" in (await scene.browser.get("/console/search?q=zebra")).words


async def test_a_stream_is_browsed_and_filtered(scene: Scene):
    path = f"/console/data/{scene.connection}/messages"
    shown = await scene.browser.get(path)
    assert "2 records." in shown.words
    assert "<script>alert" not in shown.text
    filtered = await scene.browser.get(f"{path}?field=sender&value=Bo")
    assert "1 record where sender is" in filtered.words
    assert "Second" in filtered.words
    assert (await scene.browser.get("/console/data")).words.count("messages") == 1


async def test_one_stream_of_one_connection_is_searched(scene: Scene):
    other = await scene.program.connect("mail", "Work mail")
    await scene.program.ingest(other, "messages", [record("w1", subject="Another roof")])
    assert "Another roof" in (await scene.browser.get("/console/search?q=roof")).words
    stream = await scene.browser.get(f"/console/data/{scene.connection}/messages?contains=roof")
    assert "m1?connection_id" in stream.text
    assert "Another roof" not in stream.words
    path = f"/console/search?q=roof&stream=messages&connection_id={scene.connection}"
    for more in ((), (("hx-request", "true"),)):
        shown = await scene.browser.get(path, *more)
        assert "m1?connection_id" in shown.text
        assert "Another roof" not in shown.text
    assert "Nothing matches" in (await scene.browser.get("/console/search?q=roof&stream=none")).words


async def test_a_record_shows_all_fields_and_who_has_read_it(scene: Scene):
    path = f"/console/records/messages/m1?connection_id={scene.connection}"
    before = await scene.browser.get(path)
    assert "The roof leaks." in before.words
    assert "<script>alert" not in before.text
    assert "No agent has read this record." in before.words
    await scene.agent_reads()
    await scene.program.services.pump.flush()
    after = await scene.browser.get(path)
    assert "agent opened a record subject, id" in after.words
    assert (await scene.browser.get(path.replace("m1", "m9"))).status == 404


async def test_a_record_is_dated_by_its_own_time_and_not_by_when_it_was_stored(scene: Scene):
    rows = [record("old", subject="Long ago", sent_at="2019-05-04T08:30:00Z")]
    await scene.program.ingest(ConnectionId(scene.connection), "messages", rows)
    listed = await scene.browser.get(f"/console/data/{scene.connection}/messages")
    assert re.search(r"Long ago 4 May 2019", listed.words)
    assert "Second" in listed.words
    assert not re.search(r"Second \d", listed.words), "a record without a time has no date"
    shown = await scene.browser.get(f"/console/records/messages/old?connection_id={scene.connection}")
    assert "Sent 4 May 2019, 08:30 UTC" in shown.words
    found = await scene.browser.get("/console/search?q=ago")
    assert "Long ago 4 May 2019" in found.words


async def test_the_address_that_an_agent_cites_opens_the_record_for_the_owner_alone(scene: Scene):
    await scene.program.ingest(scene.connection, "messages", [record("a/b ü", subject="Cited")])
    params = {"name": "search", "arguments": {"q": "Cited"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
    found = await scene.program.ask(
        "POST", "/mcp", scene.token, body=json.dumps(body).encode(), headers=headers
    )
    url = found.body["result"]["structuredContent"]["results"][0]["url"]
    path = url.removeprefix("http://127.0.0.1")
    assert path.startswith("/v1/streams/messages/records/")
    as_browser = ("accept", "text/html,application/xhtml+xml")
    sent = await scene.browser.get(path, as_browser)
    assert (sent.location or "").startswith("/console/records/messages/a%2Fb")
    assert "Cited" in (await scene.browser.get(sent.location or "")).words
    stranger = Browser(scene.program)
    again = await stranger.get((await stranger.get(path, as_browser)).location or "")
    assert (again.location or "").startswith("/console/sign-in?next=")
    assert (await scene.program.get(path, headers=[("accept", "application/json")])).status == 401
    read = await scene.program.get(path, scene.token, headers=[as_browser])
    assert read.status == 200, "a token is never taken for a person"


async def test_agents_are_described_in_words_and_stopped(scene: Scene):
    await scene.agent_reads()
    shown = await scene.browser.get("/console/agents")
    assert "Can read messages of Home mail." in shown.words
    one = await scene.browser.get("/console/agents/agent")
    assert "1 of 10; 9 left" in one.words
    assert "of Home mail, from any time id, subject" in one.words
    done = await scene.browser.post(f"/console/grants/{scene.grant_id}/revoke")
    assert done.status == 303
    refused = await scene.program.get("/v1/streams", scene.token)
    assert refused.code == "grant_revoked"
    assert "Can read nothing now." in (await scene.browser.get("/console/agents")).words


async def test_one_button_stops_every_agent(scene: Scene):
    other = grant(
        stream_grant("messages", "id", connections=(ConnectionId(scene.connection),)), id_="grt_other"
    )
    token = await scene.program.grant(other)
    done = await scene.browser.post("/console/agents/stop-all")
    assert done.location == "/console/agents?stopped=2"
    for one in (scene.token, token):
        assert (await scene.program.get("/v1/streams", one)).code == "grant_revoked"


async def test_activity_groups_filters_exports_and_verifies(scene: Scene):
    await scene.agent_reads()
    scene.program.clock.at += 5 * 60 * 1_000_000
    await scene.agent_reads()
    scene.program.clock.at += 24 * 3600 * 1_000_000
    await scene.agent_reads()
    # A day later the session has ended.
    await scene.browser.get("/console/sign-in")
    await scene.browser.post("/console/sign-in", password=PASSWORD)
    shown = await scene.browser.get("/console/activity")
    assert shown.words.count("read 1 record : 1 message of Home mail.") == 2
    assert "opened a record 2 times" in shown.words
    assert "You" not in shown.words.partition("Kind of record")[2]
    assert (
        "Nothing in the log is like that" in (await scene.browser.get("/console/activity?client=other")).words
    )
    scene.program.clock.at += 11 * 60 * 1_000_000
    # The password was given too long ago to take the whole log out.
    asked = await scene.browser.get("/console/activity/export")
    assert asked.location == "/console/confirm?next=%2Fconsole%2Factivity%2Fexport"
    await scene.browser.post("/console/confirm", password=PASSWORD)
    exported = await scene.browser.get("/console/activity/export")
    clients = [json.loads(line)["client_id"] for line in exported.text.splitlines()]
    assert clients.count("agent") == 3
    verified = await scene.browser.post("/console/activity/verify")
    assert "The log is whole" in verified.words


async def test_the_log_is_sent_again_only_when_it_has_newer_entries(scene: Scene):
    await scene.agent_reads()
    asks = re.compile(r'data-live hx-get="([^"]+)"')
    first = asks.search((await scene.browser.get("/console/activity?client=agent")).text)
    assert first
    again = await scene.browser.get(unescape(first[1]), ("hx-request", "true"))
    assert (again.status, again.content) == (204, b"")
    await scene.agent_reads()
    newer = await scene.browser.get(unescape(first[1]), ("hx-request", "true"))
    assert newer.status == 200
    assert "opened a record 2 times" in newer.words
    second = asks.search(newer.text)
    assert second
    assert second[1] != first[1]
    # An older part of the log has nothing newer.
    assert not asks.search((await scene.browser.get("/console/activity?before=2")).text)


async def test_the_owners_own_looks_are_in_the_log_and_shown_on_request(scene: Scene):
    await scene.browser.get(f"/console/records/messages/m1?connection_id={scene.connection}")
    shown = await scene.browser.get("/console/activity?only=all")
    assert "You read 1 record : 1 message of Home mail." in shown.words


async def test_connect_and_settings_are_shown(scene: Scene):
    assert "claude mcp add --transport http headgate" in (await scene.browser.get("/console/connect")).words
    assert "Address for agents" in (await scene.browser.get("/console/settings")).words


async def test_the_dot_of_a_program_turns_green_with_its_first_read(scene: Scene):
    async def dot(program: str) -> str:
        shown = await scene.browser.get("/console/connect", ("hx-request", "true"))
        assert f'<span id="dot-{program}" class="state soft small" hx-swap-oob="true">' in shown.text
        state = shown.text.partition(f'id="dot-{program}"')[2].partition("</span> ")[2]
        return Shown(200, [], state.encode()).words

    client = Client(scene.program)
    await client.register(client_name="Cursor")
    assert (await dot("cursor")).startswith("not connected")
    sent = query_of(await approve(scene.browser, client, f"{scene.connection}/messages"))
    token = (await client.redeem(sent["code"])).body["access_token"]
    assert (await dot("cursor")).startswith("approved, has not read yet")
    assert (await scene.program.get("/v1/streams/messages/records", token)).status == 200
    assert (await dot("cursor")).startswith("connected")
    assert (await dot("codex")).startswith("not connected")
    home = await scene.browser.get("/console")
    assert "Cursor read 2 records" in home.words
    assert client.id not in home.words, "an agent is called by its name"
    assert (
        "Cursor listed records"
        in (await scene.browser.get(f"/console/records/messages/m1?connection_id={scene.connection}")).words
    )


async def test_no_client_passes_for_the_owner_or_for_another_client(scene: Scene):
    clients = [Client(scene.program, redirect=f"https://{one}.example/back") for one in "abc"]
    for client, name in zip(clients, ("You", "Twin", "Twin"), strict=True):
        await client.register(client_name=name)
        await approve(scene.browser, client, f"{scene.connection}/messages")
    shown = await scene.browser.get("/console/agents")
    for client, name in zip(clients, ("You", "Twin", "Twin"), strict=True):
        assert f"{name} ({client.id[-4:]})" in shown.words


async def test_the_first_page_dates_what_there_is_and_says_what_needs_attention(scene: Scene):
    rows = [record("m3", sent_at="2025-02-03T00:00:00Z"), record("m4", sent_at="2026-05-06T00:00:00Z")]
    await scene.program.ingest(scene.connection, "messages", rows)
    shown = await scene.browser.get("/console")
    assert "3 Feb 2025 to 6 May 2026" in shown.words
    assert "Needs attention" not in shown.words
    made = grant(
        stream_grant("messages", "id", connections=(ConnectionId(scene.connection),)), id_="grt_open"
    )
    await scene.program.grant(made)
    shown = await scene.browser.get("/console")
    assert "Needs attention agent has 1 grant without an end and without a daily limit." in shown.words
    assert 'href="/console/agents/agent"' in shown.text


async def test_a_source_is_erased_after_its_name_was_typed_and_the_password_is_recent(scene: Scene):
    shown = await scene.browser.get("/console/settings")
    path = f"/console/settings/erase/{scene.connection}"
    assert path in shown.text
    assert "Seal key" in shown.words
    assert "Log key" in shown.words
    assert "HEADGATE_PUBLIC_URL=" in shown.words
    assert (await scene.browser.post(path, typed="home mail")).status == 400
    scene.program.clock.at += 6 * 60 * 1_000_000
    asked = await scene.browser.post(path, typed="Home mail")
    assert (asked.location or "").startswith("/console/confirm?next=%2Fconsole%2Fsettings%2Ferase%2F")
    assert "Home mail" in (await scene.browser.get("/console/data")).words
    await scene.browser.post("/console/confirm", password=PASSWORD, next=path)
    assert (await scene.browser.post(path, typed="Home mail")).location == "/console/settings?done=erased"
    assert "Home mail" not in (await scene.browser.get("/console/data")).words
    assert (await scene.browser.get(path)).status == 404


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("off", "Off; nothing leaves this machine."),
        ("multilingual", "On, with a model on this machine; nothing leaves it."),
        ("https://models.example/v1#small", "at https://models.example/v1. Every text of every field"),
    ],
)
async def test_the_settings_page_says_what_search_by_meaning_sends_away(
    tmp_path: Path, model: str, shown: str
):
    async with local_program(tmp_path, semantic_model=model) as program:
        browser = await signed_in(program)
        assert shown in (await browser.get("/console/settings")).words


async def test_the_password_is_changed_and_other_sessions_end(scene: Scene):
    other = Browser(scene.program, dict(scene.browser.cookies))
    await other.post("/console/sign-in", password=PASSWORD)
    scene.browser = await _again(scene.program, PASSWORD)
    done = await scene.browser.post("/console/settings/password", old=PASSWORD, new="a quite new password")
    assert done.location == "/console/settings?done=password"
    assert (await other.get("/console")).status == 303
    assert (await scene.browser.get("/console")).status == 200
    wrong = await scene.browser.post("/console/settings/password", old=PASSWORD, new="yet another password")
    assert wrong.status == 401


async def _again(program: LocalProgram, password: str) -> Browser:
    browser = Browser(program)
    await browser.post("/console/sign-in", password=password)
    await browser.get("/console")
    return browser


async def test_an_owners_token_is_listed_and_revoked(scene: Scene):
    shown = await scene.browser.get("/console/settings")
    mark = re.search(r"/console/settings/tokens/([0-9a-f]+)/revoke", shown.text)
    assert mark
    assert (await scene.program.get("/v1/streams", scene.program.owner)).status == 200
    assert (await scene.browser.post(f"/console/settings/tokens/{mark[1]}/revoke")).status == 303
    assert (await scene.program.get("/v1/streams", scene.program.owner)).status == 401


def multipart(key: str, *files: tuple[str, bytes]) -> tuple[bytes, tuple[str, str]]:
    head = b'--cut\r\nContent-Disposition: form-data; name="'
    parts = [
        head + b'form_key"\r\n\r\n' + key.encode(),
        *(head + f'file"; filename="{name}"\r\n\r\n'.encode() + content for name, content in files),
        b"--cut--\r\n",
    ]
    return b"\r\n".join(parts), ("content-type", "multipart/form-data; boundary=cut")


async def imported(scene: Scene, begun: Shown) -> Shown:
    async with asyncio.timeout(20):
        while True:
            shown = await scene.browser.get(begun.location or "", ("hx-request", "true"))
            if 'hx-trigger="every 1s"' not in shown.text:
                return shown
            await asyncio.sleep(0.02)


async def test_several_files_of_a_folder_come_in_as_one_and_rejects_are_listed(scene: Scene):
    files = {
        "bank/../2026/a.csv": b"id,title,when\n1,Roof,2026-01-02\n",
        "bank/b.vcf": b"BEGIN:VCARD\nVERSION:3.0\nFN:Ada\nEND:VCARD\nBEGIN:VCARD\nVERSION:3.0\nFN:Bo\n",
        "bank/.DS_Store": b"noise",
        "bank/odd.bin": bytes(range(256)),
    }
    body, kind = multipart(scene.browser.form_key, *files.items())
    sent = await scene.browser.send("/console/add", body, kind)
    shown = await scene.browser.get(sent.location or "")
    assert "This is what bank contains" in shown.words
    assert "Ada" in shown.words
    assert "Roof" in shown.words
    assert "Not read: odd.bin" in shown.words
    assert "DS_Store" not in shown.text
    done = await imported(scene, await scene.browser.post(sent.location or "", do="import"))
    assert "1 part could not be read" in done.words
    assert not list((scene.program.services.home.path / "imports").glob("*/")), "nothing is left behind"


def calendar(*titles: str) -> bytes:
    events = "".join(
        f"BEGIN:VEVENT\nUID:{title}\nDTSTART:20260301T080000Z\nSUMMARY:{title}\nEND:VEVENT\n"
        for title in titles
    )
    return f"BEGIN:VCALENDAR\nVERSION:2.0\n{events}END:VCALENDAR\n".encode()


def card(name: str) -> bytes:
    return f"BEGIN:VCARD\nVERSION:3.0\nFN:{name}\nEND:VCARD\n".encode()


async def dropped(scene: Scene, *files: tuple[str, bytes]) -> Shown:
    body, kind = multipart(scene.browser.form_key, *files)
    sent = await scene.browser.send("/console/add", body, kind)
    return await imported(scene, await scene.browser.post(sent.location or "", do="import"))


async def test_files_that_are_dropped_together_come_in_as_each_would_alone(scene: Scene):
    family, work = ("family.ics", calendar("Picnic", "Concert")), ("work.ics", calendar("Review"))
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("club/club.ics", calendar("Match"))
    shown = await dropped(scene, family, ("contacts.vcf", card("Ada")), ("club.zip", packed.getvalue()))
    assert "family.ics and 2 more is imported" in shown.words
    await dropped(scene, work, ("work.vcf", card("Bo")))
    again = await dropped(scene, family)
    assert "0 records new, 2 known already" in again.words
    names = [one.display_name for one in await scene.program.services.store.connections()]
    assert sorted(names) == [
        "Calendar: club", "Calendar: family", "Calendar: work", "Contacts", "Contacts: work", "Home mail",
    ]  # fmt: skip
    found = await scene.program.get("/v1/streams/events/records?limit=100", scene.program.owner)
    assert sorted(one["data"]["title"] for one in found.body["data"]) == [
        "Concert",
        "Match",
        "Picnic",
        "Review",
    ]


async def test_a_file_is_uploaded_previewed_and_imported(scene: Scene):
    table = b"id,title,when\n1,Roof repair,2026-01-02\n2,<b>Boat</b>,2026-02-03\n"
    body, kind = multipart(scene.browser.form_key, ("repairs.csv", table))
    sent = await scene.browser.send("/console/add", body, kind)
    assert (sent.status, (sent.location or "")[:13]) == (303, "/console/add/")
    path = sent.location or ""
    shown = await scene.browser.get(path)
    assert "Roof repair" in shown.words
    assert "<b>Boat" not in shown.text
    assert '<td data-field="title">Roof repair</td>' in shown.text
    assert "repairs" not in (await scene.browser.get("/console/data")).words, "a preview stores nothing"
    begun = await scene.browser.post(path, do="import", display_name="House repairs")
    assert begun.location == f"{path}/progress"
    assert (await scene.browser.post(path, do="import")).status == 404, "it is imported once"
    done = await imported(scene, begun)
    assert "repairs.csv is imported. House repairs tables " in done.words, (
        "the kind, not the key of the table"
    )
    assert "2 records" in done.words
    assert "House repairs" in (await scene.browser.get("/console/data")).words
    assert (await scene.browser.get(path)).status == 404, "the upload is gone after its import"


async def test_an_import_that_fails_by_our_fault_ends_and_is_shown(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        raise KeyError("a secret")

    monkeypatch.setattr(uploads, "_import", fail)
    body, kind = multipart(scene.browser.form_key, ("repairs.csv", b"id,title\n1,Roof repair\n"))
    sent = await scene.browser.send("/console/add", body, kind)
    begun = await scene.browser.post(sent.location or "", do="import")
    done = await imported(scene, begun)
    assert "A fault in Headgate ended the import" in done.words
    assert "Work in the background fails (imports): KeyError" in (await scene.browser.get("/console")).words
    ready = await scene.program.get("/readyz")
    assert ready.body == {"status": "degraded", "troubles": [{"loop": "imports", "code": "unexpected"}]}
    assert b"secret" not in ready.content


async def test_a_record_is_called_by_the_title_that_its_stream_declares(scene: Scene):
    body, kind = multipart(scene.browser.form_key, ("bank.csv", BANK.encode()))
    sent = await scene.browser.send("/console/add", body, kind)
    begun = await scene.browser.post(sent.location or "", do="import")
    done = await imported(scene, begun)
    path = re.search(r"/console/data/[^/]+/transactions", done.text)
    assert path
    listed = await scene.browser.get(path[0])
    assert "Castell Roofing final payment -4810.0 9 May 2025" in listed.words
    record_path = re.search(r'class="title"[^>]* href="([^"]+)"', listed.text)
    assert record_path
    shown = await scene.browser.get(unescape(record_path[1]))
    assert '<h1 dir="auto">Castell Roofing final payment</h1>' in shown.text


async def test_an_upload_without_the_key_is_refused_and_leaves_nothing(scene: Scene):
    body, kind = multipart("0" * 64, ("repairs.csv", b"id,title\n1,x\n"))
    assert (await scene.browser.send("/console/add", body, kind)).status == 403
    assert not list((scene.program.services.home.path / "imports").glob("*/"))


@pytest.mark.parametrize("place", ["x", "../../keys", "0" * 32])
async def test_an_upload_is_found_by_its_id_alone(scene: Scene, place: str):
    assert (await scene.browser.get(f"/console/add/{place.replace('/', '%2f')}")).status == 404


async def test_a_file_that_is_not_recognised_is_explained(scene: Scene):
    body, kind = multipart(scene.browser.form_key, ("noise.bin", bytes(range(256))))
    sent = await scene.browser.send("/console/add", body, kind)
    shown = await scene.browser.get(sent.location or "")
    assert "Import" not in re.sub(r"<[^>]*>", "", shown.text.partition("<main")[2]).split()


async def test_reads_under_a_package_are_counted_once(scene: Scene):
    where = (ConnectionId(scene.connection),)
    pair = [
        grant(stream_grant("messages", "id", connections=where), id_="grt_a"),
        grant(stream_grant("attachments", "id", connections=where), id_="grt_b"),
    ]
    token = await scene.program.grant(*pair)
    answer = await scene.program.get(
        f"/v1/streams/messages/records/m1?connection_id={scene.connection}", token
    )
    assert answer.status == 200
    assert "Read today: 1 ·" in (await scene.browser.get("/console/agents")).words


@pytest.mark.parametrize("digits", ["9" * 18, "9" * 19, "9" * 30, "9" * 5000, "²", "٣", "-1", "1e9"])
@pytest.mark.parametrize(
    "path",
    [
        "/console/activity?before=",
        "/console/agents?stopped=",
        "/console/rules?hidden=",
        "/console/rules?shown=",
    ],
)
async def test_a_number_in_an_address_may_be_anything(scene: Scene, path: str, digits: str):
    assert (await scene.browser.get(path + quote(digits))).status == 200


async def test_a_file_of_the_owner_is_embedded_by_no_page_of_another_origin_and_runs_nothing(scene: Scene):
    """Other ports of this machine are other origins that share the cookies; a picture they load tells what is here."""
    program = scene.program
    stored = await program.ask(
        "POST", "/v1/blobs", program.owner, body=b"\x89PNG", headers=[("content-type", "image/png")]
    )
    reference = {"blob_id": stored.body["blob_id"], "mime_type": "image/png"}
    await program.ingest(scene.connection, "messages", [record("m9", headers=reference)])
    path = f"/console/files/{stored.body['blob_id']}?connection_id={scene.connection}"
    shown = await scene.browser.get(path)
    assert (shown.status, shown.content) == (200, b"\x89PNG")
    assert shown.header("cross-origin-resource-policy") == "same-origin"
    assert shown.header("content-security-policy") == "sandbox; default-src 'none'"


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "٣", "²", "-1", "", "x", "9" * 18])
async def test_a_number_that_no_page_writes_into_an_address_is_not_read(scene: Scene, number: str):
    for place in ("activity?before=", "agents?stopped=", "rules?hidden=", "rules?shown="):
        shown = await scene.browser.get(f"/console/{place}{quote(number)}")
        assert shown.status == 200, place
