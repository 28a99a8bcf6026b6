"""The records of the year: what each happening leaves in mail, calendar, chat, bank and notes; and a store filled with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.instants import instant
from headgate.model.readable import slug
from headgate.model.rows import Batch
from headgate.sources.calendar.source import EVENTS, TASKS
from headgate.sources.chat.streams import CHANNELS, MEMBERS, MESSAGES
from headgate.sources.declaring import StreamSpec, declaration
from headgate.sources.demo.episodes import YEAR, Happening, happenings, people
from headgate.sources.importing import once
from headgate.sources.mail.source import MAIL_STREAMS
from headgate.sources.money.ledger import MONEY_STREAMS
from headgate.sources.notes import NOTE_STREAM
from headgate.sources.parts import reference
from headgate.sources.protocol import Attachment

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

HOME_MAIL, WORK_MAIL, CALENDAR = "Home mail", "Work mail", "Calendar"
CHAT, BANK, NOTES = "Chat", "Bank", "Notes"
_MAIL = {"home": HOME_MAIL, "work": WORK_MAIL}
_OWN = {"home": "me", "work": "work"}
#: Of the words in an id.
_MOST_WORDS_CHARS = 32
_ACCOUNTS = {
    "current": {"id": "SV00-0926", "name": "Current account", "number": "SV00 0926", "kind": "current"},
    "card": {"id": "SV00-4417", "name": "Credit card", "number": "SV00 4417", "kind": "card"},
}


class Invented(NamedTuple):
    """One record: where it goes, and a file that belongs to it."""

    connection: str
    stream: str
    data: dict[str, Any]
    at: datetime
    file: bytes | None = None


@dataclass(slots=True)
class _Thread:
    """The messages so far of one conversation by mail."""

    id: str
    subject: str
    #: The text, the writer and the day of the last one.
    last: tuple[str, str, datetime] | None = None
    messages: list[str] = field(default_factory=list[str])


class Recorder:
    """Makes records, and remembers the threads and channels that they belong to."""

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = people
        self._threads: dict[tuple[str, str], _Thread] = {}
        self._channels: set[str] = set()
        self._makers = {
            "mail": self._mail,
            "chat": self._chat,
            "event": _event,
            "payment": _payment,
            "note": _note,
        }

    def accounts(self) -> Iterator[Invented]:
        for account in _ACCOUNTS.values():
            data = {**account, "bank": "Severn Vale Bank", "owner": "Nora Hallam", "currency": "GBP"}
            yield Invented(BANK, "accounts", data, datetime(2025, 1, 1))  # noqa: DTZ001 - all times are local

    def records(self, happening: Happening) -> Iterator[Invented]:
        return self._makers[happening.step["kind"]](happening)

    def _mail(self, happening: Happening) -> Iterator[Invented]:
        account = happening.step["account"]
        connection, own = _MAIL[account], self._people[_OWN[account]]
        thread = self._threads.get((account, happening.key))
        if thread is None or "subject" in happening.step:
            number = 1 if thread is None else int(thread.id.rpartition("-")[2]) + 1
            thread = _Thread(f"{happening.key}-{number}", happening.text("subject"))
            self._threads[account, happening.key] = thread
            yield Invented(connection, "threads", {"id": thread.id, "subject": thread.subject}, happening.at)
        writer = self._person(happening.text("from"))
        text = happening.text("text")
        data = self._message(happening, thread, writer, own) | {"body": text, **_quoted(thread)}
        files: list[dict[str, str]] = happening.step.get("files", [])
        if files:
            data["has_attachments"] = True
        data["size"] = len(text) + 900
        thread.last = (text, writer, happening.at)
        thread.messages.append(data["id"])
        yield Invented(connection, "messages", data, happening.at)
        for file in files:
            yield _attachment(connection, data["id"], file, happening.at)

    def _message(self, happening: Happening, thread: _Thread, writer: str, own: str) -> dict[str, Any]:
        name, _, address = writer.rstrip(">").partition(" <")
        is_answer = bool(thread.messages)
        to = [self._person(text) for text in happening.texts("to")]
        if is_answer and not to and thread.last is not None:
            to = [thread.last[1]]
        data: dict[str, Any] = {
            "id": f"{thread.id}-{len(thread.messages) + 1}",
            "thread_id": thread.id,
            "subject": f"Re: {thread.subject}" if is_answer else thread.subject,
            "from": name,
            "from_address": address,
            "to": to or [own],
            "sent_at": _utc(happening.at),
            "folder": "Sent" if writer == own else "Inbox",
            "labels": happening.texts("labels"),
            "is_read": True,
            "is_flagged": False,
            "has_attachments": False,
        }
        if is_answer:
            data["in_reply_to"] = thread.messages[-1]
        return data

    def _chat(self, happening: Happening) -> Iterator[Invented]:
        name = happening.text("channel")
        channel = name.lower().replace(" ", "-").replace("'", "")
        if name not in self._channels:
            self._channels.add(name)
            data = {"id": channel, "name": name, "service": "Larkchat", "kind": "group"}
            yield Invented(CHAT, "channels", data, happening.at)
        at = happening.at
        for number, (author, text) in enumerate(happening.step["lines"]):
            data = {
                "id": f"{happening.key}-{channel}-{number}-{at:%m%d}",
                "channel_id": channel,
                "channel": name,
                "author": happening.fill(author),
                "sent_at": _utc(at),
                "text": happening.fill(text),
                "kind": "message",
            }
            yield Invented(CHAT, "messages", data, at)
            at += timedelta(seconds=happening.chance.randrange(20, 400))

    def _person(self, text: str) -> str:
        return self._people.get(text, text)


def _quoted(thread: _Thread) -> dict[str, str]:
    if thread.last is None:
        return {}
    text, writer, at = thread.last
    lines = "\n".join(f"> {line}" if line else ">" for line in text.splitlines())
    return {"quoted": f"{writer.partition(' <')[0]} wrote on {at:%d %B}:\n{lines}"}


def _attachment(connection: str, message: str, file: Mapping[str, str], at: datetime) -> Invented:
    content = file["text"].encode()
    data = {
        "id": f"{message}-{slug(file['name'], _MOST_WORDS_CHARS)}",
        "message_id": message,
        "name": file["name"],
        "mime_type": "text/plain",
        "size": len(content),
        "sent_at": _utc(at),
        "text": file["text"],
    }
    return Invented(connection, "attachments", data, at, content)


def _event(happening: Happening) -> Iterator[Invented]:
    step, is_whole_days = happening.step, "days" in happening.step
    ends = happening.at + timedelta(days=step.get("days", 0), hours=step.get("hours", 0))
    title = happening.text("title")
    data: dict[str, Any] = {
        "id": f"{happening.key}-{slug(title, _MOST_WORDS_CHARS)}-{happening.at:%m%d}",
        "title": title,
        "calendar": step["calendar"],
        "starts_at": happening.at.date().isoformat() if is_whole_days else _utc(happening.at),
        "ends_at": ends.date().isoformat() if is_whole_days else _utc(ends),
        "all_day": is_whole_days,
        "status": "confirmed",
        "is_busy": True,
        **{name: text for name in ("location", "description") if (text := happening.text(name))},
    }
    if "attendees" in step:
        data["attendees"] = happening.texts("attendees")
    if step.get("series"):
        data["series_id"] = happening.key.rpartition("-")[0]
    yield Invented(CALENDAR, "events", data, min(happening.at, happening.at - timedelta(days=1)))


def _payment(happening: Happening) -> Iterator[Invented]:
    amount, account = happening.text("amount"), _ACCOUNTS[happening.step["account"]]
    data: dict[str, Any] = {
        "id": f"{happening.key}-{happening.at:%m%d}-{amount}",
        "account_id": account["id"],
        "booked_on": happening.at.date().isoformat(),
        "description": happening.text("description"),
        "counterparty": happening.text("counterparty"),
        "amount": float(amount),
        "amount_text": amount,
        "currency": "GBP",
        "kind": happening.step["payment"],
        "category": happening.text("category"),
        "status": "booked",
    }
    if "reference" in happening.step:
        data["reference"] = happening.text("reference")
    yield Invented(BANK, "transactions", data, happening.at)


def _note(happening: Happening) -> Iterator[Invented]:
    title, folder = happening.text("title"), happening.text("folder")
    data = {
        "id": happening.key,
        "title": title,
        "text": happening.text("text"),
        "folder": folder,
        "kind": "markdown",
        "tags": happening.texts("tags"),
        "created_at": _utc(happening.at),
        "modified_at": _utc(happening.at),
    }
    yield Invented(NOTES, "notes", data, happening.at)


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"


OWNER = "Nora Hallam"
#: Questions that the records answer, each with one right answer.
QUESTIONS = (
    "How much more did the roof repair cost than the quote we accepted, and why?",
    "Why did we stop the print run of sheet 47, and on which day did the corrected sheet go to press?",
    "In which month did we spend most on groceries, and how much?",
)
_CONNECTORS: Mapping[str, str] = {
    HOME_MAIL: "mail",
    WORK_MAIL: "mail",
    CALENDAR: "calendar",
    CHAT: "chat",
    BANK: "money",
    NOTES: "notes",
}
_DECLARED: Mapping[str, tuple[str, Sequence[StreamSpec]]] = {
    "mail": ("Mail", MAIL_STREAMS),
    "calendar": ("Calendar", (EVENTS, TASKS)),
    "chat": ("Chat", (CHANNELS, MESSAGES, MEMBERS)),
    "money": ("Bank statements", MONEY_STREAMS),
    "notes": ("Notes", (NOTE_STREAM,)),
}
_END = instant(f"{YEAR + 1}-01-01T00:00:00Z") or 0
_BATCH_LINES = 4_000


def invented() -> Iterator[Invented]:
    recorder = Recorder(people())
    yield from recorder.accounts()
    for happening in happenings():
        yield from recorder.records(happening)


async def fill(
    store: Store, show: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[dict[str, ConnectionId], int]:
    """Fill an empty store, and return its connections by name and how many records it has.

    `show` is called with how many of them are written, and with how many there are.
    """
    for key, (title, streams) in _DECLARED.items():
        await store.declare(ConnectorKey(key), declaration(key, title, streams))
    connections = {
        name: (await store.create_connection(ConnectorKey(key), name)).id for name, key in _CONNECTORS.items()
    }
    shelves: dict[tuple[str, str], list[bytes]] = {}
    for record in invented():
        if record.file is not None:
            attachment = Attachment(record.file, record.data["mime_type"])
            await store.put_blob(once(attachment.content), attachment.mime_type)
            record.data["file"] = reference(attachment)
        line = msgspec.json.encode({"data": record.data, "emitted_at": f"{record.at:%Y-%m-%dT%H:%M:%S}Z"})
        shelves.setdefault((record.connection, record.stream), []).append(line)
    total, done = sum(map(len, shelves.values())), 0
    for (connection, stream), lines in shelves.items():
        for start in range(0, len(lines), _BATCH_LINES):
            batch = lines[start : start + _BATCH_LINES]
            await store.ingest(Batch(connections[connection], StreamName(stream), batch, _END))
            done += len(batch)
            show(done, total)
    return connections, total
