"""Generated modules: valid, typed, and deaf to what a server would like to slip in."""

import asyncio
import importlib.util
import inspect
import sys

import pytest
from hypothesis import given, settings, strategies as st

from headgate.mcp.client.mapping import Naming, map_tools
from headgate.mcp.client.stubs import write_stubs
from headgate.operations import AccessControl, HandlerRegistration, expose
from headgate.operations.registry import Registry
from tests.hostile.server import tool
from tests.mcp.client.importing import importing

ISSUES = {
    "type": "object",
    "properties": {
        "issues": {"type": "array", "items": {"$ref": "#/$defs/issue"}},
        "next": {"type": ["string", "null"]},
        "from": {"enum": ["a", "b", 3, None]},
    },
    "required": ["issues"],
    "$defs": {
        "issue": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/issue"}},
                "state": {"const": "open"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["id"],
        }
    },
}
SEARCH = {
    "type": "object",
    "properties": {
        "class": {"type": "string"},
        "max-results": {"type": "integer"},
        "filter": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
        "self": {"type": "boolean"},
        "arguments": {},
        "where": {"type": "object", "properties": {"a b": {"type": "string"}}, "required": ["a b"]},
    },
    "required": ["class", "where"],
}
TOOLS = [
    tool("search.issues", inputSchema=SEARCH, outputSchema=ISSUES, description='Say "hi"""\nimport os\\'),
    tool("search_issues", inputSchema={"type": "object"}),
    tool(
        "class", inputSchema={"type": "object"}, outputSchema={"type": "array", "items": {"type": "string"}}
    ),
    tool("2fast"),
    tool("__init__"),
    tool("print"),
    tool("Caller"),
    tool("cast"),
]


def registrations(tools):
    found, _ = map_tools(tools, Naming(namespace="git", endpoint="https://x.example/mcp"), skip_bad=True)

    async def handler(value, context):
        raise NotImplementedError

    return [HandlerRegistration(one.spec, handler) for one in found]


def load(text, path):
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_tool_becomes_one_function_with_a_name_of_its_own(tmp_path):
    module = load(
        write_stubs(registrations(TOOLS), server="https://x.example/mcp"), tmp_path / "generated.py"
    )
    assert sorted(module.__all__) == sorted(
        ["search_issues", "search_issues_2", "class_", "n2fast", "init", "print_2", "Caller_2", "cast_"]
    )
    assert all(inspect.iscoroutinefunction(getattr(module, name)) for name in module.__all__)
    signature = inspect.signature(module.search_issues)
    assert list(signature.parameters) == [
        "caller",
        "class_",
        "where",
        "max_results",
        "filter",
        "self_2",
        "arguments_",
    ]
    assert signature.parameters["class_"].default is inspect.Parameter.empty
    assert signature.parameters["max_results"].annotation == "int | None"


@pytest.mark.anyio
async def test_a_generated_module_passes_the_strict_type_checker(tmp_path):
    (tmp_path / "generated.py").write_text(write_stubs(registrations(TOOLS), server="x"), encoding="utf-8")
    (tmp_path / "use.py").write_text(
        "from generated import search_issues\n"
        "from headgate import Registry\n\n\n"
        "async def use(registry: Registry) -> int:\n"
        '    found = await search_issues(registry, class_="a", where={"a b": "c"}, max_results=3)\n'
        '    return found["issues"][0]["id"]\n',
        encoding="utf-8",
    )
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--project",
        str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.mark.anyio
async def test_a_generated_function_calls_the_tool(tmp_path):
    schema = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}
    tools = [tool("find", inputSchema={**schema, "required": ["q"]})]
    async with importing(tools=tools) as (server, imported):
        module = load(write_stubs(imported, server=server.url), tmp_path / "generated.py")
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        assert (await module.find(registry, q="x"))[0]["text"] == '{"q": "x"}'
        await module.find(registry, q="x", n=3)
        assert server.calls("tools/call")[1].params["arguments"] == {"q": "x", "n": 3}


NAMES = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)
SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}, {"enum": ["a\n", 'b"', 1, True]}, {"const": None}]
    ),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(
            lambda fields, more: {"type": "object", "properties": fields, "required": list(fields)[:more]},
            st.dictionaries(st.text(max_size=8), inner, max_size=3),
            st.integers(0, 2),
        )
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(NAMES, st.dictionaries(st.text(max_size=8), SCHEMAS, max_size=3), SCHEMAS, st.text()))
)
def test_whatever_a_server_describes_the_module_compiles(described):
    tools = [
        {
            "name": name,
            "description": words,
            "inputSchema": {"type": "object", "properties": fields, "required": list(fields)[:1]},
            "outputSchema": output,
        }
        for name, fields, output, words in described
    ]
    text = write_stubs(registrations(tools), server="a server")
    namespace = {}
    exec(compile(text, "generated", "exec"), namespace)
    assert len(namespace["__all__"]) == len(registrations(tools))
