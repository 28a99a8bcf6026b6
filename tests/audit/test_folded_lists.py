"""Listings of a folded log from its end: every sum once, also where one stands for reads around those of others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headgate.audit import activity as activities, report
from headgate.audit.activity import Activity, LogFilter, LogPage
from headgate.audit.report import read_event
from headgate.model.ids import ClientId
from headgate.model.instants import DAY_US
from headgate.store.ledger import Ledger
from tests.audit.test_folding import append, fold, read
from tests.store.ledgers import LedgerHome


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_a_sum_around_others_is_listed_backwards_once_and_after_them(
    ledgers: LedgerHome, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    """The first client reads first and last: its sum begins before those of the others and ends after them."""
    clients = ("outer", "inner", "inmost", "inner", "outer")
    reads = [read(number, f"r{number}", client=client) for number, client in enumerate(clients)]
    expected = ["inmost", "inner", "outer"]
    monkeypatch.setattr(report, "_AT_ONCE", at_once)
    # A page of one ends at its limit, the others where enough was looked through.
    monkeypatch.setattr(activities, "_MOST_SCANNED", 1)

    async def paged(activity: Activity) -> AsyncIterator[ClientId | None]:
        page = LogPage((), None)
        for _ in range(10):
            page = await activity.page(LogFilter(), before=page.before, limit=at_once)
            for one in page.reads:
                yield one.event.client_id
            if page.before is None:
                return

    async def work(ledger: Ledger) -> None:
        await append(ledger, ledgers.home, "j", *reads)
        await fold(ledger, ledgers.home, DAY_US)
        places = [None, *expected, "nothing"]
        async for one in report.newest_entries(ledger):
            assert read_event(one).client_id == places.pop(0)
        assert places == ["nothing"]
        assert [one async for one in paged(Activity(ledger, ledgers.home))] == expected

    ledgers.run(work)
