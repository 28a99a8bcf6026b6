"""Mail in a store: imported once, whatever interrupts it."""

from pathlib import Path

import msgspec
import pytest

from headgate.model.ids import FieldName, StreamName
from headgate.model.plan import PagePlan, Reach
from headgate.sources.importing import Importer, ImportReport, job_of
from headgate.sources.inputs.disk import tree_of
from headgate.sources.mail import rows
from headgate.sources.mail.rows import MailRows
from tests.sources.mail.mails import ANSWER, LETTER, SOURCE, mbox
from tests.store.engines import NOW, Driven

COUNT = 700


@pytest.fixture
def store(tmp_path: Path):
    driven = Driven("sqlite", tmp_path / "store")
    yield driven
    driven.close()


@pytest.fixture
def path(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(rows, "MESSAGES_PER_MARK", 50)
    filler = b"A line that makes the message longer.\n" * 300
    letters = [LETTER.replace(b"<one@", b"<%d@" % number) + filler for number in range(COUNT)]
    found = tmp_path / "Inbox.mbox"
    found.write_bytes(mbox(*letters, ANSWER))
    return found


def imported(store: Driven, path: Path) -> ImportReport:
    (found,) = SOURCE.detect(tree_of(path))
    return store.run(Importer(store.bare, clock=lambda: NOW).run(job_of(SOURCE, found)))


def held(store: Driven, stream: str, *fields: str) -> list[dict]:
    connections = tuple(one.id for one in store.connections())
    reach = Reach(StreamName(stream), connections, tuple(map(FieldName, fields)))
    return [msgspec.json.decode(one.body) for one in store.page(PagePlan(reach, limit=1000)).records]


def test_an_import_again_adds_nothing_and_rejects_nothing(store, path):
    first, again = imported(store, path), imported(store, path)
    assert [(one.streams["messages"].added, one.reject_count) for one in (first, again)] == [
        (COUNT + 1, 0),
        (0, 0),
    ]


def test_an_import_that_was_stopped_goes_on_and_ends_as_one_that_was_not(store, path, monkeypatch):
    class Stopped(Exception):
        pass

    made = MailRows.of
    seen: list[bytes] = []

    def stopping(self, raw, state):
        seen.append(raw)
        if len(seen) == COUNT - 10:
            raise Stopped
        return made(self, raw, state)

    monkeypatch.setattr(MailRows, "of", stopping)
    with pytest.raises(Stopped):
        imported(store, path)
    assert 0 < len(held(store, "messages", "id")) < COUNT
    before = len(seen)
    report = imported(store, path)
    assert report.is_resumed
    assert len(seen) - before < COUNT
    rows = held(store, "messages", "id", "internet_message_id")
    assert len({row["internet_message_id"] for row in rows}) == len(rows) == COUNT + 1
