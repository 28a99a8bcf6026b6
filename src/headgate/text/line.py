"""The line of a record: when, who, where and how much, beside its title, whatever field a search matched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.model.declaration import LineFields
from headgate.model.ids import FieldName
from headgate.model.plan import LINE_CHARS
from headgate.model.wire import HitBody, LineBody
from headgate.text.ladder import binary_facts
from headgate.text.writing import cut, json_within, line as inline, minute
from headgate.words import MONTHS

#: What a line says beside the title.
PARTS = ("time", "who", "where", "amount")
_PERSON_CHARS = 60
_DAY_CHARS = 10
_PLACE_CHARS = 60
_AMOUNT_CHARS = 30
#: So many people are named, and the others counted.
_PEOPLE = 2
#: An address behind a name.
_ADDRESS = re.compile(r"(?<=\S) <[^<>]*>")
#: What differs between payments of several months, and what stands between words.
_DATED = re.compile(rf"[\W\d_]+|\b(?:{'|'.join(' '.join(MONTHS).split())})\b", re.IGNORECASE)
#: The code of a currency, by ISO 4217.
_CURRENCY = re.compile(r"[A-Z]{3}")
#: A number and a unit that need no quotes.
_AMOUNT = re.compile(r"-?\d+(?:\.\d+)?(?: \w{1,8})?", re.ASCII)


def line_body(line: LineFields, data: Mapping[str, Any]) -> LineBody:
    """Return what the line of a record says, of the fields that are there."""
    parts = {
        "title": _text(data, title_field(line, data)),
        "time": _text(data, line.time),
        "who": " to ".join(filter(None, (_people(data.get(name)) for name in line.who))),
        "where": cut(_text(data, line.where), _PLACE_CHARS),
        "amount": _amount(line, data),
    }
    return cast("LineBody", {part: text for part, text in parts.items() if text})


def beginning_of(line: LineFields, data: Mapping[str, Any], chars: int) -> str:
    """Return the beginning of a record's text, beside its title."""
    return cut(_joined(data, line.text), chars)


def undated(text: str) -> str:
    """Return the words of a text without what differs between payments of several months: numbers, and names of months."""
    return " ".join(_DATED.sub(" ", text).split())


def line_fields(line: LineFields, data: Mapping[str, Any]) -> tuple[FieldName, ...]:
    """Name the fields that the line of a record shows."""
    names = (line.title, title_field(line, data), line.time, *line.who, line.where, line.amount, line.unit)
    return tuple(dict.fromkeys(name for name in names if name is not None and data.get(name) is not None))


def title_field(line: LineFields, data: Mapping[str, Any]) -> FieldName | None:
    """Return the field that a record is named by: its title, or else its text."""
    return next((name for name in (line.title, line.text) if _text(data, name)), None)


def read_line_fields(written: Any) -> LineFields | None:
    """Read the fields of a line that a record came with; None if it has none, or another server wrote something else."""
    try:
        return None if written is None else msgspec.convert(written, LineFields)
    except msgspec.ValidationError:
        return None


def line_parts(hit: HitBody) -> dict[str, str]:
    """Return what the line of a hit says beside its title; another server can send anything as a line."""
    line: Any = hit.get("line")
    if not isinstance(line, dict):
        return {}
    texts = cast("Mapping[str, Any]", line)
    return {part: cut(text, LINE_CHARS) for part in PARTS if isinstance(text := texts.get(part), str)}


def line_facts(body: LineBody, part_bytes: int, *, is_full: bool) -> list[str]:
    """Write the parts of a line that stand before the title, or the time alone; what a record says is quoted."""
    facts = [time] if (time := minute(str(body.get("time") or ""))) else []
    if not is_full:
        return facts
    return facts + [
        str(text) if part == "amount" and _AMOUNT.fullmatch(str(text)) else json_within(str(text), part_bytes)
        for part in ("who", "where", "amount")
        if (text := body.get(part))
    ]


def written_line(body: LineBody) -> str:
    """Write a line for a person: when, who, where, how much and what, in which every character shows itself."""
    parts = (
        minute(str(body.get("time") or "")),
        *(body.get(part) for part in ("who", "where", "amount", "title")),
    )
    return " · ".join(inline(str(part)) for part in parts if part)


def coverage_fact(meta: Mapping[str, Any]) -> list[str]:
    """Write of which period every record is there, if that is known: "complete=2019-03-01..2026-11-16 as_of=2026-11-16"."""
    coverage: Any = meta.get("coverage")
    if not isinstance(coverage, dict):
        return []
    days = {
        name: cut(inline(day), _DAY_CHARS) if isinstance(day, str) else ""
        for name in ("start", "end", "complete_at")
        for day in [cast("Mapping[str, Any]", coverage).get(name)]
    }
    return [f"complete={days['start']}..{days['end']} as_of={days['complete_at']}"]


def _text(data: Mapping[str, Any], name: str | None) -> str:
    # A search reads at least so much of a text: what names a record is the same everywhere.
    return _joined(data, name, LINE_CHARS)


def _joined(data: Mapping[str, Any], name: str | None, chars: int | None = None) -> str:
    """Write the text of a field, or its first characters, in one line; empty if it is none."""
    value = None if name is None else data.get(name)
    begin = value[:chars] if isinstance(value, str) else ""
    return "" if binary_facts(begin) is not None else " ".join(begin.split())


def _people(value: Any) -> str:
    """Name the people of a field: a text, an object with a name or an address, or a list of those."""
    if isinstance(value, list):
        people = [named for person in cast("list[Any]", value) if (named := _people(person))]
        more = [f"{len(people) - _PEOPLE} more"] if len(people) > _PEOPLE else []
        return ", ".join([*people[:_PEOPLE], *more])
    if isinstance(value, dict):
        person = cast("Mapping[str, Any]", value)
        return next(
            (named for key in ("name", "address", "email") if (named := _people(person.get(key)))), ""
        )
    return cut(_ADDRESS.sub("", " ".join(value.split())), _PERSON_CHARS) if isinstance(value, str) else ""


def _amount(line: LineFields, data: Mapping[str, Any]) -> str:
    amount = None if line.amount is None else data.get(line.amount)
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return ""
    unit = _text(data, line.unit)
    # A price that is a float has lost the zeros at its end.
    is_price = isinstance(amount, float) and _CURRENCY.fullmatch(unit) and round(amount, 2) == amount
    return cut(f"{f'{amount:.2f}' if is_price else amount} {unit}".strip(), _AMOUNT_CHARS)
