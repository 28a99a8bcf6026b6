"""Maintenance of a store of 100 000 records or more: how fast it is checked, and how small its steps are.

Measured in processor time, because maintenance runs beside reads. `python -m bench maintenance --records 1000000` takes
a home that `bench store` has made, and leaves it as it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.homes import CACHE
from headgate.home import Home
from headgate.store.engines.commands import commands_of
from headgate.store.maintenance.fsck import check_store
from headgate.store.maintenance.sqlite_home import blob_files, reading_store, writing_store
from headgate.store.sqlite.migrate import backup

_FSCK_LEAST = 50_000
_STEP_MOST_MS = 50
_STATS_MOST_MS = 100


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures of homes that exist."""
    parser = argparse.ArgumentParser(prog="bench maintenance")
    parser.add_argument("--records", type=int, action="append")
    for records in parser.parse_args(arguments).records or [100_000]:
        home = Home(CACHE / f"store-{records}" / "home")
        print(f"\nMaintenance, {records} records")
        if not home.path.exists():
            print(f"  no home was made; run: python -m bench store --records {records}")
            continue
        _bring_up_to_date(home)
        _show("backup, a step, p95", _p95(_steps_of_backup(home)), _STEP_MOST_MS)
        _stats(home)
        _fsck(home)


def _bring_up_to_date(home: Home) -> None:
    with writing_store(home):
        pass


def _fsck(home: Home) -> None:
    with reading_store(home) as database, _spent() as spent:
        found = check_store(database, blob_files(home), lambda _done, _total: None)
    rate = found.record_count / spent[0]
    verdict = "PASS" if rate >= _FSCK_LEAST and not found.damages else "MISS"
    print(
        f"{'fsck':28} {rate:10.0f} /s  at least {_FSCK_LEAST} /s  {verdict}  ({len(found.damages)} damages)"
    )


def _stats(home: Home) -> None:
    with _spent() as spent:
        commands_of(home).stats()
    _show("stats", spent[0] * 1000, _STATS_MOST_MS)


def _steps_of_backup(home: Home) -> list[float]:
    spent: list[float] = []
    last = time.process_time()

    def step(_done: int, _total: int) -> None:
        nonlocal last
        now = time.process_time()
        spent.append(now - last)
        last = now

    target = home.path.with_name("copy.db")
    with reading_store(home) as database:
        backup(database, target, step)
    target.unlink()
    return spent


@contextmanager
def _spent() -> Iterator[list[float]]:
    """Give the processor time of a block, once it is over."""
    found: list[float] = []
    started = time.process_time()
    yield found
    found.append(time.process_time() - started)


def _p95(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) * 95 // 100] * 1000


def _show(name: str, figure: float, most: float) -> None:
    print(f"{name:28} {figure:10.1f} ms  at most {most} ms  {'PASS' if figure <= most else 'MISS'}")
