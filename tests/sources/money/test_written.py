"""Amounts and days as banks write them."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from headgate.sources.formats.written import DayOrder, amount_of, amount_text, day_of, day_order, decimal_mark


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("-12,50", ",", "-12.50"),
        ("1.234,56", ",", "1234.56"),
        ("1,234.56", ".", "1234.56"),
        ("1.234", ",", "1234"),
        ("1.234", ".", "1.234"),
        ("1,234", ".", "1234"),
        ("12,5", ".", "12.5"),
        ("1.234.567", ",", "1234567"),
        ("1 234,56", ",", "1234.56"),
        ("1\u202f234,56 €", ",", "1234.56"),
        ("1'234.50", ".", "1234.50"),
        ("12,50-", ",", "-12.50"),
        ("\u221212,50", ",", "-12.50"),
        ("(12.50)", ".", "-12.50"),
        ("-$12.50", ".", "-12.50"),
        ("$-12.50", ".", "-12.50"),
        ("EUR 12,50", ",", "12.50"),
        ("12,50 EUR", ",", "12.50"),
        ("12,50 S", ",", "-12.50"),
        ("12,50 H", ",", "12.50"),
        ("+0,5", ",", "0.5"),
        (",75", ",", "0.75"),
    ],
)
def test_an_amount_is_read_as_its_bank_means_it(text, mark, value):
    assert amount_of(text, mark) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["", "-", "abc", "12 apples", "1e9", "NaN", "Infinity", "1" * 41, "9" * 20, "١٢"]
)
def test_what_is_no_amount_is_none(text):
    assert amount_of(text, ",") is None


@given(st.decimals(-(10**12), 10**12, places=2), st.sampled_from(",."))
def test_every_amount_is_read_exactly_with_and_without_thousands(value, mark):
    grouped = f"{value:,.2f}"
    text = grouped if mark == "." else grouped.translate(str.maketrans(",.", ".,"))
    assert amount_of(text, mark) == value
    assert amount_of(text.replace("." if mark == "," else ",", ""), mark) == value
    assert Decimal(amount_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("5", "5.00"), ("-12.5", "-12.50"), ("0", "0.00"), ("1.2345", "1.2345"), ("1200", "1200.00")],
)
def test_an_amount_is_written_with_cents(value, text):
    assert amount_text(Decimal(value)) == text


def test_the_decimal_mark_is_found_by_amounts_that_can_only_be_read_one_way():
    assert decimal_mark(["1.234", "12,50"], ".") == ","
    assert decimal_mark(["1,234", "12.50"], ",") == "."
    assert decimal_mark(["1.234"], ",") == ","
    assert decimal_mark(["1.234,56"], ".") == ","


@pytest.mark.parametrize(
    ("text", "order", "day"),
    [
        ("01.03.2026", DayOrder.DAY_FIRST, "2026-03-01"),
        ("1.3.26", DayOrder.DAY_FIRST, "2026-03-01"),
        ("31.12.99", DayOrder.DAY_FIRST, "1999-12-31"),
        ("03/01/2026", DayOrder.MONTH_FIRST, "2026-03-01"),
        ("2026-03-01", DayOrder.MONTH_FIRST, "2026-03-01"),
        ("2026-03-01 12:30:11", DayOrder.DAY_FIRST, "2026-03-01"),
        ("20260301", DayOrder.DAY_FIRST, "2026-03-01"),
        ("20260301120000.000[-5:EST]", DayOrder.DAY_FIRST, "2026-03-01"),
        ("1 Mar 2026", DayOrder.DAY_FIRST, "2026-03-01"),
        ("01-März-2026", DayOrder.DAY_FIRST, "2026-03-01"),
        ("3 juil. 2026", DayOrder.DAY_FIRST, "2026-07-03"),
        ("Mar 1, 2026", DayOrder.DAY_FIRST, "2026-03-01"),
        ("31.02.2026", DayOrder.DAY_FIRST, None),
        ("soon", DayOrder.DAY_FIRST, None),
        ("2026-00-01", DayOrder.DAY_FIRST, None),
    ],
)
def test_a_day_is_read(text, order, day):
    assert day_of(text, order) == day


def test_the_order_of_day_and_month_is_found_by_a_number_that_no_month_has():
    assert day_order(["01/02/2026", "13/02/2026"]) is DayOrder.DAY_FIRST
    assert day_order(["01/02/2026", "02/13/2026"]) is DayOrder.MONTH_FIRST
    assert day_order(["01/02/2026"]) is None
    assert day_order(["01.02.2026"]) is DayOrder.DAY_FIRST


@given(st.text())
def test_no_text_breaks_the_reading_of_values(text):
    amount_of(text, ",")
    decimal_mark([text], ".")
    day_order([text])
    assert day_of(text) is None or len(day_of(text)) == 10
