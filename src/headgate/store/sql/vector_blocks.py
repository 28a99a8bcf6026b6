"""Blocks of vectors in the file: read, checked, and replaced."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.errors import IntegrityBroken
from headgate.store.format.arrays import np
from headgate.store.format.records import N_MASK, RID_SHIFT, shelf_rows
from headgate.store.sql.database import Database

#: Records of one block; as many as a block has passages, or fewer.
PART_SHIFT = 11
#: The time of a record that has none; before all others.
NO_TIME = -(1 << 63)
Numbers = Any


class PassageVector(NamedTuple):
    """The vector of one passage of one text."""

    rid: int
    fid: int
    time: int | None
    start: int
    end: int
    vector: bytes


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """The passages of one field of some records of one shelf: a row each, in order of the records' numbers."""

    numbers: Numbers
    times: Numbers
    starts: Numbers
    ends: Numbers
    vectors: Numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def chosen(self, stays: Numbers) -> VectorBlock:
        """Return some of the rows."""
        return VectorBlock(
            self.numbers[stays], self.times[stays], self.starts[stays], self.ends[stays], self.vectors[stays]
        )


def read_block(database: Database, bid: int) -> VectorBlock:
    """Read a block.

    Raises:
        IntegrityBroken: it is not what was stored.
    """
    row = database.one(database.sql["vector_block"], (bid,))
    assert row is not None
    crc, *columns = row
    count = len(columns[0]) // 4
    if _sum(columns) != crc or not count or len(columns[4]) % count:
        raise IntegrityBroken("A block of vectors is damaged.", hint="Run 'headgate store fsck'.")
    numbers, times, starts, ends, vectors = columns
    return VectorBlock(
        np.frombuffer(numbers, "<u4"),
        np.frombuffer(times, "<i8"),
        np.frombuffer(starts, "<u4"),
        np.frombuffer(ends, "<u4"),
        np.frombuffer(vectors, np.int8).reshape(count, -1),
    )


def replace_rows(
    database: Database, sid: int, texts: Collection[tuple[int, int]], vectors: Iterable[PassageVector]
) -> None:
    """Put new vectors in the place of those that some texts have, each text by row number and field."""
    gone: dict[tuple[int, int], set[int]] = {}
    for rid, fid in texts:
        number = rid & N_MASK
        gone.setdefault((fid, number >> PART_SHIFT), set()).add(number)
    added: dict[tuple[int, int], list[PassageVector]] = {key: [] for key in gone}
    for vector in vectors:
        added[vector.fid, (vector.rid & N_MASK) >> PART_SHIFT].append(vector)
    for (fid, part), numbers in gone.items():
        _replace_block(database, (sid, fid, part), numbers, added[fid, part])


def _replace_block(
    database: Database, place: tuple[int, int, int], gone: set[int], added: Sequence[PassageVector]
) -> None:
    row = database.one(database.sql["vector_block_of_part"], place)
    blocks: list[VectorBlock] = [_block_of(added)] if added else []
    if row is not None:
        old = read_block(database, row[0])
        stays = ~np.isin(old.numbers, np.array(sorted(gone), np.uint32))
        if stays.all() and not added:
            return
        database.run(database.sql["delete_vector_block"], row)
        blocks.append(old.chosen(stays))
    _insert(database, place, _joined(blocks))


def _block_of(added: Sequence[PassageVector]) -> VectorBlock:
    return VectorBlock(
        np.array([row.rid & N_MASK for row in added], "<u4"),
        np.array([NO_TIME if row.time is None else row.time for row in added], "<i8"),
        np.array([row.start for row in added], "<u4"),
        np.array([row.end for row in added], "<u4"),
        np.frombuffer(b"".join(row.vector for row in added), np.int8).reshape(len(added), -1),
    )


def _joined(blocks: Sequence[VectorBlock]) -> VectorBlock | None:
    full = [block for block in blocks if len(block)]
    if not full:
        return None
    columns = (np.concatenate([getattr(block, name) for block in full]) for name in VectorBlock.__slots__)
    joined = VectorBlock(*columns)
    return joined.chosen(np.lexsort((joined.starts, joined.numbers)))


def _insert(database: Database, place: tuple[int, int, int], block: VectorBlock | None) -> None:
    if block is None:
        return
    columns = [getattr(block, name).tobytes() for name in VectorBlock.__slots__]
    database.run(database.sql["insert_vector_block"], (*place, _sum(columns), *columns))


def _sum(columns: Iterable[bytes]) -> int:
    crc = 0
    for column in columns:
        crc = zlib.crc32(column, crc)
    return crc


def delete_vectors(database: Database, sid: int) -> None:
    """Remove the vectors of a whole shelf, and what is noted about them."""
    database.run(database.sql["delete_vector_blocks"], (sid,))
    database.run(database.sql["delete_vector_shelf"], (sid,))
    database.run(database.sql["delete_stale_texts"], shelf_rows(sid))


def erase_vectors(database: Database, rid: int) -> None:
    """Remove the vectors of a record at once, so that no byte of them is left."""
    sid, part = rid >> RID_SHIFT, (rid & N_MASK) >> PART_SHIFT
    fids = [fid for (fid,) in database.all(database.sql["vector_fields_of_part"], (sid, part))]
    replace_rows(database, sid, [(rid, fid) for fid in fids], ())
    database.run(database.sql["delete_stale_texts"], (rid - 1, rid + 1))


def fids_key(fids: Collection[int]) -> str:
    """Name some fields as the store notes them."""
    return " ".join(map(str, sorted(fids)))
