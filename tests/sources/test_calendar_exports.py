"""Calendars leave as calendars: each series one event, each zone with its definition, and other programs read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import icalendar
import pytest
import vobject
from hypothesis import given, strategies as st

from headgate.sources.exporting import ExportFormat
from headgate.sources.exports.calendar import CalendarFile
from tests.sources.test_exports import comparable, there_and_back

#: A zone that no other program knows, and one that Windows names with a comma.
OWN_ZONE = """\
BEGIN:VTIMEZONE
TZID:Customized Time Zone
BEGIN:STANDARD
DTSTART:16010101T020000
TZOFFSETFROM:-0330
TZOFFSETTO:-0430
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:-0430
TZOFFSETTO:-0330
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU
END:DAYLIGHT
END:VTIMEZONE
"""


def calendar(*components: str, zones: str = "") -> str:
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nX-WR-CALNAME:Work\n{zones}{''.join(components)}END:VCALENDAR\n"


def event(uid: str, *lines: str) -> str:
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260301T080000Z", *lines, "END:VEVENT", ""])


DAILY = event(
    "daily",
    "DTSTART;TZID=Europe/Berlin:20260323T090000",
    "DTEND;TZID=Europe/Berlin:20260323T091500",
    "RRULE:FREQ=DAILY;COUNT=10",
    "EXDATE;TZID=Europe/Berlin:20260325T090000,20260328T090000",
    "SUMMARY:Stand-up",
    "ATTENDEE;CN=Ada:mailto:ada@example.org",
)
MOVED = event(
    "daily",
    "RECURRENCE-ID;TZID=Europe/Berlin:20260327T090000",
    "DTSTART;TZID=Europe/Berlin:20260327T140000",
    "DTEND;TZID=Europe/Berlin:20260327T143000",
    "SUMMARY:Stand-up in the afternoon",
)
SERIES = {
    "with an occurrence moved and two left out, over a change of the clock": calendar(DAILY, MOVED),
    "with its first occurrence moved": calendar(DAILY, MOVED.replace("0327T", "0323T")),
    "of which only one changed occurrence is there": calendar(MOVED),
    "of whole days, of which one was moved": calendar(
        event("days", "DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;COUNT=5", "SUMMARY:Bins"),
        event("days", "RECURRENCE-ID;VALUE=DATE:20260112", "DTSTART;VALUE=DATE:20260113", "SUMMARY:Bins"),
    ),
    "of days that are listed, without a rule": calendar(
        event(
            "listed", "DTSTART:20260105T100000Z", "RDATE:20260107T100000Z,20260120T110000Z", "SUMMARY:Visits"
        )
    ),
    "without a zone": calendar(
        event("pills", "DTSTART:20260105T070000", "RRULE:FREQ=DAILY;COUNT=3", "SUMMARY:Pills")
    ),
    "in UTC": calendar(
        event(
            "utc",
            "DTSTART:20260327T230000Z",
            "DURATION:PT2H",
            "RRULE:FREQ=DAILY;UNTIL=20260330T230000Z",
            "SUMMARY:x",
        )
    ),
    "in a zone whose name is spelled otherwise": calendar(
        event(
            "lisbon", "DTSTART;TZID=Europe/lisbon:20260327T100000", "RRULE:FREQ=DAILY;COUNT=4", "SUMMARY:Fado"
        )
    ),
    "in a zone that the file defines": calendar(
        event(
            "own",
            "DTSTART;TZID=Customized Time Zone:20260301T100000",
            "RRULE:FREQ=WEEKLY;COUNT=4",
            "SUMMARY:Surf",
        ),
        event("once", "DTSTART;TZID=Customized Time Zone:20261201T100000", "SUMMARY:Wax"),
        zones=OWN_ZONE,
    ),
    "in a zone of Windows": calendar(
        event(
            "windows",
            'DTSTART;TZID="W. Europe Standard Time":20260327T100000',
            "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=FR;COUNT=4",
            "SUMMARY:Review",
        )
    ),
    "whose description is that of all but one": calendar(
        event(
            "talk",
            "DTSTART:20260105T100000Z",
            "RRULE:FREQ=DAILY;COUNT=4",
            "SUMMARY:Talk",
            "DESCRIPTION:a\\nb\\, c",
        ),
        event(
            "talk",
            "RECURRENCE-ID:20260106T100000Z",
            "DTSTART:20260106T100000Z",
            "SUMMARY:Talk",
            "STATUS:CANCELLED",
        ),
    ),
}


@pytest.mark.parametrize("name", list(SERIES))
def test_a_series_comes_back_as_it_was_and_other_programs_read_it(tmp_path: Path, name: str):
    path = tmp_path / "work.ics"
    path.write_text(SERIES[name], encoding="utf-8")
    before, after, _ = there_and_back(tmp_path, path, ExportFormat.ICS)
    # A zone that no program knows by this spelling is defined from now on, and ids are in UTC then.
    without = {"id"} if "spelled" in name else set()
    assert comparable(before["events"], without) == comparable(after["events"], without)
    (written,) = (tmp_path / "out").iterdir()
    read = icalendar.Calendar.from_ical(written.read_bytes())
    assert not read.get_missing_tzids()
    heads = [each for each in read.events if "RECURRENCE-ID" not in each]
    assert len({str(each["UID"]) for each in heads}) == len(heads)
    assert shown_by_icalendar(read) == {instant(row["starts_at"]) for row in before["events"]}


def instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown_by_icalendar(read: icalendar.Calendar) -> set[datetime]:
    """Return when the events of a calendar take place, as vobject and dateutil follow the rules that icalendar read."""
    starts: set[datetime] = set()
    changed: set[tuple[str, datetime]] = set()
    for each in read.events:
        start = each["DTSTART"].dt
        starts.add(aware(start))
        if "RECURRENCE-ID" in each:
            changed.add((str(each["UID"]), aware(each["RECURRENCE-ID"].dt)))
    for each in read.events:
        if "RRULE" in each or "RDATE" in each:
            starts.discard(aware(each["DTSTART"].dt))
    for each in read.events:
        if "RRULE" not in each and "RDATE" not in each:
            continue
        start = each["DTSTART"].dt
        bare = vobject.readOne(without_zones(each)).vevent
        zone = getattr(start, "tzinfo", None)
        last = aware(start) + timedelta(days=400)
        for time in bare.getrruleset(addRDate=True):
            moment = aware(time.replace(tzinfo=zone))
            if moment > last:
                break
            if (str(each["UID"]), moment) not in changed:
                starts.add(moment)
    return starts


def without_zones(each: icalendar.Event) -> str:
    """Write what a series takes place by in local time, which is how its rules are followed."""
    dates = [f"DTSTART:{local(each['DTSTART'].dt)}"]
    dates += [f"RRULE:{each['RRULE'].to_ical().decode()}"] if "RRULE" in each else []
    for name in ("RDATE", "EXDATE"):
        lists = each.get(name, [])
        for times in lists if isinstance(lists, list) else [lists]:
            dates += [f"{name}:{local(time.dt)}" for time in times.dts]
    dates = [text.replace("Z", "") if text.startswith("RRULE") else text for text in dates]
    return "\r\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *dates, "END:VEVENT", "END:VCALENDAR", ""])


def local(time: object) -> str:
    return f"{time:%Y%m%dT%H%M%S}"


def aware(time: object) -> datetime:
    moment = time if isinstance(time, datetime) else datetime.fromisoformat(f"{time:%Y-%m-%d}")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def test_a_time_in_utc_stays_one_beside_a_zone(tmp_path: Path):
    path = tmp_path / "work.ics"
    path.write_text(calendar(event("a", "DTSTART;TZID=America/Los_Angeles:20260105T090000Z", "SUMMARY:x")))
    before, after, _ = there_and_back(tmp_path, path, ExportFormat.ICS)
    assert [row["starts_at"] for row in after["events"]] == ["2026-01-05T09:00:00Z"]
    assert [row["starts_at"] for row in before["events"]] == ["2026-01-05T09:00:00Z"]


def test_calendars_whose_names_fit_one_file_name_are_two_files(tmp_path: Path):
    place = tmp_path / "calendars"
    place.mkdir()
    for number, name in enumerate(("Work/Home", "Work_Home")):
        text = calendar(event(str(number), "DTSTART:20260105T090000Z", "SUMMARY:x"))
        (place / f"{number}.ics").write_text(text.replace("X-WR-CALNAME:Work", f"X-WR-CALNAME:{name}"))
    before, after, _ = there_and_back(tmp_path, place, ExportFormat.ICS)
    assert {row["calendar"] for row in before["events"]} == {"Work/Home", "Work_Home"}
    assert comparable(before["events"]) == comparable(after["events"])


START = datetime(2026, 3, 2, 8, tzinfo=UTC)


@given(
    st.sets(st.integers(0, 40), min_size=2, max_size=12),
    st.sampled_from(["FREQ=WEEKLY", "FREQ=WEEKLY;COUNT=9", "FREQ=WEEKLY;UNTIL=20261231T000000Z", ""]),
)
def test_the_days_of_a_series_are_those_of_its_records_whatever_its_rule_says(weeks: set[int], rule: str):
    """Records of a series may have been erased, also its last ones, and others may have been added."""
    file = CalendarFile("Work", START + timedelta(weeks=60))
    for week in weeks:
        start = f"{START + timedelta(weeks=week):%Y-%m-%dT%H:%M:%SZ}"
        row = {"id": f"a_{start}", "series_id": "a", "starts_at": start, "recurrence": rule or None}
        assert file.event(row) == b""
    content = b"".join(file.series())
    shown = shown_by_icalendar(icalendar.Calendar.from_ical(file.begin() + content + file.end()))
    expected = {START + timedelta(weeks=week) for week in weeks}
    # A rule without an end goes on after the last record.
    assert {moment for moment in shown if rule != "FREQ=WEEKLY" or moment <= max(expected)} == expected


def test_the_demonstration_keeps_its_events_apart(tmp_path: Path):
    """Ids that are none of a calendar do not make a series."""
    file = CalendarFile("Home", START)
    written = file.event(
        {"id": "dinner-0-Dinner-0101", "series_id": "dinner-0", "starts_at": "2026-01-01T18:00:00Z"}
    )
    assert b"UID:dinner-0-Dinner-0101" in written
    assert not b"".join(file.series())


def test_a_record_of_a_year_that_programs_do_not_have_is_written_all_the_same():
    file = CalendarFile("Work", START)
    rows = [
        {"id": "a", "starts_at": "0001-01-01T00:00:00+00:00", "time_zone": "Europe/Berlin"},
        {"id": "b", "starts_at": "9999-12-31T23:00:00-01:00", "time_zone": "Nowhere"},
        {
            "id": "c_9999-12-31T23:00:00Z",
            "series_id": "c",
            "starts_at": "9999-12-31",
            "recurrence": "FREQ=DAILY",
        },
    ]
    content = b"".join(map(file.event, rows)) + b"".join(file.series())
    assert (file.begin() + content + file.end()).count(b"BEGIN:VEVENT") == len(rows)
