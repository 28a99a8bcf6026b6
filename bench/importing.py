"""Importing beside its parts: the source alone, bare ingest of the same lines, and the whole import with its memory.

`python -m bench importing --rows 50000` makes a CSV file, an mbox and a vCard file; `python -m bench importing FILE...`
takes files that exist. Each is imported into a new home in a new process, whose peak memory is read at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess  # noqa: TID251 - a bench runs this program
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.home import open_home
from headgate.model.ids import StreamName
from headgate.sources.importing import Importer, ImportJob
from headgate.sources.inputs.opening import opened_tree
from headgate.sources.parts import parts
from headgate.sources.planning import chosen_sources, plan_imports
from headgate.store.protocol import Batch
from headgate.store.sqlite.engine import SqliteStore

KINDS = ("csv", "mbox", "vcf")
MIB = 1024 * 1024


def make(kind: str, rows: int, place: Path) -> Path:
    path = place / f"bench.{kind}"
    with path.open("w", encoding="utf-8") as file:
        if kind == "csv":
            file.write("id,name,amount,day,text\n")
        for n in range(rows):
            day = f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}"
            if kind == "csv":
                file.write(f"{n},name{n % 100},{n / 7:.2f},{day},the bridge over the canal number {n}\n")
            elif kind == "vcf":
                file.write(
                    f"BEGIN:VCARD\nVERSION:3.0\nUID:u{n}\nFN:Name {n}\nEMAIL:a{n}@example.org\nEND:VCARD\n"
                )
            else:
                file.write(
                    f"From a@example.org Thu Jan  1 00:00:00 2026\nFrom: a{n % 50}@example.org\nTo: b@example.org\n"
                    f"Subject: number {n}\nMessage-ID: <{n}@example.org>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\n\n"
                    f"The planks of bridge {n} are due.\n\n"
                )
    return path


async def measured(path: Path, what: str) -> dict[str, Any]:
    """Do one of the three on a new home; gives rows and seconds."""
    with opened_tree(path) as tree, tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        (planned, *_) = plan_imports([tree], chosen_sources(None)).imports
        planning = time.perf_counter() - started
        if what == "source":
            started = time.perf_counter()
            rows = sum(len(lines) for part in parts(planned.job.read({})) for lines in part.lines.values())
            return {"rows": rows, "seconds": time.perf_counter() - started + planning}
        store = SqliteStore(open_home(Path(place) / "home"), lambda: 0)
        try:
            return await (
                _ingested(store, planned.job) if what == "ingest" else _imported(store, planned.job, planning)
            )
        finally:
            await store.close()


async def _ingested(store: SqliteStore, job: ImportJob) -> dict[str, Any]:
    """Store lines that were read before; reading is not counted."""
    await store.declare(job.connector_key, job.document)
    connection = await store.create_connection(job.connector_key, "bench")
    rows, seconds = 0, 0.0
    for part in parts(job.read({})):
        started = time.perf_counter()
        for stream, lines in part.lines.items():
            await store.ingest(Batch(connection.id, StreamName(stream), [one.line for one in lines], 0))
            rows += len(lines)
        seconds += time.perf_counter() - started
    return {"rows": rows, "seconds": seconds}


async def _imported(store: SqliteStore, job: ImportJob, planning: float) -> dict[str, Any]:
    started = time.perf_counter()
    report = await Importer(store, clock=lambda: 0).run(job)
    return {"rows": report.accepted, "seconds": time.perf_counter() - started + planning}


def in_process(path: Path, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.importing", "--only", what, str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench importing")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", choices=("source", "ingest", "import"))
    options = parser.parse_args(list(arguments))
    if options.only:
        found = asyncio.run(measured(options.files[0], options.only))
        print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    with tempfile.TemporaryDirectory() as place:
        files = options.files or [make(kind, options.rows, Path(place)) for kind in KINDS]
        head = f"{'':24} {'MiB':>7} {'rows':>9} {'source/s':>9} {'ingest/s':>9} {'import/s':>9} {'x parts':>8} {'peak MiB':>9}"
        print(f"\nimporting\n{head}")
        for path in files:
            source, ingest, whole = (in_process(path, what) for what in ("source", "ingest", "import"))
            rate = [one["rows"] / one["seconds"] for one in (source, ingest, whole)]
            ratio = whole["seconds"] / (source["seconds"] + ingest["seconds"])
            print(
                f"{path.name[:24]:24} {path.stat().st_size / MIB:7.1f} {whole['rows']:9,} {rate[0]:9,.0f} {rate[1]:9,.0f} "
                f"{rate[2]:9,.0f} {ratio:8.2f} {whole['peak']:9.0f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
