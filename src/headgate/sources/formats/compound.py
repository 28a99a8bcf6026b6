"""Compound files, in which Microsoft's older programs keep streams in storages, like files in folders."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

#: How such files begin.
SIGNATURE = b"\xd0\xcf\x11\xe0"
_HEADER = struct.Struct("<30xHH14xI4xII4xI4x109I")
_ENTRY = struct.Struct("<64sHBxIII36xII4x")
#: From here on numbers stand for no sector.
_NO_SECTOR = 0xFFFFFFFA
_SECTOR_SHIFTS = (9, 12)
_MINI_BYTES = 64
_STREAM, _STORAGES = 2, (1, 5)
#: Storages in storages; a message that was passed on is two levels down.
_MAX_DEPTH = 40

#: Streams and storages by their names.
Storage: TypeAlias = Mapping[str, Union[bytes, "Storage"]]


class CompoundDamaged(ValueError):
    """A compound file that is cut off, or whose parts refer to each other as they must not."""


def storage_of(raw: bytes) -> Storage:
    """Read a file whole; of a large one as much is in memory again.

    Raises:
        CompoundDamaged: it cannot be read.
    """
    try:
        return _CompoundFile(raw).root()
    except (struct.error, IndexError):
        raise CompoundDamaged("The file is cut off or damaged.") from None


class _CompoundFile:
    def __init__(self, raw: bytes) -> None:
        shift, _, directory, self._cutoff, first_mini, first_more, *tables = _HEADER.unpack_from(raw)
        if shift not in _SECTOR_SHIFTS:
            raise CompoundDamaged("It has sectors of no known size.")
        self._raw = raw
        self._size = 1 << shift
        #: No two streams share a sector: all together are no larger than the file.
        self._left = len(raw)
        self._seen = {0}
        self._next: Sequence[int] = ()
        self._next = _numbers(b"".join(map(self._sector, self._table_sectors(tables, first_more))))
        entries = self._joined(directory)
        self._entries = [_ENTRY.unpack_from(entries, at) for at in range(0, len(entries), _ENTRY.size)]
        self._next_mini = _numbers(self._joined(first_mini))
        self._minis = self._joined(self._entries[0][6])

    def root(self) -> Storage:
        return self._storage(self._entries[0][5], 0)

    def _sector(self, number: int) -> bytes:
        return self._raw[(number + 1) * self._size : (number + 2) * self._size]

    def _table_sectors(self, tables: Sequence[int], more: int) -> list[int]:
        """Return where the table lies that says which sector follows which."""
        sectors = list(tables)
        most = len(self._raw) // self._size
        while more < _NO_SECTOR and len(sectors) <= most + len(tables):
            following = _numbers(self._sector(more))
            sectors += following[:-1]
            more = following[-1]
        used = [sector for sector in sectors if sector < _NO_SECTOR]
        if len(set(used)) < len(used):
            raise CompoundDamaged("Its table of sectors refers to itself.")
        return used

    def _joined(self, first: int, size: int | None = None) -> bytes:
        most = None if size is None else -(-size // self._size)
        return b"".join(map(self._sector, _chain(first, self._next, most)))

    def _content(self, first: int, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise CompoundDamaged("Its streams are larger than the file.")
        if size >= self._cutoff:
            content = self._joined(first, size)
        else:
            minis = _chain(first, self._next_mini, -(-size // _MINI_BYTES))
            content = b"".join(self._minis[at * _MINI_BYTES : (at + 1) * _MINI_BYTES] for at in minis)
        if len(content) < size:
            raise CompoundDamaged("The file is cut off.")
        return content[:size]

    def _storage(self, first: int, depth: int) -> Storage:
        held: dict[str, bytes | Storage] = {}
        waiting = [first]
        while waiting:
            number = waiting.pop()
            if number >= _NO_SECTOR:
                continue
            if number in self._seen or depth > _MAX_DEPTH:
                raise CompoundDamaged("Its storages hold each other.")
            self._seen.add(number)
            raw_name, length, kind, left, right, child, start, size = self._entries[number]
            name = raw_name[: max(0, length - 2)].decode("utf-16-le", "replace")
            if kind == _STREAM:
                held[name] = self._content(start, size)
            elif kind in _STORAGES:
                held[name] = self._storage(child, depth + 1)
            waiting += (left, right)
        return held


def _numbers(table: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(table) // 4}I", table[: len(table) // 4 * 4])


def _chain(first: int, following: Sequence[int], most: int | None) -> list[int]:
    """Follow sectors up to the last of them, or as many as are needed."""
    chain: list[int] = []
    while first < _NO_SECTOR and len(chain) != most:
        if len(chain) > len(following):
            raise CompoundDamaged("Its sectors follow each other in a circle.")
        chain.append(first)
        first = following[first]
    return chain
