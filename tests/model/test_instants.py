from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from headgate.model.instants import instant, is_date, iso

ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=ZONES, min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)))  # noqa: DTZ001 - hypothesis adds the zone
def test_an_instant_is_the_same_in_every_zone(moment: datetime):
    assert instant(moment.isoformat()) == instant(moment.astimezone(UTC).isoformat())


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_an_instant_survives_being_written(microseconds: int):
    assert instant(iso(microseconds)) == microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_is_written_as_the_calendar_writes_it(moment: datetime):
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert iso(microseconds) == moment.isoformat().replace("+00:00", "Z")


def test_instants_are_exact_to_the_microsecond():
    late = instant("2026-01-01T00:00:00.000001Z")
    early = instant("2025-12-31T23:59:59.999999Z")
    assert late is not None
    assert early is not None
    assert late - early == 2


def test_a_time_without_a_zone_is_utc_and_a_date_is_its_midnight():
    assert instant("2026-03-01T10:00:00") == instant("2026-03-01T10:00:00Z")
    assert instant("2026-03-01") == instant("2026-03-01T00:00:00Z")


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "12:00", "1e9", "\ud800"]
)
def test_anything_else_is_no_instant(text: str):
    assert instant(text) is None


def test_only_a_calendar_date_is_a_date():
    assert is_date("2026-04-01")
    assert not is_date("2026-04-31")
    assert not is_date("20260401")
