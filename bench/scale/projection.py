"""Compute what many homes need from what was measured, and what runs out first. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MB = 1e6
_GB = 1e9
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on this machine."""

    #: Bytes of each record in tables and in indexes, and of write-ahead log when it came in.
    table_bytes: float
    index_bytes: float
    wal_bytes: float
    #: Connections of a process that serves one home: without requests, and with requests of every kind at once.
    connections_idle: int
    connections_busy: int
    backend_mb: float
    headgate_mb: float
    #: For each million of records.
    vacuum_seconds: float
    index_seconds: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine that runs the database, or processes, has."""

    memory_gb: float
    disk_gb: float
    connections: int


#: A common server, with the connections that PostgreSQL allows by default, three of them for its owner.
COMMON = Machine(memory_gb=64, disk_gb=2000, connections=97)


@dataclass(frozen=True, slots=True)
class Needed:
    """What so many homes need, when one process serves each of them."""

    homes: int
    records: int
    disk_gb: float
    wal_gb: float
    connections_idle: int
    connections_busy: int
    backends_gb: float
    processes_gb: float
    vacuum_hours: float
    index_hours: float


def needed(measured: Measured, homes: int, records: int) -> Needed:
    """Compute what homes with so many records each need."""
    total = homes * records
    busy = homes * measured.connections_busy
    return Needed(
        homes=homes,
        records=total,
        disk_gb=total * (measured.table_bytes + measured.index_bytes) / _GB,
        wal_gb=total * measured.wal_bytes / _GB,
        connections_idle=homes * measured.connections_idle,
        connections_busy=busy,
        backends_gb=busy * measured.backend_mb * _MB / _GB,
        processes_gb=homes * measured.headgate_mb * _MB / _GB,
        vacuum_hours=total * measured.vacuum_seconds / 1e6 / _HOUR,
        index_hours=total * measured.index_seconds / 1e6 / _HOUR,
    )


@dataclass(frozen=True, slots=True)
class Break:
    """What runs out, and with how many homes."""

    what: str
    homes: int


def breaks(measured: Measured, records: int, machine: Machine = COMMON) -> Sequence[Break]:
    """Say how many homes of so many records fit until something runs out on one machine; the first comes first."""
    most: Mapping[str, float] = {
        f"{machine.connections} connections, all processes busy": machine.connections
        / measured.connections_busy,
        f"{machine.connections} connections, no requests": machine.connections / measured.connections_idle,
        f"{machine.memory_gb:g} GB of memory for processes": machine.memory_gb
        * _GB
        / (measured.headgate_mb * _MB),
        f"{machine.memory_gb:g} GB of memory for backends": machine.memory_gb
        * _GB
        / (measured.connections_busy * measured.backend_mb * _MB),
        f"{machine.disk_gb:g} GB of disk": machine.disk_gb
        * _GB
        / (records * (measured.table_bytes + measured.index_bytes)),
    }
    return [Break(what, int(homes)) for what, homes in sorted(most.items(), key=lambda item: item[1])]
