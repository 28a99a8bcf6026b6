"""Look up what a schema says of each stream beside its declaration: how much is stored, and how fresh it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import ConnectionNotFound
from headgate.model.freshness import Freshness, freshness_in
from headgate.model.ids import ConnectionId
from headgate.model.plan import Reach
from headgate.reading.schema import StreamFacts, Summaries

if TYPE_CHECKING:
    from headgate.store.relational.store import Store


async def stream_facts(store: Store, reaches: Sequence[Reach], *, now: int) -> Summaries:
    """Count the records of each stream of each connection, and judge how fresh those of accounts are."""
    found = await store.summaries(reaches)
    fresh = {one: await _freshness(store, one) for one in {each.connection_id for each in found}}
    return {
        (one.connection_id, one.stream): StreamFacts(
            one.record_count,
            one.last_updated,
            fresh[one.connection_id].attempted_at,
            fresh[one.connection_id].status(now),
        )
        for one in found
    }


async def _freshness(store: Store, connection_id: ConnectionId) -> Freshness:
    try:
        stored = await store.state(connection_id)
    except ConnectionNotFound:
        # It was removed a moment ago.
        stored = None
    state: Any = None if stored is None else msgspec.json.decode(stored)
    noted = freshness_in(cast("dict[str, Any]", state)) if isinstance(state, dict) else None
    return noted or Freshness()
