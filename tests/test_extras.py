"""The package as it is installed: bare, and with the ``mcp`` extra alone; each tested in a separate environment.

An environment holds links to the packages that the metadata asks for and to nothing else, so a library that
somebody forgot to declare is missing there. Nothing is fetched.
"""

import asyncio
import collections
import importlib.metadata
import sys
import tomllib
import venv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.requirements import marked_tests, read_rows

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: What the tests themselves need, whatever is tested.
TOOLS = ("pytest", "anyio", "hypothesis", "pyright[nodejs]", "uvloop")


def installed(requirements):
    """Find everything that these requirements bring with them."""
    found, waiting = {}, [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        key = (wanted.name.lower(), frozenset(wanted.extras))
        if key in found:
            continue
        package = found[key] = importlib.metadata.distribution(wanted.name)
        for one in map(Requirement, package.requires or ()):
            extras = wanted.extras or {""}
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(one)
    return {package.metadata["Name"]: package for package in found.values()}.values()


def make_environment(folder, requirements):
    """Make an environment with these packages, the test tools and this tree; give its interpreter."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    site = next((folder / "lib").glob("python*/site-packages"))
    for package in installed([*requirements, *TOOLS]):
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
    (site / "headgate.pth").write_text(str(ROOT / "src"))
    return folder / "bin" / "python"


async def run(*command):
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


def suite(python, folder, *places):
    """Run tests in an environment; give its exit status, its words, and how each case of each file went."""
    report = folder / "report.xml"
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}")
    code, output = asyncio.run(run(python, "-m", "pytest", *options, *places))
    cases = collections.defaultdict(collections.Counter)
    for case in ET.parse(report).iter("testcase"):
        outcome = case[0].tag if len(case) and case[0].tag in {"failure", "error", "skipped"} else "passed"
        cases[ROOT / f"{case.get('classname').replace('.', '/')}.py"][outcome] += 1
    return code, output, cases


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    return make_environment(folder / "venv", PROJECT["dependencies"])


@pytest.fixture(scope="module")
def with_mcp(tmp_path_factory):
    """Run the tests of operations and imports with the ``mcp`` extra and nothing of the rest."""
    folder = tmp_path_factory.mktemp("mcp")
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["mcp"]]
    python = make_environment(folder / "venv", wanted)
    places = ("tests/operations", "tests/mcp/client", "tests/mcp/gateway")
    return suite(python, folder, *places)


BARE = """
import importlib.util, sys
import headgate
from headgate import Registry
missing = ["mcp", "httpx2", "starlette", "uvicorn", "apsw", "cryptography", "httptools", "numpy"]
assert [name for name in missing if importlib.util.find_spec(name)] == []
try:
    from headgate import from_mcp
except ImportError as error:
    assert "headgate[mcp]" in str(error), error
else:
    raise AssertionError("from_mcp is there")
assert not [name for name in sys.modules if name.startswith("headgate.mcp")]
print("done")
"""


@pytest.mark.requirement("S0-25", "S0-37")
def test_the_bare_package_has_the_registry_and_says_what_from_mcp_needs(bare):
    assert asyncio.run(run(bare, "-W", "error", "-c", BARE)) == (0, "done\n")


@pytest.mark.requirement("S0-37")
def test_the_tests_of_operations_pass_with_the_bare_package(bare, tmp_path):
    code, output, cases = suite(bare, tmp_path, "tests/operations")
    assert code == 0, output[-3000:]
    assert cases.keys() == set((ROOT / "tests" / "operations").glob("test_*.py"))
    assert {outcome for file in cases.values() for outcome in file} == {"passed"}


def test_a_command_that_needs_more_says_so_in_one_line(bare):
    code, output = asyncio.run(run(bare, "-m", "headgate", "ops", "probe", "http://127.0.0.1:9/mcp"))
    assert code != 0
    assert "headgate[mcp]" in output
    assert "Traceback" not in output


@pytest.mark.requirement("S0-35")
def test_the_tests_of_imports_pass_with_the_mcp_extra_alone(with_mcp):
    code, output, cases = with_mcp
    assert code == 0, output[-3000:]
    assert {outcome for file in cases.values() for outcome in file} == {"passed"}
    # What ran is what the rows on unit tests and on the import itself point at.
    proved = marked_tests(cases).keys()
    elsewhere = {"S0-25", "S0-33", "S0-35", "S0-36", "S0-37"}
    wanted = {row for row in read_rows() if row.startswith("S0-") and not row.startswith("S0-B")}
    assert wanted - elsewhere <= proved


#: How many cases each area has at the least; the numbers are those of the tests that this work began with.
AREAS = {
    "operations/test_envelope": 26,
    "operations/test_registry": 8,
    "operations/test_access": 18,
    "operations/test_abort": 20,
    "operations/test_deadlines": 4,
    "operations/test_failures": 21,
    "mcp/client/test_content": 15,
    "mcp/client/test_import": 19,
    "mcp/client/test_calls": 24,
    "mcp/gateway/test_answers": 16,
}


@pytest.mark.requirement("S4-10")
@pytest.mark.parametrize("area", list(AREAS))
def test_every_area_of_the_first_tests_has_as_many_cases_again(with_mcp, area):
    _, _, cases = with_mcp
    assert cases[ROOT / "tests" / f"{area}.py"]["passed"] >= AREAS[area]


@pytest.mark.requirement("S4-10")
@pytest.mark.parametrize("row", ["S4-02", "S4-03", "S4-05", "S4-06", "S4-07", "S4-08", "S4-B1", "S4-B3"])
def test_envelopes_structured_answers_and_errors_have_tests_of_their_own(with_mcp, row):
    _, _, cases = with_mcp
    assert marked_tests(cases).get(row)


def test_the_environments_are_not_the_one_that_runs_this(bare):
    code, output = asyncio.run(run(bare, "-c", "import sys; print(sys.prefix)"))
    assert (code, output.strip() != sys.prefix) == (0, True)
