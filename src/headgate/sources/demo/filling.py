"""Fill an empty store with the year."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.instants import instant
from headgate.sources.calendar.shape import EVENTS, TASKS
from headgate.sources.chat.shape import CHANNELS, MEMBERS, MESSAGES
from headgate.sources.declaring import declaration
from headgate.sources.demo import records
from headgate.sources.demo.episodes import YEAR, happenings, people
from headgate.sources.demo.records import Invented, Recorder
from headgate.sources.mail.source import mail_declaration
from headgate.sources.money.ledger import money_declaration
from headgate.sources.notes.source import NOTE_STREAM
from headgate.store.protocol import Batch, Store

OWNER = "Nora Hallam"
#: Questions that the records answer, each with one right answer.
QUESTIONS = (
    "How much more did the roof repair cost than the quote we accepted, and why?",
    "Why did we stop the print run of sheet 47, and on which day did the corrected sheet go to press?",
    "In which month did we spend most on groceries, and how much?",
)
_CONNECTORS: Mapping[str, str] = {
    records.HOME_MAIL: "mail",
    records.WORK_MAIL: "mail",
    records.CALENDAR: "calendar",
    records.CHAT: "chat",
    records.BANK: "money",
    records.NOTES: "notes",
}
_END = instant(f"{YEAR + 1}-01-01T00:00:00Z") or 0
_BATCH_LINES = 4_000


def invented() -> Iterator[Invented]:
    """Make every record of the year."""
    recorder = Recorder(people())
    yield from recorder.accounts()
    for one in happenings():
        yield from recorder.records(one)


async def fill(
    store: Store, show: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[dict[str, ConnectionId], int]:
    """Fill an empty store, and return its connections by name and how many records it has.

    `show` is called with how many of them are written, and with how many there are.
    """
    for key, document in _declarations().items():
        await store.declare(ConnectorKey(key), document)
    made = {
        name: (await store.create_connection(ConnectorKey(key), name)).id for name, key in _CONNECTORS.items()
    }
    shelves: dict[tuple[str, str], list[bytes]] = {}
    for one in invented():
        if one.file is not None:
            one.data["file"] = await _stored(store, one.file, one.data["mime_type"])
        line = msgspec.json.encode({"data": one.data, "emitted_at": f"{one.at:%Y-%m-%dT%H:%M:%S}Z"})
        shelves.setdefault((one.connection, one.stream), []).append(line)
    total, done = sum(map(len, shelves.values())), 0
    for (connection, stream), lines in shelves.items():
        for start in range(0, len(lines), _BATCH_LINES):
            batch = lines[start : start + _BATCH_LINES]
            await store.ingest(Batch(made[connection], StreamName(stream), batch, _END))
            done += len(batch)
            show(done, total)
    return made, total


def _declarations() -> dict[str, dict[str, Any]]:
    return {
        "mail": mail_declaration("mail", "Mail"),
        "calendar": declaration("calendar", "Calendar", [EVENTS, TASKS]),
        "chat": declaration("chat", "Chat", [CHANNELS, MESSAGES, MEMBERS]),
        "money": money_declaration(),
        "notes": declaration("notes", "Notes", [NOTE_STREAM]),
    }


async def _stored(store: Store, content: bytes, mime_type: str) -> dict[str, Any]:
    async def pieces() -> AsyncGenerator[bytes]:
        yield content

    blob, size = await store.put_blob(pieces(), mime_type)
    digest = hashlib.sha256(content).hexdigest()
    return {"blob_id": blob, "mime_type": mime_type, "size_bytes": size, "sha256": digest}
