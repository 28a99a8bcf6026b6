"""No result is larger than its budget, whatever the records, keys, fields and connections are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st

from headgate.auth.grants import Choice, Conditions, issue
from headgate.mcp.serve.call import TOOL_HANDLERS, call
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import ServerIdentity, result_of
from headgate.model.ids import RecordRef, RequestId, StreamName
from headgate.model.reads import READS, arguments_of
from headgate.model.rows import Batch
from headgate.policy.allowance import SourceCatalog
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.text.writing import size
from tests.in_process import LocalProgram, local_program

TEXTS = {"query_records": 8_000, "search": 8_000, "read_record_field": 20_000, "aggregate": 4_000}
#: Arguments that ask for more than the usual answer of a tool.
MORE = {"fields", "expand", "limit_chars", "before_chars", "after_chars", "detail"}
FIELDS = [f"field_{n:03} of {'many ' * 5}" for n in range(400)]
TEXT: dict[str, Any] = {"type": "string"}


def document(fields: list[str]) -> dict[str, Any]:
    known = {"id": TEXT, "at": {"type": "string", "format": "date-time"}, "body": TEXT, "tree": True}
    stream = {
        "name": "papers",
        "semantics": "mutable_state",
        "schema": {"type": "object", "properties": known | dict.fromkeys(fields, True)},
        "primary_key": ["id"],
        "cursor_field": "at",
        "consent_time_field": "at",
        "selection": {"fields": True, "resources": True},
        "query": {
            "search": {"lexical_fields": ["body"]},
            "aggregations": {"count": True, "group_by": ["body", "id"]},
        },
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://registry.example/connectors/papers"},
        "declaration_version": "1",
        "publisher": {"id": "https://registry.example"},
        "display": {"name": "Papers"},
        "streams": [stream],
    }


def nested(depth: int) -> Any:
    value: Any = "the bottom"
    for level in range(depth):
        value = {"level": level, "inner": [value]}
    return value


#: A unit that is repeated, and how many characters there are of it: letters, controls, quotes, invisible and wide ones.
VALUES = st.tuples(
    st.sampled_from(
        ["bridge ", "\u0001\u001f\x7f", '"\\', "世界", "\u202e\u200b", "👩‍👩‍👧", "<mark>", "\ufffe"]
    ),
    st.sampled_from([0, 200, 5_000, 120_000]),
)
KEYS = st.tuples(st.sampled_from(["k", "世", "a/b ", "\U0010ffff"]), st.sampled_from([1, 100, 1_000]))


def papers(values: list[tuple[str, int]], key: tuple[str, int], count: int, *, wide: bool) -> Iterator[bytes]:
    """Give records whose every field is filled with one of the values."""
    names = ["body", *(FIELDS if wide else FIELDS[:3])]
    for n in range(count):
        filled = {name: _of(*values[at % len(values)]) for at, name in enumerate(names)}
        if wide:
            filled = {name: text[:5_000] for name, text in filled.items()}
        filled["body"] = "bridge " + filled["body"]
        data = {"id": f"{n}{_of(*key)}", "at": "2026-01-01T00:00:00Z", "tree": nested(n % 30), **filled}
        yield json.dumps({"data": data}).encode()


def _of(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


async def make_reader(program: LocalProgram, connections: int, lines: list[bytes]) -> Reader:
    await program.declare("papers", document(FIELDS))
    made = [await program.connect("papers", f"Papers {n} " + "名" * 60) for n in range(connections)]
    for connection in made[:3]:
        report = await program.services.store.ingest(Batch(connection, "papers", lines, 1))
        assert report.accepted == len(lines), report
    store = program.services.store
    known = {one.id: one for one in await store.connections()}
    catalog = SourceCatalog(await store.declarations(), known)
    issued = await issue(
        program.services.ledger, Choice(), Conditions("agent"), catalog=catalog, now=program.clock.at
    )
    access = await program.services.admission.admit(issued.access_token)
    reads = program.services.reads
    port = LocalResourceServer(reads, ReadContext(access, RequestId("req_1"), "test"))
    return Reader(port, HandleMaker(reads.sealer), "https://gate.example")


async def asked(reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give calls of every tool, with ids from its own answers."""
    stream = {"stream": "papers"}
    page = await call("query_records", {**stream, "limit": 1}, reader)
    (entry,) = msgspec.json.decode(msgspec.json.encode(page.structured))["data"]["data"]
    ref = reader.handles.result_id(RecordRef(entry["connection_id"], StreamName("papers"), entry["id"]))
    place = {"connection_id": entry["connection_id"], "stream": "papers", "record_id": entry["id"]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("schema", {}),
        ("schema", stream),
        ("schema", {**stream, "connection_id": entry["connection_id"], "detail": "full"}),
        *(("query_records", {**stream, "limit": limit}) for limit in (1, 25, 100)),
        ("query_records", {**stream, "connection_id": entry["connection_id"], "changes_since": "beginning"}),
        *(("search", {"q": "bridge", "limit": limit}) for limit in (1, 25, 100)),
        ("aggregate", {**stream, "metric": "count"}),
        *(("aggregate", {**stream, "metric": "count", "group_by": field}) for field in ("body", "id")),
        *(
            ("read_record_field", {**place, "field_path": path, "limit_chars": 16_384})
            for path in ("body", "tree")
        ),
        ("read_record_field", {"id": ref, "field_path": "body"}),
        ("read_record_field", {"id": ref, "field_path": "body", "q": "bridge", "before_chars": 8_000}),
        ("fetch", {"id": ref}),
        ("fetch", {"id": ref, "fields": ["body"]}),
        ("fetch", {"id": ref, "fields": ["body", *FIELDS[:50]]}),
        ("fetch", {"id": "nothing"}),
    ]
    return iter(calls)


def most_bytes(tool: str, arguments: dict[str, Any]) -> int:
    """Return how many bytes both channels of an answer to this call may have together."""
    usual = {"search": 10, "query_records": 25}
    limit = arguments.get("limit")
    is_large = isinstance(limit, int) and limit > usual.get(tool, 0)
    if tool in usual and not is_large and MORE.isdisjoint(arguments):
        return 14_000
    return 24_000 if MORE.isdisjoint(arguments) or tool in usual else 100_000


def problems(tool: str, arguments: dict[str, Any], outcome: Any) -> Iterator[str]:
    whole = len(msgspec.json.encode(result_of(outcome, ServerIdentity("0.1.0"), "2026-07-28")))
    most = most_bytes(tool, arguments)
    text = TEXTS.get(tool, 12_000 if tool == "schema" and most < 100_000 else 100_000)
    named = f"{tool} {arguments}"[:200]
    if whole > most:
        yield f"{named}: {whole} bytes"
    if size(outcome.text) > text and not outcome.is_error:
        yield f"{named}: {size(outcome.text)} bytes of text"
    if (
        tool == "fetch"
        and not outcome.is_error
        and size(outcome.whole()["structuredContent"]["text"]) > 20_000
    ):
        yield f"{named}: a text of more than 20 000 bytes"
    refusals = {"tool_handler_error", *(["resource_limit"] if tool in {"fetch", "read_record_field"} else [])}
    if outcome.is_error and outcome.structured["error"]["code"] in refusals:
        yield f"{named}: {outcome.structured['error']}"


def fits(
    place: Path,
    values: list[tuple[str, int]],
    key: tuple[str, int],
    count: int,
    *,
    wide: bool,
    connections: int,
) -> None:
    found: list[str] = []
    tried: set[str] = set()

    async def go() -> None:
        async with local_program(place) as program:
            reader = await make_reader(program, connections, list(papers(values, key, count, wide=wide)))
            for tool, arguments in await asked(reader):
                tried.add(tool)
                found.extend(problems(tool, arguments, await call(tool, arguments, reader)))

    asyncio.run(go())
    assert tried == set(TOOL_HANDLERS)
    assert found == []


RECORDS = given(
    st.lists(VALUES, min_size=1, max_size=5), KEYS, st.integers(1, 40), st.booleans(), st.integers(1, 4)
)
SETTINGS = settings(
    deadline=None,
    max_examples=1,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)


@pytest.mark.requirement("S1-39")
@SETTINGS
@RECORDS
@example([("\u0001\u001f\x7f", 120_000)], ("世", 1_000), 30, False, 3)
@example([("世界", 200), ('"\\', 5_000)], ("k", 1_000), 12, True, 2)
@example([("bridge ", 1_000_000)], ("k", 1), 2, False, 1)
@example([("bridge ", 200)], ("a/b ", 100), 40, False, 175)
def test_every_result_of_every_tool_fits_whatever_the_records_are(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[tuple[str, int]],
    key: tuple[str, int],
    count: int,
    wide: bool,  # noqa: FBT001 - drawn
    connections: int,
):
    fits(tmp_path_factory.mktemp("sizes"), values, key, count, wide=wide, connections=connections)


@pytest.mark.soak
@settings(SETTINGS, max_examples=40)
@RECORDS
def test_every_result_of_every_tool_fits_whatever_many_more_records_are(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[tuple[str, int]],
    key: tuple[str, int],
    count: int,
    wide: bool,  # noqa: FBT001 - drawn
    connections: int,
):
    fits(tmp_path_factory.mktemp("sizes"), values, key, count, wide=wide, connections=connections)


def hostile(kind: dict[str, Any], text: str) -> Iterator[Any]:
    """Give values for an argument, of its type and of others."""
    yield text
    yield from ([text], [text] * 50) if kind["type"] == "array" else ()
    yield from ({text: text}, {text: {"gte": text}}, {"body": text}) if kind["type"] == "object" else ()
    yield from (10**30, -1) if kind["type"] == "integer" else ()


@pytest.mark.parametrize("unit", ["x", "世", "\u0001", '"\\', "a/b:", "pdpp://record/"])
def test_no_argument_makes_an_answer_large_or_a_tool_fail(tmp_path: Path, unit: str):
    right: dict[str, dict[str, Any]] = {
        "schema": {"stream": "papers"},
        "query_records": {"stream": "papers"},
        "aggregate": {"stream": "papers", "metric": "count"},
        "search": {"query": "bridge", "streams": ["papers"]},
        "fetch": {"id": "papers:1"},
        "read_record_field": {"id": "papers:1", "field_path": "body"},
    }
    found: list[str] = []

    async def go() -> None:
        async with local_program(tmp_path) as program:
            reader = await make_reader(program, 1, list(papers([("x", 9)], ("k", 1), 2, wide=False)))
            for name, argument in (
                (read.tool, argument) for read in READS for argument in arguments_of(read)
            ):
                for value in hostile(argument.schema, _of(unit, 20_000)):
                    given = {**right[name], argument.name: value}
                    if (name, argument.name) == ("search", "q"):
                        del given["query"]
                    found.extend(problems(name, given, await call(name, given, reader)))

    asyncio.run(go())
    assert found == []
