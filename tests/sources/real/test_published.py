"""Files that came with other people's parsers, imported by the command: what is stored is what another library reads.

`published/` has fixtures of the packages ofxparse, vobject, icalendar and pypdf, with their licences.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import vobject

from tests.on_socket import headgate

PUBLISHED = Path(__file__).parent / "published"
CALENDARS = [path for path in sorted(PUBLISHED.rglob("*.ics")) if b"BEGIN:VEVENT" in path.read_bytes()]
CARDS = [path for path in sorted(PUBLISHED.rglob("*.ics")) if b"VCARD" in path.read_bytes().upper()]
STATEMENTS = sorted(PUBLISHED.rglob("*.ofx"))
PAYMENT = re.compile(r"<STMTTRN>.*?(?=</STMTTRN>|<STMTTRN>|</BANKTRANLIST>)", re.DOTALL)
AMOUNT = re.compile(r"<TRNAMT>\s*([-+]?[\d.]+)")


def stored(place: Path, files: list[Path], ending: str) -> dict[str, list[dict[str, Any]]]:
    """Import copies of files, each one twice, and export what came of it: the records by stream."""
    (place / "in").mkdir()
    for path in files:
        shutil.copy(path, place / "in" / f"{path.parent.name}-{path.stem}{ending}")
    reports = [headgate(place, "--home", "home", "import", "in", "--yes", "--json") for _ in range(2)]
    assert all(done.code in {0, 65} for done in reports), reports
    (again,) = json.loads(reports[1].out)["imports"]
    assert all(count["added"] == 0 for count in again["streams"].values()), again
    exported = headgate(place, "--home", "home", "export", again["connection_id"], "out")
    assert exported.code == 0, exported.err
    return {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (place / "out").glob("*.jsonl")
    }


def titles(path: Path) -> Iterator[str]:
    """Follow the series of a calendar with another library; an occurrence that was changed counts in its series."""
    text = path.read_text(encoding="utf-8").replace("\\;COUNT", ";COUNT")
    for calendar in vobject.readComponents(text, ignoreUnreadable=True):
        for event in calendar.contents.get("vevent", []):
            if "recurrence-id" in event.contents:
                continue
            is_series = "rrule" in event.contents
            # The library leaves out what a series has beside its rule.
            more = len(event.contents.get("rdate", [])) if is_series else 0
            count = event.getrruleset().count() + more if is_series else 1
            yield from [event.summary.value if "summary" in event.contents else ""] * count


def test_calendars_have_the_events_that_another_library_finds(tmp_path: Path):
    events = stored(tmp_path, CALENDARS, ".ics")["events"]
    expected = sorted(title.strip() for path in CALENDARS for title in titles(path))
    assert len(expected) > 60
    assert len(events) == len(expected)
    assert set(expected) - {event.get("title", "") for event in events} == set()


def test_cards_have_the_names_and_addresses_that_another_library_finds(tmp_path: Path):
    contacts = stored(tmp_path, CARDS, ".vcf")["contacts"]
    expected = [card for path in CARDS for card in vobject.readComponents(path.read_text(encoding="utf-8"))]
    assert len(expected) == 2
    assert sorted(one["name"] for one in contacts) == sorted(card.fn.value for card in expected)
    for name in ("email", "tel"):
        theirs = sorted(one.value for card in expected for one in card.contents.get(name, []))
        ours = sorted(
            text for one in contacts for text in one.get("emails" if name == "email" else "phones") or ()
        )
        assert ours == theirs


def test_statements_have_the_payments_and_the_sum_that_stand_in_the_files(tmp_path: Path):
    rows = stored(tmp_path, STATEMENTS, ".ofx")["transactions"]
    written = [
        (path.stem, Decimal(found[1]))
        for path in STATEMENTS
        for payment in PAYMENT.findall(path.read_text(encoding="latin-1"))
        if (found := AMOUNT.search(payment))
    ]
    assert len(written) > 15
    assert len(rows) == len(written)
    assert sum(Decimal(row["amount_text"]) for row in rows) == sum(amount for _, amount in written)


def test_documents_have_the_pages_and_the_words_that_their_makers_put_there(tmp_path: Path):
    files = sorted(PUBLISHED.rglob("*.pdf"))
    found = stored(tmp_path, files, ".pdf")
    counts = {
        Path(one["id"]).stem.removeprefix("pypdf-"): one.get("page_count") for one in found["documents"]
    }
    assert {name: counts[name] for name in ("crazyones", "toy", "two-different-pages")} == {
        "crazyones": 1,
        "toy": 1,
        "two-different-pages": 2,
    }
    (page,) = (one["text"] for one in found["pages"] if "crazyones" in one["document_id"])
    words = (PUBLISHED / "pypdf" / "crazyones.txt").read_text(encoding="utf-8").split()
    assert len(words) > 150
    assert page.split() == words


@pytest.mark.parametrize("package", ["ofxparse", "vobject", "icalendar", "pypdf"])
def test_every_package_has_its_licence_beside_its_files(package: str):
    assert (PUBLISHED / package / "LICENSE").stat().st_size > 400
