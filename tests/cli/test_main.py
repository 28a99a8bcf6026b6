from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from headgate import __version__
from headgate.cli.main import app
from headgate.home import COMMANDS
from tests.on_socket import headgate, headgate_alone


def test_the_program_says_its_version(tmp_path: Path):
    outcome = headgate(tmp_path, "--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"headgate {__version__}\n", "")


def test_help_names_every_command_and_the_home(tmp_path: Path):
    outcome = headgate(tmp_path, "--help")
    assert outcome.code == 0
    for word in ("--home", "--version", "config", "serve"):
        assert word in outcome.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nonsense",),
        ("nonsense",),
        ("config",),
        ("config", "show", "--nonsense"),
        ("serve", "--port"),
        ("serve", "extra"),
    ],
)
def test_wrong_usage_is_one_line_that_says_where_to_look_and_code_64(
    tmp_path: Path, arguments: tuple[str, ...]
):
    outcome = headgate(tmp_path, *arguments)
    assert outcome.code == 64
    assert outcome.out == ""
    assert outcome.err.startswith("headgate: ")
    assert "--help" in outcome.err
    assert outcome.err.count("\n") == 1


def test_config_show_says_where_each_value_came_from(tmp_path: Path):
    (tmp_path / "etc" / "headgate").mkdir(parents=True)
    (tmp_path / "etc" / "headgate" / "config.toml").write_text('log_level = "debug"\n', encoding="utf-8")
    outcome = headgate(tmp_path, "--home", "here", "config", "show", HEADGATE_PORT="99")
    rows = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines()}
    assert rows["home"] == ["here", "flag", "(--home)"]
    assert rows["port"] == ["99", "environment", "(HEADGATE_PORT)"]
    assert rows["log_level"][:2] == ["debug", "file"]
    assert rows["host"] == ["127.0.0.1", "default"]


def test_config_show_as_json_holds_the_same(tmp_path: Path):
    outcome = headgate(tmp_path, "config", "show", "--json", HEADGATE_HOME=str(tmp_path / "there"))
    document = json.loads(outcome.out)
    assert document["home"] == {
        "value": str(tmp_path / "there"),
        "origin": "environment",
        "place": "HEADGATE_HOME",
    }
    assert document["port"] == {"value": 8321, "origin": "default", "place": None}


def test_config_show_makes_nothing(tmp_path: Path):
    headgate(tmp_path, "--home", "here", "config", "show")
    assert list(tmp_path.iterdir()) == []


def test_a_variable_that_sets_nothing_is_reported_on_standard_error(tmp_path: Path):
    outcome = headgate(tmp_path, "config", "show", "--json", HEADGATE_PROT="1")
    assert json.loads(outcome.out)
    assert "HEADGATE_PROT" in outcome.err


@pytest.mark.parametrize(
    "extra", [{"HEADGATE_PORT": "many"}, {"HEADGATE_CONFIG": "none.toml"}, {"HEADGATE_LOG_LEVEL": "loud"}]
)
def test_a_wrong_setting_is_one_line_and_code_78(tmp_path: Path, extra: dict[str, str]):
    outcome = headgate(tmp_path, "serve", **extra)
    assert outcome.code == 78
    assert outcome.err.startswith("headgate: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err


def test_a_home_that_others_can_enter_is_refused_with_the_command_that_mends_it(tmp_path: Path):
    (tmp_path / "home").mkdir(mode=0o755)
    outcome = headgate(tmp_path, "--home", str(tmp_path / "home"), "serve")
    assert outcome.code == 78
    assert f"chmod 700 {tmp_path / 'home'}" in outcome.err


def test_without_the_serve_extra_the_command_names_it(tmp_path: Path):
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError(name='uvicorn')\n", encoding="utf-8")
    outcome = headgate_alone(tmp_path, "serve", PYTHONPATH=str(tmp_path))
    assert outcome.code == 78
    assert "headgate[serve]" in outcome.err


HINTING = (
    ("mcp",),
    ("mcp", "--client", "a"),
    ("grants", "list"),
    ("grants", "show", "nothing"),
    ("grants", "create", "--client", "a"),
    ("sources", "sync"),
    ("sources", "show", "x"),
    ("ops", "pins"),
    ("connect",),
    ("doctor",),
)


def test_every_command_that_a_hint_may_name_is_known_to_hints():
    shown: Any = typer.main.get_command(app)
    assert {name for name, one in shown.commands.items() if not one.hidden} == set(COMMANDS)


def test_commands_in_hints_name_the_home_that_was_given(tmp_path: Path):
    bare = re.compile(rf"headgate (?:{'|'.join(COMMANDS)})\b")
    options = (("--home", "my home"), ("--home=my home",))
    for call in ((*option, *words) for words in HINTING for option in options):
        done = headgate(tmp_path, *call)
        shown = done.out + done.err
        assert "headgate --home 'my home' " in shown, (call, done)
        assert not bare.search(shown), (call, done)
    # A variable holds for the next command as well.
    for words in HINTING:
        done = headgate(tmp_path, *words, HEADGATE_HOME="my home")
        assert bare.search(done.out + done.err)
