"""Search by words over a home of the store's bench, beside bare SQLite FTS5 on the same texts in the same run.

`HEADGATE_BENCH_RECORDS` says how many records (50 000 by default; the limits are for 1 000 000) over 20 connections;
six searched fields in ten are granted. Times are medians of processor time in milliseconds, snippets of 25 hits
included. `--without-bare` leaves out the bare table, which takes minutes to fill with a million texts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import apsw
import msgspec

from bench.homes import CACHE, build_home, read_built
from bench.records import Household
from headgate.errors import QueryTimeout
from headgate.home import open_home
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.plan import Reach, SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchSort
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.sqlite import FILE

_NOW = 1_790_000_000_000_000
_TURNS = 25
#: The streams, their time field and the granted ones of their searched fields.
_GRANTED = {
    "messages": ("sent_at", ("subject", "text")),
    "transactions": ("posted_at", ("description",)),
    "events": ("start_at", ("title", "description")),
    "files": ("modified_at", ("content",)),
    "activities": ("played_at", ("title",)),
}


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    figure: float
    bare: float | None
    limit: float | None
    matches: int | None


def main(arguments: Sequence[str] = ()) -> None:
    """Make the home if it is missing, and print the table."""
    records = int(os.environ.get("HEADGATE_BENCH_RECORDS", "50000"))
    asyncio.run(_bench(records, with_bare="--without-bare" not in arguments))


async def _bench(records: int, *, with_bare: bool) -> None:
    directory = CACHE / f"store-{records}"
    built = read_built(directory) or await build_home(directory, records)
    store = SqliteStore(open_home(directory / "home"), lambda: _NOW)
    while not store.is_settled:  # noqa: ASYNC110 - nothing tells when
        await asyncio.sleep(0.1)
    try:
        ids = tuple(connection.id for connection in await store.connections())
        bare = _full_text(str(directory / "home" / FILE)) if with_bare else None
        lines = await _measure(store, ids, bare)
    finally:
        await store.close()
    print(
        f"\nSearch, {built.records} records over {len(ids)} connections; disk {built.file_bytes / built.json_bytes:.2f} "
        f"times the JSON, ingest {built.last_rate:.0f} records a second"
    )
    print(f"{'':44} {'ms':>8} {'bare FTS5':>10} {'matches':>8} {'limit':>6}")
    for line in lines:
        bare_ms = "" if line.bare is None else f"{line.bare:.2f}"
        print(f"{line.name:44} {line.figure:8.2f} {bare_ms:>10} {line.matches!s:>8} {line.limit or '':>6}")


def _full_text(path: str) -> apsw.Connection:
    """Put the granted texts of all records into a bare full-text table in memory."""
    source, bare = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY), apsw.Connection(":memory:")
    bare.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='', tokenize='porter unicode61')")
    granted = {field for _, fields in _GRANTED.values() for field in fields}
    with bare:
        for rid, body in source.execute("SELECT rid, body FROM record WHERE deleted=0"):
            values = msgspec.json.decode(body, type=dict[str, object])
            text = " ".join(str(values[name]) for name in granted if isinstance(values.get(name), str))
            bare.execute("INSERT INTO f(rowid, text) VALUES(?, ?)", (rid, text))
    source.close()
    return bare


async def _measure(
    store: SqliteStore, ids: tuple[ConnectionId, ...], bare: apsw.Connection | None
) -> list[_Line]:
    words = Household().words
    tenth = words[60]
    asked = (
        ("a rare word", words[30_000], 2.0),
        (f"a frequent word ({tenth})", tenth, 10.0),
        ("five frequent words", " ".join(words[70:95:5]), 25.0),
        ("a beginning", f"{words[30_000][:4]}*", None),
        ("a phrase of two words", f'"{words[60]} {words[61]}"', None),
        ("a word with a typing error", f"{words[3000][1]}{words[3000][0]}{words[3000][2:]}", None),
        ("a question", f"when did we have the {words[90]} of the {words[100]}", None),
        ("a word that is nowhere", "qqqqqqqq", None),
    )
    lines = [await _line(store, _plan(ids, q), name, limit, _bare_ms(bare, q)) for name, q, limit in asked]
    newest = msgspec.structs.replace(_plan(ids, tenth), sort=SearchSort.TIME)
    lines.append(await _line(store, newest, "a frequent word, newest first", None, None))
    since = 1_750_000_000_000_000
    first = time.process_time()
    await _until_answered(store, _plan(ids, tenth, since))
    lines.append(
        _Line(
            "the first search of a grant with a time limit",
            (time.process_time() - first) * 1e3,
            None,
            None,
            None,
        )
    )
    lines.append(await _line(store, _plan(ids, tenth, since), "and the next", None, None))
    return lines


async def _until_answered(store: SqliteStore, plan: SearchPlan) -> None:
    """Search again where a search took too long: what it has read of the index is remembered."""
    while True:
        try:
            await store.search(plan)
        except QueryTimeout:
            continue
        return


def _plan(ids: tuple[ConnectionId, ...], q: str, since: int | None = None) -> SearchPlan:
    reaches = tuple(
        SearchReach(
            Reach(
                StreamName(stream),
                ids,
                (FieldName("id"), FieldName(fields[0])),
                None if since is None else TimeConstraint(FieldName(time_field), since),
            ),
            tuple(map(FieldName, fields)),
        )
        for stream, (time_field, fields) in _GRANTED.items()
    )
    return SearchPlan(reaches, parse_terms(q), 25, preview_chars=200)


async def _line(
    store: SqliteStore, plan: SearchPlan, name: str, limit: float | None, bare: float | None
) -> _Line:
    spent: list[float] = []
    count: int | None = None
    for _ in range(_TURNS):
        start = time.process_time()
        page = await store.search(plan)
        spent.append((time.process_time() - start) * 1e3)
        count = page.count
    return _Line(name, median(spent), bare, limit, count)


def _bare_ms(bare: apsw.Connection | None, q: str) -> float | None:
    """Time the same words in the bare table, ranked by its bm25; a question is asked by any of its words."""
    if bare is None:
        return None
    plain = q.replace('"', "")
    match = f'"{plain}"' if '"' in q else " OR ".join(q.split()) if q.startswith("when") else q
    spent: list[float] = []
    for _ in range(_TURNS):
        start = time.process_time()
        bare.execute("SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT 25", (match,)).fetchall()
        spent.append((time.process_time() - start) * 1e3)
    return median(spent)
