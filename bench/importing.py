"""Importing beside its parts: the bare parser, bare ingest of the same lines, and the whole import with its memory.

`python -m bench importing --rows 5000` makes files for every source (`bench/import_kinds.py`); `--kind mail` for some of
them; `python -m bench importing --kind mail FILE` takes a file that exists. Each is imported into a new home in a new
process, whose peak memory is read at its end. A whole import may take at most 2.5 times as long as its parts: on the clock
of a quiet machine, and in time of the processor, which other programs do not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess  # noqa: TID251 - a bench runs this program
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.import_kinds import KINDS
from headgate.home import open_home
from headgate.model.ids import StreamName
from headgate.model.rows import Batch
from headgate.sources.importing import Importer, ImportJob
from headgate.sources.inputs.archives import opened_tree
from headgate.sources.inputs.tree import InputTree
from headgate.sources.parts import parts
from headgate.sources.planning import plan_imports
from headgate.sources.registry import chosen_sources
from headgate.store.engines.sqlite import SqliteStore

MIB = 1024 * 1024
MOST_TIMES = 2.5
_PARTS = ("parser", "source", "ingest", "import")


def load_parsers(tree: InputTree) -> None:
    """Read the first item, so that loading libraries counts neither here nor for the bare parser."""
    (planned, *_) = plan_imports([tree], chosen_sources(None)).imports
    next(iter(planned.job.read({}, planned.job.form)), None)


def peak_mib() -> float:
    """Return the peak memory of this process; what `getrusage` gives has that of the process that started it in it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM")) / 1024


class Stopwatch:
    """Adds up the time of some parts of a run, on the clock and on the processor."""

    def __init__(self) -> None:
        self.seconds, self.cpu_seconds = 0.0, 0.0

    def __enter__(self) -> None:
        self.seconds -= time.perf_counter()
        self.cpu_seconds -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter()
        self.cpu_seconds += time.process_time()


def figures(rows: int, watch: Stopwatch) -> dict[str, Any]:
    return {"rows": rows, "seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds}


async def measured(path: Path, what: str) -> dict[str, Any]:
    """Do one of the four, all but parsing on a new home; gives rows and seconds."""
    watch = Stopwatch()
    with opened_tree(path) as tree, tempfile.TemporaryDirectory() as place:
        load_parsers(tree)
        with watch:
            (planned, *_) = plan_imports([tree], chosen_sources(None)).imports
        if what == "source":
            with watch:
                rows = sum(
                    len(lines)
                    for part in parts(planned.job.read({}, planned.job.form))
                    for lines in part.lines.values()
                )
            return figures(rows, watch)
        store = SqliteStore(open_home(Path(place) / "home"), lambda: 0)
        try:
            return await (
                _ingested(store, planned.job) if what == "ingest" else _imported(store, planned.job, watch)
            )
        finally:
            await store.close()


async def _ingested(store: SqliteStore, job: ImportJob) -> dict[str, Any]:
    """Store lines that were read before; reading is not counted."""
    await store.declare(job.connector_key, job.document)
    connection = await store.create_connection(job.connector_key, "bench")
    rows, watch = 0, Stopwatch()
    for part in parts(job.read({}, job.form)):
        with watch:
            for stream, lines in part.lines.items():
                await store.ingest(Batch(connection.id, StreamName(stream), [one.line for one in lines], 0))
                rows += len(lines)
    return figures(rows, watch)


async def _imported(store: SqliteStore, job: ImportJob, watch: Stopwatch) -> dict[str, Any]:
    with watch:
        report = await Importer(store, clock=lambda: 0).run(job)
    return figures(report.accepted, watch)


def parsed(path: Path, kind: str) -> dict[str, Any]:
    """Read a file with the library alone; the first time loads it, and is not counted."""
    KINDS[kind].parse(path)
    watch = Stopwatch()
    with watch:
        rows = KINDS[kind].parse(path)
    return figures(rows, watch)


def in_process(path: Path, kind: str, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.importing", "--only", what, "--kind", kind, str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def line(path: Path, kind: str) -> str:
    """Measure one file, and write its line of the table."""
    parser, source, ingest, whole = (in_process(path, kind, what) for what in _PARTS)
    rows, mib = whole["rows"], size_of(path) / MIB
    rate = [rows / one["seconds"] for one in (parser, source, ingest, whole)]
    times, cpu_times = (whole[one] / (parser[one] + ingest[one]) for one in ("seconds", "cpu_seconds"))
    rates = " ".join(f"{one:10,.0f}" for one in rate)
    mark = "" if max(times, cpu_times) <= MOST_TIMES else "  over the limit"
    ratios = f"{times:8.2f} {cpu_times:6.2f}"
    return f"{kind:14} {mib:7.1f} {rows:9,} {rates} {mib / whole['seconds']:7.1f} {ratios} {whole['peak']:9.0f}{mark}"


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench importing")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--kind", action="append", choices=tuple(KINDS))
    parser.add_argument("--only", choices=_PARTS)
    options = parser.parse_args(list(arguments))
    kinds: list[str] = options.kind or list(KINDS)
    if options.only:
        (path,) = options.files
        found = (
            parsed(path, kinds[0]) if options.only == "parser" else asyncio.run(measured(path, options.only))
        )
        print(json.dumps({**found, "peak": peak_mib()}))
        return
    columns = f"{'MiB':>7} {'rows':>9} {'parser/s':>10} {'source/s':>10} {'ingest/s':>10} {'import/s':>10}"
    print(f"\nimporting\n{'':14} {columns} {'MiB/s':>7} {'x parts':>8} {'x CPU':>6} {'peak MiB':>9}")
    for kind in kinds:
        with tempfile.TemporaryDirectory() as place:
            for path in options.files or [KINDS[kind].make(options.rows, Path(place))]:
                print(line(path, kind), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
