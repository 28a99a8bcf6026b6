"""The pages on importing name every field, view and setting, and say which records are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.sources.calendar.account import CalendarAccount
from headgate.sources.calendar.source import CALENDAR
from headgate.sources.contacts import CONTACTS
from headgate.sources.mail.imap import ImapSource
from headgate.sources.registry import CHAT, CONVERSATIONS
from tests.sources import (
    test_calendar as calendars,
    test_chat_whatsapp as whatsapp,
    test_contacts as contacts,
    test_conversations as conversations,
)
from tests.sources.mail.mails import STREAMS
from tests.sources.source_checks import tree_with

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = {
    "calendar": (CALENDAR, {"calendar.ics": calendars.WHOLE}),
    "contacts": (CONTACTS, {"contacts.vcf": contacts.BOOK}),
    "chats": (CHAT, {"WhatsApp Chat with Garden.txt": whatsapp.ANDROID}),
    "conversations": (CONVERSATIONS, conversations.FILES),
}


def page(name: str) -> str:
    return (HOW_TO / f"import-{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_every_field_and_view(name: str):
    source, files = PAGES[name]
    document = source.declare(source.detect(tree_with(files))[0])
    for stream in document["streams"]:
        row = next(line for line in page(name).split("\n") if line.startswith(f"| `{stream['name']}` |"))
        fields = re.findall(r"`(\w+)`", row.split("|")[3])
        assert fields == [field for field in stream["schema"]["properties"] if field != "id"]
    views = {view["id"] for stream in document["streams"] for view in stream["views"]}
    assert views <= set(re.findall(r"`(\w+)`", page(name)))


def test_the_page_on_mail_names_every_field_and_setting():
    for name, stream in STREAMS.items():
        row = next(line for line in page("mail").split("\n") if line.startswith(f"| `{name}` |"))
        assert set(re.findall(r"`(\w+)`", row)) == {name, *stream.fields} - {"id"}
    settings = page("mail").partition("| setting | meaning |")[2]
    assert set(re.findall(r"`(\w+)`", settings)) >= set(ImapSource.settings)


def test_the_page_on_calendars_names_the_settings_that_an_owner_must_know():
    text = page("calendar").partition("## From an address")[2].partition("\n## ")[0]
    named = {name for name in CalendarAccount.settings if f"{name}=" in text}
    assert named >= {"url", "user", "secret", "whole"}


@pytest.mark.parametrize("file", sorted(HOW_TO.glob("import*.md")), ids=lambda file: file.stem)
def test_every_page_on_importing_says_which_records_are_the_same(file: Path):
    headings = re.findall(r"^## (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = re.compile(r"Which (record|records|lines)\b|The same file again")
    assert any(wanted.match(heading) for heading in headings), headings
