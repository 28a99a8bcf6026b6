from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.model.plan import Reach
from headgate.model.rows import Batch, IngestReport
from headgate.sources.intake import Intake, Push
from headgate.store.format.lines import MAX_LINE_BYTES
from tests.store.declared import DESK, NOTES, document
from tests.store.engines import NOW, Driven

_PIECE = 1 << 20


@pytest.fixture
def store(tmp_path: Path):
    driven = Driven("sqlite", tmp_path)
    yield driven
    driven.close()


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), _PIECE):
        yield content[at : at + _PIECE]


@pytest.mark.parametrize("is_last", [False, True])
def test_a_line_that_is_too_long_is_one_bad_line_and_stops_no_other(store: Driven, *, is_last: bool):
    store.declare(DESK, document())
    connection = store.create_connection(DESK, "mine")
    good, long = [b'{"data":{"id":"a"}}', b'{"data":{"id":"b"}}'], b"x" * (MAX_LINE_BYTES + 3 * _PIECE)
    lines = [*good, long] if is_last else [good[0], long, good[1]]
    intake = Intake(store.bare, lambda: NOW)
    report = store.run(intake.push(Push(connection.id, NOTES), _pieces(b"\n".join(lines))))
    assert report.accepted == 2
    assert [(error.index, error.code) for error in report.errors] == [(lines.index(long), "resource_limit")]
    assert store.summaries([Reach(NOTES, (connection.id,), ())])[0].record_count == 2


def test_no_more_of_a_line_is_collected_than_shows_that_it_is_too_long(store: Driven):
    seen: list[int] = []

    class Spy:
        async def ingest(self, batch: Batch) -> IngestReport:
            seen.extend(len(line) for line in batch.lines)
            return IngestReport(0, ())

    async def endless() -> AsyncIterator[bytes]:
        piece = b"x" * _PIECE
        for _ in range(3 * MAX_LINE_BYTES // _PIECE):
            yield piece
        yield b"\nshort"

    intake = Intake(Spy(), lambda: NOW)
    store.run(intake.push(Push("cin_x", NOTES), endless()))
    assert seen == [MAX_LINE_BYTES + 1, len(b"short")]
