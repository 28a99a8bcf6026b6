"""Numbers and dates as people write them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, strategies as st

from headgate.store.format.written import NEAR_CHARS, first_date, first_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("is 7", "7"),
        ("is 1,234.56 now", "1234.56"),
        ("is 1.234,56", "1234.56"),
        ("is 1,234,567", "1234567"),
        ("is 1.234.567,80", "1234567.80"),
        ("is 1'234.50", "1234.50"),
        ("is 1\u202f234,50", "1234.50"),
        ("is £12.50.", "12.50"),
        ("is 12,50 €", "12.50"),
        ("is EUR12.50", "12.50"),
        ("is 1,234", "1234"),
        ("is 1.234", "1.234"),
        ("is 0,125", "0.125"),
        ("is -3", "-3"),
        ("is \u22123", "-3"),
        ("is -£3.00", "-3.00"),
        ("is £-3.00", "-3.00"),
        ("is (-3)", "-3"),
        ("is: -0", "0"),
        ("is 3-5", "3"),
        ("is room-3", "3"),
        ("is A - 3", "3"),
        ("is B12 and 7", "7"),
        ("is due 2026-03-04: 50.00", "50.00"),
        ("is due 4 March 2026, £50", "50"),
        ("is at 192.168.1.10 port 80", "80"),
        ("is version 1.2.3.4", None),
        ("is unknown", None),
        ("is " + "9" * 41 + " or 8", "8"),
        ("is " + "x " * NEAR_CHARS + "9", None),
    ],
)
def test_the_first_number_is_read_with_all_its_digits(text: str, number: str | None):
    value = first_number(text, 2)
    assert (None if value is None else str(value)) == number


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("is 2026-03-04", date(2026, 3, 4)),
        ("is 2026-03-04T09:30:00Z", date(2026, 3, 4)),
        ("is 4 March 2026", date(2026, 3, 4)),
        ("is the 4th of March, 2026", date(2026, 3, 4)),
        ("is March 4, 2026", date(2026, 3, 4)),
        ("is 4. März 2026", date(2026, 3, 4)),
        ("is 04/03/2026", date(2026, 3, 4)),
        ("is 04.03.2026", date(2026, 3, 4)),
        ("is 12/25/2026", date(2026, 12, 25)),
        ("is 2026-02-30 or 2026-03-01", date(2026, 3, 1)),
        ("is in 2026", None),
        ("is 12.50", None),
        ("is " + "x " * NEAR_CHARS + "2026-03-04", None),
    ],
)
def test_the_first_date_is_read_and_of_two_readings_the_day_comes_first(text: str, day: date | None):
    assert first_date(text, 2) == day


@given(st.text("0123456789.,' -\u2212£$AEURx/March\u202f", max_size=300), st.integers(0, 20))
def test_whatever_a_text_holds_is_read_or_not(text: str, start: int):
    number = first_number(text, start)
    assert number is None or number.is_finite()
    first_date(text, start)
