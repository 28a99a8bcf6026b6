"""A long log is checked, searched and exported beside the event loop, a piece at a time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from headgate.audit import activity, chain
from headgate.audit.activity import Activity
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.store.ledger import ledger
from headgate.store.ledger.ledger import Ledger
from tests.audit.chains import KEY, fill
from tests.store.ledgers import LedgerHome

_ENTRIES = 50
#: What a long log makes long: reading blocks, checking seals, decoding events, writing documents.
_WORK = ((ledger, "_block"), (chain, "has_its_seal"), (activity, "parts_of"), (activity, "entry_document"))


def _lines(documents: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in documents)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, threading.Thread]]:
    """Note in which threads the work is done."""
    found: set[tuple[str, threading.Thread]] = set()

    def noting(done: Callable[..., Any], *values: Any) -> Any:
        found.add((done.__name__, threading.current_thread()))
        return done(*values)

    for module, name in _WORK:
        monkeypatch.setattr(module, name, partial(noting, getattr(module, name)))
    return found


def test_the_event_loop_neither_reads_nor_checks_nor_writes_the_log(
    ledgers: LedgerHome, threads: set[tuple[str, threading.Thread]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(activity, "_AT_ONCE", 7)
    monkeypatch.setattr(chain, "_BLOCKS_AT_ONCE", 2)

    async def work(ledger: Ledger) -> None:
        await fill(ledger, ledgers.home, _ENTRIES, together=5)
        threads.clear()
        notes = chain.NotedChain(KEY, chain.read_head(ledgers.home))
        log = Activity(ledger, ledgers.home)
        assert (await chain.verify(ledger, notes)).count == _ENTRIES
        # The fixture's reads are the owner's, which the list leaves out; they are looked through all the same.
        await log.who_read(RecordId("r7"), StreamName("s"), ConnectionId("c"), limit=5)
        pieces = [piece async for piece in log.export(_lines)]
        numbers = [json.loads(line)["seq"] for piece in pieces for line in piece.splitlines()]
        assert numbers == list(range(1, _ENTRIES + 1))
        # Never more in memory than a piece.
        assert max(piece.count(b"\n") for piece in pieces) == activity._AT_ONCE

    ledgers.run(work)
    assert {name for name, _ in threads} == {name for _, name in _WORK}
    assert threading.main_thread() not in {thread for _, thread in threads}
