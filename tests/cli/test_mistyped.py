"""What a newcomer types wrong, and what the program answers; and what it leaves alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.in_process import local_program, record
from tests.on_socket import Outcome, headgate
from tests.schema.declarations import declaration


async def _fill(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        lines = [record(f"m{n}", sent_at="2026-03-01T00:00:00Z", subject="x") for n in range(3)]
        await program.ingest(connection, "messages", lines)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistyped")
    asyncio.run(_fill(place))
    # The program that filled the home had a clock in the future.
    (place / "home" / "latest-time").unlink()
    return place


def run(place: Path, *arguments: str) -> Outcome:
    return headgate(place, "--home", "home", *arguments)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ("-h", 0, "Usage: headgate"),
        ("grants create -h", 0, "Usage: headgate grants create"),
        (
            "serv",
            64,
            "No such command 'serv'. Did you mean 'serve', 'service', 'search'? See 'headgate --help'.",
        ),
        ("version", 0, "headgate "),
        ("import nothing.mbox", 1, "nothing.mbox"),
        ("grants create --client a --connection House", 1, "Connections are Home (home)"),
        ("grants create --client a --days 0", 64, "'--days': it must be at least 1."),
        ("grants create --client a --days many", 64, "'--days': it must be a whole number."),
        ("sources show House", 1, "There is no connection 'House'. Connections are Home (home)"),
        ("export House out", 1, "There is no connection 'House'."),
        ("try --as bob search x", 1, "There is no client 'bob'. See 'headgate --home home grants list'."),
        ("grants create --client a --since lately", 64, "30d, today or yesterday"),
        ("grants show bob", 1, "There is no grant or client 'bob'."),
        ("grants revoke bob", 1, "There is no grant or client 'bob'."),
        ("audit list --client nobody", 0, "No entries for client 'nobody'."),
        ("store erase House", 1, "There is no connection 'House'. Connections are Home (home)"),
        ("store fsck", 0, "found no damage."),
    ],
)
def test_what_is_typed_wrong_gets_a_message_that_helps(
    filled: Path, arguments: str, code: int, expected: str
):
    outcome = run(filled, *arguments.split())
    assert (outcome.code, expected in outcome.out + outcome.err) == (code, True), outcome


def test_names_relative_times_and_plain_budgets_are_understood(filled: Path):
    narrow = ("--connection", "home", "--since", "yesterday", "--budget", "500")
    made = run(filled, "grants", "create", "--client", "bob", *narrow)
    assert made.code == 0, made.err
    assert "bob will see, for 30 days:" in made.err
    assert "messages of Home" in made.err
    assert run(filled, "grants", "create", "--client", "bob", "--since", "3000d").code == 0
    shown = run(filled, "grants", "show", "bob").out
    assert shown.startswith("'bob' is a client with 2 grants:")
    listed = run(filled, "grants", "list").out.splitlines()
    assert listed[0].split("  ")[0] == "grant"
    assert all(word in listed[0] for word in ("issued", "last used", "expires", "budget"))
    assert "0 of 500 today" in "\n".join(listed)
    assert "2 grants revoked" in run(filled, "grants", "revoke", "bob").out
    assert run(filled, "grants", "revoke", "bob").out == "bob had no active grant.\n"
    tried = run(filled, "try", "--as", "bob", "search", "x")
    assert tried.err == "headgate: 'bob' has no active grant. See 'headgate --home home grants list'.\n"
    assert run(filled, "grants", "list").out.count("revoked") == 2


def test_a_preview_has_counts_the_span_and_three_samples_before_everything_is_granted(filled: Path):
    refused = run(filled, "grants", "create", "--client", "cursor")
    assert (refused.code, refused.out) == (1, "")
    assert "3 records, 2026-03-01 to 2026-03-01" in refused.err
    assert refused.err.count("messages: 2026-03-01 00:00Z · x") == 3
    assert "confirm it with --yes" in refused.err
    assert '"cursor"' not in run(filled, "grants", "list", "--json").out
    made = run(filled, "grants", "create", "--client", "claude-code", "--yes")
    assert "claude mcp add --scope user --transport http headgate " in made.out


def test_a_sample_is_the_line_of_what_is_granted(filled: Path):
    narrowed = run(filled, "grants", "create", "--client", "narrow", "--fields", "messages=id,sent_at").err
    assert narrowed.count("messages: 2026-03-01 00:00Z\n") == 3, narrowed


@pytest.mark.parametrize(
    "arguments", ["grants list", "grants show x", "audit list", "store stats", "sources list", "owner tokens"]
)
def test_commands_that_only_read_make_no_home(tmp_path: Path, arguments: str):
    run(tmp_path, *arguments.split())
    assert not (tmp_path / "home").exists()
