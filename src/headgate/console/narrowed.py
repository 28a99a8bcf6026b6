"""What a page of a stream is narrowed to: days, words, the value of a field; and the columns that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from headgate.console.layout import shown_value
from headgate.console.lines import record_path
from headgate.console.pages import Form, View
from headgate.errors import InvalidRequest
from headgate.model.declaration import FieldKind, RangeOperator, StreamDeclaration
from headgate.model.ids import FieldName
from headgate.model.query import ExactFilter, Filter, RangeFilter
from headgate.text.writing import cut

_CELL_CHARS = 80
_MOST_COLUMNS = 8
_TRUE = frozenset({"true", "yes", "1"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the owner chose on the page of a stream, as it was typed."""

    words: str
    since: str
    until: str
    field: str
    value: str
    order: str
    columns: tuple[FieldName, ...]

    @classmethod
    def of(cls, query: Form, declared: StreamDeclaration) -> Chosen:
        """Read the choice; columns that the stream does not have are left out."""
        wanted = query.all("column")
        columns = tuple(name for name in declared.fields if name in wanted)[:_MOST_COLUMNS]
        words, since, until, field, value, order = (
            query.get(name).strip() for name in ("contains", "since", "until", "field", "value", "order")
        )
        return cls(words, since, until, field, value, order, columns)

    @property
    def is_any(self) -> bool:
        """Whether less than the whole stream is shown."""
        return bool(self.words or self.since or self.until or (self.field and self.value))

    def parameters(self) -> list[tuple[str, str]]:
        """Write the choice as the parameters of a link."""
        named = (
            ("contains", self.words),
            ("since", self.since),
            ("until", self.until),
            ("field", self.field),
            ("value", self.value),
            ("order", self.order),
        )
        return [*((name, text) for name, text in named if text), *(("column", name) for name in self.columns)]

    def filters(self, declared: StreamDeclaration) -> tuple[Filter, ...]:
        """Make filters of the choice.

        Raises:
            InvalidRequest: something typed cannot be read; the message says what to type.
        """
        return (*self._days(declared), *self._values(declared))

    def _days(self, declared: StreamDeclaration) -> Iterator[Filter]:
        field = time_field(declared)
        if field is None:
            return
        end = "" if declared.fields[field].kind is FieldKind.DATE else "T00:00:00Z"
        if self.since:
            yield RangeFilter(field, RangeOperator.GTE, f"{_day(self.since)}{end}")
        if self.until:
            # The last day is shown as well.
            yield RangeFilter(field, RangeOperator.LT, f"{_day(self.until) + timedelta(days=1)}{end}")

    def _values(self, declared: StreamDeclaration) -> Iterator[Filter]:
        field = declared.fields.get(FieldName(self.field))
        if field is None or not self.value:
            return
        if field.kind is FieldKind.BOOLEAN:
            yield ExactFilter(field.name, self.value.lower() in _TRUE)
        elif field.kind.is_number:
            yield ExactFilter(field.name, _number(self.value, field.kind))
        else:
            yield ExactFilter(field.name, self.value)


def time_field(declared: StreamDeclaration) -> FieldName | None:
    """Return the field by whose days a stream can be narrowed."""
    field = declared.consent_time_field or declared.cursor_field
    if field is None or field not in declared.query.range_filters or not declared.fields[field].kind.is_time:
        return None
    return field


def filterable(capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the fields that can be compared with a value; times are narrowed by days."""
    return tuple(
        sorted(
            name
            for name, capability in capabilities.items()
            if capability["exact_filter"]["usable"] and capability.get("type") not in {"date", "date_time"}
        )
    )


def cells(row: Mapping[str, Any], declared: StreamDeclaration, columns: tuple[FieldName, ...]) -> View:
    """Return the cells of a row of the table, each in one line."""
    data: Mapping[str, Any] = row["data"]
    path = record_path(row["connection_id"], row["stream"], row["id"])
    return View(
        path=path,
        cells=tuple(
            View(
                text=cut(" ".join(_written(data.get(name), declared, name).split()), _CELL_CHARS),
                is_number=isinstance(data.get(name), int | float) and not isinstance(data.get(name), bool),
            )
            for name in columns
        ),
    )


def _written(value: Any, declared: StreamDeclaration, name: FieldName) -> str:
    # A price that is a float has lost the zeros at its end.
    is_price = name == declared.line.amount and declared.line.unit is not None and isinstance(value, float)
    return f"{value:.2f}" if is_price and round(value, 2) == value else shown_value(value)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(f"{text[:40]!r} is no day. Type one such as 2026-01-31.") from None


def _number(text: str, kind: FieldKind) -> int | float:
    try:
        return int(text) if kind is FieldKind.INTEGER else float(text)
    except ValueError:
        raise InvalidRequest(f"{text[:40]!r} is no number. Type one such as 12.") from None
