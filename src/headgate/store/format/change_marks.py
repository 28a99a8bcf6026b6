"""Change marks: when each field of a record last changed, and what time the source gave that change.

A reader who sees some fields gets the time of their last change: a time of the whole row would move with hidden ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from headgate.errors import IntegrityBroken

#: Stands for every field; no field can have this name, as none may hold NUL.
ALL_FIELDS = "\0"
#: The same in place of a field's number: records came or went.
ANY_FIELD = 0


class ChangeMark(NamedTuple):
    """The number of a change, and its ``emitted_at``; None: it is the record's own."""

    seq: int
    emitted_at: int | None


_DECODER = msgspec.msgpack.Decoder(dict[str, int | ChangeMark])


def change_marks(changed: bytes | None) -> dict[str, ChangeMark]:
    """Read the column ``changed``; marks that were written before schema 7 are numbers alone."""
    if changed is None:
        return {}
    try:
        marks = _DECODER.decode(changed)
    except (msgspec.MsgspecError, ValueError) as error:
        raise IntegrityBroken("The change numbers of a record are damaged.") from error
    return {name: ChangeMark(mark, None) if isinstance(mark, int) else mark for name, mark in marks.items()}


def with_change(changed: bytes | None, names: Iterable[str], mark: ChangeMark) -> bytes:
    """Note that some fields changed, beside what was noted before."""
    return msgspec.msgpack.encode(change_marks(changed) | dict.fromkeys(names, mark))


def emitted_at_of(marks: Mapping[str, ChangeMark], visible: Iterable[str] | None, otherwise: int) -> int:
    """Return the time of the last change of a visible field; None: of any field."""
    names = marks if visible is None else (ALL_FIELDS, *visible)
    found = [marks[name] for name in names if name in marks]
    if not found:
        return otherwise
    last = max(found, key=lambda mark: mark.seq).emitted_at
    return otherwise if last is None else last
