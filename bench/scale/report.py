"""Many homes in one database: measured in small, computed for 1 000 homes of 100 000 records.

`python -m bench scale --homes 200 --records 1000`. The database is made anew each time, on the server of the
benchmarks. Sizes for homes of 100 000 records come from the copy that `bench store --engine postgres` has made, if
there is one, because small homes take more for each record.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence

import psycopg

from bench.database import fresh_database, running
from bench.scale import many_homes, served
from bench.scale.projection import COMMON, Measured, breaks, needed
from bench.scale.server_costs import Costs, TableBytes, catalog_counts, costs, sizes
from tests.postgres import Server

_DATABASE = "bench_scale"
_LARGE_HOME = 100_000
_PAPER_HOMES, _PAPER_RECORDS = 1000, 100_000
_SHOWN_TABLES = 8


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and compute, and print both."""
    parser = argparse.ArgumentParser(prog="bench scale")
    parser.add_argument("--homes", type=int, default=200)
    parser.add_argument("--records", type=int, default=1000)
    asked = parser.parse_args(arguments)
    with running() as server:
        print(
            f"\nMeasured: homes of {asked.records} records, the first by ingest, the others copies of its rows"
        )
        asyncio.run(_homes(server, asked.homes, asked.records))
        url, total = server.url_of(_DATABASE), asked.homes * asked.records
        of_tables = sizes(url)
        _print_sizes(f"{asked.homes} homes of {asked.records}", of_tables, total)
        large = _large_sizes(server)
        if large:
            _print_sizes(f"one home of {_LARGE_HOME}", large, _LARGE_HOME)
        spent = asyncio.run(costs(url, total))
        process = served.measure(server, min(asked.records * 10, 10_000))
        _print_process(process, spent)
        measured = _measured((large, _LARGE_HOME) if large else (of_tables, total), process, spent)
        print("\n".join(computed(measured, _PAPER_HOMES, _PAPER_RECORDS)))


async def _homes(server: Server, homes: int, records: int) -> None:
    url = fresh_database(server, _DATABASE)
    making = await many_homes.first_home(url, records)
    print(f"{'tables of a new database':40}{making.tables_ms:>10.0f} ms")
    print(f"{'a home in it':40}{making.home_ms:>10.0f} ms")
    print(f"{'a home with declaration and connections':40}{making.ready_ms:>10.0f} ms")
    print("{} tables and {} indexes for any number of homes".format(*catalog_counts(url)))
    kinds = "".join(f"{kind:>16}" for kind in ("record", "page", "search"))
    print(f"\n{'homes':>8}{'first page':>12}{kinds}  of random homes in turns: ms, blocks")
    done = 1
    for count in sorted({min(homes, some) for some in (10, 50, homes)}):
        await asyncio.to_thread(many_homes.copy_homes, url, done + 1, count)
        done = count
        found = await many_homes.read_homes(url, count)
        reads = "".join(
            f"{one.ms:>9.3f}{one.blocks:>7.1f}" for one in (found.record, found.page, found.search)
        )
        print(f"{count:>8}{found.first:>12.1f}{reads}")


def _large_sizes(server: Server) -> list[TableBytes]:
    """Measure the tables of one large home, if it was copied before."""
    try:
        return sizes(server.url_of(f"bench_{_LARGE_HOME}"))
    except psycopg.OperationalError:
        return []


def _print_sizes(title: str, tables: Sequence[TableBytes], records: int) -> None:
    print(f"\n{title}, bytes for each record{'tables':>16}{'indexes':>10}")
    for one in tables[:_SHOWN_TABLES]:
        print(f"  {one.name:38}{one.table / records:>10.0f}{one.indexes / records:>10.0f}")
    table, index = (sum(part) for part in zip(*((one.table, one.indexes) for one in tables), strict=True))
    print(f"  {'all':38}{table / records:>10.0f}{index / records:>10.0f}")


def _print_process(process: served.Process, spent: Costs) -> None:
    print("\nA process that serves one home")
    for name, figure, unit in (
        ("connections without requests", process.connections_idle, ""),
        ("connections with all kinds of requests", process.connections_busy, ""),
        ("private memory of a connection's backend", process.backend_mb, "MB"),
        ("private memory of the process", process.headgate_mb, "MB"),
        ("write-ahead log of a record that comes in", spent.wal_of_ingest, "bytes"),
        ("write-ahead log of a record that is read", process.wal_of_read, "bytes"),
        ("vacuum of a million records", spent.vacuum_seconds, "s"),
        ("one more index of a million records", spent.index_seconds, "s"),
    ):
        print(f"  {name:44}{figure:>10.1f} {unit}")
    print("  round trips to the database for one request")
    for kind, trips in process.round_trips.items():
        print(f"    {kind:42}{trips:>10.1f}")


def _measured(sized: tuple[Sequence[TableBytes], int], process: served.Process, spent: Costs) -> Measured:
    tables, records = sized
    return Measured(
        table_bytes=sum(one.table for one in tables) / records,
        index_bytes=sum(one.indexes for one in tables) / records,
        wal_bytes=spent.wal_of_ingest,
        connections_idle=process.connections_idle,
        connections_busy=process.connections_busy,
        backend_mb=process.backend_mb,
        headgate_mb=process.headgate_mb,
        vacuum_seconds=spent.vacuum_seconds,
        index_seconds=spent.index_seconds,
    )


def computed(measured: Measured, homes: int, records: int) -> Iterator[str]:
    """Write what so many homes need, and what runs out first."""
    need = needed(measured, homes, records)
    yield f"\nComputed: {homes} homes of {records} records, one process for each"
    for name, figure, unit in (
        ("tables and indexes", need.disk_gb, "GB"),
        ("write-ahead log while they come in", need.wal_gb, "GB"),
        ("connections without requests", need.connections_idle, ""),
        ("connections with all processes busy", need.connections_busy, ""),
        ("memory of their backends", need.backends_gb, "GB"),
        ("memory of the processes", need.processes_gb, "GB"),
        ("vacuum of every page", need.vacuum_hours, "hours"),
        ("one more index of records", need.index_hours, "hours"),
    ):
        yield f"  {name:44}{figure:>10.1f} {unit}"
    yield f"\nWhat runs out first, with homes of {records} records on one machine"
    for place, one in enumerate(breaks(measured, records, COMMON), 1):
        yield f"  {place}. {one.what:44}{one.homes:>10} homes"
