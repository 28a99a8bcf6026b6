"""Stubs of a real import: they call the tools they were written from."""

import pytest

from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl
from headgate.operations.stubs import stub_module
from tests.hostile.server import tool
from tests.mcp.client.importing import importing

pytestmark = pytest.mark.anyio


async def test_a_generated_function_calls_the_tool():
    schema = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}
    tools = [tool("find", inputSchema={**schema, "required": ["q"]})]
    async with importing(tools=tools) as (server, imported):
        module = {}
        exec(compile(stub_module(item.spec for item in imported), "generated", "exec"), module)
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        assert (await module["find"](registry, q="x"))[0]["text"] == '{"q": "x"}'
        await module["find"](registry, q="x", n=3)
        assert server.calls("tools/call")[1].params["arguments"] == {"q": "x", "n": 3}
