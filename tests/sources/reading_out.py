"""What a live source gives, item by item: it reads in another process, which gives parts of several items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item, Reject, Removal, Row


def read_out(given: Iterable[Item | ImportPart]) -> Iterator[Item]:
    """Give the items of parts, and items that are given alone, but what they cover."""
    for one in given:
        if isinstance(one, ImportPart):
            yield from _items(one)
        elif not isinstance(one, Covered):
            yield one


def _items(part: ImportPart) -> Iterator[Item]:
    yield from (Reject(one.place, one.reason) for one in part.rejects)
    for stream, lines in part.lines.items():
        yield from (Row(stream, msgspec.json.decode(one.line)["data"], place=one.place) for one in lines)
    for stream, lines in part.removals.items():
        yield from (Removal(stream, msgspec.json.decode(one.line)["key"]) for one in lines)
    yield from part.marks.values()
