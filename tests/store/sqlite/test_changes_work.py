"""The work of changes in the event loop, counted in steps of SQLite and not timed."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from headgate.model.plan import ChangesPlan
from headgate.store.queries import changes
from tests.store.engines import fresh
from tests.store.ledger import Ledger

_RECORDS = 3000


@pytest.mark.parametrize("narrow", [{"since": "2027-01-01T00:00:00Z"}, {"resources": ["n2999"]}])
def test_the_event_loop_does_not_walk_a_stream_of_which_little_is_visible(
    monkeypatch: pytest.MonkeyPatch, narrow: dict[str, Any]
):
    monkeypatch.setattr(changes, "_LOOP_WORK", 100)
    steps: list[int] = []

    def note(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=1)
        ledger.put(*({"id": f"n{n:04}", "at": "2026-01-01T00:00:00Z"} for n in range(_RECORDS)))
        in_loop: Any = store.bare._readers._loop_reader.database.db  # type: ignore[attr-defined]
        in_loop.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        page = store.changes(ChangesPlan(ledger.reach(**narrow), 100, 0))
    assert (len(page.entries), page.next) == (len(narrow.get("resources", ())), None)
    assert sum(steps) < _RECORDS
