"""Made-up personal records: five streams over many connections, the same for the same seed.

Words follow Zipf's law over 60 000 of them, one in fifty with accents or in another script, and some texts hold
a code that stands nowhere else. Connections differ in size; times go forward with a few days of disorder.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from headgate.model.ids import ConnectorKey, StreamName

HOME = ConnectorKey("household")
VOCABULARY = 60_000
BIG_CHARS = 5_000_000
FARAWAY = "zzfaraway"
_EMAIL_CHARS = 600
_TABLE = 1 << 20
_FIRST, _LAST = 1_577_836_800, 1_767_225_600
_DISORDER = 200_000


def _listed(text: str) -> list[str]:
    return text.split()


_COMMON = _listed(
    "the of and to a in is you that it he was for on are as with his they I at be this have from or one had by "
    "word but not what all were we when your can said there use an each which she do how their if will up other "
    "about out many then them these so some her would make like him into time has look two more write go see "
    "number no way could people my than first water been call who oil its now find long down day did get come "
    "made may part meeting invoice project deadline budget flight hotel dinner coffee family doctor school "
    "payment order shipping delivery weekend holiday birthday train ticket report draft contract review code "
    "server database release customer support account update schedule team lunch morning evening tomorrow"
)
_SYLLABLES = _listed(
    "ba be bi bo bu ca ce ci co cu da de di do du fa fe fi fo ga ge gi go gu ha he hi ho la le li lo lu ma me mi "
    "mo mu na ne ni no nu pa pe pi po pu ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo za ze zi zo "
    "bra cla dri fro gra kla pre qui sta stro tri shen mar ten lon vel kor pan dis min tal ran fer"
)
_ACCENTS = str.maketrans({"a": "á", "e": "é", "o": "ö", "u": "ü", "n": "ñ", "c": "ç"})
_FOREIGN = (
    "привет",
    "встреча",
    "счёт",
    "会議",
    "請求書",
    "予定",
    "안녕하세요",
    "مرحبا",
    "🎉",
    "👍🏽",
    "naïve",
    "Straße",
)
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Made:
    """One line for one stream of one connection."""

    connection: int
    stream: StreamName
    line: bytes


class Household:
    """A seeded maker of records."""

    def __init__(self, seed: int = 7, connections: int = 20) -> None:
        self.random = random.Random(seed)
        # The words themselves never depend on the seed: a bench can ask for one by its rank.
        fixed = random.Random(1)
        self.words = _vocabulary(fixed)
        self._drawn = _by_rank(self.words, 1.0, _TABLE)
        self._connections = list(itertools.accumulate(1 / (n + 1) ** 0.6 for n in range(connections)))
        self._people = _by_rank([_name(fixed, self.words, 2) for _ in range(2000)], 0.9, 1 << 16)
        self._shops = _by_rank([_name(fixed, self.words, 3) for _ in range(3000)], 0.9, 1 << 16)
        self._artists = _by_rank([_name(fixed, self.words, 2) for _ in range(1500)], 0.9, 1 << 16)

    def make(self, records: int, first: int = 0) -> Iterator[Made]:
        """Make records numbered from first on; later ones are younger."""
        makers: Sequence[tuple[str, Callable[[str, int], dict[str, Any]]]] = (
            ("messages", self._message),
            ("transactions", self._transaction),
            ("events", self._event),
            ("files", self._file),
            ("activities", self._activity),
        )
        shares = (60, 80, 88, 95, 100)
        draw = self.random.random
        for number in range(first, first + records):
            name, maker = makers[bisect(shares, draw() * 100)]
            connection = bisect(self._connections, draw() * self._connections[-1])
            at = _FIRST + int((_LAST - _FIRST) * (number - first) / records) - int(draw() * _DISORDER)
            body = _encode(maker(f"{name[:3]}_{number:08}", at))
            line = b'{"data":%b,"emitted_at":"%b"}' % (body, _time(at + 30).encode())
            yield Made(connection, StreamName(name), line)

    def big_file(self, number: int) -> Made:
        """Make a file whose text is very long and holds no word of the others; its last word is its own."""
        numbers = self.random.choices(range(10_000, 60_000), k=BIG_CHARS // 6)
        text = " ".join(map(str, numbers))
        data = {
            **self._file(f"big_{number:04}", _FIRST),
            "content": f"{text} {FARAWAY}",
            "size_bytes": len(text),
        }
        return Made(0, StreamName("files"), _encode({"data": data, "emitted_at": _time(_LAST)}))

    def some(self, count: int) -> list[str]:
        """Draw words by their frequency."""
        return self.random.choices(self._drawn, k=count)

    def text(self, chars: int) -> str:
        """Write sentences of about so many characters."""
        words = self.some(max(3, int(chars / 6.02)))
        if self.random.random() < 0.4:
            words[self.random.randrange(len(words))] = f"REF-{self.random.getrandbits(32):08x}"
        at = 0
        while at < len(words):
            words[at] = words[at].capitalize()
            at += 6 + self.random.getrandbits(4)
            if at < len(words):
                words[at - 1] += "." if at & 7 else ".\n"
        return " ".join(words) + "."

    def _message(self, key: str, at: int) -> dict[str, Any]:
        pick, bits = self.random.choice, self.random.getrandbits
        sender = pick(self._people)
        chars = int(_EMAIL_CHARS * (0.25 + self.random.random() * 1.5))
        return {
            "id": key,
            "conversation_id": f"cv_{int(3000 ** self.random.random()):05}",
            "sender": sender,
            "sender_email": f"{sender.lower().replace(' ', '.')}@example.org",
            "recipients": [pick(self._people) for _ in range(1 + (bits(3) == 0))],
            "subject": " ".join(self.some(3 + bits(2))),
            "text": self.text(chars),
            "sent_at": _time(at),
            "is_read": bits(3) != 0,
            "has_attachments": bits(3) == 0,
            "labels": ["inbox", "work", "home", "travel"][: bits(2)],
            "size": chars + bits(12),
            "lang": pick(("en", "en", "en", "de", "fr", "es", "ru", "ja")),
            "folder": pick(("inbox", "inbox", "archive", "sent", "spam", "lists", "receipts", "drafts")),
            "importance": round(self.random.random(), 4),
        }

    def _transaction(self, key: str, at: int) -> dict[str, Any]:
        pick, bits = self.random.choice, self.random.getrandbits
        minor = -int(self.random.lognormvariate(8, 1.2))
        shop = pick(self._shops)
        return {
            "id": key,
            "account_id": f"acc_{bits(4) % 7:02}",
            "posted_at": _time(at),
            "amount": minor / 100,
            "amount_minor": minor,
            "currency": pick(("EUR", "EUR", "EUR", "USD", "USD", "GBP", "CHF", "JPY")),
            "merchant": shop,
            "category": f"cat_{len(shop) % 24:02}",
            "status": pick(("posted", "posted", "posted", "pending")),
            "description": self.text(60),
            "counterparty": None if bits(1) else pick(self._people),
            "pending": bits(3) == 0,
        }

    def _event(self, key: str, at: int) -> dict[str, Any]:
        pick, bits = self.random.choice, self.random.getrandbits
        guests = bits(3)
        return {
            "id": key,
            "calendar_id": f"cal_{bits(2)}",
            "title": " ".join(self.some(4)),
            "start_at": _time(at),
            "end_at": _time(at + 900 * (1 + guests)),
            "all_day": bits(4) == 0,
            "location": None if bits(1) else " ".join(self.some(2)),
            "attendees": [pick(self._people) for _ in range(guests)],
            "attendee_count": guests,
            "status": pick(("confirmed", "confirmed", "tentative", "cancelled")),
            "description": self.text(200),
            "recurrence": {"freq": "weekly", "count": 1 + guests} if bits(3) == 0 else None,
        }

    def _file(self, key: str, at: int) -> dict[str, Any]:
        pick, bits = self.random.choice, self.random.getrandbits
        name = "_".join(self.some(2)) + pick((".pdf", ".docx", ".txt", ".png"))
        return {
            "id": key,
            "name": name,
            "path": f"/{self.words[100 + bits(5)]}/{self.words[150 + bits(6)]}/{name}",
            "mime_type": pick(("application/pdf", "application/msword", "text/plain", "image/png")),
            "size_bytes": int(self.random.lognormvariate(11, 2)),
            "created_at": _time(at - bits(24)),
            "modified_at": _time(at),
            "owner": pick(self._people),
            "sha256": f"{bits(256):064x}",
            "starred": bits(4) == 0,
            "content": None if bits(1) else self.text(400),
        }

    def _activity(self, key: str, at: int) -> dict[str, Any]:
        pick, bits = self.random.choice, self.random.getrandbits
        return {
            "id": key,
            "kind": pick(("song", "song", "video", "podcast")),
            "played_at": _time(at),
            "title": " ".join(self.some(3)),
            "artist": pick(self._artists),
            "duration_ms": 30_000 + bits(18),
            "device": f"dev_{bits(2)}",
            "skipped": bits(2) == 0,
            "score": None if bits(1) else round(self.random.random() * 5, 2),
        }


def _vocabulary(fixed: random.Random) -> list[str]:
    words = dict.fromkeys(_COMMON)
    while len(words) < VOCABULARY:
        syllables = 2 + (len(words) > 2000) + (fixed.random() < 0.4)
        word = "".join(fixed.choice(_SYLLABLES) for _ in range(syllables))
        chance = fixed.random()
        if chance < 0.015:
            word = word.translate(_ACCENTS)
        elif chance < 0.02:
            word = fixed.choice(_FOREIGN) + (word[:3] if fixed.random() < 0.7 else "")
        words[word] = None
    return list(words)


def _by_rank(values: Sequence[str], slope: float, size: int) -> list[str]:
    """Give a table in which a value of rank n stands as often as 1/n**slope says."""
    weights = list(itertools.accumulate(1 / (rank + 1) ** slope for rank in range(len(values))))
    table: list[str] = []
    for value, weight in zip(values, weights, strict=True):
        table += [value] * (round(weight / weights[-1] * size) - len(table))
    return table


def _name(fixed: random.Random, words: Sequence[str], parts: int) -> str:
    return " ".join(fixed.choice(words[200:8000]).title() for _ in range(parts))


def _time(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# The declaration

_SCALARS = {
    "text": {"type": ["string", "null"]},
    "integer": {"type": ["integer", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "time": {"type": ["string", "null"], "format": "date-time"},
    "list": {"type": "array"},
    "object": {"type": ["object", "null"]},
}


def _stream(
    name: str,
    time: str,
    fields: dict[str, str],
    *,
    search: list[str],
    group_by: list[str],
    numbers: list[str],
) -> dict[str, Any]:
    """Declare one stream; fields are given as kind: names."""
    kinds = {field: kind for kind, names in fields.items() for field in names.split()}
    return {
        "name": name,
        "semantics": "mutable_state",
        "schema": {"properties": {field: _SCALARS[kind] for field, kind in kinds.items()}},
        "primary_key": ["id"],
        "cursor_field": time,
        "consent_time_field": time,
        "selection": {"fields": True, "resources": True},
        "query": {
            "range_filters": {field: ["gte", "gt", "lte", "lt"] for field in [*numbers, time]},
            "search": {"lexical_fields": search},
            "aggregations": {
                "count": True,
                "sum": numbers,
                "min": [*numbers, time],
                "max": [*numbers, time],
                "group_by": group_by,
                "group_by_time": [time],
                "count_distinct": group_by,
            },
        },
    }


def declaration() -> dict[str, Any]:
    """Give the declaration of the five streams."""
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://registry.example/connectors/household"},
        "declaration_version": "1",
        "publisher": {"id": "https://registry.example"},
        "display": {"name": "Household"},
        "streams": [
            _stream(
                "messages",
                "sent_at",
                {
                    "text": "id conversation_id sender sender_email subject text lang folder",
                    "list": "recipients labels",
                    "time": "sent_at",
                    "boolean": "is_read has_attachments",
                    "integer": "size",
                    "number": "importance",
                },
                search=["subject", "text"],
                group_by=["conversation_id", "sender", "is_read", "lang", "folder"],
                numbers=["size", "importance"],
            ),
            _stream(
                "transactions",
                "posted_at",
                {
                    "text": "id account_id currency merchant category status description counterparty",
                    "time": "posted_at",
                    "number": "amount",
                    "integer": "amount_minor",
                    "boolean": "pending",
                },
                search=["merchant", "description"],
                group_by=["account_id", "currency", "merchant", "category", "status"],
                numbers=["amount", "amount_minor"],
            ),
            _stream(
                "events",
                "start_at",
                {
                    "text": "id calendar_id title location status description",
                    "time": "start_at end_at",
                    "boolean": "all_day",
                    "list": "attendees",
                    "integer": "attendee_count",
                    "object": "recurrence",
                },
                search=["title", "location", "description"],
                group_by=["calendar_id", "status"],
                numbers=["attendee_count"],
            ),
            _stream(
                "files",
                "modified_at",
                {
                    "text": "id name path mime_type owner sha256 content",
                    "integer": "size_bytes",
                    "time": "created_at modified_at",
                    "boolean": "starred",
                },
                search=["name", "content"],
                group_by=["mime_type", "owner", "starred"],
                numbers=["size_bytes"],
            ),
            _stream(
                "activities",
                "played_at",
                {
                    "text": "id kind title artist device",
                    "time": "played_at",
                    "integer": "duration_ms",
                    "boolean": "skipped",
                    "number": "score",
                },
                search=["title", "artist"],
                group_by=["kind", "artist", "device"],
                numbers=["duration_ms"],
            ),
        ],
    }
