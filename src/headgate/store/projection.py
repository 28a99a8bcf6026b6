"""Projection: a record's JSON text cut down to some fields, without parsing what is not needed.

A field that is not asked for is skipped by the decoder and has no place in the type that is encoded
again: it cannot reach an answer. Values keep the very text they came in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from headgate.model.ids import FieldName

_ENCODE = msgspec.json.Encoder().encode
_ODD = re.compile(r'["\\\x00-\x1f]')


class Projector:
    """Cuts bodies down to a fixed set of fields."""

    __slots__ = ("_decode", "fields")

    def __init__(self, fields: Sequence[FieldName]) -> None:
        self.fields = tuple(fields)
        names = {f"f{index}": field for index, field in enumerate(self.fields)}
        shape = msgspec.defstruct(
            "Projection",
            [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in names],
            rename=names,
            gc=False,
        )
        self._decode = msgspec.json.Decoder(shape).decode

    def project(self, body: bytes, added: Mapping[FieldName, str] | None = None) -> bytes:
        """Give the body with only the chosen fields, and texts that are kept apart put back in."""
        shape: Any = self._decode(body)
        if added:
            for index, field in enumerate(self.fields):
                if field in added:
                    setattr(shape, f"f{index}", msgspec.Raw(_ENCODE(added[field])))
        return _ENCODE(shape)


class OddProjector(Projector):
    """Does the same for fields whose names no struct can have; slower, and as careful."""

    __slots__ = ()

    def __init__(self, fields: Sequence[FieldName]) -> None:
        self.fields = tuple(fields)
        self._decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    def project(self, body: bytes, added: Mapping[FieldName, str] | None = None) -> bytes:
        """Give the body with only the chosen fields, and texts that are kept apart put back in."""
        members: dict[str, msgspec.Raw] = self._decode(body)
        for field, text in (added or {}).items():
            members[field] = msgspec.Raw(_ENCODE(text))
        return _ENCODE({field: members[field] for field in self.fields if field in members})


@lru_cache(maxsize=512)
def projector(fields: tuple[FieldName, ...]) -> Projector:
    """Give the projector for these fields; making one is slow, using it is not."""
    return OddProjector(fields) if any(map(_ODD.search, fields)) else Projector(fields)
