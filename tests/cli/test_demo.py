"""The demonstration as it is started: what it prints, what its questions are answered with, and that it is deleted."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headgate.sources.demo.filling import QUESTIONS, invented
from tests.forked_process import ForkedProcess
from tests.forking import shared_parent
from tests.journeys.agent import TextAgent, ids_in
from tests.on_socket import Outcome, environment, headgate

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class RunningDemo:
    place: Path
    process: ForkedProcess
    shown: str

    @property
    def url(self) -> str:
        return re.search(r"MCP URL +(\S+)", self.shown)[1]

    @property
    def token(self) -> str:
        return re.search(r"token +(\S+)", self.shown)[1]

    @property
    def home(self) -> str:
        return re.search(r"--home (\S+) audit", self.shown)[1]

    def descriptions(self) -> dict[str, str]:
        raise NotImplementedError

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and give only the texts of its answer."""
        answer = self.post(tool, arguments)
        return "\n".join(part["text"] for part in answer["content"] if part["type"] == "text")

    def post(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/event-stream"}
        headers["MCP-Protocol-Version"] = "2025-11-25"
        answer = httpx2.post(self.url, json=body, headers=headers, trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text)["result"]

    def command(self, *arguments: str) -> Outcome:
        return headgate(self.place, "--home", self.home, *arguments)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    place = tmp_path_factory.mktemp("demo")
    (place / "tmp").mkdir()
    variables = environment(place, {"TMPDIR": str(place / "tmp"), "HEADGATE_RATE_LIMIT": "0"})
    process = shared_parent().start(place, ("demo", "--port", "0"), variables, log=Path(os.devnull))
    try:
        shown = ""
        while "Ctrl-C" not in shown:
            line = process.stdout.readline()
            assert line, shown
            shown += line
        yield RunningDemo(place, process, shown)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.close()
    assert list((place / "tmp").iterdir()) == []


@pytest.fixture
def agent(demo: RunningDemo) -> TextAgent:
    return TextAgent(demo)


def test_it_prints_what_it_serves_one_link_a_line_for_each_program_and_three_questions(demo: RunningDemo):
    shown = demo.shown
    assert re.search(r"([\d,]+) records: two mail accounts, calendar, chat, bank and notes", shown)
    assert len(re.findall(r"console +http://\S+/console/welcome/\S+", shown)) == 1
    bearer = f"'Authorization: Bearer {demo.token}'"
    for line in (
        f"claude mcp add --scope user --transport http headgate {demo.url} --header {bearer}",
        f"gemini mcp add --scope user --transport http --header {bearer} headgate {demo.url}",
        f"npx -y @modelcontextprotocol/inspector@latest --cli {demo.url} --transport http",
        *(
            f"headgate --home {demo.home} connect {name} --yes --write"
            for name in ("claude-desktop", "cursor", "codex", "lm-studio", "windsurf", "zed")
        ),
    ):
        assert shown.count(line) == 1, line
    assert re.findall(r"^  - (.*\?)$", shown, re.MULTILINE) == list(QUESTIONS)


def test_an_agent_sees_six_connections_two_of_them_of_one_kind(demo: RunningDemo):
    index = demo.post("schema", {})["structuredContent"]["data"]
    assert index["connector_count"] == 5
    counted = sum(stream["record_count"] for one in index["connectors"] for stream in one["streams"])
    assert 28_000 < counted < 32_000
    assert f"{counted:,} records" in demo.shown
    refusal = demo.post("query_records", {"stream": "messages"})["structuredContent"]
    names = {one["display_name"] for one in refusal["error"]["available_connections"]}
    assert names == {"Home mail", "Work mail", "Chat"}


def test_the_index_fits_both_channels(demo: RunningDemo):
    result = demo.post("schema", {})
    text, data = result["content"][0]["text"], result["structuredContent"]
    assert len(text.encode()) <= 2_000
    assert len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()) <= 2_500
    assert re.search(
        r'^stream name="messages" connector_key="mail" .* time=sent_at title=subject', text, re.MULTILINE
    )
    assert re.search(r'^no records: .*name="tasks" connector_key="calendar"', text, re.MULTILINE)
    described = demo.post("schema", {"stream": "transactions"})["content"][0]["text"]
    assert 'category:["Groceries",' in described


def test_the_roof_cost_more_than_the_quote_by_what_mail_and_bank_say(agent: TextAgent):
    """Mail has the quote that was accepted and the reason; the bank has what was paid."""
    accepted = read_first(agent, "we accept your quote roof repair")
    quote = amount_in(r"accept your quote of ([\d,.]+\d)", accepted)
    payments = [
        agent.read(one).values for one in agent.pages("search", q="Castell roof", streams=["transactions"])
    ]
    paid = -sum(Decimal(str(one["amount"])) for one in payments if one["counterparty"] == "Castell Roofing")
    assert (quote, paid, paid - quote) == (Decimal("5940.00"), Decimal("6310.0"), Decimal(370))
    reason = read_first(agent, "roof invoice total deposit to pay")
    assert re.search(rf"lead flashing, chimney +{paid - quote}", reason)


def test_the_print_run_was_stopped_for_the_reason_in_mail_and_printed_on_the_day_in_the_calendar(
    agent: TextAgent,
):
    stopped = read_first(agent, "stop the print run of sheet 47")
    assert "the ford at Nettle Mill is printed as a bridge" in stopped
    found = agent.pages("search", q="sheet 47 corrected sheet goes to press", streams=["events"])
    assert agent.read(found[0]).values["starts_at"].startswith("2025-06-24")


def test_groceries_are_summed_month_by_month(agent: TextAgent):
    place = {
        "stream": "transactions",
        "filter": {"category": "Groceries"},
        "metric": "sum",
        "field": "amount",
    }
    sums = agent.groups(**place, group_by_time="booked_on", granularity="month")
    spent: Counter[str] = Counter()
    for one in invented():
        if one.stream == "transactions" and one.data["category"] == "Groceries":
            spent[one.data["booked_on"][:7]] -= round(one.data["amount"] * 100)
    (month, cents), (_, second) = spent.most_common(2)
    assert cents > second
    ((least,), amount) = min(sums.items(), key=lambda pair: pair[1])
    assert (least[:7], round(-amount * 100)) == (month, cents)


def test_the_cake_is_in_the_chat_and_the_party_in_the_calendar(agent: TextAgent):
    settled = read_first(agent, "who brings the cake settled")
    assert "Tom brings the cake" in settled
    found = agent.pages("search", q="Ida's birthday party", streams=["events"])
    assert agent.read(found[0]).values["starts_at"] == "2025-09-06T15:00:00Z"


def test_its_home_answers_grants_audit_and_store_while_it_runs(demo: RunningDemo):
    demo.post("search", {"q": "roof"})
    assert "demo-agent" in demo.command("grants", "list").out
    assert "demo-agent" in demo.command("audit", "list").out
    assert demo.command("store", "stats").code == 0


EXPORTS = {
    "Calendar": ("jsonl", "csv", "sqlite", "ics"),
    "Home mail": ("mbox",),
    "Chat": ("jsonl",),
    "Bank": ("csv",),
    "Notes": ("sqlite",),
}


def test_everything_is_exported_and_its_calendar_in_every_format(demo: RunningDemo, tmp_path: Path):
    for connection, formats in EXPORTS.items():
        for form in formats:
            out = tmp_path / f"{connection}.{form}"
            done = demo.command("export", connection, str(out), "--format", form)
            assert (done.code, done.err) == (0, ""), (connection, form)
    events = sum(one.stream == "events" for one in invented())
    written = b"".join(one.read_bytes() for one in (tmp_path / "Calendar.ics").rglob("*.ics"))
    unfolded = written.decode().replace("\r\n ", "")
    assert len(set(re.findall(r"^UID:.*$", unfolded, re.MULTILINE))) == events


def test_every_record_is_different_and_every_time_the_same():
    first, again = list(invented()), list(invented())
    assert first == again
    keys = {(one.connection, one.stream, one.data["id"]) for one in first}
    assert len(keys) == len(first)
    assert not [one for one in first if "{" in json.dumps([*map(str, one.data.values())])]


def test_answers_are_never_older_than_what_they_answer():
    sent = {(one.connection, one.data["id"]): one.at for one in invented() if one.stream == "messages"}
    answers = [one for one in invented() if "in_reply_to" in one.data]
    assert len(answers) > 3_000
    late = [one.data["id"] for one in answers if one.at < sent[one.connection, one.data["in_reply_to"]]]
    assert late == []


def test_make_run_runs_the_demo():
    assert "headgate demo" in (ROOT / "Makefile").read_text(encoding="utf-8")


def read_first(agent: TextAgent, words: str) -> str:
    """Search, open the best hit, and give everything that its document says."""
    found = ids_in(agent.ask("search", q=words))
    document = agent.read(found[0])
    return "\n".join([*document.unnamed, *map(str, document.values.values())])


def amount_in(pattern: str, text: str) -> Decimal:
    return Decimal(re.search(pattern, text)[1].replace(",", ""))
