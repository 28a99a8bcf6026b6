"""The pages on importing calendars, contacts, chats and conversations: their commands run, and they name every field."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from headgate.sources.calendar.source import CALENDAR
from headgate.sources.chat.source import CHAT
from headgate.sources.contacts.source import CONTACTS
from headgate.sources.conversations.source import CONVERSATIONS
from tests.docs.commands import SHELL_FUNCTION
from tests.on_socket import environment
from tests.sources import (
    test_calendar as calendars,
    test_chat_whatsapp as whatsapp,
    test_contacts as contacts,
    test_conversations as conversations,
)
from tests.sources.source_checks import tree_with

ROOT = Path(__file__).parents[2]
PAGES = {
    "calendar": (CALENDAR, {"calendar.ics": calendars.WHOLE}, "events: 7 new"),
    "contacts": (CONTACTS, {"contacts.vcf": contacts.BOOK}, "contacts: 4 new"),
    "chats": (CHAT, {"WhatsApp Chat with Garden.txt": whatsapp.ANDROID}, "messages: 6 new"),
    "conversations": (
        CONVERSATIONS,
        {f"export/{name}": content for name, content in conversations.FILES.items()},
        "messages: 7 new",
    ),
}


def page(name: str) -> str:
    return (ROOT / "docs" / "how-to" / f"import-{name}.md").read_text(encoding="utf-8")


def run(directory: Path, script: str) -> str:
    whole = SHELL_FUNCTION + script
    done = subprocess.run(
        ["bash", "-ec", whole],
        cwd=directory, env=environment(directory, {}), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_import_and_grant_and_a_second_time_add_nothing(name, tmp_path):
    _, files, count = PAGES[name]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8", newline="")
    (block, *accounts) = re.findall(r"```sh\n(.*?)```", page(name), re.DOTALL)
    # The commands on accounts are run by the test of that page, with a server.
    assert len(accounts) == (name == "calendar")
    assert count in run(tmp_path, block)
    again = run(tmp_path, block.splitlines()[0])
    assert re.findall(r"(\d+) new", again)
    assert set(re.findall(r"(\d+) new", again)) == {"0"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_every_field_and_view(name):
    source, files, _ = PAGES[name]
    document = source.declare(source.detect(tree_with(files))[0])
    for stream in document["streams"]:
        row = next(line for line in page(name).split("\n") if line.startswith(f"| `{stream['name']}` |"))
        fields = re.findall(r"`(\w+)`", row.split("|")[3])
        assert fields == [field for field in stream["schema"]["properties"] if field != "id"]
    views = {view["id"] for stream in document["streams"] for view in stream["views"]}
    assert views <= set(re.findall(r"`(\w+)`", page(name)))
