"""Places in a stream's order: as bytes they compare like the values themselves do in SQLite."""

from __future__ import annotations

import apsw
from hypothesis import example, given, strategies as st

from headgate.store.postgres.dialect import DIALECT

_SIXTY_FOUR_BITS = st.integers(-(2**63), 2**63 - 1)
_NEAR = st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63), 0, 1, -1])
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_NEAR_FLOATS = st.sampled_from([2.0**53, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63), 0.0, -0.0, 0.5, 1e300])
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_LONG = st.sampled_from(["x" * 511, "x" * 512, "x" * 513, "ж" * 300, "x" * 512 + "é", "日" * 400, "😀" * 200])
_VALUES = st.one_of(_SIXTY_FOUR_BITS, _NEAR, _FLOATS, _NEAR_FLOATS, _TEXTS, _LONG)
_CONNECTION = apsw.Connection(":memory:")


def _in_sqlite(one: object, other: object) -> tuple[int, int]:
    return _CONNECTION.execute("SELECT ?1 < ?2, ?1 = ?2", (one, other)).fetchone()


@example(2**63 - 1, 2.0**63)
@example(2**53 + 1, 2.0**53)
@given(_VALUES, _VALUES)
def test_two_places_compare_as_in_sqlite(one: float | str, other: float | str):
    first, second = DIALECT.sort_value(one), DIALECT.sort_value(other)
    assert first is not None
    assert second is not None
    is_less, is_same = _in_sqlite(one, other)
    assert (first < second) == is_less or is_same
    if not is_same:
        assert (first > second) == (not is_less)


@given(_VALUES)
def test_a_place_is_read_back_as_it_was(value: float | str):
    shown = DIALECT.shown_sort(DIALECT.sort_value(value))
    assert (type(shown), shown) == (type(value), value)
