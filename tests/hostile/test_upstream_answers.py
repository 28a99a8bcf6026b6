"""Hostile answers: with another id, and nested too deeply.

The number in each docstring is the case's row in the list of hostile cases.
"""

import asyncio
import json

import pytest

from headgate.errors import CallError, SchemaParse
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from tests.hostile.server import (
    LEGACY,
    MODERN,
    faulty_server,
    http,
    replies,
    result_of,
    sse,
    streams,
    text,
    tool,
)
from tests.mcp.client.importing import call, importing

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("little_memory")]

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])
SKIP = ImportOptions(on_bad_tool="skip")


async def failing(registration):
    """Call, and return the error; it must come long before the deadline of the import."""
    with pytest.raises(CallError) as caught:
        async with asyncio.timeout(30):
            await call(registration)
    return caught.value


OTHER_IDS = [4711, "1", "x", None, 1.0, True, [], {}]


@ERAS
@pytest.mark.parametrize("as_events", [False, True])
@pytest.mark.parametrize("other", OTHER_IDS, ids=repr)
async def test_an_answer_with_another_id_is_never_a_success(era, as_events, other):
    """Row 98."""
    answer = {"jsonrpc": "2.0", "id": other, "result": text("not yours")}
    fault = streams(lambda _: [sse(answer)]) if as_events else replies(lambda _: answer)
    async with importing(era=era, faults={"tools/call": fault}) as (_, imported):
        error = await failing(imported[0])
    assert error.code == "MCP_PROTOCOL_ERROR"
    assert error.details["reason"] == "upstream_protocol_error"


@ERAS
@pytest.mark.parametrize("as_events", [False, True])
async def test_two_calls_at_once_never_get_each_others_answers(era, as_events):
    """Row 98, with an id that another call waits for."""
    waiting = []
    both = asyncio.Event()

    async def swaps(seen, writer):
        waiting.append(seen)
        if len(waiting) == 2:
            both.set()
        await both.wait()
        other = next(one for one in waiting if one is not seen)
        answer = result_of(other, text("not yours"))
        if as_events:
            await streams(lambda _: [sse(answer)])(seen, writer)
        else:
            await replies(lambda _: answer)(seen, writer)

    async with importing(era=era, faults={"tools/call": swaps}) as (_, imported):
        errors = await asyncio.gather(failing(imported[0]), failing(imported[1]))
    assert [error.code for error in errors] == ["MCP_PROTOCOL_ERROR"] * 2


async def test_a_resumed_stream_with_another_id_is_never_a_success():
    """Row 98, on the stream that continues a lost one."""
    first = streams(lambda _: [b"id: e1\nretry: 1\ndata: \n\n"])
    wrong = streams(lambda _: [sse({"jsonrpc": "2.0", "id": 4711, "result": text("not yours")})])
    async with importing(faults={"tools/call": first, "GET": wrong}) as (_, imported):
        assert (await failing(imported[0])).code == "MCP_PROTOCOL_ERROR"


async def test_a_resumed_stream_brings_its_answer():
    """Row 98, the other side."""
    asked = []
    lost = streams(lambda seen: asked.append(seen) or [b"id: e1\nretry: 1\ndata: \n\n"])
    resumed = streams(lambda _: [sse(result_of(asked[-1], text("yours")))] if asked else [])
    async with importing(faults={"tools/call": lost, "GET": resumed}) as (_, imported):
        assert (await call(imported[0])).data[0]["text"] == "yours"


@ERAS
@pytest.mark.parametrize("place", ["inputSchema", "outputSchema", "_meta", "annotations"])
@pytest.mark.parametrize("levels", [70, 100, 1500])
async def test_depth_in_one_tool_is_the_problem_of_that_tool(era, place, levels):
    """Row 103: up to 3 000 levels, in any part of a definition."""
    deep = tool("deep")

    async def lists(seen, writer):
        # The standard library writes so many levels only with a deeper stack than it has.
        more = {"resultType": "complete"} if era == MODERN else {}
        inner = b'{"properties":{"p":' * levels + b"{}" + b"}}" * levels
        listed = json.dumps(result_of(seen, {"tools": [{**deep, place: "here"}, tool("good")], **more}))
        writer.write(http(200, listed.encode().replace(b'"here"', b'{"type":"object","x":%s}' % inner)))

    async with faulty_server(era=era, faults={"tools/list": lists}) as server:
        with pytest.raises(SchemaParse) as caught:
            await from_mcp(server.url, "ns")
        assert caught.value.details["tool"] == "deep"
        async with await from_mcp(server.url, "ns", options=ImportOptions(on_bad_tool="skip")) as imported:
            assert [item.name for item in imported] == ["good"]
            assert [skipped.name for skipped in imported.skipped] == ["deep"]
            assert (await call(imported[0])).ok


def leading(address):
    """Schemas that lead to an address, in every keyword that could."""
    return {
        "dialect": {"$schema": address},
        "dialect with a fragment": {"$schema": f"{address}#"},
        "dialect of a part": {"properties": {"p": {"$schema": address}}},
        "dialect of a definition": {"$defs": {"d": {"$schema": address}}, "$ref": "#/$defs/d"},
        "reference": {"$ref": address},
        "reference of a part": {"properties": {"p": {"items": {"$ref": f"{address}#/x"}}}},
        "dynamic reference": {"$dynamicRef": f"{address}#x"},
        "recursive reference": {"$recursiveRef": address},
        "relative reference": {"$id": address, "$ref": "other"},
    }


@pytest.mark.parametrize("place", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("how", list(leading("")))
async def test_a_schema_is_never_fetched(how, place):
    """Row 103: a typed error, and not even a connection, wherever the address stands."""
    async with faulty_server() as elsewhere:
        schema = {"type": "object", **leading(elsewhere.url)[how]}
        async with faulty_server(tools=[tool("bad", **{place: schema}), tool("good")]) as server:
            with pytest.raises(SchemaParse) as caught:
                await from_mcp(server.url, "ns")
            assert caught.value.details["tool"] == "bad"
            assert caught.value.details["rule"] in {"dialect", "reference"}
            async with await from_mcp(server.url, "ns", options=SKIP) as imported:
                assert [item.name for item in imported] == ["good"]
                assert (await call(imported[0])).ok
        assert elsewhere.connections == 0


@pytest.mark.parametrize("dialect", ["", "#", " ", "urn:x", "json-schema:///none", None, 5, [], {}])
async def test_a_dialect_that_is_not_known_refuses_its_tool(dialect):
    """Row 103, an empty one among them."""
    schema = {"$schema": dialect, "type": "object"}
    async with importing(tools=[tool("bad", inputSchema=schema), tool("good")], options=SKIP) as (
        _,
        imported,
    ):
        assert [item.name for item in imported] == ["good"]


@pytest.mark.parametrize("dialect", ["draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"])
@pytest.mark.parametrize("end", ["schema", "schema#"])
async def test_a_known_dialect_is_used_without_being_fetched(dialect, end):
    """Row 103, the other side."""
    schema = {"$schema": f"http://json-schema.org/{dialect}/{end}", "type": "object"}
    async with importing(tools=[tool("good", inputSchema=schema)]) as (_, imported):
        assert imported[0].input_schema == schema
        assert (await call(imported[0])).ok
