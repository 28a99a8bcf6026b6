"""Decisions are remembered for an access until the catalog changes; an epoch tells when to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.audit.budget import DailyBudgets, FileCounter
from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.home import Home, open_home
from headgate.model.grant import Access
from headgate.model.ids import ConnectorKey
from headgate.policy.capability import Rules
from headgate.reading.home import ReadableHome
from headgate.store.engines.sqlite import SqliteStore
from tests.policy.worlds import MAIL, client, grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio


class CountedStore(SqliteStore):
    """A store that counts how often the catalog's version is read."""

    looks = 0

    async def catalog_version(self) -> int:
        self.looks += 1
        return await super().catalog_version()


class Unwritten:
    def write(self, disclosure: object) -> None:
        raise AssertionError(disclosure)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountedStore]:
    store = CountedStore(open_home(tmp_path / "home"), lambda: 1)
    await store.declare(MAIL, declaration())
    yield store
    await store.close()


async def nothing_logged(_grant: str, _day: int) -> int:
    return 0


def services_of(store: SqliteStore) -> ReadableHome:
    sealer = RingSealer(KeyRing(SealKey(bytes(KEY_BYTES))))
    budgets = DailyBudgets(FileCounter(Home(Path("none")), nothing_logged), clock=lambda: 1)
    return ReadableHome(
        store, sealer=sealer, discloser=Unwritten(), budgets=budgets, clock=lambda: 1, rules=Rules()
    )


async def access_of(store: SqliteStore, epoch: int | None, *fields: str) -> Access:
    connection = (await store.create_connection(MAIL, "Home")).id
    granted = stream_grant("messages", *(fields or ("id", "subject")), connections=(connection,))
    return replace(client(grant(granted)), epoch=epoch)


async def test_the_catalog_is_not_looked_at_again_in_the_same_epoch(store: CountedStore):
    services, access = services_of(store), await access_of(store, 1)
    first = await services.decisions(access)
    assert await services.decisions(replace(access)) is first
    assert store.looks == 1


async def test_a_new_epoch_has_the_catalog_looked_at_and_keeps_decisions_if_it_is_the_same(
    store: CountedStore,
):
    services, access = services_of(store), await access_of(store, 1)
    first = await services.decisions(access)
    assert await services.decisions(replace(access, epoch=2)) is first
    assert store.looks == 2


async def test_a_new_epoch_after_a_change_of_the_catalog_decides_anew(store: CountedStore):
    services, access = services_of(store), await access_of(store, 1)
    assert (await services.decisions(access)).allowance.scopes
    await store.delete_connection((await store.connections())[0].id)
    assert not (await services.decisions(replace(access, epoch=2))).allowance.scopes


async def test_an_access_without_an_epoch_has_the_catalog_looked_at_every_time(store: CountedStore):
    services, access = services_of(store), await access_of(store, None)
    await services.decisions(access)
    await store.create_connection(MAIL, "Work")
    await services.decisions(access)
    assert store.looks == 2


async def test_another_access_with_the_same_grant_ids_gets_its_own_decisions(store: CountedStore):
    services = services_of(store)
    asked = [await access_of(store, 1), await access_of(store, 1, "id")]
    found = [await services.decisions(access) for access in asked]
    assert [len(one.allowance.scopes[0].capability.fields) for one in found] == [2, 1]


async def test_a_request_that_began_before_a_change_leaves_nothing_stale_behind(store: CountedStore):
    """It reads the catalog while another request, which began after the change, has read it already."""
    services, access = services_of(store), await access_of(store, 1)
    await services.decisions(access)
    began, go_on = asyncio.Event(), asyncio.Event()
    connections = store.connections

    async def slow_connections():
        found = await connections()
        began.set()
        await go_on.wait()
        return found

    await store.declare(ConnectorKey("other"), other_source())
    store.connections = slow_connections  # type: ignore[method-assign]
    early = asyncio.create_task(services.decisions(replace(access, epoch=2)))
    async with asyncio.timeout(5):
        await began.wait()
    store.connections = connections  # type: ignore[method-assign]
    await store.delete_connection((await store.connections())[0].id)
    assert not (await services.decisions(replace(access, epoch=3))).allowance.scopes
    go_on.set()
    await early
    assert not (await services.decisions(replace(access, epoch=3))).allowance.scopes


def other_source() -> dict[str, object]:
    document = declaration()
    return document | {"source": document["source"] | {"id": "https://registry.example/connectors/other"}}
