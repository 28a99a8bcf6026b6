"""The work of aggregates, counted in steps of SQLite: it depends on what is visible, not on what lies beside it."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, PagePlan, TimeGroups
from headgate.model.query import Count, ExactFilter, Granularity, Metric
from tests.store.engines import Driven, fresh
from tests.store.ledger import Ledger

_VISIBLE, _HIDDEN = 5, 2000
_NARROW = [{"since": "2027-01-01T00:00:00Z"}, {"resources": [f"v{n}" for n in range(_VISIBLE)]}]


def _steps(store: Driven, ask: Any) -> int:
    """Ask twice, and count what SQLite does the second time."""
    steps: list[int] = []
    database: Any = store.bare._readers._long._reader.database.db  # type: ignore[attr-defined]
    ask()
    database.trace_v2(
        apsw.SQLITE_TRACE_PROFILE,
        lambda event: steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
    )
    ask()
    database.trace_v2(0, None)
    return sum(steps)


def _asked(store: Driven, ledger: Ledger, narrow: dict[str, Any]) -> list[Any]:
    reach, label = ledger.reach(**narrow), FieldName("label")
    months = TimeGroups(FieldName("at"), Granularity.MONTH, "Europe/Berlin")
    return [
        lambda: store.aggregate(AggregatePlan(reach, Metric.SUM, FieldName("weight"))),
        lambda: store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=label)),
        lambda: store.aggregate(AggregatePlan(reach, Metric.SUM, FieldName("size"), group_by=months)),
        lambda: store.page(PagePlan(reach, 3, filters=(ExactFilter(label, "red"),), count=Count.EXACT)),
        lambda: store.page(PagePlan(reach, 3, with_extent=True)),
        lambda: store.summaries((reach,)),
    ]


@pytest.mark.parametrize("narrow", _NARROW)
def test_hidden_records_add_no_work(narrow: dict[str, Any]):
    visible = [
        {"id": f"v{n}", "at": "2027-02-01T00:00:00Z", "size": n, "weight": n / 4, "label": "red"}
        for n in range(_VISIBLE)
    ]
    hidden = [
        {"id": f"h{n}", "at": "2026-02-01T00:00:00Z", "size": n, "weight": n / 8, "label": "red"}
        for n in range(_HIDDEN)
    ]
    with fresh("sqlite") as alone, fresh("sqlite") as crowded:
        steps: list[list[int]] = []
        for store, rows in ((alone, visible), (crowded, [*hidden, *visible])):
            ledger = Ledger(store, connections=1)
            ledger.put(*rows)
            steps.append([_steps(store, ask) for ask in _asked(store, ledger, narrow)])
    assert steps[0] == steps[1]


def test_a_count_of_a_part_of_a_stream_is_remembered_until_something_changes():
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=1)
        ledger.put(*({"id": f"{n}", "at": f"2026-01-{1 + n % 28:02}"} for n in range(500)))
        reach = ledger.reach(since="2026-01-10T00:00:00Z")

        def count() -> int:
            return store.summaries((reach,))[0].record_count

        before = count()
        assert _steps(store, count) < before
        ledger.put({"id": "x", "at": "2026-01-20"})
        assert count() == before + 1
        ledger.remove("x")
        assert count() == before
