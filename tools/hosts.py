"""What reaches the model of each agent program, by the rules that were seen in the programs themselves.

`python tools/hosts.py` measures the demonstration's answers under each rule and writes the tables of the page on answers
and of the README; `--check` only says whether they are up to date.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from headgate.agent_programs.programs import PROGRAMS  # noqa: E402 - found after the path is set
from headgate.sources.demo.filling import invented  # noqa: E402
from tests.mcp.hosts.demo import DemoHome, demo_home  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "answers.md"
README = ROOT / "README.md"
#: The figures of a page may differ by this part from those that are measured.
_TOLERANCE = 0.2


class Channel(StrEnum):
    """What of a result a program shows its model."""

    TEXT = "text"
    STRUCTURE = "structure"
    BOTH = "text and structure"
    BLOCKS = "text, as JSON"
    WHOLE = "whole result as JSON"


class Cut(StrEnum):
    """What a program does with more than its limit."""

    NONE = "not met"
    MIDDLE = "the middle is cut"
    FILE = "a file; the beginning is shown"


@dataclass(frozen=True, slots=True)
class Host:
    """A program and the rule by which its model gets an answer."""

    title: str
    version: str
    channel: Channel
    cut: Cut = Cut.NONE
    #: In characters: the most that is shown whole, and what is shown of more, where that is put into a file.
    limit: int | None = None
    beginning: int = 0
    #: The name for `headgate connect`; empty for a library.
    program: str = ""


HOSTS: tuple[Host, ...] = (
    Host("Claude Code", "2.1.326", Channel.STRUCTURE, Cut.FILE, 50_000, 2_000, "claude-code"),
    Host("Cline", "3.0.65", Channel.WHOLE, Cut.MIDDLE, 8_000, program="cline"),
    Host("Codex", "0.169.0", Channel.STRUCTURE, Cut.MIDDLE, 48_000, program="codex"),
    Host("Codex, local model", "0.169.0", Channel.STRUCTURE, Cut.MIDDLE, 12_000),
    Host("Continue", "1.5.47", Channel.BLOCKS, program="continue"),
    Host("Copilot CLI", "1.0.102", Channel.BOTH, Cut.FILE, 20_000, 500, "copilot-cli"),
    Host("Gemini CLI", "0.61.0", Channel.TEXT, program="gemini-cli"),
    Host("Kimi Code", "2.1.0", Channel.BOTH, Cut.FILE, 34_000, 2_000, "kimi-code"),
    Host("opencode", "1.18.33", Channel.TEXT, program="opencode"),
    Host("Qwen Code", "0.24.4", Channel.BOTH, Cut.FILE, 30_000, 2_000, "qwen-code"),
    Host("LangChain MCP", "0.3.2", Channel.TEXT),
    Host("OpenAI Agents", "0.24.0", Channel.TEXT),
    Host("pydantic-ai", "2.66.0", Channel.STRUCTURE),
)

#: The calls that every conversation has.
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "search": ("search", {"query": "roof"}),
    "query_records": ("query_records", {"stream": "messages", "connector_key": "mail"}),
    "fetch": ("fetch", {"id": "home-mail/messages:roof-0-2-1"}),
    "schema": ("schema", {}),
}
_IDS = re.compile(r"\b(?:home-mail|work-mail|calendar|chat|bank|notes)/[a-z_]+:[\w.~%-]+")
#: The fields that a record's title and time are in; the first that it has.
_TITLES = ("subject", "title", "name", "description", "text")
_TIMES = ("sent_at", "starts_at", "booked_on", "modified_at")
_STREAMS = ("messages", "threads", "attachments", "events", "channels", "transactions", "accounts", "notes")
_TITLE_CHARS = 24


def shown_by(host: Host, result: Mapping[str, Any]) -> str:
    """Return what the model of a program sees of a result."""
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    structure = json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))
    ways: Mapping[Channel, Callable[[], str]] = {
        Channel.TEXT: lambda: "\n".join(texts),
        Channel.STRUCTURE: lambda: structure,
        Channel.BOTH: lambda: "\n".join([*texts, structure]),
        Channel.BLOCKS: lambda: json.dumps(result["content"], ensure_ascii=False),
        Channel.WHOLE: lambda: json.dumps(result, ensure_ascii=False),
    }
    whole = ways[host.channel]()
    if host.limit is None or len(whole) <= host.limit:
        return whole
    if host.cut is Cut.FILE:
        return whole[: host.beginning]
    half = host.limit // 2
    return f"{whole[:half]}\n…\n{whole[-half:]}"


@dataclass(frozen=True, slots=True)
class Row:
    """A record by what a model needs of it: its id, its title and its day."""

    id: str
    title: str
    day: str

    def is_in(self, text: str) -> bool:
        """Return whether a text holds all of it; JSON in JSON is read through."""
        plain = text.replace('\\"', '"')
        title = json.dumps(self.title[:_TITLE_CHARS], ensure_ascii=False)[1:-1]
        has_title = self.title[:_TITLE_CHARS] in plain or title in text
        return has_title and self.id in plain and self.day in plain


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to the calls, and the records that each of them is about."""

    results: Mapping[str, dict[str, Any]]
    rows: Mapping[str, Sequence[Row]]

    def reaching(self, host: Host, call: str) -> tuple[int, int]:
        """Count the rows and the bytes of an answer that reach the model of a program; of a schema, its streams."""
        text = shown_by(host, self.results[call])
        if call == "schema":
            return sum(stream in text for stream in _STREAMS), len(text.encode())
        return sum(row.is_in(text) for row in self.rows[call]), len(text.encode())


def measured(home: DemoHome) -> Answers:
    """Make the calls in the demonstration's home."""
    results, known = home.results(CALLS), {row.id: row for row in _all_rows()}
    rows = {
        call: [known[key] for key in dict.fromkeys(_IDS.findall(json.dumps(result))) if key in known]
        for call, result in results.items()
    }
    return Answers(results, {**rows, "fetch": rows["fetch"][:1]})


def _all_rows() -> Iterator[Row]:
    """Name every record of the demonstration as it was invented."""
    for record in invented():
        connection = record.connection.lower().replace(" ", "-")
        data = record.data
        title = next(str(data[name]) for name in _TITLES if name in data)
        times = (str(data[name]) for name in _TIMES if name in data)
        yield Row(f"{connection}/{record.stream}:{data['id']}", title, next(times, "")[:10])


def hosts_section(answers: Answers) -> str:
    """Write the table of the page on answers."""
    asked = {call: len(rows) for call, rows in answers.rows.items()} | {"schema": len(_STREAMS)}
    heads = (f"`{call}`, {asked[call]} {'streams' if call == 'schema' else 'rows'}" for call in CALLS)
    return "\n".join(
        [
            f"| program | its model sees | limit, characters | {' | '.join(heads)} |",
            f"|---|---|---|{'---|' * len(CALLS)}",
            *(_host_line(host, answers) for host in HOSTS),
        ]
    )


def _host_line(host: Host, answers: Answers) -> str:
    limit = str(host.cut) if host.limit is None else f"{host.limit:,}: {host.cut}".replace(",", " ")
    counts = (answers.reaching(host, call) for call in CALLS)
    cells = " | ".join(f"{rows}, {size / 1000:.1f} kB" for rows, size in counts)
    return f"| {host.title} {host.version} | {host.channel} | {limit} | {cells} |"


def agents_table() -> str:
    """Write the README's table of agents: what was tried, with its version, and what was not."""
    versions = {host.program: host.version for host in HOSTS if host.program}
    tried = (f"{_link(name)} {version}" for name, version in sorted(versions.items(), key=_by_title))
    others = (_link(name) for name in PROGRAMS if name not in versions)
    libraries = (
        f"{host.title} {host.version}" for host in HOSTS if not host.program and "," not in host.title
    )
    connect = "`headgate connect`, or the console's page *Connect an agent*"
    web = "[Claude on the web and on phones](docs/how-to/connect-claude-ai.md), [ChatGPT](docs/how-to/connect-chatgpt.md)"
    own = "with your own https address; not tried with real accounts"
    others_connect = "streamable HTTP with a token or OAuth, or [stdio](docs/how-to/connect-stdio.md)"
    return "\n".join(
        [
            "| agent | works today | how |",
            "|---|---|---|",
            f"| {', '.join(tried)} | yes: tried with the program of this version | {connect} |",
            f"| {', '.join(others)} | by their documentation; not tried | {connect} |",
            f"| {web} | {own} | OAuth: add the address, approve in the console |",
            f"| {', '.join(libraries)}, any other MCP client | yes | {others_connect} |",
        ]
    )


def _by_title(item: tuple[str, str]) -> str:
    return PROGRAMS[item[0]].title.casefold()


def _link(name: str) -> str:
    return f"[{PROGRAMS[name].title}](docs/how-to/connect-{name}.md)"


def with_section(text: str, name: str, section: str) -> str:
    """Put a section between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    assert found, f"the text has no mark {begin}"
    return f"{before}{begin}\n\n{section}\n\n{end}{rest.partition(end)[2]}"


def differences(written: str, section: str) -> Iterator[str]:
    """Compare a table with what is measured: all but sizes has to be the same, and sizes nearly."""
    for line, wanted in zip(written.splitlines(), section.splitlines(), strict=False):
        sizes = [[float(size) for size in re.findall(r"([\d.]+) kB", text)] for text in (line, wanted)]
        texts = [re.sub(r"[\d.]+ kB", "", text) for text in (line, wanted)]
        is_near = all(abs(a - b) <= max(_TOLERANCE * b, 0.2) for a, b in zip(*sizes, strict=False))
        if texts[0] != texts[1] or not is_near:
            yield f"run make docs: {line}\n  is now {wanted}"
    if len(written.splitlines()) != len(section.splitlines()):
        yield "run make docs: the table has another number of lines"


def section_of(text: str, name: str) -> str:
    """Return what stands between the marks of a section."""
    return text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0].strip()


def stale(answers: Answers) -> Iterable[str]:
    """Say what in the pages is not as it is measured."""
    yield from differences(section_of(PAGE.read_text(encoding="utf-8"), "hosts"), hosts_section(answers))
    yield from differences(section_of(README.read_text(encoding="utf-8"), "agents"), agents_table())


def main() -> int:
    """Write or check the tables."""
    with tempfile.TemporaryDirectory() as place:
        answers = measured(demo_home(Path(place)))
    if "--check" in sys.argv:
        wrong = [*stale(answers)]
        print("\n".join(wrong))
        return 1 if wrong else 0
    for page, name, section in ((PAGE, "hosts", hosts_section(answers)), (README, "agents", agents_table())):
        page.write_text(with_section(page.read_text(encoding="utf-8"), name, section), encoding="utf-8")
    print(hosts_section(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
