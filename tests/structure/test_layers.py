from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [command, "--no-cache", "--config", tree / "pyproject.toml"],
        cwd=tree / "src",
        env={"PYTHONPATH": str(tree / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_keeps_to_the_layers(tree: Path):
    outcome = lint(tree)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("model/ids.py", "headgate.store"),
        ("policy/__init__.py", "headgate.schema"),
        ("policy/__init__.py", "headgate.text"),
        ("operations/__init__.py", "mcp"),
        ("operations/__init__.py", "headgate.reading"),
        ("reading/__init__.py", "headgate.operations"),
        ("reading/__init__.py", "headgate.web"),
        ("mcp/__init__.py", "headgate.store"),
        ("web/app.py", "headgate.policy"),
        ("cli/store.py", "headgate.store.maintenance.backup"),
        ("store/format/columns.py", "headgate.store.sql.database"),
        ("store/format/columns.py", "pathlib"),
        ("store/sql/database.py", "headgate.store.sqlite.database"),
        ("store/sqlite/database.py", "headgate.store.postgres.database"),
        ("store/sqlite/database.py", "headgate.store.queries.pages"),
        ("store/queries/pages.py", "headgate.store.changes.ingest"),
        ("store/changes/ingest.py", "headgate.store.queries.pages"),
        ("store/changes/ingest.py", "headgate.store.search.lexical"),
        ("store/search/lexical.py", "headgate.store.changes.word_index"),
        ("store/search/lexical.py", "headgate.store.ledger.ledger"),
        ("store/ledger/ledger.py", "headgate.store.maintenance.fsck"),
        ("store/maintenance/fsck.py", "headgate.store.engines.store"),
        ("wiring.py", "apsw"),
        ("text/__init__.py", "pathlib"),
    ],
)
def test_a_planted_import_from_a_higher_layer_is_found(tree: Path, module: str, forbidden: str):
    planted = tree / "src" / "headgate" / module
    planted.write_text(planted.read_text(encoding="utf-8") + f"\nimport {forbidden}\n", encoding="utf-8")
    outcome = lint(tree)
    assert outcome.returncode == 1, outcome.stdout
    assert "BROKEN" in outcome.stdout


def test_a_module_that_no_contract_lists_is_found(tree: Path):
    (tree / "src" / "headgate" / "attic.py").write_text('"""Not listed."""\n', encoding="utf-8")
    assert lint(tree).returncode == 1


#: What reads the environment: the command line and the server, which pass it on; and two that set up a process.
ENVIRONMENT = {"cli/main.py", "hosting.py", "memory.py", "sources/parser_process.py"}


def readers_of_environment(source: Path) -> set[str]:
    """Give the modules that read the environment, by any of the names that it has."""
    names = {"environ", "environb", "getenv", "getenvb"}
    return {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and names & {alias.name for alias in node.names})
    }


def test_only_the_command_line_and_the_server_read_the_environment():
    assert readers_of_environment(ROOT / "src" / "headgate") == ENVIRONMENT


def test_a_planted_read_of_the_environment_is_found(tmp_path: Path):
    (tmp_path / "by_import.py").write_text("from os import getenv\n", encoding="utf-8")
    (tmp_path / "by_name.py").write_text("import os\ntoken = os.environ['TOKEN']\n", encoding="utf-8")
    (tmp_path / "passed_on.py").write_text(
        "def find(environment): return environment['A']\n", encoding="utf-8"
    )
    assert readers_of_environment(tmp_path) == {"by_import.py", "by_name.py"}
