"""What is plain, and the one reason for each thing that is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from headgate.mcp.serve.call import TOOL_HANDLERS
from headgate.mcp.serve.plain import (
    MAX_BODY_BYTES,
    NotPlain,
    PlainHeaders,
    PlainRequest,
    decode_message,
    read_headers,
    read_plain,
)
from headgate.mcp.serve.results import LEGACY, MODERN
from headgate.model.wire import Json

NEWEST, OLDER = "2026-07-28", "2025-11-25"
HEADERS = {
    "host": "gate.example",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "content-length": "10",
    "mcp-protocol-version": NEWEST,
    "mcp-method": "tools/call",
    "mcp-name": "schema",
}
CLIENT = {"name": "x", "version": "1"}
ENVELOPE: Json = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
GREETING = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": CLIENT}


def headers(**changes: str | None) -> list[tuple[bytes, bytes]]:
    named = HEADERS | {name.replace("_", "-"): value for name, value in changes.items()}
    return [(name.encode(), value.encode()) for name, value in named.items() if value is not None]


def read(
    body: Any, version: str | None = NEWEST, announced: PlainHeaders | None = None
) -> PlainRequest | NotPlain:
    message = decode_message(json.dumps(body).encode())
    return read_plain(message, version=version, tools=TOOL_HANDLERS, headers=announced)


def request(method: str = "tools/call", request_id: Any = 1, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(meta: Json = ENVELOPE, **more: Any) -> Json:
    return request(name="schema", _meta=meta, **more)


PLAIN_HEADERS = PlainHeaders(NEWEST, b"tools/call", b"schema")
HEADER_EXAMPLES: list[tuple[NotPlain, list[tuple[bytes, bytes]]]] = [
    (NotPlain.HEADER_TWICE, [*headers(), (b"accept", b"*/*")]),
    (NotPlain.RULED_HEADER, headers(mcp_session_id="x")),
    (NotPlain.RULED_HEADER, headers(mcp_param_q="x")),
    (NotPlain.RULED_HEADER, headers(transfer_encoding="chunked")),
    (NotPlain.CONTENT_TYPE, headers(content_type="application/json; charset=utf-8")),
    (NotPlain.ACCEPT, headers(accept="application/json")),
    (NotPlain.ACCEPT, headers(accept=None)),
    (NotPlain.UNKNOWN_VERSION, headers(mcp_protocol_version="2025-03-26")),
    (NotPlain.UNKNOWN_VERSION, headers(mcp_protocol_version=None)),
    (NotPlain.LENGTH, headers(content_length=None)),
    (NotPlain.LENGTH, headers(content_length=str(MAX_BODY_BYTES + 1))),
]
EXAMPLES: list[tuple[NotPlain, tuple[Any, ...]]] = [
    (NotPlain.NO_REQUEST, ([],)),
    (NotPlain.NO_REQUEST, ({**call(), "jsonrpc": "1.0"},)),
    (NotPlain.NO_REQUEST, ({**call(), "more": 1},)),
    (NotPlain.NO_REQUEST, ({**call(), "id": True},)),
    (NotPlain.NO_REQUEST, ({"jsonrpc": "2.0", "method": "tools/list"},)),
    (NotPlain.REQUEST_ID, ({**call(), "id": 2**53 + 1},)),
    (NotPlain.PARAMS, (request("ping"),)),
    (NotPlain.PARAMS, (request("tools/list", cursor="x", _meta=ENVELOPE),)),
    (NotPlain.PARAMS, (call(arguments=[]),)),
    (NotPlain.PARAMS, (request("initialize", **GREETING | {"clientInfo": {"name": "x"}}), None)),
    (NotPlain.UNKNOWN_VERSION, (request("initialize", **GREETING | {"protocolVersion": "2024-11-05"}), None)),
    (NotPlain.UNKNOWN_VERSION, (call({}), None)),
    (NotPlain.METHOD_OF_OTHER_ERA, (request("server/discover"), OLDER)),
    (NotPlain.METHOD_OF_OTHER_ERA, (request("initialize", **GREETING), OLDER)),
    (NotPlain.UNKNOWN_TOOL, (request(name="nope", _meta=ENVELOPE),)),
    (NotPlain.META, (call({}),)),
    (NotPlain.META, (call(ENVELOPE), OLDER)),
    (NotPlain.META, (call({**ENVELOPE, "io.modelcontextprotocol/logLevel": "debug"}),)),
    (NotPlain.META, (call({**ENVELOPE, "progressToken": True}),)),
    (NotPlain.META, (call({"progressToken": 1.5}), OLDER)),
    (NotPlain.META, (call({**ENVELOPE, "two words": 1}),)),
    (NotPlain.HEADERS_DIFFER, (call(), NEWEST, PlainHeaders(NEWEST, b"tools/list", b"schema"))),
    (NotPlain.HEADERS_DIFFER, (call(), NEWEST, PlainHeaders(NEWEST, b"tools/call", None))),
]


@pytest.mark.parametrize(("reason", "found"), HEADER_EXAMPLES)
def test_headers_that_are_not_plain_have_one_reason(reason: NotPlain, found: list[tuple[bytes, bytes]]):
    assert read_headers(found) is reason


@pytest.mark.parametrize(("reason", "example"), EXAMPLES)
def test_a_message_that_is_not_plain_has_one_reason(reason: NotPlain, example: tuple[Any, ...]):
    assert read(*example) is reason


def test_every_reason_has_an_example():
    assert {reason for reason, _ in [*HEADER_EXAMPLES, *EXAMPLES]} == set(NotPlain)


def test_plain_headers_say_what_the_body_asks():
    assert read_headers(headers()) == PLAIN_HEADERS


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (call(), NEWEST),
        (call(), None),
        (call({**ENVELOPE, "progressToken": 3, "traceparent": "00-a-b-01", "example.com/x": {}}), NEWEST),
        (call({"progressToken": "t", "example/id": "x"}), OLDER),
        (request(name="schema"), OLDER),
    ],
)
def test_an_ordinary_call_is_plain(body: Json, version: str | None):
    assert read(body, version, PLAIN_HEADERS) == PlainRequest(
        1, "tools/call", version or NEWEST, "schema", {}
    )


def test_a_handshake_is_plain_as_the_first_message_and_names_the_version():
    assert read(request("initialize", **GREETING), None) == PlainRequest(1, "initialize", OLDER)


def test_the_versions_are_those_of_the_sdk():
    assert frozenset(MODERN_PROTOCOL_VERSIONS) == MODERN
    assert set(HANDSHAKE_PROTOCOL_VERSIONS) > LEGACY
