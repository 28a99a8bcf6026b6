"""The demonstration's home: an invented person's records, one client, and a week in which it read some of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, issue
from headgate.errors import HeadgateError
from headgate.model.ids import ClientId, ConnectionId, StreamName, client_id
from headgate.model.instants import DAY_US
from headgate.model.query import ListQuery, SearchQuery
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.settings import Settings
from headgate.sources.demo.filling import fill
from headgate.wiring import Services, fresh_request_id, open_stores

_DAYS = 30
_CLIENT: ClientId = client_id("demo-agent")
#: What it is made to have read, by how many days ago; the last is refused.
_READS: Mapping[int, tuple[str, ...]] = {
    12: ("dentist", "car insurance"),
    9: ("school play",),
    6: ("roof quote", "chimney"),
    5: ("print run sheet 47", "corrections"),
    3: ("groceries", "Market Hall", "train tickets"),
    2: ("Ida birthday",),
    1: ("roof invoice", "final payment"),
}
_REFUSED = "passwords"
_AT_NINE_US = 9 * 3_600_000_000
_MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Demo:
    """The token of the demonstration's one client, its connections by name, and how many records they have."""

    token: str
    records: int
    connections: Mapping[str, ConnectionId]


def make_demo(settings: Settings, show: Callable[[int, int], None] = lambda _done, _total: None) -> Demo:
    """Fill an empty home with an invented person's records, and grant all of them to one client for 30 days."""

    async def make() -> Demo:
        async with open_stores(settings) as stores:
            connections, records = await fill(stores.store, show)
            conditions = Conditions(_CLIENT, days=_DAYS)
            issued = await issue(
                stores.ledger, Choice(), conditions, catalog=await stores.catalog(), now=now()
            )
            await _read_before(stores)
            return Demo(issued.access_token, records, connections)

    return asyncio.run(make())


async def _read_before(stores: Services) -> None:
    """Read as the client on days that are over, so that the owner's pages show what they are for."""
    granted = (await stores.clients.client(_CLIENT)).readable(None)
    access = await stores.admission.access_as(granted)
    today = now() // DAY_US * DAY_US
    for days, questions in _READS.items():
        for place, words in enumerate(questions):
            at = today - days * DAY_US + _AT_NINE_US + place * _MINUTE_US
            stores.reads.clock = lambda at=at: at
            context = ReadContext(access, fresh_request_id(), "mcp:search")
            await LocalResourceServer(stores.reads, context).search(SearchQuery(words, limit=10))
    refused = ReadContext(access, fresh_request_id(), "mcp:query_records")
    with suppress(HeadgateError):
        await LocalResourceServer(stores.reads, refused).records(ListQuery(StreamName(_REFUSED)))
    stores.reads.clock = stores.clock
    # The server takes the log of this process over when it starts.
    await stores.pump.flush()
    stores.journal.leave()
