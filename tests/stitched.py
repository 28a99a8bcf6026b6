"""Mail and chat stitched together from a few sentences at random: seeded, so that it is the same every time.

None of the people exist. Two mail accounts and two chat workspaces have streams of the same name, some texts are
long, and a few records carry a file. Each record is about one of eight subjects and mentions others, which is what
tests and benchmarks of search grade by.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.instants import instant, iso
from headgate.model.rows import Batch
from headgate.store.engines.store import Store

_SEED = 8321
_START = instant("2024-01-01T08:00:00Z") or 0
_HOUR = 3_600_000_000
_LONG_EVERY = 160
_FILE_EVERY = 90
_PEOPLE = (
    "Ines Albrecht",
    "Tomás Varga",
    "Priya Raman",
    "Jonas Weiher",
    "Aiko Mori",
    "Lucia Ferro",
    "Sam Okafor",
)
_TOPICS = {
    "bridge": "The bridge over the mill canal needs new planks before the autumn flood.",
    "concert": "Tickets for the concert in the old riding hall are on sale from Friday.",
    "garden": "The tomatoes in the shared garden want tying up, and the water barrel leaks.",
    "invoice": "The invoice for the roof repair is attached; payment is due in thirty days.",
    "trip": "For the trip to the coast we take the early train and rent bicycles there.",
    "recipe": "The recipe calls for two onions, a spoon of paprika and half an hour of patience.",
    "school": "The school asks for volunteers to paint the gym during the holidays.",
    "boat": "The boat passed its survey; only the bilge pump has to be replaced.",
}
_CHANNELS = ("general", "allotment", "boat-club", "kitchen")
#: A picture of one grey point.
_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6368000000"
    "820081773cd6f60000000049454e44ae426082"
)

_TEXT: dict[str, Any] = {"type": "string"}
_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True)
class StitchedAccount:
    """One connection, and how much it brings."""

    connector_key: ConnectorKey
    display_name: str
    records: int


ACCOUNTS = (
    StitchedAccount(ConnectorKey("mail"), "Home mail", 1600),
    StitchedAccount(ConnectorKey("mail"), "Work mail", 1400),
    StitchedAccount(ConnectorKey("chat"), "Village chat", 1100),
    StitchedAccount(ConnectorKey("chat"), "Boat club", 900),
)


async def fill(store: Store, accounts: Sequence[StitchedAccount] = ACCOUNTS) -> dict[str, ConnectionId]:
    """Fill an empty store; gives the connections by their names."""
    for key, document in _declarations().items():
        await store.declare(ConnectorKey(key), document)
    picture = await _keep_picture(store)
    made: dict[str, ConnectionId] = {}
    for number, account in enumerate(accounts):
        connection = await store.create_connection(account.connector_key, account.display_name)
        made[account.display_name] = connection.id
        chance = random.Random(_SEED + number)
        write = _mail if account.connector_key == "mail" else _chat
        lines = list(write(chance, account.records, picture))
        for stream in dict.fromkeys(name for name, _ in lines):
            batch = [msgspec.json.encode(line) for name, line in lines if name == stream]
            await store.ingest(Batch(connection.id, StreamName(stream), batch, _START))
    return made


async def _keep_picture(store: Store) -> dict[str, Any]:
    async def content() -> AsyncGenerator[bytes]:
        yield _PICTURE

    blob, size = await store.put_blob(content(), "image/png")
    digest = hashlib.sha256(_PICTURE).hexdigest()
    return {"blob_id": blob, "mime_type": "image/png", "size_bytes": size, "sha256": digest}


def _mail(chance: random.Random, count: int, picture: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for number in range(count):
        topic = chance.choice(tuple(_TOPICS))
        key, at = f"m{number:05}", _moment(chance, number, count)
        data: dict[str, Any] = {
            "id": key,
            "subject": f"{chance.choice(('About the', 'Re: the', 'News on the', 'Question on the'))} {topic}",
            "sender": chance.choice(_PEOPLE),
            "sent_at": iso(at),
            "body": _body(chance, topic, number),
            "size": chance.randrange(400, 90_000),
            "is_read": chance.random() < 0.8,
        }
        if number % _FILE_EVERY == 1:
            data["attachment"] = picture
            yield (
                "attachments",
                _line({"id": f"a{number:05}", "message_id": key, "name": "scan.png", "file": picture}, at),
            )
        yield "messages", _line(data, at)


def _chat(
    chance: random.Random, count: int, _picture: dict[str, Any]
) -> Iterable[tuple[str, dict[str, Any]]]:
    for channel in _CHANNELS:
        yield "channels", _line({"id": channel, "name": channel.replace("-", " ").title()}, _START)
    for number in range(count):
        topic = chance.choice(tuple(_TOPICS))
        at = _moment(chance, number, count)
        data: dict[str, Any] = {
            "id": f"c{number:05}",
            "channel": chance.choice(_CHANNELS),
            "author": chance.choice(_PEOPLE),
            "sent_at": iso(at),
            "text": _body(chance, topic, number),
            "reactions": chance.randrange(0, 9),
        }
        yield "messages", _line(data, at)


def _moment(chance: random.Random, number: int, count: int) -> int:
    # Two and a half years, evenly, so that the newest record of every account is of the same week.
    return _START + number * (21_900 * _HOUR // count) + chance.randrange(_HOUR)


def _body(chance: random.Random, topic: str, number: int) -> str:
    others = chance.sample(tuple(_TOPICS.values()), 2)
    text = " ".join((_TOPICS[topic], *others))
    if number % _LONG_EVERY:
        return text
    pages = [f"{page + 1}. {chance.choice(tuple(_TOPICS.values()))}" for page in range(300)]
    return "\n".join((f"Minutes of the meeting on the {topic}.", *pages, "So agreed."))


def _line(data: dict[str, Any], at: int) -> dict[str, Any]:
    return {"data": data, "emitted_at": iso(at + 60_000_000)}


def _declarations() -> dict[str, dict[str, Any]]:
    return {
        "mail": _declaration("mail", "Mail", _mail_streams()),
        "chat": _declaration("chat", "Chat", _chat_streams()),
    }


def _declaration(key: str, name: str, streams: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://demo.example/connectors/{key}"},
        "declaration_version": "1",
        "publisher": {"id": "https://demo.example"},
        "display": {"name": name},
        "streams": streams,
    }


def _stream(name: str, properties: dict[str, Any], query: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "semantics": "mutable_state",
        "schema": {"type": "object", "properties": {"id": _TEXT, **properties}, "required": ["id"]},
        "primary_key": ["id"],
        "selection": {"fields": True, "resources": True},
        "query": query,
        **more,
    }


def _messages(properties: dict[str, Any], words: list[str], groups: list[str], **more: Any) -> dict[str, Any]:
    number = next(name for name, schema in properties.items() if schema.get("type") == "integer")
    query: dict[str, Any] = {
        "range_filters": {"sent_at": ["gte", "gt", "lte", "lt"], number: ["gte", "lt"]},
        "search": {"lexical_fields": words},
        "aggregations": {
            "count": True,
            "sum": [number],
            "min": [number, "sent_at"],
            "max": [number, "sent_at"],
            "count_distinct": groups,
            "group_by": groups,
            "group_by_time": ["sent_at"],
        },
    }
    query |= more.pop("query", {})
    return _stream(
        "messages", properties, query, cursor_field="sent_at", consent_time_field="sent_at", **more
    )


def _mail_streams() -> list[dict[str, Any]]:
    mail = {
        "subject": {**_TEXT, "x_pdpp_role": "primary-title"},
        "sender": _TEXT,
        "sent_at": _TIME,
        "body": _TEXT,
        "size": {"type": "integer"},
        "is_read": {"type": "boolean"},
        "attachment": {"type": "object"},
    }
    attachment = {"message_id": _TEXT, "name": _TEXT, "file": {"type": "object"}}
    return [
        _messages(
            mail,
            ["subject", "body"],
            ["sender", "is_read"],
            query={"expand": [{"name": "attachments", "default_limit": 5, "max_limit": 20}]},
            relationships=[
                {
                    "name": "attachments",
                    "stream": "attachments",
                    "foreign_key": "message_id",
                    "cardinality": "has_many",
                }
            ],
        ),
        _stream("attachments", attachment, {}),
    ]


def _chat_streams() -> list[dict[str, Any]]:
    chat = {
        "channel": _TEXT,
        "author": _TEXT,
        "sent_at": _TIME,
        "text": _TEXT,
        "reactions": {"type": "integer"},
    }
    return [_messages(chat, ["text"], ["channel", "author"]), _stream("channels", {"name": _TEXT}, {})]
