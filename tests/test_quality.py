"""The tree is clean and can be shipped: linted, laid out, and built into a wheel without the network."""

import asyncio
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[1]


async def run(*command):
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.requirement("S0-36", "S4-11")
@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "layout"])
async def test_the_linter_finds_nothing_in_code_and_tests(command):
    code, output = await run(sys.executable, "-m", "ruff", *command, ".")
    assert code == 0, output


@pytest.mark.requirement("S4-11")
async def test_a_wheel_can_be_built_and_holds_the_package_alone(tmp_path):
    code, output = await run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert code == 0, output
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "headgate/mcp/client/from_mcp.py" in names
    assert "headgate/py.typed" in names
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"headgate"}
