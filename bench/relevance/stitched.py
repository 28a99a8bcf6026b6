"""Questions over stitched records, with grades that follow from what each record was written about.

They have eight subjects; a record is about one of them, and mentions two others. A line of a file of questions is
``subject: question`` or ``subject, person: question``. A record about the subject (and by the person) is right, one
that mentions it is near.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.relevance.scoring import NEAR, RIGHT, Question
from headgate.model.ids import ConnectionId
from headgate.model.rows import Batch
from headgate.store.engines.sqlite import SqliteStore
from tests.stitched import _TOPICS, fill

NAME = "stitched"
SEARCHED = ("subject", "body", "text", "sender", "author")
COMPARED = ("subject", "body", "text")


@dataclass(frozen=True, slots=True)
class StitchedRecord:
    """A message: where it is, who wrote it, and all its searched text."""

    anchor: str
    person: str
    text: str
    heading: str = ""

    def grade(self, subject: str, person: str) -> int:
        """Say how good an answer it is."""
        if person and person != self.person:
            return 0
        place = self.text.find(_TOPICS[subject])
        others = [at for text in _TOPICS.values() if (at := self.text.find(text)) >= 0]
        is_about = f"Minutes of the meeting on the {subject}." in self.text or (
            "Minutes of" not in self.text and place == min(others)
        )
        return RIGHT if is_about else NEAR if place >= 0 else 0


@dataclass(slots=True)
class _Copied:
    """A store that notes the messages which are put into it."""

    store: SqliteStore
    accounts: dict[ConnectionId, int] = field(default_factory=dict[ConnectionId, int])
    records: list[StitchedRecord] = field(default_factory=list[StitchedRecord])

    async def declare(self, *arguments: Any) -> None:
        await self.store.declare(*arguments)

    async def create_connection(self, *arguments: Any) -> Any:
        return await self.store.create_connection(*arguments)

    async def put_blob(self, content: AsyncIterator[bytes], mime_type: str) -> Any:
        return await self.store.put_blob(content, mime_type)

    async def ingest(self, batch: Batch) -> None:
        await self.store.ingest(batch)
        if batch.stream == "messages":
            account = self.accounts.setdefault(batch.connection_id, len(self.accounts))
            self.records += [_record(account, line) for line in batch.lines]


async def fill_stitched(store: SqliteStore) -> tuple[dict[ConnectionId, int], Sequence[StitchedRecord]]:
    """Fill a store with the stitched records; gives its connections by number, and its messages."""
    copied = _Copied(store)
    await fill(copied)  # pyright: ignore[reportArgumentType] - it has what is used
    return copied.accounts, copied.records


def stitched_questions(lines: Sequence[str], records: Sequence[StitchedRecord]) -> list[Question]:
    """Read a file's lines, and grade the records for each."""
    questions: list[Question] = []
    for line in lines:
        about, _, text = line.partition(": ")
        subject, _, person = about.partition(", ")
        grades = {one.anchor: grade for one in records if (grade := one.grade(subject, person))}
        questions.append(Question(text, grades))
    return questions


def _record(account: int, line: bytes) -> StitchedRecord:
    data = msgspec.json.decode(line)["data"]
    text = " ".join(data[name] for name in SEARCHED if name in data)
    return StitchedRecord(f"{account}/{data['id']}", data.get("sender") or data["author"], text)
