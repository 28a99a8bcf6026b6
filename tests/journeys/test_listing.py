"""By the text alone: name all that is granted, and page through all of it."""

from __future__ import annotations

import pytest

from tests.journeys.agent import TextAgent
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS, WORLDS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_every_stream_connection_and_field_can_be_named(home: SharedHome, world: str, way: str):
    agent, truth = TextAgent(home.session(world, way)), home.worlds[world]
    assert agent.streams() == truth.streams
    found: dict[tuple[str, str], set[str]] = {}
    names: dict[str, str] = {}
    for stream in truth.streams:
        for source in agent.sources(stream):
            found |= {(one, stream): set(source.fields) for one in source.connections}
            assert all(flags.startswith("t=") for flags in source.fields.values())
            names |= source.connections
    assert found == {shelf: truth.fields[shelf] for shelf in truth.written}
    assert names == truth.connections


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_paging_by_the_printed_advice_shows_every_record_once(home: SharedHome, world: str, way: str):
    agent, truth = TextAgent(home.session(world, way)), home.worlds[world]
    for stream in truth.streams:
        sources = agent.sources(stream)
        # Streams of several connectors share a name: each connector is read with its key.
        for source in sources:
            chosen = {"connector_key": source.connector_key} if len(sources) > 1 else {}
            records = [one for shelf in source.connections for one in truth.written[shelf, stream]]
            for limit in (25, 100) if len(records) > 25 else (25,):
                seen = agent.pages("query_records", stream=stream, limit=limit, **chosen)
                assert len(seen) == len(set(seen)) == len(records), (stream, source.connector_key)
