from __future__ import annotations

import multiprocessing
import time
from typing import Any

from bench.load import family, tree_cpu_seconds
from bench.workers import KINDS, Taken, shown


def test_the_table_says_where_growth_stops_and_what_each_part_takes():
    found = {
        (kind, workers): Taken(per_second, 500, 250, 50)
        for kind in KINDS
        for workers, per_second in ((1, 900.0), (2, 1500.0), (4, 1400.0))
    }
    lines = shown(found).splitlines()
    assert lines[2].split() == ["single", "record", "2", "1500", "500", "250", "50", "1.20"]
    assert "most with 2 workers here" in lines[-2]
    assert "2000/s a worker, 4000/s for each of the database's, so 2.0 workers fill one" in lines[-2]


def _work(ready: Any, stop: Any) -> None:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    ready.set()
    stop.wait()


def _start_another(ready: Any, stop: Any) -> None:
    multiprocessing.get_context("spawn").Process(target=_work, args=(ready, stop)).start()
    stop.wait()


def test_the_processor_time_of_a_process_has_that_of_what_it_started():
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    process = context.Process(target=_start_another, args=(ready, stop))
    process.start()
    try:
        assert ready.wait(60)
        assert process.pid is not None
        assert len(family(process.pid)) >= 2
        assert tree_cpu_seconds(process.pid) >= 0.2
    finally:
        stop.set()
        process.join()
