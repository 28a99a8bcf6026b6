"""The log names exactly the fields whose values left, whichever tool or route they left by.

Every value of every field is a text or number that stands nowhere else, so the answer itself shows which
fields left. A record's key is the record's name: it is logged as such, and left out of the comparison.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from headgate.audit.activity import read_event
from headgate.mcp.serve.tools import TOOLS
from headgate.model.ids import ConnectionId
from headgate.web.api.definitions import ENDPOINTS, Who
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
KEYS = {"id"}
MESSAGES = "/v1/streams/messages"
FILE = b"the file"
BLOB = f"blob_{hashlib.sha256(FILE).hexdigest()}"
#: What shows that a field of a stream left: values, and what the server writes in their place.
TRACES: dict[tuple[str, str], str] = {
    ("messages", "sender"): r"sender-of-m\d",
    ("messages", "subject"): r"subject-of-m\d",
    ("messages", "body"): r"body-of-m\d",
    ("messages", "sent_at"): r"2031-05-1\d",
    ("messages", "day"): r"2032-06-1\d",
    ("messages", "size"): r"77770\d",
    ("messages", "weight"): r"\b8888\.\d5",
    ("messages", "headers"): r"headers-of-m\d|blob_[0-9a-f]{64}",
    ("messages", "anything"): r"anything-of-m\d",
    ("messages", "draft"): r"draft-of-m\d",
    ("messages", "details"): r"details-of-m\d",
    ("notes", "name"): r"name-of-n\d",
    ("notes", "text"): r"text-of-n\d",
    ("notes", "made_at"): r"2033-07-1\d",
    ("attachments", "message_id"): r'"message_id": ?"m\d"',
}


class Case(NamedTuple):
    """One read, and the fields that its numbers are computed from."""

    name: str
    request: Any
    #: Fields of which a number was computed, which no trace can show.
    computed: frozenset[str] = frozenset()


def rest(name: str, path: str, *computed: str) -> Case:
    return Case(name, path, frozenset(computed))


def tool(name: str, *computed: str, **arguments: Any) -> Case:
    return Case(name, arguments, frozenset(computed))


REST = (
    rest("schema", "/v1/schema"),
    rest("connectors", "/v1/connectors"),
    rest("streams", "/v1/streams"),
    rest("stream", MESSAGES),
    rest("records", f"{MESSAGES}/records"),
    rest("records", f"{MESSAGES}/records?fields=id,sender"),
    rest("records", f"{MESSAGES}/records?view=subjects"),
    rest("records", f"{MESSAGES}/records?fields=id&expand=attachments"),
    rest("records", f"{MESSAGES}/records?fields=id&window=exact"),
    rest("records", f"{MESSAGES}/records?fields=id,subject&changes_since=beginning"),
    rest("record", f"{MESSAGES}/records/m1"),
    rest("record", f"{MESSAGES}/records/m1?fields=body"),
    rest("window", f"{MESSAGES}/records/m1/field-window?field=body&limit_chars=40"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=count"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=count&group_by=sender"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=sum&field=size", "size"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=min&field=weight"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=count&filter[sender]=nothing", "sender"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=count&q=bridge", "subject", "body", "sender", "anything"),
    rest("aggregate", f"{MESSAGES}/aggregate?metric=count&q=bridge&in=body&group_by=sender", "body"),
    rest("search", "/v1/search?q=bridge&limit=0"),
    rest("search", "/v1/search?q=lantern&in=subject"),
    rest("search", "/v1/search?q=bridge"),
    rest("search", "/v1/search?q=lantern"),
    rest("search", "/v1/search?q=harbour"),
    rest("semantic_search", "/v1/search/semantic?q=crossing+a+river"),
    rest("hybrid_search", "/v1/search/hybrid?q=lantern"),
    # The file is a part of the field that refers to it.
    rest("blob", f"/v1/blobs/{BLOB}", "headers"),
)
MCP = (
    tool("schema"),
    tool("query_records", stream="messages"),
    tool("query_records", stream="messages", fields=["id", "sender"]),
    tool("query_records", stream="messages", fields=["id"], expand=["attachments"]),
    tool("query_records", stream="messages", fields=["id", "subject"], changes_since="beginning"),
    tool("aggregate", stream="messages", metric="count", group_by="sender"),
    tool("aggregate", "size", stream="messages", metric="sum", field="size"),
    tool(
        "aggregate",
        "size",
        "body",
        stream="messages",
        metric="sum",
        field="size",
        q="bridge",
        **{"in": ["body"]},
    ),
    tool("search", q="bridge", limit=0),
    tool("search", q="bridge"),
    tool("search", q="lantern"),
    tool("search", q="harbour"),
    tool("search", q="crossing a river", mode="semantic"),
    tool("search", q="lantern", mode="hybrid"),
    tool("fetch", id="{mine}/messages:m1"),
    tool("fetch", id="{mine}/messages:m1", fields=["subject"]),
    tool("fetch", id="{mine}/messages:m1", fields=["size", "sender"]),
    # A record without a main text is shown as JSON, which is cut in its first long field.
    tool("fetch", id="{mine}/messages:m1", fields=["draft", "sender", "day", "size"]),
    tool(
        "fetch",
        id="{mine}/messages:m1",
        fields=["size", "sender", "subject", "draft"],
        expand=["attachments"],
    ),
    tool("read_record_field", id="{mine}/messages:m1", field_path="body", limit_chars=40),
)


def document() -> dict[str, Any]:
    made = declaration()
    messages = made["streams"][0]
    searched = ["subject", "body", "sender", "anything"]
    messages["query"]["search"] = {"lexical_fields": searched, "semantic_fields": searched}
    more = {"anything": {"type": "string"}, "draft": {"type": "string"}, "details": {"type": "object"}}
    messages["schema"]["properties"] |= more
    notes = {
        "name": "notes",
        "semantics": "mutable_state",
        "schema": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string"},
                "text": {"type": "string"},
                "made_at": {"type": "string", "format": "date-time"},
            },
            "required": ["id"],
        },
        "primary_key": ["id"],
        "consent_time_field": "made_at",
        "selection": {"fields": True, "resources": False},
        "query": {"search": {"lexical_fields": ["name", "text"]}},
    }
    return made | {"streams": [*made["streams"], notes]}


def message(number: int) -> dict[str, Any]:
    """A message that holds the word "bridge" in its body and "lantern" in its subject, sender and more."""
    own = f"of-m{number}"
    return record(
        f"m{number}",
        draft=f"draft-{own} " + "once more " * 500,
        details={"note": {"text": f"details-{own}"}},
        sender=f"sender-{own} lantern",
        subject=f"subject-{own} lantern",
        body=f"body-{own} crosses the bridge " + "and goes on " * 60,
        sent_at=f"2031-05-1{number}T00:00:00Z",
        day=f"2032-06-1{number}",
        size=777700 + number,
        weight=8888.05 + number / 10,
        is_read=True,
        headers={"blob_id": BLOB, "note": f"headers-{own}"},
        anything=f"anything-{own} lantern",
    )


def note(number: int) -> dict[str, Any]:
    return record(
        f"n{number}",
        name=f"name-of-n{number}",
        text=f"text-of-n{number} the harbour",
        made_at=f"2033-07-1{number}T00:00:00Z",
    )


class Scene:
    def __init__(self, server: LocalProgram, token: str, connection: str) -> None:
        self.server, self.token, self.connection = server, token, connection

    async def call(self, name: str, arguments: dict[str, Any]) -> HttpAnswer:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2025-11-25",
        }
        body = json.dumps(message | {"params": {"name": name, "arguments": arguments}})
        body = body.replace("{mine}", self.connection).encode()
        return await self.server.ask("POST", "/mcp", self.token, body=body, headers=headers.items())

    async def logged(self) -> set[tuple[str, str]]:
        """Give the fields that the newest entry names, with their streams."""
        await self.server.services.pump.flush()
        (newest,) = await self.server.services.ledger.newest(None, 1)
        event = read_event(newest)
        assert event.outcome == "answered"
        return {(part.stream, field) for part in event.parts for field in part.fields}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with local_program(tmp_path_factory.mktemp("scene"), semantic_model="multilingual") as server:
        await server.declare("mail", document())
        mine = await server.connect("mail")
        await server.ask(
            "POST", "/v1/blobs", server.owner, body=FILE, headers=[("content-type", "text/plain")]
        )
        await server.ingest(mine, "messages", [message(1), message(2), message(3)])
        await server.ingest(mine, "notes", [note(1)])
        children = [
            {"key": ["m1", "a1"], "data": {"id": "a1", "message_id": "m1"}, "emitted_at": "2026-01-01"}
        ]
        children[0]["emitted_at"] = "2026-01-01T00:00:00Z"
        await server.ingest(mine, "attachments", children)
        assert await server.services.store.wait_for_vectors(60)  # type: ignore[attr-defined]
        gone = await server.ask("DELETE", f"{MESSAGES}/records/m3?connection_id={mine}", server.owner)
        assert gone.status == 204
        everything = [field for stream, field in TRACES if stream == "messages"]
        to_all = (ConnectionId(mine),)
        token = await server.grant(
            grant(
                stream_grant("messages", "id", *everything, "is_read", connections=to_all),
                stream_grant("notes", "id", "name", "text", "made_at", connections=to_all),
                stream_grant("attachments", "id", "message_id", connections=to_all),
            )
        )
        yield Scene(server, token, mine)


def shown(case: Case, content: str) -> set[tuple[str, str]]:
    """Find the fields whose values an answer holds."""
    computed = {("messages", field) for field in case.computed}
    return {field for field, trace in TRACES.items() if re.search(trace, content)} | computed


def comparable(fields: set[tuple[str, str]]) -> set[tuple[str, str]]:
    # A flag is true in many places, so it cannot be looked for.
    return {(stream, field) for stream, field in fields if field not in {*KEYS, "is_read"}}


@pytest.mark.parametrize("case", REST, ids=lambda case: case.request)
async def test_the_log_names_the_fields_that_left_by_rest(scene: Scene, case: Case):
    answer = await scene.server.get(quote(case.request, safe="/?=&[],"), scene.token)
    assert answer.status == 200, answer.content
    assert comparable(await scene.logged()) == shown(case, answer.content.decode())


@pytest.mark.parametrize("case", MCP, ids=lambda case: f"{case.name} {case.request}")
async def test_the_log_names_the_fields_that_left_by_a_tool(scene: Scene, case: Case):
    answer = await scene.call(case.name, dict(case.request))
    assert answer.body["result"].get("isError", False) is False, answer.content
    assert comparable(await scene.logged()) == shown(case, answer.content.decode())


def test_every_tool_and_every_route_that_reads_is_walked():
    assert {case.name for case in MCP} == {one["name"] for one in TOOLS}
    reads = {one.id for one in ENDPOINTS if one.method == "GET" and one.who is Who.READER}
    assert {case.name for case in REST} == reads
