"""Projection: a record's JSON text cut down to some fields, without parsing what is not needed.

The decoder skips a field that is not wanted, and the type that is encoded again has no place for it: it cannot
reach an answer. Values keep the very text they came in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from headgate.model.ids import FieldName

_ENCODE = msgspec.json.Encoder().encode
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
#: How many reads ask for the same fields before a type is made for them.
_READS_BEFORE_TYPE = 8
#: What no name of a msgspec type's member may hold.
_UNSPELLABLE = re.compile(r'["\\\x00-\x1f]')


def is_spellable(name: FieldName) -> bool:
    """Return whether a msgspec type can have a member of this name."""
    return _UNSPELLABLE.search(name) is None


class Projector:
    """Cuts bodies down to a fixed set of fields."""

    __slots__ = ("_decode", "_reads_left", "fields")

    def __init__(self, fields: Sequence[FieldName]) -> None:
        self.fields = tuple(fields)
        self._decode: Callable[[bytes], Any] | None = None
        self._reads_left = _READS_BEFORE_TYPE if all(map(is_spellable, self.fields)) else sys.maxsize

    def count_read(self) -> None:
        """Note that one more read projects to these fields; of many reads a type is made, which halves the work.

        Callers choose the fields. Types of all choices that were made once would take megabytes, until the
        collector of garbage finds them.
        """
        self._reads_left -= 1
        if self._reads_left == 0:
            self._decode = _shape_decoder(self.fields)

    def project(self, body: bytes, added: Mapping[FieldName, str] | None = None) -> bytes:
        """Return the body with only the chosen fields, and put texts back in that are stored apart."""
        decode = self._decode
        if decode is None:
            return _ENCODE(_chosen(_RAW.decode(body), self.fields, added or {}))
        shape: Any = decode(body)
        if added is not None:
            for index, field in enumerate(self.fields):
                if field in added:
                    setattr(shape, f"f{index}", msgspec.Raw(_ENCODE(added[field])))
        return _ENCODE(shape)


def _shape_decoder(fields: tuple[FieldName, ...]) -> Callable[[bytes], Any]:
    names = {f"f{index}": field for index, field in enumerate(fields)}
    shape = msgspec.defstruct(
        "Projection",
        [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in names],
        rename=names,
        gc=False,
    )
    return msgspec.json.Decoder(shape).decode


def _chosen(
    members: Mapping[str, msgspec.Raw], fields: tuple[FieldName, ...], added: Mapping[FieldName, str]
) -> dict[str, Any]:
    values: dict[str, Any] = {**members, **added}
    return {field: values[field] for field in fields if field in values}


def text_in(body: bytes, field: FieldName) -> str | None:
    """Return one field's text out of a body, if it holds a text."""
    raw = _one_decoder(field)(body)
    value = None if raw is None else msgspec.json.decode(raw)
    return value if isinstance(value, str) else None


def searched_text_in(body: bytes, field: FieldName) -> str:
    """Return what is searched of one field of a body."""
    raw = _one_decoder(field)(body)
    return "" if raw is None else searched_text(msgspec.json.decode(raw))


def searched_text(value: Any) -> str:
    """Return the text of a value that is searched: its own, or the texts in a list or object, one to a line."""
    return value if isinstance(value, str) else "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _texts(item)


@lru_cache(maxsize=512)
def _one_decoder(field: FieldName) -> Callable[[bytes], msgspec.Raw | None]:
    if not is_spellable(field):
        return lambda body: _RAW.decode(body).get(field)
    decode = _shape_decoder((field,))

    def one(body: bytes) -> msgspec.Raw | None:
        raw = decode(body).f0
        return None if raw is msgspec.UNSET else raw

    return one


def projector(fields: tuple[FieldName, ...]) -> Projector:
    """Return the projector for these fields, for one read."""
    found = _projector(fields)
    found.count_read()
    return found


_projector = lru_cache(maxsize=512)(Projector)
