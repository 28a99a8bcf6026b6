"""Two homes that are equal in everything a grant may see, and random in everything else."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from headgate.model.grant import Grant, TimeConstraint
from headgate.model.hiding import HidingRule, RuleId, RuleKind
from headgate.model.ids import ConnectionId, FieldName, RecordId
from headgate.store.search.meaning import SearchMemory
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

SINCE = 1_772_323_200_000_000  # 2026-03-01
VISIBLE = ("id", "sender", "subject", "sent_at", "size", "quoted")
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord")
#: What stands between them, to be read after them.
NUMBERS = ("12.50", "-3", "7", "2026-03-04")
#: Words that only hidden text holds: other forms of the visible ones, and such as a typing error away.
_HIDDEN_WORDS = (
    *WORDS,
    *NUMBERS,
    "40",
    "ambers",
    "birches",
    "cedars",
    "fjords",
    "embers",
    "fjort",
    "deltas",
    "ambrer",
)
#: Who and what a rule of the owner hides.
RULED = "zeppelin"
#: Bookmarks are random on purpose, and search cursors hold the engine's own numbers, sealed.
_SEALED = re.compile(rb"(?:bm|ch|se)1\.[A-Za-z0-9_-]+")
#: Names of cursors; what they stand for is compared.
_NAMED = re.compile(rb"\bc\.([A-Za-z0-9_-]{22})(?![A-Za-z0-9_-])")


def document() -> dict[str, Any]:
    made = declaration()
    messages = made["streams"][0]
    messages["query"]["aggregations"]["group_by"] = ["sender", "is_read", "day"]
    messages["query"]["aggregations"]["sum"] = ["size", "weight"]
    messages["query"]["search"]["semantic_fields"] = ["subject", "body"]
    messages["query"]["search"]["lexical_fields"].append("quoted")
    messages["schema"]["properties"]["quoted"] = {"type": "string"}
    attachments = made["streams"][1]
    attachments["schema"]["properties"]["rank"] = {"type": "integer"}
    attachments |= {"semantics": "mutable_state", "cursor_field": "rank"}
    made["streams"].append(
        {
            "name": "diary",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "body": {"type": "string"}},
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": False},
            "query": {"search": {"lexical_fields": ["body"]}, "aggregations": {"count": True}},
        }
    )
    made["streams"].append(
        {
            "name": "notes",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "text": {"type": "string"},
                    "secret": {"type": "string"},
                    "placed_at": {"type": "string", "format": "date-time"},
                },
            },
            "primary_key": ["id"],
            "cursor_field": "placed_at",
            "consent_time_field": "placed_at",
            "selection": {"fields": True, "resources": False},
            "query": {"search": {"lexical_fields": ["text"]}, "aggregations": {"count": True}},
        }
    )
    return made


#: The second has no name: its id is made from its connector.
HOME, WORK, HIDDEN = "aa", "mail", "cc"


def grants() -> dict[str, Grant]:
    """One that sees times, one that does not, one for chosen records only."""
    both = (ConnectionId(HOME), ConnectionId(WORK))
    time = TimeConstraint(FieldName("sent_at"), SINCE)
    return {
        "timed": grant(
            stream_grant("messages", *VISIBLE, connections=both, time=time),
            stream_grant("attachments", "id", "message_id", connections=both[:1]),
            # All rows of it are visible; what they are ordered and dated by is not.
            stream_grant("notes", "id", "text", connections=both),
            id_="grt_timed",
        ),
        "blind": grant(
            stream_grant("messages", "id", "sender", "subject", "size", connections=both, time=time),
            id_="grt_blind",
        ),
        "chosen": grant(
            stream_grant(
                "messages",
                *VISIBLE,
                connections=both,
                resources=frozenset(map(RecordId, ("v1", "v2", "v3", "zz"))),
            ),
            id_="grt_chosen",
        ),
    }


@dataclass
class Twin:
    program: LocalProgram
    tokens: dict[str, str]


def _visible(dice: random.Random, key: str, turn: int) -> dict[str, Any]:
    return {
        "sender": dice.choice(("ann", "bob", "cy")),
        "subject": " ".join(dice.choices((*WORDS, *NUMBERS), k=dice.randint(1, 6))),
        "sent_at": f"2026-03-{dice.randint(1, 28):02}T{dice.randint(0, 23):02}:00:00Z",
        "size": dice.randint(0, 9),
        "quoted": " ".join(dice.choices(WORDS, k=dice.randint(0, 4))),
        "emitted_at": f"2026-04-01T00:00:{turn % 60:02}Z",
        "id": key,
    }


def _hidden(dice: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "body": " ".join(dice.choices(_HIDDEN_WORDS, k=dice.randint(0, 30))),
        "weight": dice.random(),
        "is_read": dice.random() < 0.5,
        "day": f"2026-05-{dice.randint(1, 28):02}",
        "headers": {"x": dice.random()},
        "anything": dice.choice((None, "x", 1)),
    }
    return {name: value for name, value in made.items() if dice.random() < 0.8}


def _line(data: dict[str, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in data.items() if name not in {"emitted_at", "id"}}
    return record(data["id"], data["emitted_at"], **values, **hidden)


Step = tuple[str, str, list[dict[str, Any]], int]


def _ops(shared: random.Random, own: random.Random) -> Iterator[Step]:
    """Batches to ingest: what is seen comes from the shared dice, what is hidden from the home's own.

    Each has the second at which it comes in: that of its turn, or a later one for what only hidden data changes.
    """
    for turn in range(24):
        connection = shared.choice((HOME, WORK))
        key = f"v{shared.randint(1, 12)}"
        for noise in _noise(own, turn):
            yield *noise, turn * 60 + own.randint(0, 59)
        if shared.random() < 0.15:
            gone = {"key": key, "data": {"id": key}, "op": "delete", "emitted_at": "2026-04-02T00:00:00Z"}
            yield connection, "messages", [gone], turn * 60
            continue
        data = _visible(shared, key, turn)
        yield connection, "messages", [_line(data, _hidden(own))], turn * 60
        if own.random() < 0.5:
            later = data | {"emitted_at": f"2026-05-01T00:00:{own.randint(0, 59):02}Z"}
            yield connection, "messages", [_line(later, _hidden(own))], turn * 60 + own.randint(0, 59)
        if connection == HOME and shared.random() < 0.6:
            children = [_child(str(number), key, own) for number in range(1, shared.randint(2, 5))]
            yield HOME, "attachments", children, turn * 60
        yield from _notes(shared, own, turn)


def _child(number: str, parent: str, own: random.Random) -> dict[str, Any]:
    data = {"id": number, "message_id": parent, "rank": own.randint(0, 99)}
    return {"key": [parent, number], "data": data, "emitted_at": "2026-04-01T00:00:00Z"}


def _notes(shared: random.Random, own: random.Random, turn: int) -> Iterator[Step]:
    """A note, and sometimes another state of the same note that differs in what is hidden alone."""
    connection, key = shared.choice((HOME, WORK)), f"n{shared.randint(1, 8)}"
    text = " ".join(shared.choices(WORDS, k=2))
    emitted_at = f"2026-04-03T00:00:{turn % 60:02}Z"
    for again in range(own.randint(1, 2)):
        placed_at = f"2026-03-{own.randint(1, 28):02}T00:00:00Z"
        line = record(key, emitted_at, text=text, secret=own.choice(WORDS), placed_at=placed_at)
        yield connection, "notes", [line], turn * 60 + again * own.randint(1, 59)
        emitted_at = f"2026-05-02T00:00:{own.randint(0, 59):02}Z"


def _noise(own: random.Random, turn: int) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    for _ in range(own.randint(0, 3)):
        key = f"h{own.randint(1, 60)}"
        data = _visible(own, key, turn) | {
            "sent_at": f"2026-02-{own.randint(1, 28):02}T00:00:00Z",
            "subject": " ".join(own.choices(_HIDDEN_WORDS, k=own.randint(1, 6))),
        }
        match own.randint(0, 6):
            case 0 | 1:
                yield own.choice((HOME, WORK)), "messages", [_line(data, _hidden(own))]
            case 2:
                yield HIDDEN, "messages", [_line(_visible(own, key, turn), _hidden(own))]
            case 5:
                # In time and on granted connections, and yet hidden: by a rule of the owner.
                made = _visible(own, key, turn) | {"sender": RULED}
                yield own.choice((HOME, WORK)), "messages", [_line(made, _hidden(own))]
            case 6:
                line = record(f"x{key}", text=" ".join((RULED, *own.choices(_HIDDEN_WORDS, k=3))))
                yield own.choice((HOME, WORK)), "notes", [line]
            case 3:
                yield HOME, "diary", [record(key, body=" ".join(own.choices(WORDS, k=9)))]
            case _:
                yield WORK, "attachments", [_child(key, f"v{own.randint(1, 12)}", own)]


async def build_twin(program: LocalProgram, seed: int, own_seed: int) -> Twin:
    """Fill a home: what is seen comes from one seed, what is hidden from the other."""
    await program.declare("mail", document())
    rule = HidingRule(RuleId("rul_1"), RuleKind.WORDS, RULED)
    await program.services.store.add_rule(rule, at=program.clock.at)
    for name in (HOME, WORK, HIDDEN):
        assert await program.connect("mail", "" if name == WORK else name) == name
    started_at = program.clock.at
    for connection, stream, lines, second in _ops(random.Random(seed), random.Random(own_seed)):
        program.clock.at = started_at + second * 1_000_000
        await program.ingest(connection, stream, lines)
    program.clock.at = started_at + 86_400_000_000
    return Twin(program, {name: await program.grant(one) for name, one in grants().items()})


class Twins:
    """Pairs of homes, and one question asked to both of a pair."""

    def __init__(self, place: Path, pairs: int, flags: Mapping[int, Mapping[str, str]] | None = None) -> None:
        """Open pairs of homes; ``flags`` are settings of those of them that have others, by number."""
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.pairs = self.runner.run(self._open(place, pairs, flags or {}))

    async def _open(
        self, place: Path, pairs: int, flags: Mapping[int, Mapping[str, str]]
    ) -> list[tuple[Twin, Twin]]:
        keys = place / "first" / "home" / "keys"
        found: list[tuple[Twin, Twin]] = []
        for number in range(pairs):
            pair: list[Twin] = []
            for own in (1, 2):
                here = place / f"{number}-{own}"
                (here / "home" / "keys").mkdir(parents=True, mode=0o700)
                (here / "home").chmod(0o700)
                if keys.exists():
                    (here / "home" / "keys" / "seal.json").write_bytes((keys / "seal.json").read_bytes())
                    (here / "home" / "keys" / "seal.json").chmod(0o600)
                else:
                    keys = here / "home" / "keys"
                own_flags = {"store_home": str(here), **flags.get(own, {})}
                program = await self._stack.enter_async_context(
                    local_program(here, semantic_model="multilingual", **own_flags)
                )
                pair.append(await build_twin(program, number, number * 100 + own))
                # Until all vectors are made, an answer says how many visible records still have none.
                assert await program.services.store.wait_for_vectors(120)
            found.append((pair[0], pair[1]))
        return found

    def forget(self) -> None:
        """Forget what was worked out from rules that have changed."""
        for twin in (one for pair in self.pairs for one in pair):
            twin.program.services.reads._memo.decisions.clear()
            twin.program.services.reads.store._memory = SearchMemory()

    def close(self) -> None:
        self.runner.run(self._stack.aclose())
        self.runner.close()

    def transcripts(self, number: int, steps: Sequence[Any], who: str) -> tuple[list[bytes], list[bytes]]:
        """Ask both homes of a pair the same, and give all they answered."""
        pair = self.pairs[number % len(self.pairs)]
        first, second = (self.runner.run(transcript(twin, steps, who)) for twin in pair)
        return first, second


async def transcript(twin: Twin, steps: Sequence[Any], who: str) -> list[bytes]:
    """Ask one home, step by step, and give all it answered."""
    answers: list[bytes] = []
    tokens: dict[str, str] = {}
    for path, params in steps:
        filled = [(name, tokens.get(value, value)) for name, value in params]
        answer = await twin.program.get(
            f"{path}?{urlencode(filled, quote_via=quote)}", twin.tokens[who], headers=[("request-id", "r")]
        )
        whole = f"{answer.status} {sorted(answer.headers.items())} ".encode() + answer.content
        answers.append(_comparable(twin, whole))
        if answer.status == 200:
            body = answer.body
            tokens["<next>"] = str(body.get("next_cursor", "none"))
            tokens["<since>"] = str(body.get("next_changes_since", tokens.get("<since>", "beginning")))
            tokens["<window>"] = str(body.get("window", {}).get("next_cursor"))
    return answers


def _comparable(twin: Twin, whole: bytes) -> bytes:
    """Of some sealed tokens only the length can be compared; everything else must be the same byte for byte."""
    shelf: Any = twin.program.services.reads.sealer

    def sealed(name: re.Match[bytes]) -> bytes:
        token = shelf._shelf.get(f"c.{name[1].decode()}")
        # What a client made up stands for nothing.
        return name[0] if token is None else token.encode()

    whole = _NAMED.sub(sealed, whole)
    return _SEALED.sub(lambda found: b"<sealed, %d>" % len(found[0]), whole)
