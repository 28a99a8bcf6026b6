"""What of the demonstration's answers reaches the model of each agent program, by the rules of tools/hosts.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mcp.hosts.demo import demo_home
from tests.mcp.hosts.test_replay import RECORDED
from tools.hosts import CALLS, HOSTS, Answers, Channel, Cut, Host, Row, differences, measured, shown_by, stale


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return measured(demo_home(tmp_path_factory.mktemp("reaching")))


def test_the_answers_have_rows_to_count(answers: Answers):
    counts = {call: len(rows) for call, rows in answers.rows.items()}
    assert counts["search"] >= 9
    assert (counts["query_records"], counts["fetch"]) == (9, 1)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.title)
def test_a_model_sees_rows_with_their_id_title_and_day_in_every_program(
    answers: Answers, host: Host, call: str
):
    rows, _ = answers.reaching(host, call)
    if call == "schema":
        assert rows == 8
        return
    assert rows == len(answers.rows[call])


def test_the_tables_of_the_pages_are_those_that_are_measured(answers: Answers):
    assert [*stale(answers)] == []


def test_every_program_of_the_table_was_recorded_in_its_version():
    names = {"Cline": "Cline CLI", "Continue": "Continue CLI", "Kimi Code": "kimi-code"}
    names |= {"LangChain MCP": "langchain-mcp-adapters", "OpenAI Agents": "OpenAI Agents SDK"}
    recorded = {(run["host"], run["version"]) for run in RECORDED.values()}
    for host in HOSTS:
        title = host.title.partition(",")[0]
        assert (names.get(title, title), host.version) in recorded


RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": 'a "title"'}, {"type": "resource_link", "uri": "u"}],
    "structuredContent": {"b": "c" * 100},
}
STRUCTURE = json.dumps(RESULT["structuredContent"]).replace(" ", "")


@pytest.mark.parametrize(
    ("channel", "seen"),
    [
        (Channel.TEXT, 'a "title"'),
        (Channel.STRUCTURE, STRUCTURE),
        (Channel.BOTH, f'a "title"\n{STRUCTURE}'),
        (Channel.BLOCKS, json.dumps(RESULT["content"])),
        (Channel.WHOLE, json.dumps(RESULT)),
    ],
)
def test_a_program_shows_its_channel_and_cuts_as_it_does(channel: Channel, seen: str):
    assert shown_by(Host("x", "1", channel), RESULT) == seen
    assert shown_by(Host("x", "1", channel, Cut.MIDDLE, len(seen)), RESULT) == seen
    assert shown_by(Host("x", "1", channel, Cut.FILE, len(seen) - 1, 4), RESULT) == seen[:4]
    assert shown_by(Host("x", "1", channel, Cut.MIDDLE, 8), RESULT) == f"{seen[:4]}\n…\n{seen[-4:]}"


def test_a_row_is_seen_through_json_in_json_and_only_whole():
    row = Row("bank/transactions:1", 'The "Boat"', "2025-03-11")
    text = 'bank/transactions:1 2025-03-11 The "Boat"'
    assert row.is_in(text)
    assert row.is_in(json.dumps(text))
    assert row.is_in(json.dumps({"text": json.dumps({"t": text})}).replace("\\\\", ""))
    for part in ("bank/transactions:1", "2025-03-11", "Boat"):
        assert not row.is_in(text.replace(part, ""))


def test_a_table_differs_by_its_words_and_by_more_than_a_fifth_of_a_size():
    assert not [*differences("| a | 3, 10.0 kB |", "| a | 3, 11.5 kB |")]
    assert [*differences("| a | 3, 10.0 kB |", "| a | 3, 14.0 kB |")]
    assert [*differences("| a | 3, 10.0 kB |", "| a | 4, 10.0 kB |")]
    assert [*differences("| a |", "| a |\n| b |")]
