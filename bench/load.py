"""Ask a server over loopback, and read what it took: times at the client, processor time at the server."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

#: After this what a request leaves to be done later is done; it belongs to what the request took.
SETTLED_SECONDS = 1.4
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Figure:
    """What one kind of request took, with one and with eight at a time."""

    p50_ms: float
    p95_ms: float
    per_second: float
    #: The same with eight at a time; times under load, and the server's processor time for each request.
    p50_of_eight_ms: float
    p95_of_eight_ms: float
    per_second_of_eight: float
    cpu_us: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is measured."""

    pid: int
    port: int


async def measure(server: Server, requests: list[bytes], seconds: float) -> Figure:
    """Measure one kind of request; half of the time with one at a time."""
    await load(server.port, requests, lanes=8, seconds=0.05)
    alone, alone_rate, size = await load(server.port, requests, lanes=1, seconds=seconds / 2)
    await asyncio.sleep(SETTLED_SECONDS)
    before = cpu_seconds(server.pid)
    together, rate, _ = await load(server.port, requests, lanes=8, seconds=seconds / 2)
    await asyncio.sleep(SETTLED_SECONDS)
    cpu = (cpu_seconds(server.pid) - before) / len(together) * 1e6
    one, eight = quantiles(alone, n=20), quantiles(together, n=20)
    return Figure(one[9] * 1e3, one[18] * 1e3, alone_rate, eight[9] * 1e3, eight[18] * 1e3, rate, cpu, size)


@dataclass(frozen=True, slots=True)
class Slice:
    """A short time with eight at a time: the server's processor time for each request, and how many a second."""

    cpu_us: float
    per_second: float


async def by_turns(
    asked: Mapping[str, tuple[Server, list[bytes]]], turns: int, seconds: float
) -> dict[str, list[Slice]]:
    """Measure what is compared in short slices one after the other, again and again.

    A shared host is slow for a while and quick again; what stands side by side in a turn met the same host, so
    that the ratios of a turn can be trusted, and their median still more.
    """
    found: dict[str, list[Slice]] = {name: [] for name in asked}
    for server, requests in asked.values():
        await load(server.port, requests, lanes=8, seconds=0.2)
    await asyncio.sleep(SETTLED_SECONDS)
    for _ in range(turns):
        for name, (server, requests) in asked.items():
            before = cpu_seconds(server.pid)
            took, rate, _ = await load(server.port, requests, lanes=8, seconds=seconds)
            await asyncio.sleep(SETTLED_SECONDS)
            found[name].append(Slice((cpu_seconds(server.pid) - before) / len(took) * 1e6, rate))
    return found


def times_the_cpu(found: Mapping[str, list[Slice]], one: str, other: str) -> float:
    """Say how many times the processor time of another thing one took, in the median turn."""
    return median(a.cpu_us / b.cpu_us for a, b in zip(found[one], found[other], strict=True))


def better(one: Figure | None, other: Figure) -> Figure:
    """Keep the best of two turns: what a shared host takes away is not ours to count."""
    if one is None:
        return other
    return Figure(
        min(one.p50_ms, other.p50_ms),
        min(one.p95_ms, other.p95_ms),
        max(one.per_second, other.per_second),
        min(one.p50_of_eight_ms, other.p50_of_eight_ms),
        min(one.p95_of_eight_ms, other.p95_of_eight_ms),
        max(one.per_second_of_eight, other.per_second_of_eight),
        min(one.cpu_us, other.cpu_us),
        other.size_bytes,
    )


async def load(
    port: int, requests: list[bytes], *, lanes: int, seconds: float, spins: bool = True
) -> tuple[list[float], float, int]:
    """Ask in several lanes for some time.

    Gives how long each answer took, how many there were a second, and the size of the last. A client that does not
    spin leaves its processor to others while it waits.
    """
    took: list[float] = []
    end = time.perf_counter() + seconds
    size = 0

    async def lane(number: int) -> None:
        nonlocal size
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = number
        while time.perf_counter() < end:
            started = time.perf_counter()
            size = await ask(reader, writer, requests[at % len(requests)])
            took.append(time.perf_counter() - started)
            at += lanes
        writer.close()

    began = time.perf_counter()
    spinning = asyncio.create_task(_spin() if spins else asyncio.sleep(0))
    await asyncio.gather(*(lane(number) for number in range(lanes)))
    spinning.cancel()
    return took, len(took) / (time.perf_counter() - began), size


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Send one request and read its answer; gives the size of its body."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    found = _LENGTH.search(head)
    body = await reader.readexactly(int(found[1]) if found else 0)
    if not head.startswith(b"HTTP/1.1 200") or b'"isError":true' in body:
        raise SystemExit(f"bench: {head[:100]!r} {body[:300]!r}")
    return len(body)


async def _spin() -> None:
    """Keep the client awake.

    A client that sleeps is woken by the server's own write, and on a virtual machine waking another core takes
    longer than the write itself. A slow server would pay for that with every answer, and a quick one never.
    """
    while True:  # noqa: ASYNC110 - there is nothing to wait for
        await asyncio.sleep(0)


def cpu_seconds(pid: int) -> float:
    """Give the processor time of a process and all its threads, finer than in clock ticks."""
    return sum(map(_nanoseconds, Path(f"/proc/{pid}/task").glob("*"))) / 1e9


def _nanoseconds(task: Path) -> int:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return 0


def tree_cpu_seconds(root: int) -> float:
    """Give the processor time of a process and of all that descend from it and still run."""
    return sum(cpu_seconds(pid) for pid in family(root))


def family(root: int) -> set[int]:
    """Give a process and all that descend from it."""
    parents = dict(filter(None, map(_parent, Path("/proc").glob("[0-9]*"))))
    found: set[int] = set()
    new = {root}
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in new}
    return found


def _parent(process: Path) -> tuple[int, int] | None:
    try:
        # The name is in brackets, and may hold anything.
        return int(process.name), int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
