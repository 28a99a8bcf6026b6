"""Write the pages of docs/reference that follow from the code: settings, errors, commands, REST, tools, Python API.

`python tools/reference.py` writes them; `--check` only says whether they are up to date.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from reference_python import python_page
from reference_tools import tools_page
from typer.main import get_command

from headgate.cli.main import app
from headgate.errors import CALL_ERRORS, all_errors, default_message
from headgate.settings import ALL_SETTINGS
from headgate.web.api.definitions import ENDPOINTS, Endpoint, Param, Who

PAGES = Path(__file__).parents[1] / "docs" / "reference"
#: The environment of ``--help``, so that a page does not depend on the terminal.
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def settings_page() -> str:
    """List every setting with its flag, variable, key and default."""
    rows = [
        f"| `{setting.name}` | `{setting.variable}` | {_default(setting.name, setting.default)} | {setting.about} |"
        for setting in ALL_SETTINGS
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "A value is taken from the first place that has it: a flag (`--port 9000`), the environment",
            "(`HEADGATE_PORT=9000`), the TOML file (`port = 9000`), the default. The file is `config.toml` in the",
            "platform's configuration directory for `headgate`, or the one that `HEADGATE_CONFIG` names.",
            "`headgate config show` shows the values in force and where each came from. The",
            "[glossary](glossary.md) explains the words.",
            "",
            "| setting | environment variable | default | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def rest_page() -> str:
    """Write docs/reference/rest.md."""
    lines = [
        "# REST",
        "",
        "Every endpoint of `/v1`, drawn from the list that requests are parsed by. A running server has the",
        "same list as an OpenAPI document at `/openapi.json`. Refusals are listed in [errors](errors.md).",
        "",
        "All calls carry `Authorization: Bearer TOKEN`. Parameters that are not listed are refused. Every answer",
        "has `Request-Id` and `PDPP-Version`.",
        "",
    ]
    for endpoint in ENDPOINTS:
        lines.extend(_rest_section(endpoint))
    return "\n".join(lines)


def _rest_section(endpoint: Endpoint) -> Iterator[str]:
    yield f"## `{endpoint.route}`"
    yield ""
    yield f"{endpoint.about} {'For the owner alone. ' if endpoint.who is Who.OWNER else ''}Answers {endpoint.status}.".replace(
        "  ", " "
    )
    yield ""
    if endpoint.params:
        yield "| parameter | meaning |"
        yield "|---|---|"
        for param in endpoint.params:
            bounds = _bounds_in_words(param)
            choices = f" One of {', '.join(f'`{one}`' for one in param.choices)}." if param.choices else ""
            needed = " Required." if param.required else ""
            about = param.about.replace("|", "\\|")
            yield f"| `{param.name}` | {about}{choices}{bounds}{needed} |"
        yield ""
    if endpoint.body is not None:
        yield f"Takes `{endpoint.body.media_type}`, at most {endpoint.body.most_bytes} bytes: {endpoint.body.about}"
        yield ""


def _bounds_in_words(param: Param) -> str:
    """Say what a number must lie between, and what it is when left out."""
    parts = [] if param.default is None else [f"{param.default} by default"]
    parts += [] if param.least is None else [f"at least {param.least}"]
    parts += [] if param.most is None else [f"at most {param.most}"]
    return f" {', '.join(parts).capitalize()}." if parts else ""


def errors_page() -> str:
    """List every error code with its status, meaning and hint."""
    return "\n".join(
        [
            "# Errors",
            "",
            "Codes and statuses are contract; message texts are not. Every error carries a hint that says what to",
            "do next. The [glossary](glossary.md) explains the words.",
            "",
            "| code | status | when | what to do |",
            "|---|---|---|---|",
            *_error_rows(),
            "",
            "## Calls of typed operations",
            "",
            "| code | status | retry may help | what to do |",
            "|---|---|---|---|",
            *(
                f"| `{code}` | {known.status} | {'yes' if known.retryable else 'no'} | {known.hint} |"
                for code, known in CALL_ERRORS.items()
            ),
            "",
        ]
    )


def commands_page() -> str:
    """Show the help of every command, and the exit codes."""
    return "\n".join(
        [
            "# Commands",
            "",
            "| exit code | meaning |",
            "|---|---|",
            "| 0 | done |",
            "| 1 | failed; the line on standard error says why. `doctor` and `store fsck`: something is wrong, and it is listed. `search`: nothing was found |",
            "| 3, 4, 6 | `ops`: a tool waits for your approval; a server cannot be reached; there is no such operation |",
            "| 5 | `ops call`: the tool failed |",
            "| 64 | the command was called wrongly |",
            "| 65 | an import left something out: rows were rejected, a file could not be read, or reading ended early |",
            "| 69 | the log of disclosures cannot be checked here |",
            "| 78 | a setting, the home directory or a missing extra is in the way |",
            "| 130 | interrupted |",
            "",
            *(line for words in _commands(get_command(app)) for line in _help(words)),
        ]
    )


def _default(name: str, text: str) -> str:
    if name == "home":
        return "the platform's data directory for `headgate`"
    return f"`{text}`" if text else "empty"


def _error_rows() -> Iterator[str]:
    for error in all_errors():
        own_code = error.code != getattr(error.__mro__[1], "code", None)
        if own_code and not error.code.isupper():
            yield f"| `{error.code}` | {error.status} | {default_message(error)} | {error.hint} |"


def _commands(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    children: dict[str, object] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from _commands(child, (*words, name))


def _help(words: tuple[str, ...]) -> list[str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        get_command(app).main([*words, "--help"], prog_name="headgate")
    text = "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())
    return [f"## `{' '.join(('headgate', *words))}`", "", "```text", text, "```", ""]


def main() -> int:
    """Write or check the pages."""
    os.environ.update(TERMINAL)
    pages = {
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "cli.md": commands_page(),
        "rest.md": rest_page(),
        "tools.md": tools_page(),
        "python.md": python_page(),
    }
    stale = [name for name, text in pages.items() if _current(name) != text]
    if "--check" in sys.argv:
        print("\n".join(f"docs/reference/{name} is out of date: run make docs" for name in stale), end="")
        return 1 if stale else 0
    for name in stale:
        (PAGES / name).write_text(pages[name], encoding="utf-8")
    return 0


def _current(name: str) -> str | None:
    page = PAGES / name
    return page.read_text(encoding="utf-8") if page.exists() else None


if __name__ == "__main__":
    sys.exit(main())
