"""F2: whatever a power cut leaves of writes that were not synced, no acknowledged batch is lost or torn."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from headgate.errors import HeadgateError
from headgate.store.sqlite.database import SqliteDatabase, open_reader, open_writer
from tests.conftest import Figure
from tests.hostile.store.disks import Disk, Image, images, watched
from tests.hostile.store.scene import deletion, lay_out, line, take

LINES = 3
BATCHES = 60


@dataclass
class Toll:
    images: int = 0
    lost: int = 0
    torn: int = 0
    unusable: int = 0


def work(path: Path, disk: Disk, synchronous: str) -> list[tuple[int, int]]:
    """Fill a store, with its log moved into the file now and then; gives when each batch was acknowledged."""
    safe: list[tuple[int, int]] = []
    with watched(disk) as vfs:
        database = open_writer(path, vfs=vfs)
        database.run(f"PRAGMA synchronous={synchronous}")
        connection_id = lay_out(database)
        safe.append((len(disk.effects), 0))
        for number in range(1, BATCHES + 1):
            lines = [line(f"{number}/{n}", size=n, body=f"text {number} " * number) for n in range(LINES)]
            take(database, connection_id, [*lines, line("again", size=number), deletion(f"{number - 9}/0")])
            safe.append((len(disk.effects), number))
            if number % 12 == 0:
                database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        database.db.close()
    return safe


def toll_of(place: Path, synchronous: str, count: int) -> Toll:
    disk, chance, toll = Disk(), random.Random(7), Toll()
    safe = work(place / "records.db", disk, synchronous)
    cuts = [chance.randrange(1, len(disk.effects) + 1) for _ in range(count)]
    for cut, image in images(disk.effects, cuts, chance):
        toll.images += 1
        newest = max((number for end, number in safe if end <= cut), default=-1)
        _count_damage(place / "image", image, newest, toll)
    return toll


def _count_damage(place: Path, image: Image, newest: int, toll: Toll) -> None:
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    for name, content in image.items():
        (place / name).write_bytes(content)
    try:
        database = open_reader(place / "records.db") if newest >= 0 else open_writer(place / "records.db")
    except HeadgateError:
        toll.unusable += 1
        return
    try:
        _compare(database, newest, toll)
    except apsw.Error:
        toll.unusable += 1
    finally:
        database.db.close()


def _compare(database: SqliteDatabase, newest: int, toll: Toll) -> None:
    if newest < 0:
        # Power failed while the store was being made: whatever is there, making it again must work.
        # That takes long, so only some of these images are made into a store; all have to be sound.
        toll.unusable += database.all("PRAGMA quick_check") != [("ok",)]
        if toll.images % 10:
            return
        lay_out(database)
    keys = [key for (key,) in database.all("SELECT record_id FROM record WHERE body IS NOT NULL OR deleted")]
    held = Counter(int(key.partition("/")[0]) for key in keys if "/" in key)
    toll.lost += sum(held[number] == 0 for number in range(1, newest + 1))
    toll.torn += sum(count != LINES for count in held.values())
    if held:
        again = database.all("SELECT json_extract(body, '$.size') FROM record WHERE record_id='again'")
        toll.torn += again != [(max(held),)]
        live = database.all("SELECT sum(live) FROM shelf")
        toll.torn += live != database.all("SELECT count(*) FROM record WHERE deleted=0")
    if database.all("PRAGMA quick_check") != [("ok",)]:
        toll.unusable += 1


@pytest.mark.parametrize("cuts", [200, pytest.param(2000, marks=pytest.mark.soak)])
def test_power_cuts_lose_nothing_tear_nothing_and_every_image_opens(
    tmp_path: Path, cuts: int, figure: Figure
):
    toll = toll_of(tmp_path, "FULL", cuts)
    figure("F2", f"{toll}")
    assert toll == Toll(images=cuts)


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_the_same_cuts_do_harm_when_the_store_syncs_less(tmp_path: Path, synchronous: str, figure: Figure):
    toll = toll_of(tmp_path, synchronous, 100)
    figure("F2", f"with synchronous={synchronous}: {toll}")
    # Without any sync nearly no image can be opened, so that what it lost cannot be counted.
    assert toll.unusable > 0
    assert synchronous == "OFF" or toll.lost > 0
