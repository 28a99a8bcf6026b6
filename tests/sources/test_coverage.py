"""What imports cover: the period of statements, what an account has up to now, and nothing where it is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.model.instants import iso
from headgate.model.record import coverage_in
from headgate.sources.coverage import ImportedStream, noted
from headgate.sources.importing import Importer
from headgate.sources.protocol import Covered
from headgate.sources.registry import CHAT
from tests.sources.history.exports import HEALTH
from tests.sources.source_checks import items_of
from tests.sources.test_chat_slack import FILES as SLACK
from tests.sources.test_every_source import jobs_of
from tests.store.engines import Driven

NOW = 1_790_000_000_000_000


def statement(account: str, first: str, last: str, *days: str, more: str = "") -> str:
    lines = "".join(
        f"<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>{day}<TRNAMT>-4.50<FITID>{account}{day}<NAME>Baker</STMTTRN>"
        for day in days
    )
    period = f"<DTSTART>{first}<DTEND>{last}" if first else ""
    return (
        "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR"
        f"<BANKACCTFROM><BANKID>1<ACCTID>{account}<ACCTTYPE>CHECKING</BANKACCTFROM>"
        f"<BANKTRANLIST>{period}{lines}{more}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"
    )


class Home:
    """A store into which statements are imported, each at its own time."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.at = NOW
        self.store = Driven("sqlite", place / "store")

    def brings(
        self, content: str, name: str = "a.ofx", stream: str = "transactions"
    ) -> tuple[str | None, str | None] | None:
        """Import a file into the one connection, and return what its transactions, or other records, cover then."""
        folder = self.place / f"files{self.at}"
        folder.mkdir()
        (folder / name).write_text(content)
        self.at += 3_600_000_000
        for job in jobs_of("money" if name == "a.ofx" else "history", folder):
            self.store.run(Importer(self.store.bare, clock=lambda: self.at).run(job))
        (connection,) = self.store.connections()
        return covers(json.loads(self.store.state(connection.id) or b"{}"), stream)


def covers(state: dict[str, Any], stream: str = "transactions") -> tuple[str | None, str | None] | None:
    notes = coverage_in(state, stream)
    if not notes:
        return None
    start, end = notes[-1].start, notes[-1].end
    if start is not None and end is not None and start > end:
        return None
    return (None if start is None else iso(start)[:10]), (None if end is None else iso(end)[:10])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


MARCH = statement("A", "20260301", "20260331", "20260302")


def test_a_statement_covers_its_period_and_those_that_follow_each_other_one_together(home: Home):
    assert home.brings(MARCH) == ("2026-03-01", "2026-03-31")
    assert home.brings(statement("A", "20260401", "20260430", "20260405")) == ("2026-03-01", "2026-04-30")
    # Between these two, lines may be missing.
    assert home.brings(statement("A", "20260601", "20260630", "20260605")) == ("2026-06-01", "2026-06-30")


def test_two_accounts_cover_what_both_have(home: Home):
    home.brings(MARCH)
    assert home.brings(statement("B", "20260315", "20260415", "20260320")) == ("2026-03-15", "2026-03-31")
    assert home.brings(statement("C", "20250101", "20250131", "20250105")) is None


def test_lines_of_an_unknown_period_make_the_whole_unknown(home: Home):
    home.brings(MARCH)
    assert home.brings(statement("B", "", "", "20260320")) is None


def test_a_period_is_not_known_where_lines_of_another_were_there_before(home: Home):
    assert home.brings(statement("B", "", "", "20260320")) is None
    assert home.brings(MARCH) is None


def test_a_statement_of_which_a_line_could_not_be_read_covers_nothing(home: Home):
    broken = "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20260303<TRNAMT>oops<FITID>X<NAME>Y</STMTTRN>"
    assert home.brings(statement("A", "20260301", "20260331", "20260302", more=broken)) is None


def listens(*days: str) -> str:
    return json.dumps(
        [
            {"ts": f"{day}T08:00:00Z", "ms_played": 5, "master_metadata_track_name": f"On {day}"}
            for day in days
        ]
    )


def test_a_log_covers_the_days_after_the_one_with_which_it_begins(home: Home):
    assert home.brings(listens("2026-03-02", "2026-03-09"), "endsong_0.json", "listens") == (
        "2026-03-03",
        "2026-03-09",
    )
    assert home.brings(listens("2026-03-09", "2026-04-05"), "endsong_1.json", "listens") == (
        "2026-03-03",
        "2026-04-05",
    )
    assert home.brings(listens("2026-05-01", "2026-05-05"), "endsong_2.json", "listens") == (
        "2026-05-02",
        "2026-05-05",
    )


def test_a_log_of_one_day_covers_nothing_and_a_longer_one_goes_on_from_it(home: Home):
    assert home.brings(listens("2026-03-02"), "endsong_0.json", "listens") is None
    assert home.brings(listens("2026-03-02", "2026-03-09"), "endsong_0.json", "listens") == (
        "2026-03-03",
        "2026-03-09",
    )


def test_a_log_with_an_entry_that_cannot_be_read_covers_nothing(home: Home):
    broken = listens("2026-03-02", "2026-03-09")[:-1] + ', {"ts": "soon", "ms_played": 1}]'
    assert home.brings(broken, "endsong_1.json", "listens") is None


def test_an_export_of_health_covers_everything_until_it_was_made(home: Home):
    export = HEALTH.decode().replace(' <Record type="HKQuantityTypeIdentifierStepCount" value="1"/>', "")
    assert home.brings(export, "export.xml", "measurements") == (None, "2026-03-02")
    assert home.brings(export, "export.xml", "workouts") == (None, "2026-03-02")


@pytest.mark.parametrize(
    ("label", "period"),
    [
        ("Boat club Slack export Nov 1 2023 - Dec 1 2023", ("2023-11-01", "2023-12-01")),
        ("Boat club Slack export Now 1 2023 - Dec 1 2023", None),
        ("Boat club Slack export of all", None),
        ("Boat club", None),
    ],
)
def test_an_export_of_slack_covers_the_days_that_its_name_says(label: str, period: tuple[str, str] | None):
    days = [item for item in items_of(CHAT, SLACK, label=label) if isinstance(item, Covered)]
    assert [(item.stream, item.start, item.end) for item in days] == (
        [("messages", *period)] if period else []
    )


def test_importing_the_same_again_moves_nothing(home: Home):
    home.brings(MARCH)
    (connection,) = home.store.connections()
    before = json.loads(home.store.state(connection.id))["coverage"]
    home.brings(MARCH)
    assert json.loads(home.store.state(connection.id))["coverage"] == before


DAYS = st.dates(date(2026, 1, 1), date(2026, 3, 31))
PARTS = st.tuples(st.sampled_from("AB"), DAYS, st.integers(0, 40))


@given(st.lists(st.lists(PARTS, max_size=3), min_size=1, max_size=5))
def test_no_day_is_covered_that_not_every_known_part_covers(imports: list[list[tuple[str, date, int]]]):
    state: dict[str, Any] = {}
    days: dict[str, set[date]] = {}
    unknown = False
    for number, parts in enumerate(imports):
        given_parts = [
            Covered("t", part, first.isoformat(), (first + timedelta(days=length)).isoformat())
            for part, first, length in parts
        ]
        unknown = unknown or not given_parts
        for part, first, length in parts:
            days.setdefault(part, set()).update(first + timedelta(days=n) for n in range(length + 1))
        imported = ImportedStream(
            given_parts,
            has_rows=True,
            had_rows=number > 0,
            has_rejects=False,
            began_at=NOW + number,
            complete_at=NOW + number,
        )
        state = noted(state, "t", imported)
        period = covers(state, "t")
        if period is None:
            continue
        assert not unknown
        first, last = (date.fromisoformat(day or "") for day in period)
        between = {first + timedelta(days=n) for n in range((last - first).days + 1)}
        assert all(between <= covered for covered in days.values())
