"""What came in leaves as mbox, iCalendar or vCard, and comes in again as the same records."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from headgate.errors import InvalidRequest
from headgate.home import open_home
from headgate.model.ids import FieldName, StreamName
from headgate.model.plan import PagePlan, Reach
from headgate.model.rows import Batch, OnInvalid
from headgate.sources.exporting import ExportFormat, ExportReport, export_connection
from headgate.sources.importing import Importer
from headgate.sources.inputs.archives import opened_tree
from headgate.sources.planning import plan_imports
from headgate.sources.registry import chosen_sources
from headgate.store.engines.sqlite import SqliteStore
from tests.sources.mail.mails import ANSWER, LETTER, mbox
from tests.store.engines import NOW

FORWARD = b"""\
Message-ID: <three@example.org>
From: "Lovelace, Ada" <ada@example.org>
To: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>
Subject: =?utf-8?q?Br=C3=BCcke=2C_und_mehr?=
Date: Wed, 4 Mar 2026 12:30:00 +0000
Status: RO
X-Status: F
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset=utf-8

From here on it is all new.
--b
Content-Type: text/plain; name="notes.txt"
Content-Disposition: attachment; filename="notes.txt"

The planks, once more.
--b
Content-Type: application/octet-stream
Content-Disposition: attachment; filename*=utf-8''r%C3%B6ntgen.bin
Content-Transfer-Encoding: base64

AAECA/8=
--b
Content-Type: message/rfc822

From: cb@example.org
Subject: Inner
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="i"

--i
Content-Type: text/plain

From the engine.
>From a@example.org Tue Mar  3 10:00:00 2026
X-Not: a header
--i
Content-Type: image/png
Content-Disposition: attachment; filename="inner.png"
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--i--

--b--
"""
EVENTS = """BEGIN:VCALENDAR
VERSION:2.0
X-WR-CALNAME:Work\\, and more
BEGIN:VEVENT
UID:one@example.org
DTSTAMP:20260301T080000Z
DTSTART;TZID=Europe/Berlin:20260303T100000
DTEND;TZID=Europe/Berlin:20260303T113000
SUMMARY:The bridge\\; planks
DESCRIPTION:First line\\nsecond line with a very long text that has to be folded by whoever writes it öäü öäü öäü
LOCATION:Hall
STATUS:CONFIRMED
TRANSP:TRANSPARENT
CLASS:PRIVATE
CATEGORIES:one,two\\, three
ORGANIZER;CN="Ada, Countess":mailto:ada@example.org
ATTENDEE:mailto:cb@example.org
CREATED:20260201T080000Z
LAST-MODIFIED:20260202T080000Z
END:VEVENT
BEGIN:VEVENT
UID:weekly
DTSTAMP:20260301T080000Z
DTSTART;TZID=Europe/Berlin:20260320T090000
DURATION:PT1H
RRULE:FREQ=WEEKLY;COUNT=3
SUMMARY:Weekly
END:VEVENT
BEGIN:VEVENT
UID:day
DTSTAMP:20260301T080000Z
DTSTART;VALUE=DATE:20260401
SUMMARY:A day
END:VEVENT
BEGIN:VEVENT
UID:floating
DTSTAMP:20260301T080000Z
DTSTART:20260402T070000
SUMMARY:Wherever
END:VEVENT
BEGIN:VTODO
UID:todo
SUMMARY:Buy planks
DUE:20260405T120000Z
PRIORITY:1
STATUS:NEEDS-ACTION
END:VTODO
END:VCALENDAR
"""
CARDS = """BEGIN:VCARD
VERSION:3.0
UID:u1
FN:Ada Lovelace
N:Lovelace;Ada;;;
NICKNAME:Countess
EMAIL:ada@example.org
EMAIL:a.l@example.org
TEL:+44 1
ORG:Engines\\, Ltd;Research
TITLE:Programmer
BDAY:--1210
ADR:;;St. James's Sq.;London;;SW1;UK
URL:https://example.org/ada
CATEGORIES:friends,work
NOTE:Writes\\nlong notes\\; very long ones.
REV:20260301T080000Z
PHOTO;ENCODING=b;TYPE=PNG:iVBORw0KGgo=
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:No id
END:VCARD
BEGIN:VCARD
VERSION:4.0
UID:urn:uuid:03a0e51f
KIND:org
FN:Engines Ltd
ORG:Engines Ltd
END:VCARD
"""
#: What follows from the bytes of a message, of which only the meaning is stored.
FROM_BYTES = {"id", "message_id", "size"}

Records = dict[str, list[dict[str, Any]]]


async def _records(store: SqliteStore) -> Records:
    (connection,) = await store.connections()
    declared = (await store.declarations())[connection.connector_key].streams
    found: Records = {}
    for name, stream in declared.items():
        reach = Reach(StreamName(name), (connection.id,), tuple(map(FieldName, stream.fields)))
        page = await store.page(PagePlan(reach, 500))
        found[name] = [msgspec.json.decode(record.body) for record in page.records]
    return found


def imported(
    path: Path, home: Path, how: ExportFormat | None = None, out: Path | None = None
) -> tuple[Records, ExportReport | None]:
    """Import files into a new home, and export them again."""

    async def run() -> tuple[Records, ExportReport | None]:
        store = SqliteStore(open_home(home), lambda: NOW)
        try:
            with opened_tree(path) as tree:
                (planned,) = plan_imports([tree], chosen_sources(None)).imports
                report = await Importer(store, clock=lambda: NOW).run(planned.job)
            assert report.reject_count == 0, report.rejects
            (connection,) = await store.connections()
            exported = None
            if how is not None and out is not None:
                exported = await export_connection(store, connection, out, how, now=NOW)
            return await _records(store), exported
        finally:
            await store.close()

    return asyncio.run(run())


def there_and_back(tmp_path: Path, path: Path, how: ExportFormat) -> tuple[Records, Records, ExportReport]:
    before, report = imported(path, tmp_path / "first", how, tmp_path / "out")
    after, _ = imported(tmp_path / "out", tmp_path / "second")
    assert report is not None
    return before, after, report


def comparable(rows: list[dict[str, Any]], without: set[str] = frozenset()) -> list[Any]:  # type: ignore[assignment]
    return sorted(
        ({name: value for name, value in row.items() if name not in without} for row in rows), key=repr
    )


def test_mail_comes_back_with_its_texts_people_folders_and_files(tmp_path: Path):
    place = tmp_path / "mails"
    (place / "Work.sbd").mkdir(parents=True)
    (place / "Inbox.mbox").write_bytes(mbox(LETTER, ANSWER))
    (place / "Work.sbd" / "Bridges.mbox").write_bytes(mbox(FORWARD))
    before, after, report = there_and_back(tmp_path, place, ExportFormat.MBOX)
    assert report.records == {"messages": 3}
    for stream, count in (("messages", 3), ("attachments", 4), ("threads", 2)):
        assert len(before[stream]) == count
        without = FROM_BYTES - ({"id"} if stream == "threads" else set())
        assert comparable(before[stream], without) == comparable(after[stream], without)
    assert {row["folder"] for row in after["messages"]} == {"Inbox", "Work/Bridges"}
    assert any(row.get("quoted") for row in after["messages"])
    ids = {row["id"] for row in after["messages"]}
    assert {row["message_id"] for row in after["attachments"]} < ids


def test_a_line_of_a_message_begins_no_other_message(tmp_path: Path):
    hostile = LETTER.replace(
        b"The planks are here.", b">From a\n\n>From a@b.c Tue Mar  3 10:00:00 2026\nX: y\n"
    )
    path = tmp_path / "a.mbox"
    path.write_bytes(mbox(hostile))
    before, after, _ = there_and_back(tmp_path, path, ExportFormat.MBOX)
    assert [row["body"] for row in before["messages"]] == [row["body"] for row in after["messages"]]


def test_a_calendar_comes_back_with_its_occurrences_and_tasks(tmp_path: Path):
    path = tmp_path / "work.ics"
    path.write_text(EVENTS, encoding="utf-8")
    before, after, report = there_and_back(tmp_path, path, ExportFormat.ICS)
    assert report.records == {"events": 6, "tasks": 1}
    assert comparable(before["events"]) == comparable(after["events"])
    assert comparable(before["tasks"]) == comparable(after["tasks"])


def test_events_whose_ids_and_times_are_none_of_a_calendar_are_written_without_them(tmp_path: Path):
    path, home, out = tmp_path / "work.ics", tmp_path / "home", tmp_path / "out"
    path.write_text(EVENTS, encoding="utf-8")
    imported(path, home)
    odd: list[dict[str, Any]] = [
        {"id": "standup-0-Stand-up, office-0101", "series_id": "standup-0", "starts_at": "2026-03-02T09:00:00Z"},
        {"id": "x", "series_id": "longer than its id", "starts_at": "some day", "created_at": "0001-01-01T00:00:00+14:00"},
        {"id": "y", "starts_at": 5, "ends_at": "", "time_zone": "Europe/Berlin", "updated_at": "2026-02-30T00:00:00Z"},
    ]  # fmt: skip

    async def run() -> ExportReport:
        store = SqliteStore(open_home(home), lambda: NOW)
        try:
            (connection,) = await store.connections()
            lines = [json.dumps({"data": one}).encode() for one in odd]
            batch = Batch(connection.id, StreamName("events"), lines, 0, on_invalid=OnInvalid.KEEP)
            assert (await store.ingest(batch)).accepted == len(odd)
            return await export_connection(store, connection, out, ExportFormat.ICS, now=NOW)
        finally:
            await store.close()

    assert asyncio.run(run()).records == {"events": 9, "tasks": 1}
    written = b"".join(one.read_bytes() for one in out.rglob("*.ics")).decode().replace("\r\n ", "")
    for one in odd:
        # Each is an event by itself: two of one id would replace each other.
        assert f"UID:{one['id'].replace(',', chr(92) + ',')}\r\n" in written
    assert "some day" not in written


def test_contacts_come_back_with_their_ids_and_photos(tmp_path: Path):
    path = tmp_path / "cards.vcf"
    path.write_text(CARDS, encoding="utf-8")
    before, after, report = there_and_back(tmp_path, path, ExportFormat.VCF)
    assert (report.records, report.file_count) == ({"contacts": 3}, 1)
    assert comparable(before["contacts"]) == comparable(after["contacts"])


TABLE = '''id,name,share,day,at,is_done,note
1,"Ada, ""Countess""",0.25,2026-03-01,2026-03-01T10:00:00Z,true,"two
lines"
2,Jörg,-3.5,2026-03-02,2026-03-02T10:00:00Z,false,
3,007,1e3,2026-03-03,2026-03-03T10:00:00Z,true,x
'''


@pytest.mark.parametrize("how", [ExportFormat.CSV, ExportFormat.JSONL, ExportFormat.SQLITE])
def test_a_table_comes_back_with_its_values_and_types(tmp_path: Path, how: ExportFormat):
    path = tmp_path / "things.csv"
    path.write_text(TABLE, encoding="utf-8", newline="")
    before, after, report = there_and_back(tmp_path, path, how)
    assert report.records == {"things": 3}
    assert {row.get("note") for row in before["things"]} == {"two\nlines", None, "x"}
    assert comparable(before["things"]) == comparable(after["things"])


CELLS = ["=1+1", "'=1+1", "-1-2", "@now", "+44 20 7946 0018", "-", "- milk", "'tis", "-12.30", "(5)", "+x"]


def test_only_what_a_spreadsheet_would_run_gets_an_apostrophe_and_comes_back_as_it_was(tmp_path: Path):
    path = tmp_path / "cells.jsonl"
    path.write_text("".join(json.dumps({"n": f"n{n}", "cell": cell}) + "\n" for n, cell in enumerate(CELLS)))
    before, after, _ = there_and_back(tmp_path, path, ExportFormat.CSV)
    assert comparable(before["cells"]) == comparable(after["cells"])
    written = pd.read_csv(tmp_path / "out" / "cells.csv", dtype=str)["cell"]
    assert {cell for cell in written if cell.startswith("'")} == {
        "'=1+1", "''=1+1", "'-1-2", "'@now", "'- milk", "'tis", "'+x"
    }  # fmt: skip


def test_what_is_no_mail_is_not_written_as_mail(tmp_path: Path):
    path = tmp_path / "cards.vcf"
    path.write_text(CARDS, encoding="utf-8")
    with pytest.raises(InvalidRequest):
        imported(path, tmp_path / "home", ExportFormat.MBOX, tmp_path / "out")
    assert not (tmp_path / "out").exists()


#: In the place of the id of a file; the last is of one that is not there.
NO_FILES = ["blob_../../outside", "blob_{outside}", "blob_..", "", f"blob_{'0' * 64}"]


@pytest.mark.parametrize("name", NO_FILES)
@pytest.mark.parametrize("how", [ExportFormat.JSONL, ExportFormat.VCF])
def test_an_export_touches_no_file_that_a_record_names_as_it_likes(
    tmp_path: Path, name: str, how: ExportFormat
):
    """What stands in the place of an id is chosen by the one who pushes the record."""
    path, home, out = tmp_path / "a.vcf", tmp_path / "home", tmp_path / "out"
    path.write_text(CARDS, encoding="utf-8")
    imported(path, home)
    (tmp_path / "outside").write_bytes(b"secret")

    async def run() -> ExportReport:
        store = SqliteStore(open_home(home), lambda: NOW)
        try:
            (connection,) = await store.connections()
            photo = {"blob_id": name.format(outside=tmp_path / "outside"), "sha256": ""}
            line = json.dumps({"data": {"id": "x", "name": "Mallory", "photo": photo}}).encode()
            batch = Batch(connection.id, StreamName("contacts"), [line], 0, on_invalid=OnInvalid.KEEP)
            assert (await store.ingest(batch)).accepted == 1
            return await export_connection(store, connection, out, how, now=NOW)
        finally:
            await store.close()

    report = asyncio.run(run())
    assert (report.records, report.file_count) == ({"contacts": 4}, 1)
    assert {one.name for one in tmp_path.iterdir()} == {"a.vcf", "home", "out", "outside"}
    assert b"c2VjcmV0" not in b"".join(one.read_bytes() for one in out.rglob("*") if one.is_file())
