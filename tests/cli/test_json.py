"""With ``--json`` standard output holds JSON and nothing else, whatever else there is to say."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from headgate.cli.main import app
from headgate.home import write_private
from tests.hostile.store.scene import filled, line
from tests.on_socket import Outcome, headgate

NOWHERE = "http://127.0.0.1:9/mcp"
#: What each command is called with, and how it ends on a home with a connection and a grant.
CALLS: dict[str, tuple[str, int]] = {
    "connect": ("", 0),
    "doctor": ("", 0),
    "import": ("in", 0),
    "export": ("{connection} out", 0),
    "search": ("secret", 1),
    "watch": ("missing", 1),
    "stop-all": ("", 0),
    "try": ("schema --as agent", 0),
    "config show": ("", 0),
    "grants create": ("--client other --yes", 0),
    "grants list": ("", 0),
    "grants show": ("{grant}", 0),
    "grants revoke": ("{grant}", 0),
    "owner reset": ("--yes", 0),
    "owner token": ("", 0),
    "owner tokens": ("", 0),
    "clients create": ("Name --redirect https://a.example/", 0),
    "rules list": ("", 0),
    "rules add": ("--words secret", 0),
    "rules remove": ("rul_none", 1),
    "audit list": ("", 0),
    "audit verify": ("", 0),
    "audit who-read": ("k1", 0),
    "audit export": ("", 0),
    "audit prune": ("--before 1d --to old", 0),
    "ops probe": (NOWHERE, 1),
    "ops list": (NOWHERE, 1),
    "ops schema": (f"{NOWHERE} echo", 1),
    "ops call": (f"{NOWHERE} echo", 1),
    "ops pins": ("", 0),
    "ops stubs": (NOWHERE, 1),
    "ops status": ("", 78),
    "ops check": ("city/weather", 78),
    "store stats": ("", 0),
    "store backup": ("copy", 0),
    "store restore": ("missing", 1),
    "store copy": ("--to postgresql://127.0.0.1:9/none", 1),
    "store fsck": ("", 0),
    "store erase": ("{connection} --yes", 0),
    "keys list": ("", 0),
    "keys rotate": ("", 0),
    "sources list": ("", 0),
    "sources show": ("{connection}", 0),
    "sources add": ("calendar", 1),
    "sources sync": ("", 0),
    "sources remove": ("{connection} --yes", 0),
    "service status": ("", 0),
}


def commands_with_json(group: Any, path: str = "") -> Iterator[str]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands_with_json(one, f"{path}{name} ")
        elif any("--json" in parameter.opts for parameter in one.params):
            yield path + name


def words_of(command: str, names: dict[str, str]) -> list[str]:
    words = (word.format_map(names) for word in CALLS[command][0].split())
    return ["--home", "home", *command.split(), *words, "--json"]


def places(tmp_path: Path, home: Path | None = None) -> dict[str, Path]:
    """Make a directory for each command, with files to import and a copy of a home."""
    made = {command: tmp_path / command.replace(" ", "-") for command in CALLS}
    for place in made.values():
        (place / "in").mkdir(parents=True)
        (place / "in" / "table.csv").write_text("id,name\n1,a\n", encoding="utf-8")
        (place / "in" / os.fsdecode(b"no unicode \xff.bin")).write_bytes(bytes(range(256)))
        if home is not None:
            shutil.copytree(home, place / "home")
    return made


def run_all(made: dict[str, Path], names: dict[str, str]) -> dict[str, Outcome]:
    """Run every command where there is something to say beside the document: the log is to hold everything."""
    return {
        command: headgate(place, *words_of(command, names), HEADGATE_LOG_LEVEL="debug")
        for command, place in made.items()
    }


def is_json_or_nothing(done: Outcome) -> bool:
    """Say whether the output is one document; a command that failed may have none, and says why elsewhere."""
    if done.code and not done.out:
        return bool(done.err)
    try:
        return json.loads(done.out.encode()) is not None
    except ValueError:
        return False


def test_every_command_with_json_is_tried():
    assert sorted(commands_with_json(typer.main.get_command(app))) == sorted(CALLS)


def test_with_json_nothing_else_is_printed_for_a_home_with_records(tmp_path: Path):
    home, connection = filled(tmp_path, [line(f"k{n}") for n in range(3)])
    granted = headgate(tmp_path, "--home", "home", "grants", "create", "--client", "agent", "--yes", "--json")
    names = {"connection": connection, "grant": json.loads(granted.out)["grant_ids"][0]}
    found = run_all(places(tmp_path, home.path), names)
    assert {command: done.code for command, done in found.items()} == {
        command: code for command, (_, code) in CALLS.items()
    }
    assert [done for done in found.values() if not is_json_or_nothing(done)] == []
    assert [done for done in found.values() if "Traceback" in done.err] == []


def test_with_json_nothing_else_is_printed_where_there_is_no_home(tmp_path: Path):
    found = run_all(places(tmp_path), {"connection": "cin_none", "grant": "grt_none"})
    assert [done for done in found.values() if not is_json_or_nothing(done)] == []
    assert [done for done in found.values() if "Traceback" in done.err] == []


def test_with_json_warnings_are_on_standard_error(tmp_path: Path):
    home, _ = filled(tmp_path, [line("k1")])
    create = ("grants", "create", "--client", "agent", "--yes", "--json")
    assert headgate(tmp_path, "--home", "home", *create).code == 0
    write_private(home.path / "audit-head.json", b"{")
    done = headgate(tmp_path, "--home", "home", "try", "schema", "--as", "agent", "--json")
    assert (done.code, is_json_or_nothing(done)) == (0, True), done
    assert '"level": "warning"' in done.err
