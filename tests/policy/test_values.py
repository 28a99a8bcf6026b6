from __future__ import annotations

import pytest

from headgate.errors import InvalidRequest
from headgate.model.declaration import Field, FieldKind
from headgate.model.ids import FieldName
from headgate.policy.clauses import exact_value, ordered_value


def field(kind: FieldKind) -> Field:
    return Field(FieldName("f"), kind, (), {})


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (FieldKind.TEXT, "a", "a"),
        (FieldKind.TEXT, 7, "7"),
        (FieldKind.TEXT, True, "true"),
        (FieldKind.INTEGER, "7", 7),
        (FieldKind.INTEGER, 7.0, 7),
        (FieldKind.INTEGER, "-0", 0),
        (FieldKind.NUMBER, "7", 7),
        (FieldKind.NUMBER, "7.5", 7.5),
        (FieldKind.NUMBER, "1e3", 1000.0),
        (FieldKind.BOOLEAN, "true", True),
        (FieldKind.BOOLEAN, False, False),
        (FieldKind.DATE, "1970-01-02", 86_400_000_000),
        (FieldKind.DATE_TIME, "1970-01-01T00:00:01Z", 1_000_000),
        (FieldKind.DATE_TIME, "1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_a_value_is_read_by_the_kind_of_its_field(kind: FieldKind, given, read):
    made = exact_value(field(kind), given)
    assert (made, type(made)) == (read, type(read))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (FieldKind.TEXT, "a\0"),
        (FieldKind.TEXT, "a" * 5000),
        (FieldKind.INTEGER, "7.5"),
        (FieldKind.INTEGER, "1e3"),
        (FieldKind.INTEGER, True),
        (FieldKind.INTEGER, 2**63),
        (FieldKind.INTEGER, ""),
        (FieldKind.NUMBER, "NaN"),
        (FieldKind.NUMBER, float("inf")),
        (FieldKind.NUMBER, "1e999"),
        (FieldKind.NUMBER, "0x10"),
        (FieldKind.BOOLEAN, "yes"),
        (FieldKind.BOOLEAN, 1),
        (FieldKind.DATE, "2026-04-01T00:00:00Z"),
        (FieldKind.DATE, "2026-13-01"),
        (FieldKind.DATE_TIME, "yesterday"),
        (FieldKind.DATE_TIME, 5),
        (FieldKind.JSON, "x"),
    ],
)
def test_a_value_that_a_field_can_never_have_is_refused(kind: FieldKind, given):
    with pytest.raises(InvalidRequest) as refused:
        exact_value(field(kind), given)
    assert refused.value.param == "filter"


def test_text_has_no_order_to_compare_by():
    with pytest.raises(InvalidRequest):
        ordered_value(field(FieldKind.TEXT), "a")
