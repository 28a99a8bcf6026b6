from __future__ import annotations

from dataclasses import replace

from bench.scale.projection import Machine, Measured, breaks, needed
from bench.scale.report import computed
from bench.scale.served import logged_statements

MEASURED = Measured(
    table_bytes=2000,
    index_bytes=500,
    wal_bytes=3000,
    connections_idle=4,
    connections_busy=10,
    backend_mb=5,
    headgate_mb=100,
    vacuum_seconds=36,
    index_seconds=18,
)
MACHINE = Machine(memory_gb=64, disk_gb=1000, connections=97)


def test_a_thousand_homes_need_a_thousand_times_what_one_needs():
    need = needed(MEASURED, 1000, 100_000)
    assert need.records == 100_000_000
    assert (need.disk_gb, need.wal_gb) == (250, 300)
    assert (need.connections_idle, need.connections_busy) == (4000, 10_000)
    assert (need.backends_gb, need.processes_gb) == (50, 100)
    assert (need.vacuum_hours, need.index_hours) == (1, 0.5)


def test_connections_run_out_first_with_the_defaults_of_the_server():
    found = breaks(MEASURED, 100_000, MACHINE)
    assert [one.homes for one in found] == [9, 24, 640, 1280, 4000]
    assert "connections" in found[0].what
    assert "memory for processes" in found[2].what
    assert "memory for backends" in found[3].what
    assert "disk" in found[4].what


def test_with_connections_enough_memory_runs_out_first_and_with_large_homes_the_disk():
    many = replace(MACHINE, connections=100_000)
    assert "memory for processes" in breaks(MEASURED, 100_000, many)[0].what
    assert "disk" in breaks(MEASURED, 10_000_000, many)[0].what


def test_the_computed_part_names_every_need_and_every_limit():
    text = "\n".join(computed(MEASURED, 1000, 100_000))
    assert "1000 homes of 100000 records" in text
    assert "10000.0" in text
    assert "1. 97 connections" in text
    assert "5. 2000 GB of disk" in text


def test_a_message_with_several_statements_is_one_round_trip():
    log = (
        b"2026-01-01 [7] LOG:  statement: BEGIN; SET LOCAL statement_timeout=1;\n\tSELECT 1\n"
        b"2026-01-01 [7] LOG:  execute _pg3_0: SELECT $1\n2026-01-01 [7] DETAIL:  parameters: $1 = '1'\n"
        b"2026-01-01 [7] LOG:  checkpoint starting: time\n"
    )
    assert logged_statements(log) == 2
