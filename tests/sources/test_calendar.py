"""Calendars of iCalendar files."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st

from headgate.model.instants import instant
from headgate.sources.calendar import recurrence, source
from headgate.sources.calendar.source import CALENDAR
from headgate.sources.protocol import Reject, Row
from tests.sources.source_checks import (
    by_stream,
    check_all,
    hostile,
    items_of,
    rejects_of,
    rows_of,
    tree_with,
)

ZONE = """BEGIN:VTIMEZONE
TZID:Mill Time
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0230
TZOFFSETTO:+0130
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0130
TZOFFSETTO:+0230
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""
SINGLE = """BEGIN:VEVENT
UID:one@example.org
DTSTAMP:20260301T080000Z
DTSTART;TZID=Europe/Berlin:20260314T100000
DTEND;TZID=Europe/Berlin:20260314T113000
SUMMARY:Bridge\\, planks
DESCRIPTION:Bring gloves\\nand
  a saw.
LOCATION:Mill canal
ORGANIZER;CN=Ines Albrecht:mailto:ines@example.org
ATTENDEE;CN="Sam; Okafor";PARTSTAT=ACCEPTED:MAILTO:sam@example.org
ATTENDEE:mailto:aiko@example.org
STATUS:CONFIRMED
CATEGORIES:Work,Boat
CLASS:PRIVATE
CREATED:20260201T080000Z
LAST-MODIFIED:20260202T080000Z
BEGIN:VALARM
DESCRIPTION:Alarm
END:VALARM
END:VEVENT
"""
SERIES = """BEGIN:VEVENT
UID:choir
DTSTAMP:20260301T080000Z
DTSTART;TZID=Europe/Berlin:20260305T190000
DURATION:PT2H
RRULE:FREQ=WEEKLY;COUNT=6
EXDATE;TZID=Europe/Berlin:20260319T190000
RDATE;TZID=Europe/Berlin:20260501T180000
SUMMARY:Choir
END:VEVENT
BEGIN:VEVENT
UID:choir
DTSTAMP:20260301T080000Z
RECURRENCE-ID:20260312T180000Z
DTSTART;TZID=Europe/Berlin:20260313T200000
DURATION:PT1H
SUMMARY:Choir\\, moved
END:VEVENT
"""
TASK = """BEGIN:VTODO
UID:task
SUMMARY:Call the roofer
DUE;VALUE=DATE:20260401
STATUS:NEEDS-ACTION
PRIORITY:1
END:VTODO
"""


def calendar(*parts: str) -> str:
    return "BEGIN:VCALENDAR\nVERSION:2.0\nX-WR-CALNAME:Home\n" + "".join(parts) + "END:VCALENDAR\n"


def event(*lines: str) -> str:
    return calendar(
        "BEGIN:VEVENT\nUID:e\nDTSTAMP:20260301T080000Z\n", *(f"{line}\n" for line in lines), "END:VEVENT\n"
    )


def events(content: str) -> list[dict]:
    return rows_of(CALENDAR, {"home.ics": content})["events"]


def starts(*lines: str) -> list[str]:
    return [one["starts_at"] for one in events(event(*lines))]


def test_an_event_is_read_with_its_people_and_everything_else():
    assert events(calendar(SINGLE).replace("\n", "\r\n")) == [
        {
            "id": "one@example.org",
            "title": "Bridge, planks",
            "calendar": "Home",
            "starts_at": "2026-03-14T10:00:00+01:00",
            "ends_at": "2026-03-14T11:30:00+01:00",
            "all_day": False,
            "time_zone": "Europe/Berlin",
            "location": "Mill canal",
            "description": "Bring gloves\nand a saw.",
            "organizer": "Ines Albrecht <ines@example.org>",
            "attendees": ["Sam; Okafor <sam@example.org>", "aiko@example.org"],
            "status": "confirmed",
            "is_busy": True,
            "visibility": "private",
            "categories": ["Work", "Boat"],
            "created_at": "2026-02-01T08:00:00Z",
            "updated_at": "2026-02-02T08:00:00Z",
        }
    ]


def test_a_series_has_its_occurrences_without_those_left_out_and_with_those_changed():
    found = events(calendar(SERIES))
    assert [(one["id"], one["starts_at"], one["title"]) for one in found] == [
        ("choir_2026-03-05T18:00:00Z", "2026-03-05T19:00:00+01:00", "Choir"),
        ("choir_2026-03-26T18:00:00Z", "2026-03-26T19:00:00+01:00", "Choir"),
        ("choir_2026-04-02T17:00:00Z", "2026-04-02T19:00:00+02:00", "Choir"),
        ("choir_2026-04-09T17:00:00Z", "2026-04-09T19:00:00+02:00", "Choir"),
        ("choir_2026-05-01T16:00:00Z", "2026-05-01T18:00:00+02:00", "Choir"),
        ("choir_2026-03-12T18:00:00Z", "2026-03-13T20:00:00+01:00", "Choir, moved"),
    ]
    assert {one["series_id"] for one in found} == {"choir"}
    assert found[0]["recurrence"] == "FREQ=WEEKLY;COUNT=6"
    assert (found[0]["ends_at"], found[5]["ends_at"]) == (
        "2026-03-05T21:00:00+01:00",
        "2026-03-13T21:00:00+01:00",
    )


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        (";VALUE=DATE:20260226", "2026-02-26"),
        (":20260226T000000", "2026-02-26T00:00:00"),
        (";TZID=W. Europe Standard Time:20260226T000000", "2026-02-25T23:00:00Z"),
        (";TZID=Pacific/Auckland:20260226T000000", "2026-02-25T11:00:00Z"),
        (":20260226T000000Z", "2026-02-26T00:00:00Z"),
        (":20260225T230000Z", "2026-02-25T23:00:00Z"),
        (":20260226T080000Z", "2026-02-26T08:00:00Z"),
    ],
)
def test_a_moved_occurrence_of_whole_days_stands_once_however_it_names_its_day(changed: str, key: str):
    series = "BEGIN:VEVENT\nUID:d\nDTSTART;VALUE=DATE:20260225\nRRULE:FREQ=DAILY;COUNT=3\nEND:VEVENT\n"
    moved = f"BEGIN:VEVENT\nUID:d\nRECURRENCE-ID{changed}\nDTSTART;VALUE=DATE:20260302\nEND:VEVENT\n"
    left = [("d_2026-02-25", "2026-02-25"), ("d_2026-02-27", "2026-02-27")]
    for content in (calendar(series, moved), calendar(moved, series)):
        found = [(one["id"], one["starts_at"]) for one in events(content)]
        assert sorted(found) == sorted([*left, (f"d_{key}", "2026-03-02")])
    without = series.replace("RRULE", f"EXDATE{changed}\nRRULE")
    assert [(one["id"], one["starts_at"]) for one in events(calendar(without))] == left


def test_a_moved_occurrence_leaves_the_others_of_its_day():
    hourly = "BEGIN:VEVENT\nUID:h\nDTSTART:20260226T100000Z\nRRULE:FREQ=HOURLY;COUNT=3\nEND:VEVENT\n"
    moved = "BEGIN:VEVENT\nUID:h\nRECURRENCE-ID:20260226T110000Z\nDTSTART:20260301T110000Z\nEND:VEVENT\n"
    found = [one["starts_at"] for one in events(calendar(hourly, moved))]
    assert found == ["2026-02-26T10:00:00Z", "2026-02-26T12:00:00Z", "2026-03-01T11:00:00Z"]


def test_a_changed_occurrence_may_stand_before_its_series():
    series, changed = SERIES.split("END:VEVENT\n")[:2]
    turned = calendar(changed, "END:VEVENT\n", series, "END:VEVENT\n")
    by_id = {one["id"]: one for one in events(turned)}
    assert by_id == {one["id"]: one for one in events(calendar(SERIES))}


def test_an_endless_series_is_followed_for_two_years_after_the_file_was_written():
    found = starts("DTSTART;VALUE=DATE:20200227", "RRULE:FREQ=YEARLY")
    assert found == [f"{year}-02-27" for year in range(2020, 2029)]
    assert starts("DTSTART;VALUE=DATE:20200305", "RRULE:FREQ=YEARLY")[-1] == "2027-03-05"


def test_a_series_of_an_old_file_is_followed_for_two_years_from_the_month_in_which_it_is_given():
    old = event("DTSTAMP:20060101T000000Z", "DTSTART;VALUE=DATE:20060220", "RRULE:FREQ=YEARLY")
    days = set[str]()
    for day in ("2030-02-03T10:00:00Z", "2030-02-27T10:00:00Z"):
        tree = replace(tree_with({"a.ics": old}), given_at=instant(day))
        (found,) = CALENDAR.detect(tree)
        days.add(by_stream(CALENDAR.read(found, {}))["events"][-1]["starts_at"])
    assert days == {"2031-02-20"}


def test_a_series_that_begins_after_the_file_was_written_is_followed_for_two_years():
    found = starts("DTSTART;VALUE=DATE:20300105", "RRULE:FREQ=YEARLY")
    assert found == ["2030-01-05", "2031-01-05", "2032-01-05"]


def test_whole_days_end_on_the_day_after():
    (day,) = events(event("DTSTART;VALUE=DATE:20260401", "SUMMARY:Holiday"))
    assert (day["all_day"], day["starts_at"], day["ends_at"]) == (True, "2026-04-01", "2026-04-02")


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("DTSTART:20260701T100000", "2026-07-01T10:00:00"),
        ("DTSTART:20260701T100000Z", "2026-07-01T10:00:00Z"),
        ("DTSTART;TZID=W. Europe Standard Time:20260701T100000", "2026-07-01T10:00:00+02:00"),
        ('DTSTART;TZID="/example.org/2020/America/New_York":20260701T100000', "2026-07-01T10:00:00-04:00"),
        ('DTSTART;TZID="(UTC+05:30) Chennai":20260701T100000', "2026-07-01T10:00:00+05:30"),
        ("DTSTART;TZID=Europe/lisbon:20260701T100000", "2026-07-01T10:00:00+01:00"),
        ("DTSTART;TZID=AMERICA/NEW_YORK:20260701T100000", "2026-07-01T10:00:00-04:00"),
        ("DTSTART;TZID=w. europe standard time:20260701T100000", "2026-07-01T10:00:00+02:00"),
    ],
)
def test_zones_have_many_names(line, time):
    assert starts(line) == [time]


@pytest.mark.parametrize("zone", ["../../etc/passwd", "Mond/Krater", "月", "E" * 5000])
def test_a_zone_that_is_not_known_is_reported_once_and_its_times_are_stored_without_it(zone: str):
    one = "BEGIN:VEVENT\nUID:{}\nDTSTART;TZID=" + zone + ":20260701T100000\nEND:VEVENT\n"
    items = items_of(CALENDAR, {"home.ics": calendar(one.format("a"), one.format("b"))})
    assert [row["starts_at"] for row in by_stream(items)["events"]] == ["2026-07-01T10:00:00"] * 2
    (reject,) = [item for item in items if isinstance(item, Reject)]
    assert reject.reason == f"The zone {zone[:80]} is not known; its times are stored without one."


def test_a_series_in_a_zone_of_another_case_has_the_ids_that_it_always_had():
    series = SERIES.replace("Europe/Berlin", "EUROPE/berlin")
    found = events(calendar(series))
    assert [(one["id"], one["starts_at"]) for one in found] == [
        ("choir_2026-03-05T19:00:00", "2026-03-05T19:00:00+01:00"),
        ("choir_2026-03-26T19:00:00", "2026-03-26T19:00:00+01:00"),
        ("choir_2026-04-02T19:00:00", "2026-04-02T19:00:00+02:00"),
        ("choir_2026-04-09T19:00:00", "2026-04-09T19:00:00+02:00"),
        ("choir_2026-05-01T18:00:00", "2026-05-01T18:00:00+02:00"),
        ("choir_2026-03-12T18:00:00Z", "2026-03-13T20:00:00+01:00"),
    ]


@pytest.mark.parametrize("name", ["Mill Time", "MILL TIME"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_zone_is_found_wherever_the_file_defines_it(name: str, *, is_first: bool):
    body = f"BEGIN:VEVENT\nUID:z\nRECURRENCE-ID;TZID={name}:20260401T120000\nDTSTART;TZID={name}:20260401T130000\nEND:VEVENT\n"
    (found,) = events(calendar(ZONE, body) if is_first else calendar(body, ZONE))
    is_new = (name, is_first) != ("Mill Time", True)
    assert found["id"] == ("z_2026-04-01T12:00:00" if is_new else "z_2026-04-01T09:30:00Z")
    assert found["starts_at"] == "2026-04-01T13:00:00+02:30"


@pytest.mark.parametrize(
    ("day", "offset"), [("20260314", "+01:30"), ("20260401", "+02:30"), ("20261101", "+01:30")]
)
def test_a_zone_that_the_file_defines_is_used(day, offset):
    body = f"BEGIN:VEVENT\nUID:z\nDTSTART;TZID=Mill Time:{day}T120000\nEND:VEVENT\n"
    (found,) = events(calendar(ZONE, body))
    assert found["starts_at"].endswith(f"T12:00:00{offset}")


def test_an_end_in_universal_time_counts_in_the_zone_of_the_series():
    rule = "RRULE:FREQ=DAILY;UNTIL=20260303T170000Z"
    assert starts("DTSTART;TZID=Europe/Berlin:20260301T180000", rule) == [
        f"2026-03-0{day}T18:00:00+01:00" for day in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYHOUR=0,1,2,3,4;BYMINUTE=0,1,2,3;BYSECOND=0,1,2,3;BYDAY=MO,TU,WE,TH,FR,SA,SU",
        "FREQ=SECONDLY;COUNT=999999999999",
    ],
)
def test_a_rule_without_measure_is_bounded(rule):
    found = items_of(CALENDAR, {"a.ics": event("DTSTART:19010101T000000Z", f"RRULE:{rule}")})
    assert 1 <= len([item for item in found if isinstance(item, Row)]) <= 5000


def test_many_series_without_an_end_are_bounded_together(monkeypatch):
    monkeypatch.setattr(source, "RuleBudget", lambda: recurrence.RuleBudget(steps=1500, starts=2500))
    one = "BEGIN:VEVENT\nUID:u{}\nDTSTAMP:20260301T080000Z\nDTSTART:20260301T080000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\n"
    items = items_of(CALENDAR, {"a.ics": calendar(*map(one.format, range(5)))})
    assert len(by_stream(items)["events"]) == 731 * 2 + 3
    assert len(rejects_of(CALENDAR, {"a.ics": calendar(*map(one.format, range(5)))})) == 3


def test_a_rule_that_cannot_be_read_leaves_the_first_occurrence():
    content = event("DTSTART:20260301T080000Z", "RRULE:FREQ=SOMETIMES")
    assert [one.reason for one in rejects_of(CALENDAR, {"a.ics": content})] == ["The rule cannot be read."]
    assert len(by_stream(items_of(CALENDAR, {"a.ics": content}))["events"]) == 1


def test_tasks_are_a_stream_too():
    assert rows_of(CALENDAR, {"a.ics": calendar(TASK)})["tasks"] == [
        {"id": "task", "title": "Call the roofer", "calendar": "Home", "due_at": "2026-04-01",
         "status": "needs-action", "priority": 1}
    ]  # fmt: skip


def test_an_event_without_an_id_is_known_by_its_start_title_and_place():
    body = "BEGIN:VEVENT\nDTSTART:20260301T080000Z\nSUMMARY:{}\nEND:VEVENT\n"
    first, second = events(calendar(body.format("A"), body.format("B")))
    assert first["id"] != second["id"]
    assert events(calendar(body.format("B")))[0]["id"] == second["id"]


def test_an_event_without_a_start_is_rejected_and_the_rest_goes_on():
    content = calendar("BEGIN:VEVENT\nUID:x\nDTSTART:tomorrow\nSUMMARY:Lost\nEND:VEVENT\n", SINGLE)
    (reject,) = rejects_of(CALENDAR, {"a.ics": content})
    assert (reject.place, reject.reason) == (
        "a.ics, entry 1",
        "The event has no start that can be read: Lost.",
    )
    assert len(by_stream(items_of(CALENDAR, {"a.ics": content}))["events"]) == 1


def test_the_connection_is_the_same_for_a_copy_of_the_file():
    files = {"home (1).ics": calendar(SINGLE)}
    assert [one.title for one in CALENDAR.detect(tree_with(files, "home (1)"))] == ["Calendar: home"]
    assert [one.title for one in CALENDAR.detect(tree_with(files, "calendar"))] == ["Calendar"]
    assert CALENDAR.detect(tree_with({"a.ics": "nothing", "b.txt": calendar(SINGLE)})) == []


WHOLE = calendar(ZONE, SINGLE, SERIES, TASK)


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CALENDAR, {"a.ics": WHOLE, "b/c.ics": event("DTSTART:20260101T000000Z", "RRULE:FREQ=WEEKLY")})


@settings(max_examples=40, deadline=None)
@given(hostile(WHOLE.encode()))
def test_a_broken_file_gives_rows_that_can_be_stored_or_rejects(content):
    check_all(CALENDAR, {"a.ics": content})


PARTS = st.lists(
    st.sampled_from(
        [
            "INTERVAL=-1",
            "COUNT=0",
            "COUNT=3",
            "UNTIL=20270101",
            "UNTIL=99991231T235959Z",
            "UNTIL=x",
            "BYDAY=MO",
            "BYDAY=-1SU,99TU",
            "BYDAY=XX",
            "BYMONTH=13",
            "BYMONTHDAY=31",
            "BYMONTHDAY=-40",
            "BYYEARDAY=400",
            "BYWEEKNO=53",
            "BYSETPOS=-1",
            "BYSETPOS=0",
            "BYHOUR=25",
            "BYSECOND=60",
            "WKST=SU",
            "WKST=1",
            "BYEASTER=1",
            "X=1",
            ";",
        ]
    ),
    max_size=5,
)
FREQUENCIES = st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
STARTS = st.sampled_from(
    ["00010101T000000Z", "99991231T235959", "19000101", "20260301T250000", "20260229", "20240229T000000"]
)


RULES = given(FREQUENCIES, PARTS, STARTS, st.sampled_from(["", ";TZID=Europe/Berlin", ";TZID=Pacific/Apia"]))


def check_rule(frequency: str, parts: list[str], start: str, zone: str) -> None:
    rule = ";".join([f"FREQ={frequency}", "INTERVAL=300", *parts])
    with patch.object(recurrence, "MAX_STARTS", 50):
        check_all(CALENDAR, {"a.ics": event(f"DTSTART{zone}:{start}", f"RRULE:{rule}", "DURATION:P9999D")})


@settings(max_examples=15, deadline=None)
@RULES
def test_any_rule_gives_rows_that_can_be_stored_or_rejects(frequency, parts, start, zone):
    check_rule(frequency, parts, start, zone)


@pytest.mark.soak
@settings(max_examples=200, deadline=None)
@RULES
def test_any_of_many_rules_gives_rows_that_can_be_stored_or_rejects(frequency, parts, start, zone):
    check_rule(frequency, parts, start, zone)
