"""What the client package must not contain."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headgate
from headgate.mcp.client.from_mcp import FromMCP
from tests.mcp.client.importing import call, importing

ROOT = Path(headgate.__file__).parent
#: Starts this interpreter again, to parse what strangers wrote.
PARSER = ROOT / "sources" / "parser_process.py"
FILES = sorted(path for path in ROOT.rglob("*.py") if path != PARSER)
FORBIDDEN = {
    *("subprocess", "_posixsubprocess", "multiprocessing", "concurrent.futures.process", "pty", "runpy"),
    *("mcp.client.stdio", "mcp.client.session_group"),
}
#: The functions of ``os`` that start a program; ``headgate.workers`` forks this one.
STARTING = {
    *("system", "popen", "posix_spawn", "posix_spawnp", "startfile", "Popen", "StdioServerParameters"),
    *(
        f"{how}{kind}"
        for how in ("exec", "spawn")
        for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    ),
}


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.requirement("S0-26")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_can_start_a_program(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not FORBIDDEN & set(imports_of(tree))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not {name for name in names if name in FORBIDDEN | STARTING or "create_subprocess" in str(name)}


@pytest.mark.requirement("S0-26")
@pytest.mark.parametrize(
    "planted",
    [
        "import subprocess",
        "from multiprocessing import Process",
        "import os\nos.spawnv(0, 'a', ['a'])",
        "from os import execvp\nexecvp('a', ['a'])",
        "import os\nos.system('a')",
        "from importlib import import_module\nimport_module('subprocess')",
        "__import__('subprocess').run('a')",
        "import os\ngetattr(os, 'popen')('a')",
        "import asyncio\nasyncio.create_subprocess_exec('a')",
    ],
)
def test_a_planted_way_to_start_a_program_is_found(planted, tmp_path):
    (tmp_path / "planted.py").write_text(planted, encoding="utf-8")
    with pytest.raises(AssertionError):
        test_no_module_can_start_a_program(tmp_path / "planted.py")


@pytest.mark.requirement("S0-26")
def test_the_one_module_that_starts_a_process_starts_this_interpreter_with_fixed_arguments():
    tree = ast.parse(PARSER.read_text(encoding="utf-8"))
    assert FORBIDDEN & set(imports_of(tree)) == {"subprocess"}
    used = {
        node.attr: ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "subprocess"
    }
    assert used.keys() == {"Popen", "PIPE", "DEVNULL"}
    (started,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.Popen"
    )
    assert [ast.unparse(one) for one in started.args] == ["[sys.executable, '-P', '-m', __name__]"]
    assert {option.arg for option in started.keywords} == {"stdin", "stdout", "stderr", "env"}


@pytest.mark.requirement("S0-26")
def test_importing_a_server_loads_nothing_that_starts_a_process():
    code = "import sys, headgate.mcp.client.from_mcp, headgate.mcp.gateway; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "headgate.mcp.client.from_mcp" in loaded
    assert "headgate.sources.parser_process" not in loaded


@pytest.mark.requirement("S0-26")
@pytest.mark.parametrize("package", ["mcp", "operations"])
def test_no_module_of_the_client_imports_the_one_that_starts_a_process(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        imported = set(imports_of(ast.parse(path.read_text(encoding="utf-8"))))
        assert "headgate.sources.parser_process" not in imported, path


@pytest.mark.requirement("S0-26")
def test_no_import_takes_a_command():
    assert not {"command", "args", "env", "cwd"} & set(FromMCP.__init__.__annotations__)


@pytest.mark.requirement("S0-26")
@pytest.mark.anyio
async def test_no_program_is_started_while_a_server_is_used(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr("os.posix_spawn", refuse)
    monkeypatch.setattr("os.fork", refuse)
    async with importing() as (_, imported):
        assert (await call(imported[0])).ok


@pytest.mark.requirement("S0-B1")
def test_the_extra_brings_the_client_parts_and_no_server():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {text.split(">")[0].split("[")[0] for text in project["optional-dependencies"]["mcp"]}
    assert names == {"cryptography", "mcp"}


@pytest.mark.requirement("S0-24")
@pytest.mark.parametrize("path", sorted((ROOT / "mcp" / "client").glob("*.py")), ids=lambda path: path.name)
def test_the_client_reads_no_environment(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {"environ", "getenv"} & names
