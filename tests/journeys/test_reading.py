"""By the text alone: read records whole, with every printed call, however long, nested or oddly named they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.field_lines import is_written
from tests.journeys.agent import Reading, TextAgent
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS, Record, WrittenWorld

#: Every record of a stream is read, or every n-th of one that has many of the same shape.
EVERY = {"messages": 20, "日記": 12, "letters": 12}
SHAPES = ("forms", "texts", "numbers", "pairs", "日記", "letters", "papers")


def is_file(value: Any) -> bool:
    return isinstance(value, dict) and "blob_id" in value


def is_known(path: str, value: Any, reading: Reading) -> bool:
    """Tell whether a reading has the value of a field: by its name, or as the id, the title or the text."""
    known = reading.values.get(path)
    if is_file(value):
        return path in reading.files and known["blob_id"] == value["blob_id"]
    if path == "id" and "id" not in reading.values and value == reading.values.get("record_id"):
        return True
    if path in reading.values:
        return (type(known) is type(value) and known == value) or is_written(value, known)
    return (
        value is None or value in reading.unnamed or any(one.endswith(f":{value}") for one in reading.unnamed)
    )


def missing(record: Record, reading: Reading) -> list[str]:
    return [path for path, value in record.items() if not is_known(path, value, reading)]


def assert_same(records: list[Record], readings: list[Reading]) -> None:
    """Assert that each reading is a whole record, and another one each time."""
    left = list(records)
    for reading in readings:
        fitting = [record for record in left if not missing(record, reading)]
        assert fitting, min((missing(record, reading) for record in left), key=len)
        left.remove(fitting[0])


def read_stream(agent: TextAgent, truth: WrittenWorld, stream: str) -> None:
    """Page through the shelves of a stream, and read its records whole."""
    for source in agent.sources(stream):
        for connection in source.connections:
            ids = agent.pages("query_records", stream=stream, connection_id=connection)
            records = truth.written[connection, stream]
            assert len(ids) == len(records)
            chosen = ids[:: EVERY.get(stream, 1)]
            assert_same(records, [agent.read(one) for one in chosen])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", SHAPES)
def test_records_of_every_shape_are_read_whole(home: SharedHome, stream: str, way: str):
    read_stream(TextAgent(home.session("shapes", way)), home.worlds["shapes"], stream)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", ["messages", "attachments", "channels"])
def test_stitched_records_are_read_whole(home: SharedHome, stream: str, way: str):
    read_stream(TextAgent(home.session("stitched", way)), home.worlds["stitched"], stream)


@pytest.mark.parametrize("way", WAYS)
def test_records_of_many_accounts_and_streams_are_read_whole(home: SharedHome, way: str):
    for world, streams in (("crowd", ["items_0"]), ("wide", ["with space", "日記", "stream_000"])):
        agent, truth = TextAgent(home.session(world, way)), home.worlds[world]
        for stream in streams:
            ids = agent.pages("query_records", stream=stream)
            assert_same(truth.records(stream), [agent.read(one) for one in ids])
