"""Search by meaning and by both over a million passages, beside a bare numpy scan of the same vectors.

`HEADGATE_BENCH_PASSAGES` says how many passages (1 000 000 by default) over 20 connections, ten of each record. Their
vectors are those of a few hundred texts of the default model with noise: to make a million takes hours. Times are
medians of processor time in milliseconds, of one core.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from headgate.home import open_home
from headgate.model.ids import ConnectorKey, FieldName, StreamName
from headgate.model.plan import Reach, SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchMode
from headgate.model.rows import Batch
from headgate.store.changes.vector_making import model_key
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.format.vectors import inverse_lengths, plain_products, quantised
from headgate.store.models.model import MeaningModel
from headgate.store.models.multilingual import MultilingualEmbedder
from headgate.store.sql.vector_blocks import NO_TIME, PART_SHIFT, VectorBlock, _insert, fids_key
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import SQL, open_writer

_NOW = 1_790_000_000_000_000
_CONNECTIONS = 20
_PASSAGES = 10
_TURNS = 15
_WORDS = [
    "bill",
    "roof",
    "doctor",
    "train",
    "soup",
    "garden",
    "letter",
    "rent",
    "tax",
    "concert",
    "bridge",
    "school",
    "boat",
    "winter",
    "paint",
    "key",
]
_LIMITS = {SearchMode.SEMANTIC: 60.0, SearchMode.HYBRID: 80.0}
_DECLARED: dict[str, Any] = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://registry.example/connectors/notes"},
    "declaration_version": "1",
    "publisher": {"id": "https://registry.example"},
    "display": {"name": "Notes"},
    "streams": [
        {
            "name": "notes",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": False},
            "query": {"search": {"lexical_fields": ["text"]}},
        }
    ],
}


def _text(dice: random.Random) -> str:
    return " ".join(dice.choices(_WORDS, k=12))


async def _fill(store: SqliteStore, records: int) -> None:
    dice = random.Random(7)
    await store.declare(ConnectorKey("notes"), _DECLARED)
    for number in range(_CONNECTIONS):
        made = await store.create_connection(ConnectorKey("notes"), f"Notes {number}")
        lines = [
            json.dumps({"data": {"id": f"{place:07}", "text": f"{_text(dice)} {place}"}}).encode()
            for place in range(records // _CONNECTIONS)
        ]
        for start in range(0, len(lines), 5000):
            await store.ingest(Batch(made.id, StreamName("notes"), lines[start : start + 5000], _NOW))


def _put_vectors(home: Path, model: MeaningModel, records: int) -> None:
    """Write blocks as the background thread would."""
    dice, noise = random.Random(8), np.random.default_rng(9)
    kinds = model.vectors([_text(dice) for _ in range(300)]).astype(np.float32)
    kinds /= np.linalg.norm(kinds, axis=1, keepdims=True)
    each = records // _CONNECTIONS
    database = open_writer(home / FILE)
    with database.writing():
        for sid, stid in database.all("SELECT sid, stid FROM shelf"):
            fid = database.value("SELECT fid FROM field WHERE stid=? AND name='text'", (stid,))
            numbers = np.repeat(np.arange(1, each + 1, dtype="<u4"), _PASSAGES)
            parts = numbers >> PART_SHIFT
            for part in np.unique(parts):
                own = numbers[parts == part]
                vectors = kinds[noise.integers(0, len(kinds), len(own))]
                vectors = vectors + noise.normal(scale=0.05, size=vectors.shape).astype(np.float32)
                starts = np.tile(np.arange(_PASSAGES, dtype="<u4"), len(own) // _PASSAGES)
                times = np.full(len(own), NO_TIME, "<i8")
                block = VectorBlock(own, times, starts, starts + 20, quantised(vectors))
                _insert(database, (sid, fid, int(part)), block)
            key = model_key(model.embedder.identity)
            database.run(SQL["set_vector_shelf"], (sid, key, fids_key([fid]), each))
    database.db.close()


async def _measure(store: SqliteStore) -> None:
    ids = tuple(one.id for one in await store.connections())
    text = (FieldName("text"),)
    reach = SearchReach(Reach(StreamName("notes"), ids, text), text, meaning_fields=text)
    queries = itertools.cycle(
        ["what did the doctor say", "rent bill", "boat in winter", "school concert letter"]
    )
    for mode in (SearchMode.LEXICAL, *_LIMITS):
        taken: list[float] = []
        for turn in range(_TURNS + 4):
            plan = SearchPlan((reach,), parse_terms(next(queries)), 25, mode=mode)
            began = time.process_time()
            page = await store.search(plan)
            if turn >= 4:
                taken.append((time.process_time() - began) * 1000)
        limit = _LIMITS.get(mode)
        print(f"{mode:<10} {median(taken):8.1f} ms   limit {limit or '-'}   ranked {page.ranked_count}")


def _bare(passages: int) -> None:
    vectors = np.random.default_rng(1).integers(-127, 128, (passages, 256), np.int8)
    inverse = inverse_lengths(vectors)
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        for start in range(0, passages, 65_536):
            part = slice(start, start + 65_536)
            found = plain_products(vectors[0], vectors[part]) * inverse[part]
            np.argpartition(found, -25)[-25:]
        taken.append((time.process_time() - began) * 1000)
    print(f"{'bare numpy':<10} {median(taken):8.1f} ms")


def main(_arguments: object = ()) -> None:
    """Build a home, and measure every mode."""
    passages = int(os.environ.get("HEADGATE_BENCH_PASSAGES", "1000000"))
    model = MeaningModel(MultilingualEmbedder)
    with tempfile.TemporaryDirectory(prefix="headgate-semantic-") as directory:
        home = Path(directory) / "home"

        async def fill() -> None:
            store = SqliteStore(open_home(home), lambda: _NOW)
            await _fill(store, passages // _PASSAGES)
            await store.close()

        async def measure() -> None:
            store = SqliteStore(open_home(home), lambda: _NOW, model)
            await _measure(store)
            await store.close()

        asyncio.run(fill())
        _put_vectors(home, model, passages // _PASSAGES)
        print(f"{passages} passages of {passages // _PASSAGES} records over {_CONNECTIONS} connections")
        asyncio.run(measure())
    _bare(passages)
