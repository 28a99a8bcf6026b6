"""What ``import headgate`` offers, with and without the extras."""

import ast
import asyncio
import sys
from pathlib import Path

import pytest

import headgate

pytestmark = pytest.mark.anyio

# Refuses every library that only an extra brings, as if it were not installed.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mcp", "mcp_types", "httpx2", "httpcore2", "starlette", "uvicorn", "apsw",
                                      "cryptography", "anyio"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def run_python(code):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        "-c",
        code,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


def names_for_type_checkers():
    tree = ast.parse(Path(headgate.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_type_checkers_see_the_names_that_are_loaded():
    assert names_for_type_checkers() == headgate._MODULE_OF.keys()


def test_no_name_is_listed_twice():
    listed = [
        name for table in (headgate._CORE, headgate._MCP_EXTRA) for names in table.values() for name in names
    ]
    assert len(listed) == len(set(listed)) == len(headgate._MODULE_OF)


@pytest.mark.parametrize("name", headgate.__all__)
def test_each_public_name_is_the_one_of_its_module(name):
    value = getattr(headgate, name)
    if name != "__version__":
        assert value is getattr(sys.modules[headgate._MODULE_OF[name]], name)
    assert name in dir(headgate)


def test_a_name_of_the_extra_is_loaded_in_the_same_way_and_is_not_in_all():
    pytest.importorskip("mcp", reason="the mcp extra is not installed")
    assert headgate.to_mcp is sys.modules["headgate.mcp.gateway.server"].to_mcp
    assert "to_mcp" not in headgate.__all__


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = headgate.nothing


@pytest.mark.requirement("S0-37")
@pytest.mark.requirement("S0-25")
async def test_the_bare_package_works_without_any_extra():
    code = f"""{BLOCKER}
import asyncio
import headgate
assert "headgate.operations" not in sys.modules
from headgate import *
from headgate import HandlerRegistration, OperationSpec, Registry

async def double(value, context):
    return value["n"] * 2

spec = OperationSpec("double", "demo", op_type=OperationType.QUERY, visibility=Visibility.EXTERNAL)
assert asyncio.run(Registry([HandlerRegistration(spec, double)]).call("demo/double", {{"n": 21}})) == 42
assert not [name for name in sys.modules if name.startswith("headgate.mcp")]
print("done")
"""
    assert await run_python(code) == (0, "done\n")


@pytest.mark.requirement("S0-25")
@pytest.mark.parametrize("name", ["from_mcp", "FromMCP", "to_mcp"])
async def test_a_missing_extra_is_an_import_error_that_names_it(name):
    code = f"""{BLOCKER}
try:
    from headgate import {name}
except ImportError as error:
    assert "headgate[mcp]" in str(error), error
    print("done")
"""
    assert await run_python(code) == (0, "done\n")


@pytest.mark.requirement("S0-B4")
async def test_the_registry_sees_nothing_of_mcp_http_or_the_web():
    code = """
import sys
import headgate
for name in headgate.__all__:
    getattr(headgate, name)
import headgate.operations.discovery, headgate.schema.diff
found = {"mcp", "mcp_types", "httpx2", "httpcore2", "starlette", "uvicorn"} & sys.modules.keys()
assert not found, found
print("done")
"""
    assert await run_python(code) == (0, "done\n")
