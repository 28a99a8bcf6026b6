"""Aggregates over one stream whose records are all visible, in both engines: 37 groups, a whole-stream grant, warm, medians.

`python -m bench aggregates --records 1000000` makes the home once and keeps it in .cache/bench. PostgreSQL is asked if it is
installed. Beside them: what `schema {}` counts for whole streams, and for a grant with a time limit.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from bench.database import copied, running
from bench.engines import change_number, opened_store
from bench.homes import CACHE, NOW, settled
from headgate.home import Home, open_home
from headgate.model.declaration import RangeOperator
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectorKey, FieldName, StreamName
from headgate.model.plan import AggregatePlan, PagePlan, Reach, TimeGroups
from headgate.model.query import Count, ExactFilter, Granularity, Metric, RangeFilter
from headgate.model.rows import Batch
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.engines.store import Store
from tests import postgres

_KEY = ConnectorKey("example.bank")
_PAYMENTS = StreamName("payments")
_FIELDS = ("id", "at", "amount", "shop", "note")
_GROUPS = 37
_ROUNDS = 7
_CHUNK = 5_000
#: The first payment, and how much later each is than the one before: ten years for a million.
_START_SECONDS, _STEP_SECONDS = 1_400_000_000, 315
#: Milliseconds for 100 000 and for 1 000 000 records; other numbers are held to a share of the larger.
_MOST = {"sqlite": {100_000: 40.0, 1_000_000: 400.0}, "postgres": {100_000: 40.0, 1_000_000: 800.0}}
_SCHEMA_MOST_MS, _BOUNDED_SCHEMA_MOST_MS = 20.0, 400.0
Ask = Callable[[Store], Awaitable[Any]]


def main(arguments: Sequence[str] = ()) -> None:
    """Make the homes that are missing and print their tables."""
    parser = argparse.ArgumentParser(prog="bench aggregates")
    parser.add_argument("--records", type=int, action="append")
    for records in parser.parse_args(arguments).records or [100_000]:
        directory = CACHE / f"aggregates-{records}"
        asyncio.run(_make(directory / "home", records))
        home = open_home(directory / "home")
        asyncio.run(_measure("sqlite", home, records))
        if postgres.programs():
            with running() as server:
                there = copied(server, home, change_number(home), f"aggregates_{records}")
                asyncio.run(_measure("postgres", there, records))


def _declaration() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "id": text,
        "at": {"type": "string", "format": "date-time"},
        "amount": {"type": "number"},
        "shop": text,
        "note": text,
    }
    stream = {
        "name": _PAYMENTS,
        "semantics": "append_only",
        "schema": {"type": "object", "properties": properties, "required": ["id"]},
        "primary_key": ["id"],
        "cursor_field": "at",
        "consent_time_field": "at",
        "selection": {"fields": True, "resources": False},
        "query": {
            "aggregations": {"count": True, "sum": ["amount"], "group_by": ["shop"], "group_by_time": ["at"]},
            "range_filters": {"amount": ["gte", "lt"]},
        },
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://registry.example/connectors/bank"},
        "declaration_version": "1",
        "publisher": {"id": "https://registry.example"},
        "display": {"name": "Bank"},
        "streams": [stream],
    }


async def _make(place: Any, records: int) -> None:
    if place.exists():
        return
    print(f"making a home with {records} payments in {place} (once)")
    partial = place.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    store = SqliteStore(open_home(partial), lambda: NOW)
    await store.declare(_KEY, _declaration())
    connection = await store.create_connection(_KEY, "Account")
    for first in range(0, records, _CHUNK):
        lines = [_line(number) for number in range(first, min(first + _CHUNK, records))]
        await store.ingest(Batch(connection.id, _PAYMENTS, lines, NOW))
    await settled(store)
    await store.close()
    partial.rename(place)


def _line(number: int) -> bytes:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_START_SECONDS + number * _STEP_SECONDS))
    cents = number * 7919 % 100_000
    return msgspec.json.encode(
        {
            "data": {
                "id": f"p{number:08}",
                "at": at,
                "amount": cents / 100,
                "shop": f"shop {number * 31 % _GROUPS}",
                "note": f"payment {number} at the counter",
            }
        }
    )


async def _asks(store: Store, records: int) -> Mapping[str, tuple[Ask, float | None]]:
    (connection,) = await store.connections()
    reach = Reach(_PAYMENTS, (connection.id,), tuple(map(FieldName, _FIELDS)))
    amount, shop = FieldName("amount"), FieldName("shop")
    months = TimeGroups(FieldName("at"), Granularity.MONTH, "Europe/Berlin")
    since = (_START_SECONDS + records * _STEP_SECONDS // 10) * 1_000_000
    bounded = msgspec.structs.replace(reach, time=TimeConstraint(FieldName("at"), since))

    def of(plan: AggregatePlan) -> Ask:
        return lambda store: store.aggregate(plan)

    async def bounded_schema(store: Store) -> Any:
        # Another bound each time: what was counted before is remembered.
        nonlocal since
        since += 1
        return await store.summaries(
            (msgspec.structs.replace(reach, time=TimeConstraint(FieldName("at"), since)),)
        )

    return {
        "count with a filter": (
            of(AggregatePlan(reach, Metric.COUNT, filters=(RangeFilter(amount, RangeOperator.GTE, 500),))),
            None,
        ),
        "sum": (of(AggregatePlan(reach, Metric.SUM, amount)), None),
        "groups": (of(AggregatePlan(reach, Metric.COUNT, group_by=shop)), None),
        "groups by time": (of(AggregatePlan(reach, Metric.COUNT, group_by=months, limit=100)), None),
        "sum by group": (of(AggregatePlan(reach, Metric.SUM, amount, group_by=shop)), None),
        "page with a filter": (
            lambda store: store.page(
                PagePlan(reach, 25, filters=(ExactFilter(shop, "shop 3"),), count=Count.EXACT)
            ),
            None,
        ),
        "schema, whole streams": (lambda store: store.summaries((reach,)), _SCHEMA_MOST_MS),
        "schema, a time limit": (bounded_schema, _BOUNDED_SCHEMA_MOST_MS),
        "schema, remembered": (lambda store: store.summaries((bounded,)), _SCHEMA_MOST_MS),
    }


async def _measure(engine: str, home: Home, records: int) -> None:
    most = _MOST[engine].get(records, _MOST[engine][1_000_000] * records / 1_000_000)
    print(f"\nAggregates, {engine}, {records} visible records\n{'':28} {'ms':>9} {'limit':>9}")
    async with opened_store(home) as store:
        for name, (ask, limit) in (await _asks(store, records)).items():
            figure, allowed = await _timed(store, ask), most if limit is None else limit
            print(f"{name:28} {figure:9.2f} {allowed:9.0f}  {'PASS' if figure <= allowed else 'MISS'}")


async def _timed(store: Store, ask: Ask) -> float:
    await ask(store)
    spent: list[float] = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        await ask(store)
        spent.append((time.perf_counter() - start) * 1e3)
    return median(spent)
