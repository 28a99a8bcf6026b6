"""Let a model answer everyday questions, and count what it pays.

``python -m bench.agents prepare DIR`` imports the invented year into a home and writes ``questions.json``, with answers, and
``questions.txt``, without. A model that has seen neither the year nor the answers then gets the questions, the list of the
tools (``python -m bench.agents tools DIR``) and one command:
``python -m bench.agents call DIR RUN text|structure TOOL '{...}'`` prints what a host of that channel shows.
``python -m bench.agents report DIR`` counts the calls and the bytes of each run.
"""

from __future__ import annotations

import argparse
import json
import subprocess  # noqa: TID251 - a bench runs this program
import sys
from pathlib import Path
from typing import Any

from bench.agents.year import questions, write_year
from headgate.mcp.serve.tools import surface_of
from headgate.model.kinds import PUBLISHER

_CLIENT = "walker"
_SOURCES = tuple(f"{PUBLISHER}/{name}" for name in ("mail", "calendar", "chat", "money", "notes", "tables"))


def main() -> int:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.agents")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("prepare", "tools", "report"):
        commands.add_parser(name).add_argument("place", type=Path)
    call = commands.add_parser("call")
    call.add_argument("place", type=Path)
    call.add_argument("run")
    call.add_argument("channel", choices=("text", "structure"))
    call.add_argument("tool")
    call.add_argument("arguments", nargs="?", default="{}")
    asked = parser.parse_args()
    place: Path = asked.place
    if asked.command == "prepare":
        _prepare(place)
    elif asked.command == "tools":
        _tools()
    elif asked.command == "report":
        _report(place)
    else:
        _call(place, asked.run, asked.channel, asked.tool, asked.arguments)
    return 0


def _headgate(place: Path, *arguments: str, is_refusable: bool = False) -> str:
    """Return what the command prints; one that fails ends the run, unless a refusal is an answer too."""
    command = [sys.executable, "-m", "headgate", "--home", str(place / "home"), *arguments]
    return subprocess.run(command, check=not is_refusable, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def _prepare(place: Path) -> None:
    year = write_year(place / "Dario")
    asked = questions(year)
    (place / "questions.json").write_text(json.dumps(asked, indent=1))
    lines = [f"{number}. {question}" for number, (question, _) in enumerate(asked, 1)]
    (place / "questions.txt").write_text("\n".join([*lines, ""]))
    print(_headgate(place, "import", "--yes", str(place / "Dario")))
    print(_headgate(place, "grants", "create", "--client", _CLIENT, "--yes"))


def _tools() -> None:
    for tool in surface_of(has_meaning=False).naming(_SOURCES).tools:
        print(
            f"{tool['name']}: {tool['description']}\n{json.dumps(tool['inputSchema'], ensure_ascii=False)}\n"
        )


def _call(place: Path, run: str, channel: str, tool: str, arguments: str) -> None:
    answer = _headgate(place, "try", "--as", _CLIENT, "--json", tool, arguments, is_refusable=True)
    result: dict[str, Any] = json.loads(answer)
    shown = {
        "text": "\n".join(block["text"] for block in result["content"] if block["type"] == "text"),
        "structure": json.dumps(result.get("structuredContent"), ensure_ascii=False, separators=(",", ":")),
    }[channel]
    line = {
        "tool": tool,
        "arguments": arguments,
        "bytes": len(shown.encode()),
        "is_error": bool(result.get("isError")),
    }
    with (place / f"{run}.calls").open("a") as log:
        log.write(json.dumps(line) + "\n")
    print(shown)


def _report(place: Path) -> None:
    for path in sorted(place.glob("*.calls")):
        calls = [json.loads(line) for line in path.read_text().splitlines()]
        size = sum(call["bytes"] for call in calls)
        refused = sum(call["is_error"] for call in calls)
        print(f"{path.stem}: {len(calls)} calls, {size / 1000:.1f} kB, {refused} refused")


if __name__ == "__main__":
    sys.exit(main())
