"""By the text alone: reach every file of a record with the token that the agent has."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.journeys.agent import TextAgent
from tests.journeys.sessions import SharedHome, TextSession
from tests.journeys.worlds import LARGE, WAYS


def whole_file(session: TextSession, uri: str) -> bytes:
    """Read a file at once, or in the parts that the refusal names."""
    answer = session.file(uri)
    if isinstance(answer, bytes):
        return answer
    size = int(re.search(r"The file has (\d+) bytes", answer)[1])
    part = re.search(r"beginning with (pdpp://blob/[\w.-]+\?bytes=)(\d+)-(\d+)", answer)
    start, length = int(part[2]), int(part[3]) - int(part[2]) + 1
    pieces = [session.file(f"{part[1]}{at}-{at + length - 1}") for at in range(start, size, length)]
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("world", "stream", "path"), [("shapes", "scans", "file"), ("stitched", "attachments", "file")]
)
def test_every_file_is_reached(home: SharedHome, world: str, stream: str, path: str, way: str):
    session, truth = home.session(world, way), home.worlds[world]
    agent = TextAgent(session)
    expected = [record[path]["sha256"] for record in truth.records(stream) if path in record]
    found: list[str] = []
    for source in agent.sources(stream):
        ids = agent.pages("query_records", stream=stream, connector_key=source.connector_key)
        for reading in map(agent.read, ids):
            found += [hashlib.sha256(whole_file(session, uri)).hexdigest() for uri in reading.files.values()]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("way", ["hosted", "remote"])
def test_a_large_file_is_reached_at_its_printed_address_with_the_same_token(home: SharedHome, way: str):
    session = home.session("shapes", way)
    agent = TextAgent(session)
    ids = agent.pages("query_records", stream="scans", connector_key="files")
    (uri,) = agent.read(next(one for one in ids if one.endswith(":large"))).files.values()
    refusal = session.file(uri)
    assert isinstance(refusal, str)
    address = re.search(r"or get (http\S+) with the same token", refusal)[1]
    assert session.download(address) == LARGE
