"""Numbers that are written with decimals add up exactly, whatever the others in their column look like."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan
from headgate.model.query import Metric
from headgate.store.format.columns import scale_for, scaled
from tests.store.engines import Driven
from tests.store.ledger import Ledger

_WIDE = Context(prec=1000)
_SETTINGS = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: Up to 15 digits, of which any number stands after the point.
_AMOUNTS = st.builds(
    lambda whole, places: Decimal(whole).scaleb(-places),
    st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(0, 12),
)
_CENTS = st.builds(lambda whole: Decimal(whole).scaleb(-2), st.integers(-(10**9), 10**9))


def _line(key: str, amount: Decimal, label: str = "all") -> bytes:
    return f'{{"data":{{"id":"{key}","label":"{label}","weight":{amount:f}}}}}'.encode()


def _sum(ledger: Ledger, **options: Any) -> Any:
    return ledger.store.aggregate(AggregatePlan(ledger.reach(), Metric.SUM, FieldName("weight"), **options))


def _total(amounts: Sequence[Decimal]) -> float:
    total = Decimal(0)
    for amount in amounts:
        total = _WIDE.add(total, amount)
    return float(total)


@_SETTINGS
@given(st.data())
def test_the_sum_of_decimals_is_their_decimal_sum(store: Driven, data: st.DataObject):
    ledger = Ledger(store, connections=2)
    amounts: dict[str, Decimal] = {}
    # Each batch may have more digits than those before it, and replace some of their records.
    for number, kind in enumerate((_CENTS, _CENTS, st.one_of(_CENTS, _AMOUNTS), _AMOUNTS)):
        for place, amount in enumerate(data.draw(st.lists(kind, max_size=8))):
            key = f"{(number * 3 + place) % 17}"
            amounts[key] = amount
            ledger.send(_line(key, amount, f"l{int(key) % 3}"), connection=int(key) % 2)
        assert _sum(ledger).value == _total(list(amounts.values()))
    found = _sum(ledger, group_by=FieldName("label"))
    assert {group.key: group.value for group in found.groups} == {
        label: _total([amount for key, amount in amounts.items() if f"l{int(key) % 3}" == label])
        for label in {f"l{int(key) % 3}" for key in amounts}
    }


def test_cents_are_written_as_cents(ledger: Ledger):
    ledger.send(*(_line(f"{n}", Decimal("0.10")) for n in range(3)), _line("x", Decimal("-0.05")))
    ledger.send(_line("y", Decimal("1999.95")), connection=1)
    assert repr(_sum(ledger).value) == "2000.2"


@pytest.mark.parametrize(
    ("value", "scale", "exact"),
    [
        (12.34, 2, 1234),
        (12.34, 1, None),
        (-0.1, 1, -1),
        (0.1 + 0.2, 8, None),
        (5.0, 0, 5),
        (1e300, 0, None),
        (float(2**50), 0, None),
        (float(2**50 - 1), 0, 2**50 - 1),
        (0.0, 8, 0),
    ],
)
def test_a_number_has_an_exact_value_if_it_is_written_with_that_few_digits(
    value: float, scale: int, exact: int | None
):
    assert scaled(value, scale) == exact


def test_the_scale_is_that_of_the_number_with_the_most_digits_that_fits_one():
    assert scale_for([1.0, None, 2.5, 0.125, 0.1 + 0.2, 1e300], 0) == 3
    assert scale_for([1.0], 2) == 2


def test_a_check_finds_no_damage_after_scales_rose(ledger: Ledger):
    for places in (0, 2, 1, 5, 12, 8):
        ledger.send(*(_line(f"{places}-{n}", Decimal(n).scaleb(-places)) for n in range(5)))
    expected = [Decimal(n).scaleb(-places) for places in (0, 2, 1, 5, 12, 8) for n in range(5)]
    assert _sum(ledger).value == _total(expected)
