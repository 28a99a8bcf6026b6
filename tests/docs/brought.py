"""What readers bring to a page, by the names in which the page asks for it, and the servers that its commands reach."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import psycopg

from tests import postgres
from tests.journeys.test_first_minutes import BANK
from tests.sources import (
    test_calendar as calendars,
    test_chat_whatsapp as whatsapp,
    test_contacts as contacts,
    test_conversations as conversations,
)
from tests.sources.calendar import caldav
from tests.sources.calendar.test_calendar_account import feed, served_files
from tests.sources.documents.made import docx, pdf
from tests.sources.git.repositories import canal
from tests.sources.history import exports
from tests.sources.mail import dovecot
from tests.sources.mail.mails import ANSWER, LETTER, mbox
from tests.sources.money.test_money import CAMT, GERMAN, SGML
from tests.sources.notes.test_notes import MARKDOWN
from tests.sources.remote.served import Tasks, app_of, on_loopback

EXAMPLES = Path(__file__).parents[2] / "examples"
PEOPLE = b"""email,name,city,joined,phone
ada@example.org,Ada,London,2026-01-05,5550100
grace@example.org,Grace,New York,2026-02-07,5550101
mary@example.org,Mary,London,2026-03-09,5550102
"""
Bring: TypeAlias = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class ReachedServer:
    """A server that stands in for one that the page invents: what is written instead, and the reader's password."""

    changes: Mapping[str, str] = field(default_factory=dict[str, str])
    password: str = ""


def file(name: str, content: bytes | str) -> dict[str, Bring]:
    """Bring one file."""
    return {name: lambda place: _written(place / name, content)}


def folder(name: str, files: Mapping[str, bytes | str]) -> dict[str, Bring]:
    """Bring a directory of files."""
    return {f"{name}/": lambda place: [_written(place / name / path, one) for path, one in files.items()]}


def _written(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _of_a_clone(place: Path) -> None:
    (place / "examples").symlink_to(EXAMPLES)


#: A clone of this repository, as far as pages use it.
CLONE: dict[str, Bring] = {"examples/": _of_a_clone}
FILES: dict[str, dict[str, Bring]] = {
    "README.md": {
        **file("mail.mbox", (EXAMPLES / "letters.mbox").read_bytes()),
        **file("bank.csv", BANK),
        **CLONE,
    },
    "docs/tutorial/import-a-server.md": CLONE,
    "docs/how-to/gateway.md": CLONE,
    "docs/how-to/import.md": file("people.csv", PEOPLE),
    "docs/how-to/import-calendar.md": file("calendar.ics", calendars.WHOLE),
    "docs/how-to/import-contacts.md": file("contacts.vcf", contacts.BOOK),
    "docs/how-to/import-chats.md": file("WhatsApp Chat with Garden.txt", whatsapp.ANDROID),
    "docs/how-to/import-conversations.md": folder("export", conversations.FILES),
    "docs/how-to/import-history.md": {**folder("export", exports.FILES), "canal/": canal},
    "docs/how-to/import-mail.md": file("Inbox.mbox", mbox(LETTER, ANSWER)),
    "docs/how-to/import-money.md": folder(
        "statements", {"a.ofx": SGML, "b.xml": CAMT, "card.csv": GERMAN, "savings.csv": GERMAN}
    ),
    "docs/how-to/import-notes.md": folder(
        "notes", {"bridge.md": MARKDOWN, "gate.pdf": pdf(b"The lock is closed."), "report.docx": docx()}
    ),
}


@contextmanager
def _mail_account(_: Path) -> Iterator[ReachedServer]:
    with tempfile.TemporaryDirectory(prefix="imap") as place:
        Path(place).chmod(0o755)
        with dovecot.account(Path(place)) as server:
            server.deliver("INBOX", LETTER, ANSWER)
            here = f"host=127.0.0.1 --set port={server.port} --set security=none"
            yield ReachedServer({"host=imap.example.org": here}, dovecot.PASSWORD)


@contextmanager
def _calendars(place: Path) -> Iterator[ReachedServer]:
    (place / "dav").mkdir()
    with caldav.caldav_server(place / "dav") as server, served_files() as files:
        server.make_calendar("work")
        server.put("work", "one")
        files.answers["/team.ics"] = feed("a", "b")
        changes = {"https://dav.example": server.url, "https://calendar.example": files.url}
        yield ReachedServer(changes, caldav.PASSWORD)


@contextmanager
def _contacts(place: Path) -> Iterator[ReachedServer]:
    (place / "dav").mkdir()
    with caldav.caldav_server(place / "dav") as server:
        server.make_address_book("people")
        server.put_card("people", "ada", "Lovelace")
        yield ReachedServer({"https://dav.example": server.url}, caldav.PASSWORD)


@contextmanager
def _tasks(_: Path) -> Iterator[ReachedServer]:
    with on_loopback(app_of(Tasks())) as url:
        yield ReachedServer({"https://tasks.example": url})


@contextmanager
def _database(place: Path) -> Iterator[ReachedServer]:
    with psycopg.connect(postgres.server().url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{place.name}"')
    here = postgres.server().url_of(place.name)
    yield ReachedServer({"postgresql://headgate@db.example/headgate": here})


SERVERS: dict[str, Callable[[Path], AbstractContextManager[ReachedServer]]] = {
    "docs/how-to/import-mail.md": _mail_account,
    "docs/how-to/import-calendar.md": _calendars,
    "docs/how-to/import-contacts.md": _contacts,
    "docs/how-to/import-remote.md": _tasks,
    "docs/how-to/many-machines.md": _database,
    "docs/how-to/postgres.md": _database,
}
