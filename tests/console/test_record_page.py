"""A record as what it is: mail looks like mail, a payment like a payment; what belongs to it, and what its owner can do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from headgate.model.ids import ConnectionId
from headgate.sources.declaring import declaration as source_document
from headgate.sources.demo.filling import fill as fill_demo
from headgate.sources.registry import sources
from tests.console.browsers import Browser, Shown, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    browser: Browser
    connections: dict[str, ConnectionId]

    async def record(self, source: str, stream: str, words: str) -> Shown:
        """Search for a record, and open its page."""
        where = self.connections[source]
        found = await self.browser.get(f"/console/search?q={words}&stream={stream}&connection_id={where}")
        path = re.search(r'class="title" dir="auto" href="([^"]+)"', found.text)
        assert path, found.words
        return await self.browser.get(unescape(path[1]))


@pytest.fixture(scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with local_program(tmp_path_factory.mktemp("records")) as program:
        connections, _ = await fill_demo(program.services.store)
        yield Scene(program, await signed_in(program), dict(connections))


def _parts(shown: Shown) -> tuple[str, str]:
    """Return the words of the record itself, and those of the folded technical fields."""
    article = re.search(r"<article.*?</article>", shown.text, re.DOTALL)
    assert article
    _, _, technical = shown.text.partition("Technical fields")
    words = [" ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split()) for text in (article[0], technical)]
    return words[0], words[1]


async def test_mail_is_a_subject_people_a_date_and_a_text_with_its_thread_and_quoted_text_folded(
    scene: Scene,
):
    shown = await scene.record("Home mail", "messages", '"do+the+flashing"')
    article, technical = _parts(shown)
    assert '<h1 dir="auto">Re: Roof repair: the lead around the chimney</h1>' in shown.text
    assert article.startswith(
        "From Nora Hallam <nora.hallam@mailbox.example> To Dafydd Castell <office@castell-roofing.example> "
        "Sent 15 Apr 2025, 17:50 UTC Folder Sent Dear Dafydd, yes please"
    )
    assert re.search(r"<details[^>]*><summary>Quoted text</summary>", shown.text)
    assert "internet_message_id" in technical or "thread_id" in technical
    assert "thread_id" not in article
    thread = shown.words.partition("In its thread")[2]
    assert thread.index("Dafydd Castell to Nora Hallam") < thread.index("Nora Hallam to Dafydd Castell")
    assert shown.text.count('class="here" aria-current="true"') == 1


async def test_a_message_leads_to_its_attachment_and_back(scene: Scene):
    attachment = await scene.record("Home mail", "attachments", "CR-2291")
    assert "Open the file" in attachment.words
    path = re.search(r'In its message</h2><a class="small" href="([^"]+)"', attachment.text)
    assert path
    message = await scene.browser.get(unescape(path[1]))
    assert "Attachments See all CR-2291.txt" in message.words


async def test_a_chat_message_stands_among_those_around_it(scene: Scene):
    shown = await scene.record("Chat", "messages", '"bring+the+oranges"')
    around = shown.words.partition("In its channel")[2].partition("What you can do")[0]
    assert around.count("Running club") > 4
    assert "Family" not in around
    assert shown.text.count('class="here"') == 1


async def test_a_payment_has_its_amount_and_currency_beside_its_name(scene: Scene):
    shown = await scene.record("Bank", "transactions", "VR83096")
    assert '<p class="sum num">-39.76 GBP</p>' in shown.text
    article, technical = _parts(shown)
    assert article.startswith("From or to Valley Rail Booked 31 Dec 2025")
    assert "39.76" not in article
    assert "amount" not in technical


async def test_an_event_has_its_day_its_place_and_its_people(scene: Scene):
    article, _ = _parts(await scene.record("Calendar", "events", "Castell+Roofing+looks"))
    assert re.match(r"Begins 3 Feb 2025, 08:15 UTC Ends .* Place 12 Tanner's Row", article)


async def test_a_document_has_its_pages_and_a_contact_its_numbers(tmp_path: Path):
    async with local_program(tmp_path) as program:
        for name in ("documents", "contacts"):
            source = sources()[name]
            await program.declare(name, source_document(source.name, source.title, source.streams))
        papers, people = (
            await program.connect("documents", "Papers"),
            await program.connect("contacts", "People"),
        )
        await program.ingest(
            papers, "documents", [record("d1", title="Lease", beginning="This", page_count=2)]
        )
        pages = [
            record(f"p{n}", document_id="d1", title=f"Lease, {n}", number=n, text="x" * 20_000)
            for n in (1, 2)
        ]
        await program.ingest(papers, "pages", pages)
        card = record(
            "c1",
            name="روزا",
            emails=["r@x.example"],
            phones=["+1 2"],
            organisation="ACME",
            notes="Old friend",
        )
        await program.ingest(people, "contacts", [card])
        browser = await signed_in(program)
        document = await browser.get(f"/console/records/documents/d1?connection_id={papers}")
        assert "Pages 2 This" in document.words
        assert "Pages See all Lease, 1" in document.words
        page = await browser.get(f"/console/records/pages/p2?connection_id={papers}")
        # What is long is there, and folded.
        assert "8 000 more characters" in page.words
        assert page.text.count("x") > 20_000
        contact = await browser.get(f"/console/records/contacts/c1?connection_id={people}")
        assert '<h1 dir="auto">روزا</h1>' in contact.text
        assert "Organisation ACME Emails r@x.example Phones +1 2 Old friend" in contact.words


async def test_a_record_of_no_known_kind_shows_all_its_values_escaped(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        where = await program.connect("mail", "Home mail")
        row = record(
            "m1", subject="<script>x</script>", sender="Ada", body="<b>y</b>" * 40, headers={"a": ["<i>"]}
        )
        await program.ingest(where, "messages", [row])
        shown = await (await signed_in(program)).get(f"/console/records/messages/m1?connection_id={where}")
        assert not re.search(r"<(script>x|b>y|i>)", shown.text)
        article, technical = _parts(shown)
        assert "Sender Ada" in article
        assert '"<i>"' in technical


@dataclass
class Hidden:
    program: LocalProgram
    browser: Browser
    path: str
    token: str

    async def seen(self) -> list[str]:
        answer = await self.program.get("/v1/streams/messages/records", self.token)
        return sorted(row["id"] for row in answer.body["data"])


@pytest.fixture
async def hidden(tmp_path: Path) -> AsyncIterator[Hidden]:
    async with local_program(tmp_path) as program:
        source = sources()["mail"]
        await program.declare("mail", source_document(source.name, source.title, source.streams))
        where = await program.connect("mail", "Home mail")
        senders: dict[str, Any] = {"m1": "shop@x.example", "m10": "shop@x.example", "m2": "ada@x.example"}
        rows = [
            record(key, subject=f"About {key}", body="x", **{"from": sender, "from_address": sender})
            for key, sender in senders.items()
        ]
        await program.ingest(where, "messages", rows)
        granted = stream_grant("messages", "id", "subject", connections=(ConnectionId(where),))
        token = await program.grant(
            replace(grant(granted), source_id="https://headgate.example/sources/mail")
        )
        path = f"/console/records/messages/{{}}?connection_id={where}"
        yield Hidden(program, await signed_in(program), path, token)


async def test_never_show_this_hides_one_record_from_agents_at_once_and_says_so(hidden: Hidden):
    assert await hidden.seen() == ["m1", "m10", "m2"]
    done = await hidden.browser.post(hidden.path.format("m1/hide"))
    assert await hidden.seen() == ["m10", "m2"]
    assert "No agent sees this record any more" in (await hidden.browser.get(done.location or "")).words
    await hidden.browser.get("/console/rules")
    assert "id of messages is “m1”" in (await hidden.browser.get("/console/rules")).words


async def test_hide_everything_from_a_sender_says_first_how_much_that_is(hidden: Hidden):
    shown = await hidden.browser.get(hidden.path.format("m1"))
    link = re.search(r'href="([^"]+)">Hide everything from this sender', shown.text)
    assert link
    rules = await hidden.browser.get(unescape(link[1]))
    assert "It finds 2 records: 2 of messages." in rules.words
    assert await hidden.seen() == ["m1", "m10", "m2"]
    added = {
        "kind": "value",
        "text": "shop@x.example",
        "field": "from_address",
        "stream": "messages",
        "do": "add",
    }
    await hidden.browser.post("/console/rules", **added)
    assert await hidden.seen() == ["m2"]


async def test_a_record_is_erased_after_a_question(hidden: Hidden):
    asked = await hidden.browser.get(hidden.path.format("m1/erase"))
    assert "Erase a record About m1" in asked.words
    assert (await hidden.browser.get(hidden.path.format("m1"))).status == 200
    done = await hidden.browser.post(hidden.path.format("m1/erase"))
    assert "The record is erased." in (await hidden.browser.get(done.location or "")).words
    gone = await hidden.browser.get(hidden.path.format("m1"))
    assert (gone.status, "This record does not exist, or was erased." in gone.words) == (404, True)
    assert await hidden.seen() == ["m10", "m2"]


async def test_a_stream_is_narrowed_to_days_words_and_a_field_and_shown_with_columns(scene: Scene):
    bank = f"/console/data/{scene.connections['Bank']}/transactions"
    may = await scene.browser.get(f"{bank}?since=2025-05-31&until=2025-05-31")
    assert "2 records." in may.words
    assert may.text.count('class="title"') == 2
    both = await scene.browser.get(
        f"{bank}?contains=ticket&since=2025-05-01&until=2025-05-31&field=kind&value=card"
    )
    titles = re.findall(r'class="title"[^>]*>(.*?)</a>', both.text)
    assert titles
    assert all("ticket" in title.lower() for title in titles)
    table = await scene.browser.get(
        f"{bank}?since=2025-05-30&until=2025-05-30&column=amount&column=booked_on&column=no"
    )
    assert '<td dir="auto" class="right num">' in table.text
    assert "-18.30 30 May 2025" in table.words
    following = re.search(
        r'href="([^"]+)">Next 25', (await scene.browser.get(f"{bank}?column=amount&order=asc")).text
    )
    assert following
    assert "column=amount" in following[1]
    assert (await scene.browser.get(unescape(following[1]))).text.count("<tr>") == 26


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("since=2025-05", "'2025-05' is no day. Type one such as 2026-01-31."),
        ("until=%D9%A3", "is no day"),
        ("field=amount&value=much", "'much' is no number. Type one such as 12."),
    ],
)
async def test_a_day_or_number_that_cannot_be_read_keeps_the_page(scene: Scene, query: str, problem: str):
    shown = await scene.browser.get(f"/console/data/{scene.connections['Bank']}/transactions?{query}")
    assert shown.status == 200
    assert problem in shown.words
    assert "Correct the named parameter" not in shown.words
    assert 'id="contains"' in shown.text
