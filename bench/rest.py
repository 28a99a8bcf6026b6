"""REST: every endpoint over loopback, beside a bare ASGI echo on the same server and the bare store call.

One worker, keep-alive, a real token and a grant of six fields in ten. `HEADGATE_BENCH_RECORDS` says how many
records there are (default 100000).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import uvicorn
import uvloop

from bench.homes import settled
from bench.load import Figure, Server, Slice, better, by_turns, measure, times_the_cpu
from headgate.audit.journal import Journal
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from headgate.home import Home, open_home
from headgate.hosting import run_server
from headgate.model.ids import ClientId, ConnectorKey, FieldName, StreamName
from headgate.model.plan import PagePlan, Reach, RecordPlan
from headgate.model.rows import Batch
from headgate.policy.allowance import SourceCatalog
from headgate.settings import Settings, resolve
from headgate.store.engines.sqlite import SqliteLedger, SqliteStore
from headgate.web.server import listen

RECORDS = int(os.environ.get("HEADGATE_BENCH_RECORDS", "100000"))
WORDS = [f"word{n}" for n in range(400)]
TURNS = 3
SECONDS = 2.4
RATIO_TURNS = 9
RATIO_SECONDS = 0.6
SINGLE = "single record"
UNLOGGED = "single record, not logged"
ECHO = "bare ASGI echo"
STREAM = StreamName("messages")
GRANTED = tuple(map(FieldName, ("id", "sender", "subject", "sent_at", "size", "channel")))
HIDDEN = ("body", "note", "secret", "flag")


def declaration() -> dict[str, Any]:
    text = {"type": "string"}
    properties: dict[str, Any] = dict.fromkeys((*GRANTED, *HIDDEN), text)
    properties |= {"size": {"type": "integer"}, "sent_at": {"type": "string", "format": "date-time"}}
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://registry.example/connectors/bench"},
        "declaration_version": "1",
        "publisher": {"id": "https://registry.example"},
        "display": {"name": "Bench"},
        "streams": [
            {
                "name": STREAM,
                "semantics": "mutable_state",
                "schema": {"type": "object", "properties": properties, "required": ["id", "sent_at"]},
                "primary_key": ["id"],
                "cursor_field": "sent_at",
                "consent_time_field": "sent_at",
                "selection": {"fields": True, "resources": False},
                "query": {
                    "range_filters": {"sent_at": ["gte", "lt"]},
                    "search": {"lexical_fields": ["subject", "body"]},
                    "aggregations": {"count": True, "sum": ["size"], "group_by": ["channel"]},
                },
            }
        ],
    }


def line(dice: random.Random, number: int) -> bytes:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + number * 60))
    data = {name: " ".join(dice.choices(WORDS, k=3)) for name in HIDDEN}
    data |= {
        "id": f"m{number:07}",
        "sender": f"user{number % 500}@example.com",
        "subject": " ".join(dice.choices(WORDS, k=6)),
        "body": " ".join(dice.choices(WORDS, k=40)),
        "channel": f"channel{number % 20}",
        "sent_at": at,
    }
    return msgspec.json.encode({"key": data["id"], "data": data | {"size": number % 1000}, "emitted_at": at})


@dataclass(frozen=True, slots=True)
class Filled:
    """A home with records, and a token for it."""

    home: Home
    settings: Settings
    token: str
    connections: tuple[str, ...]
    records: int


async def fill(place: Path, records: int = RECORDS) -> Filled:
    settings = resolve(
        {
            "home": str(place / "home"),
            "port": "0",
            "rate_limit": "0",
            "log_level": "warning",
            "semantic_model": "off",
        },
        {},
        {},
        place,
    ).settings
    home = open_home(settings.home)
    store = SqliteStore(home, now)
    dice = random.Random(1)
    await store.declare(ConnectorKey("bench"), declaration())
    made = [await store.create_connection(ConnectorKey("bench"), name) for name in ("one", "two", "three")]
    for start in range(0, records, 2000):
        lines = [line(dice, number) for number in range(start, min(start + 2000, records))]
        await store.ingest(Batch(made[start // 2000 % 3].id, STREAM, lines, now()))
    ledger = SqliteLedger(home, store.writer)
    catalog = SourceCatalog(await store.declarations(), {one.id: one for one in await store.connections()})
    choice = Choice(fields=((STREAM, GRANTED),))
    issued = await issue(ledger, choice, Conditions(ClientId("bench")), catalog=catalog, now=now())
    await ledger.close()
    await settled(store)
    await store.close()
    return Filled(home, settings, issued.access_token, tuple(one.id for one in made), records)


async def echo(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"400")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * 400})


def serve_echo(ready: Any) -> None:
    """Serve the echo on uvicorn as it is, with nothing of ours."""
    taken = listen("127.0.0.1", 0)
    taken.listen(128)
    ready.put(f"http://127.0.0.1:{taken.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(echo, log_config=None, access_log=False, lifespan="off")).run(
        sockets=[taken]
    )


def serve_unlogged(settings: Settings, ready: Any) -> None:
    """Serve without writing disclosures: what is left out is what writing them costs."""
    Journal.write = lambda _self, _disclosure: None
    serve_home(settings, ready)


def serve_home(settings: Settings, ready: Any) -> None:
    run_server(settings, lambda address, _home, _link: ready.put(address))


def started(target: Callable[..., None], *arguments: Any) -> tuple[Any, int]:
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=target, args=(*arguments, ready), daemon=True)
    process.start()
    return process, int(ready.get(timeout=60).rpartition(":")[2])


def requests_for(filled: Filled) -> dict[str, list[bytes]]:
    dice = random.Random(2)

    def made(*paths: str) -> list[bytes]:
        return [
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {filled.token}\r\n\r\n".encode()
            for path in paths
        ]

    keys = [f"m{dice.randrange(filled.records):07}" for _ in range(500)]
    base = "/v1/streams/messages"
    return {
        SINGLE: made(*(f"{base}/records/{key}" for key in keys)),
        "page of 25, three connections": made(f"{base}/records"),
        "page of 25, one connection": made(f"{base}/records?connection_id={filled.connections[0]}"),
        "schema compact": made("/v1/schema?view=compact"),
        "streams": made("/v1/streams"),
        "count": made(f"{base}/aggregate?metric=count"),
        "group by channel": made(f"{base}/aggregate?metric=count&group_by=channel"),
        "list with count=exact": made(f"{base}/records?limit=1&count=exact"),
        "search, one word": made(*(f"/v1/search?q={word}" for word in WORDS[:50])),
        "field window": made(*(f"{base}/records/{key}/field-window?field=subject" for key in keys)),
    }


async def bare_store(filled: Filled) -> None:
    store = SqliteStore(filled.home, now)
    connections = tuple(one.id for one in await store.connections())
    reach = Reach(STREAM, connections, GRANTED)
    for name, call in (
        ("bare store: single record", lambda: store.record(RecordPlan(reach, "m0000777"))),  # pyright: ignore[reportArgumentType]
        ("bare store: page of 25", lambda: store.page(PagePlan(reach, 25))),
    ):
        took: list[float] = []
        for _ in range(2000):
            began = time.perf_counter()
            await call()
            took.append(time.perf_counter() - began)
        took.sort()
        print(f"{name:34} {median(took) * 1e3:8.3f} {took[1900] * 1e3:8.3f} {1 / median(took):9.0f}")
    await store.close()


async def compare(filled: Filled, servers: dict[str, Server]) -> None:
    asked = requests_for(filled)
    # The same record, logged and not, and the same requests to an echo: what is compared stands side by side.
    lines = [(UNLOGGED, "unlogged", asked[SINGLE]), (ECHO, "echo", asked[SINGLE])]
    lines += [(name, "home", requests) for name, requests in asked.items()]
    found: dict[str, Figure] = {}
    for _ in range(TURNS):
        for name, server, requests in lines:
            found[name] = better(found.get(name), await measure(servers[server], requests, SECONDS))
    print(f"\nREST, {RECORDS} records\n{'':34} {'p50 ms':>8} {'p95 ms':>8} {'req/s x8':>9} {'cpu us':>9}")
    await bare_store(filled)
    for name, figure in found.items():
        times = f"{figure.p50_ms:8.3f} {figure.p95_ms:8.3f} {figure.per_second_of_eight:9.0f}"
        print(f"{name:34} {times} {figure.cpu_us:9.0f}")
    sides = {name: (servers[server], requests) for name, server, requests in lines[:3]}
    verdicts(found, await by_turns(sides, RATIO_TURNS, RATIO_SECONDS), _resident_mb(servers["home"].pid))


def _resident_mb(pid: int) -> float:
    """Return how much memory a process holds."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def verdicts(found: dict[str, Figure], sides: dict[str, list[Slice]], resident_mb: float) -> None:
    """Say which of the promised figures hold in this run."""
    single, page = found[SINGLE], found["page of 25, three connections"]
    quick = max(found[name].p50_ms for name in ("schema compact", "streams", "count"))
    echoes = times_the_cpu(sides, SINGLE, ECHO)
    logging = times_the_cpu(sides, SINGLE, UNLOGGED)
    for name, value, limit, is_good in (
        ("single record, req/s", single.per_second_of_eight, 5000, single.per_second_of_eight >= 5000),
        ("single record, CPU of the echo's", echoes, 4, echoes <= 4),
        ("page of 25, req/s", page.per_second_of_eight, 2000, page.per_second_of_eight >= 2000),
        ("schema, streams, count: p50 ms", quick, 2, quick < 2),
        ("logging, CPU of the unlogged", logging, 1.15, logging <= 1.15),
        ("memory of the loaded server, MB", resident_mb, 180, resident_mb <= 180),
    ):
        print(f"{'PASS' if is_good else 'MISS'}  {name:34} {value:9.2f}  (limit {limit})")


def main() -> None:
    """Fill a home, serve it, and print the table."""
    with tempfile.TemporaryDirectory() as place:
        filled = uvloop.run(fill(Path(place)))
        echoing, echo_port = started(serve_echo)
        serving, home_port = started(serve_home, filled.settings)
        other, other_port = started(serve_unlogged, filled.settings)
        try:
            servers = {
                "echo": Server(echoing.pid, echo_port),
                "home": Server(serving.pid, home_port),
                "unlogged": Server(other.pid, other_port),
            }
            uvloop.run(compare(filled, servers))
        finally:
            for process in (echoing, serving, other):
                process.terminate()
                process.join()
