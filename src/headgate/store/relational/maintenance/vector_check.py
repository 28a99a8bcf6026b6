"""Check the vectors of one shelf: each block against itself, and its rows against the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.errors import IntegrityBroken
from headgate.store.relational.catalog import Shelf
from headgate.store.relational.database import Database
from headgate.store.relational.row_numbers import RID_SHIFT
from headgate.store.relational.vector_blocks import NO_TIME, PART_SHIFT, read_block


def check_vectors(
    database: Database, shelf: Shelf, places: Sequence[tuple[int, int | None]]
) -> Iterator[tuple[int, str]]:
    """Check everything; gives the number of a record (0: of none) and what is wrong with it.

    ``places`` are the number and the time of every live record.
    """
    first, last = shelf.sid << RID_SHIFT, (shelf.sid + 1) << RID_SHIFT
    # What is stale is not compared, and its record may have changed or gone.
    stale = {(rid - first, fid) for rid, fid in database.all(database.sql["stale_texts"], (first, last, -1))}
    times = {number: NO_TIME if time is None else time for number, time in places}
    for bid, fid, part in database.all(database.sql["vector_blocks_of_shelf"], (shelf.sid,)):
        try:
            block = read_block(database, bid)
        except IntegrityBroken:
            yield 0, "A block of vectors is damaged."
            continue
        for number, time in sorted(set(zip(block.numbers.tolist(), block.times.tolist(), strict=True))):
            if (number, fid) not in stale and (times.get(number) != time or number >> PART_SHIFT != part):
                yield number, "The vectors are not those of a record that is there."
