"""A home like the one the recorded requests were made against: one source, three accounts, two clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.model.ids import ConnectionId
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

FIELDS = ("id", "sender", "channel", "subject", "body", "sent_at", "size", "attachment_text")


def _document() -> dict[str, Any]:
    document = declaration()
    text = {"type": "string"}
    messages: dict[str, Any] = {
        "name": "messages",
        "semantics": "mutable_state",
        "schema": {
            "type": "object",
            "properties": dict.fromkeys(FIELDS, text)
            | {"sent_at": {"type": "string", "format": "date-time"}, "size": {"type": "integer"}},
            "required": ["id"],
        },
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "consent_time_field": "sent_at",
        "selection": {"fields": True, "resources": True},
        "query": {
            "range_filters": {"sent_at": ["gte", "lt"]},
            "search": {"lexical_fields": ["subject", "body"]},
            "aggregations": {
                "count": True,
                "sum": ["size"],
                "min": ["sent_at"],
                "count_distinct": ["sender"],
                "group_by": ["channel", "sender"],
                "group_by_time": ["sent_at"],
            },
        },
    }
    return document | {"streams": [messages], "selection_presets": []}


def _record(key: str, number: int, **more: Any) -> dict[str, Any]:
    values = {
        "sender": f"user{number % 9}@example.org", "channel": ("eng", "ops", "sales")[number % 3], "subject": f"note {number}",
        "body": "from zanzibar" if number % 3 == 0 else "from elsewhere", "size": number,
        "sent_at": f"2024-08-{number % 28 + 1:02}T00:00:00Z",
    }  # fmt: skip
    return record(key, **(values | more))


@dataclass(frozen=True, slots=True)
class Recorded:
    program: LocalProgram
    names: dict[str, str]
    tokens: dict[str, str | None]

    async def ask(self, sample: dict[str, Any]) -> HttpAnswer:
        """Send the recorded request, with the names of this home."""
        path = sample["path"]
        if "NEXT" in path:
            first = await self._ask("GET", path.replace("&cursor=NEXT", ""), sample["who"], b"")
            path = path.replace("NEXT", quote(first.body["next_cursor"]))
        return await self._ask(sample["method"], path, sample["who"], (sample["body"] or "").encode())

    async def _ask(self, method: str, path: str, who: str, body: bytes) -> HttpAnswer:
        for name, real in self.names.items():
            path = path.replace(name, real)
        return await self.program.ask(method, path, self.tokens[who], body=body)


@asynccontextmanager
async def recorded(place: Path, **flags: str) -> AsyncIterator[Recorded]:
    async with local_program(place, **flags) as program:
        await program.declare("mail", _document())
        names = {
            name.upper(): await program.connect("mail", name) for name in ("personal", "work", "archive")
        }
        for at, connection in enumerate(names.values()):
            rows = [_record(f"msg_{at}{n:06}", n) for n in range(120 if at == 0 else 6)]
            await program.ingest(connection, "messages", [*rows, _record("shared_1", 3)])
        text = "long " * 2000 + "NEEDLE_TOKEN" + " longer" * 2000
        await program.ingest(names["PERSONAL"], "messages", [_record("big_0_0", 1, attachment_text=text)])
        everywhere = tuple(map(ConnectionId, names.values()))
        client = await program.grant(
            grant(stream_grant("messages", *FIELDS, connections=everywhere), id_="grt_wide")
        )
        narrow = await program.grant(
            grant(
                stream_grant("messages", "id", "subject", "sent_at", connections=everywhere), id_="grt_narrow"
            )
        )
        tokens = {
            "client": client,
            "narrow": narrow,
            "owner": program.owner,
            "stranger": "nonsense",
            "nobody": None,
        }
        yield Recorded(program, names, tokens)
