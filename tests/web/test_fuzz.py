"""Whatever is sent to any endpoint, the answer is one that the OpenAPI document declares, and never our fault."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator

from headgate.web.api.definitions import ENDPOINTS, Endpoint, Param, Shape
from headgate.web.api.openapi import SCHEMAS, openapi_document
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.schema.declarations import declaration

CANARY = "seldom-seen-canary"
PLACE = re.compile(r"\{(\w+)\}")
TEXT = st.text(max_size=12) | st.sampled_from(
    [
        "messages",
        "attachments",
        "m1",
        "id",
        "subject",
        "sent_at",
        "beginning",
        "mail",
        "-1",
        "0",
        "1e9",
        "\0",
        "é",
        "*",
    ]
)
FIELDS = st.sampled_from(["id", "subject", "sent_at", "size", "is_read", "weight", "nope", "a]b", ""])
BODIES = st.binary(max_size=60) | st.sampled_from(
    [
        b"{}",
        b"[]",
        b'{"connector_key":"mail"}',
        b'{"display_name":"x"}',
        b'{"key":"a","data":{"id":"a"}}',
        b"\xff",
    ]
)
ERRORS = Draft202012Validator(SCHEMAS["Error"])


def pairs(endpoint: Endpoint) -> st.SearchStrategy[list[tuple[str, str]]]:
    names: list[st.SearchStrategy[tuple[str, str]]] = [st.tuples(TEXT, TEXT)]
    for param in endpoint.params:
        values = TEXT | st.sampled_from(param.choices) if param.choices else TEXT
        if param.shape in {Shape.FILTER, Shape.LIMITS}:
            operators = st.sampled_from(["", "[gte]", "[lt]", "[x]"])
            named = st.tuples(st.just(param.name), FIELDS, operators).map(lambda p: f"{p[0]}[{p[1]}]{p[2]}")
            names.append(st.tuples(named, values))
        else:
            names.append(st.tuples(st.just(param.name), values))
    return st.lists(st.one_of(names[1:] or names) | names[0], max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Endpoint, str, bytes, str]:
    endpoint = draw(st.sampled_from(ENDPOINTS))
    path = PLACE.sub(lambda _: quote(draw(TEXT), safe="") or "x", endpoint.path)
    given_pairs = draw(pairs(endpoint))
    query = "&".join(f"{quote(name, safe='[]')}={quote(value, safe='')}" for name, value in given_pairs)
    return endpoint, f"{path}?{query}", draw(BODIES), draw(st.sampled_from(["owner", "client", "none"]))


class Fuzzed:
    def __init__(self, place: Any) -> None:
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.program, self.tokens = self.runner.run(self._open(place))

    async def _open(self, place: Any) -> tuple[LocalProgram, dict[str, str | None]]:
        program = await self.stack.enter_async_context(local_program(place))
        await program.declare("mail", declaration())
        self.connection = connection = await program.connect("mail", "Home")
        plain = {"subject": "a b", "sent_at": "2026-03-01T00:00:00Z", "body": CANARY}
        lines = [record(f"m{n}", size=n, **plain) for n in range(5)]
        await program.ingest(connection, "messages", lines)
        await program.ingest(await program.connect("mail", CANARY), "messages", lines)
        from tests.reading.test_reads import granted  # noqa: PLC0415 - only here

        client = await program.grant(granted(connection, connection + "x"))
        return program, {"owner": program.owner, "client": client, "none": None}

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    made = Fuzzed(tmp_path_factory.mktemp("fuzzed"))
    yield made
    made.close()


@pytest.mark.hostile("T14")
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_every_answer_is_a_declared_one(fuzzed: Fuzzed, request_made: tuple[Endpoint, str, bytes, str]):
    endpoint, path, body, who = request_made
    answer = fuzzed.runner.run(
        fuzzed.program.ask(endpoint.method, path, fuzzed.tokens[who], body=body if endpoint.body else b"")
    )
    declared = openapi_document()["paths"][endpoint.path][endpoint.method.lower()]["responses"]
    assert str(answer.status) in declared, (answer.status, answer.content)
    assert answer.status < 500, answer.content
    if answer.status >= 400 and answer.status not in {405, 416}:
        assert not list(ERRORS.iter_errors(answer.body))
    elif answer.status == 200 and endpoint.answer in SCHEMAS:
        assert not list(Draft202012Validator(SCHEMAS[endpoint.answer]).iter_errors(answer.body))
    if who != "owner":
        assert CANARY.encode() not in answer.content
    if who == "none":
        assert answer.status in {400, 401, 404, 405, 429}


def test_the_openapi_document_has_every_endpoint_and_no_dangling_reference():
    document = openapi_document()
    found = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert found == {(endpoint.path, endpoint.method) for endpoint in ENDPOINTS}
    names = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert names <= set(document["components"]["schemas"])


BOUNDS = [
    (endpoint, param, bound, bound + step)
    for endpoint in ENDPOINTS
    for param in endpoint.params
    for bound, step in ((param.least, -1), (param.most, 1))
    if bound is not None
]


def test_some_numbers_have_bounds():
    assert {param.name for _, param, _, _ in BOUNDS} == {
        "offset_chars", "limit_chars", "before_chars", "after_chars", "limit", "after",
    }  # fmt: skip


@pytest.mark.parametrize(("endpoint", "param", "inside", "outside"), BOUNDS)
def test_a_number_outside_its_declared_bounds_is_refused_and_one_on_them_is_not(
    fuzzed: Fuzzed, endpoint: Endpoint, param: Param, inside: int, outside: int
):
    path = endpoint.path.format(stream="messages", id="m1")
    needed = {"window": "field=subject", "aggregate": "metric=count"}.get(endpoint.id, "")
    needed += "&q=a" if param.name in {"before_chars", "after_chars"} else ""

    def ask(number: int) -> HttpAnswer:
        query = f"connection_id={fuzzed.connection}&{needed}&{param.name}={number}"
        return fuzzed.runner.run(fuzzed.program.get(f"{path}?{query}", fuzzed.program.owner))

    assert ask(inside).status == 200
    refused = ask(outside)
    assert (refused.status, refused.body["error"]["param"]) == (400, param.name)
