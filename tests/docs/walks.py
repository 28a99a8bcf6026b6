"""A page as a reader follows it: what it lets them bring, the files it shows, the commands it gives, what they print."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_FENCE = re.compile(
    r'^(?P<indent> *)```(?P<kind>[\w-]*)(?: title="(?P<title>[^"]+)")?[^\n]*\n(?P<body>.*?)^(?P=indent)```$',
    re.MULTILINE | re.DOTALL,
)
#: A paragraph that says what a reader has to have.
_NEEDS = re.compile(r"(?<![*`])\bYou\s+need\b.*?(?=\n\n)", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
#: Commands that go on until Ctrl-C, and what they print when they are ready.
GOES_ON = (
    (
        re.compile(r"(?:\w+=\S+ )*headgate(?: --home \S+)? demo\b"),
        re.compile(r"everything shown here is deleted"),
    ),
    (
        re.compile(r"(?:\w+=\S+ )*headgate(?: --home \S+)?(?: serve\b.*)?$"),
        re.compile(r"a password of your choice$", re.MULTILINE),
    ),
    (re.compile(r"python \S*server\.py\b"), re.compile(r"Uvicorn running on")),
)


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that the page shows with its name: the reader saves it."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Commands:
    """A block of commands, and the block that shows what they print, if one follows."""

    lines: tuple[str, ...]
    output: str | None


def needs_of(text: str) -> frozenset[str]:
    """Give the names of the files that the page asks the reader to have, and the word `records` if it asks for some."""
    asked = " ".join(_NEEDS.findall(text))
    files = {name for name in _CODE.findall(asked) if "." in name or name.endswith("/")}
    return frozenset(files | ({"records"} if re.search(r"\brecords\b", asked) else set()))


def steps_of(text: str) -> Iterator[ShownFile | Commands]:
    """Give what the reader does, in the order of the page."""
    fences = list(_FENCE.finditer(text))
    for fence, following in pairwise([*fences, None]):
        assert fence is not None
        body = textwrap.dedent(fence["body"])
        if fence["kind"] == "sh":
            yield Commands(tuple(_commands(body)), _output(text, fence, following))
        elif fence["title"] and "." in fence["title"]:
            yield ShownFile(fence["title"], body)


def hidden_commands(text: str) -> list[str]:
    """Give the lines that are commands, but do not stand in a block of commands."""
    starts = re.compile(r"^(?:\$ |headgate |make |pip |pipx |uv |uvx |curl |docker |systemctl |claude |npx )")
    return [
        line
        for fence in _FENCE.finditer(text)
        if fence["kind"] not in {"sh", "python"}
        for line in textwrap.dedent(fence["body"]).splitlines()
        if starts.match(line)
    ]


def ready_sign(command: str) -> re.Pattern[str] | None:
    """Give what a command prints once it is ready, if it goes on until Ctrl-C."""
    return next((sign for known, sign in GOES_ON if known.match(command)), None)


def missing_lines(shown: str, printed: str) -> list[str]:
    """Give the lines of a page that were not printed in this order; `...` stands for anything, blanks for blanks."""
    # What a carriage return overwrites is progress.
    lines = (line.rpartition("\r")[2] for line in printed.split("\n"))
    left, missing = [" ".join(line.split()) for line in lines], []
    for line in (
        one for one in (" ".join(one.split()) for one in shown.split("\n")) if one not in {"", "..."}
    ):
        wanted = re.compile(re.escape(line).replace(r"\.\.\.", ".*"))
        place = next((index for index, one in enumerate(left) if wanted.fullmatch(one)), None)
        if place is None:
            missing.append(line)
        else:
            left = left[place + 1 :]
    return missing


def _commands(body: str) -> Iterator[str]:
    """Split a block into commands; a line that ends in a backslash goes on."""
    for line in re.sub(r"\\\n *", "", body).split("\n"):
        command = re.sub(r"  +#.*", "", line).strip()
        if command and not command.startswith("#"):
            yield command


def _output(text: str, fence: re.Match[str], following: re.Match[str] | None) -> str | None:
    if following is None or following["kind"] not in {"text", "json"} or following["title"]:
        return None
    between = text[fence.end() : following.start()].strip()
    return following["body"] if not between or between.endswith(("prints:", "answers:")) else None


def saved(place: Path, file: ShownFile, content: str) -> Path:
    """Save a file that the page shows; a name that begins with ~ is in the person's directory."""
    path = place / file.name.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path
