"""The importer: what a source gives is stored once, whatever interrupts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headgate.errors import ResourceLimit
from headgate.model.ids import ConnectorKey, FieldName, StreamName
from headgate.model.plan import PagePlan, Reach
from headgate.sources import importing
from headgate.sources.declaring import INTEGER, OBJECT, TEXT, StreamSpec, declaration
from headgate.sources.importing import Importer, ImportJob, ImportProgress, StreamCount
from headgate.sources.parts import PART_LINES
from headgate.sources.planning import preview
from headgate.sources.protocol import Attachment, Item, Mark, Reject, Row
from tests.store.engines import NOW, Driven

NUMBERS = StreamSpec(
    name="numbers",
    label="Numbers",
    detail="A number.",
    fields={"id": TEXT, "value": INTEGER, "file": OBJECT},
    words=("id",),
)
DOCUMENT = declaration("numbers", "Numbers", [NUMBERS])


@pytest.fixture
def store(tmp_path: Path):
    driven = Driven("sqlite", tmp_path)
    yield driven
    driven.close()


def rows(first: int, count: int, file: str = "a.txt") -> Iterator[Item]:
    for number in range(first, count):
        yield Row("numbers", {"id": f"n{number}", "value": number})
        yield Mark(file, number + 1, number + 1)
    yield Mark(file, count)


def job(read: Any, name: str = "mine", fingerprint: str | None = "one") -> ImportJob:
    return ImportJob(
        ConnectorKey("numbers"), name, DOCUMENT, lambda resume, _form: read(resume),
        total_bytes=100, fingerprint=fingerprint,
    )  # fmt: skip


def run(store: Driven, one: ImportJob, show: Any = None) -> importing.ImportReport:
    return store.run(Importer(store.bare, clock=lambda: NOW).run(one, show))


def count(store: Driven) -> int:
    ids = tuple(connection.id for connection in store.connections())
    return sum(one.record_count for one in store.summaries([Reach(StreamName("numbers"), ids, ())]))


def test_rows_are_stored_and_counted_by_stream(store: Driven):
    report = run(store, job(lambda _: rows(0, 3)))
    assert dict(report.streams) == {"numbers": StreamCount(3, 3)}
    assert (report.connector_key, report.display_name, report.reject_count) == ("numbers", "mine", 0)
    assert count(store) == 3


def test_an_import_again_is_the_same_connection_and_adds_and_changes_nothing(store: Driven):
    first = run(store, job(lambda _: rows(0, 3)))
    before = store.run(store.bare.catalog_version())
    again = run(store, job(lambda _: rows(0, 3)))
    assert again.connection_id == first.connection_id
    assert dict(again.streams) == {"numbers": StreamCount(3, 0, known=3)}
    assert store.run(store.bare.catalog_version()) == before


def test_another_name_is_another_connection(store: Driven):
    run(store, job(lambda _: rows(0, 3)))
    run(store, job(lambda _: rows(0, 3), name="other"))
    assert (len(store.connections()), count(store)) == (2, 6)


def test_more_rows_than_a_part_holds_are_all_stored(store: Driven):
    many = PART_LINES * 2 + 7
    seen: list[ImportProgress] = []
    report = run(store, job(lambda _: rows(0, many)), seen.append)
    assert report.accepted == count(store) == many
    assert [one.rows for one in seen] == sorted({one.rows for one in seen})
    assert (seen[-1].rows, seen[-1].done_bytes) == (many, many)


def test_what_cannot_be_stored_is_rejected_with_its_place_and_stops_nothing(store: Driven):
    def read(_: Mapping[str, Any]) -> Iterator[Item]:
        yield Row("numbers", {"id": "a", "value": "many"}, place="a.csv line 1")
        yield Row("numbers", {"id": "b", "value": object()}, place="a.csv line 2")
        yield Reject("a.csv line 3", "No number.")
        yield Row("numbers", {"id": "c", "value": 2**70})
        yield Row("numbers", {"id": "d", "value": 1})

    report = run(store, job(read))
    assert sorted(one.place for one in report.rejects) == [
        "a.csv line 1",
        "a.csv line 2",
        "a.csv line 3",
        "numbers c",
    ]
    assert any("value" in one.reason for one in report.rejects if one.place == "a.csv line 1")
    assert (report.accepted, report.reject_count, count(store)) == (1, 4, 1)


def test_more_rejects_than_are_listed_are_counted(store: Driven):
    many = importing.MAX_REJECTS + 5
    report = run(store, job(lambda _: iter([Reject(str(number), "bad") for number in range(many)])))
    assert (len(report.rejects), report.reject_count) == (importing.MAX_REJECTS, many)


@pytest.mark.parametrize(("text", "stored"), [("a\0b", "ab"), ("a\ud800b", "a?b"), ("\\u0000", "\\u0000")])
def test_text_that_no_store_takes_is_repaired(store: Driven, text: str, stored: str):
    run(store, job(lambda _: iter([Row("numbers", {"id": text, "value": 1})])))
    assert ids(store) == [stored]


def ids(store: Driven) -> list[str]:
    return [msgspec.json.decode(record.body)["id"] for record in page(store).records]


def page(store: Driven) -> Any:
    connections = tuple(one.id for one in store.connections())
    fields = (FieldName("id"), FieldName("file"))
    return store.page(PagePlan(Reach(StreamName("numbers"), connections, fields), limit=50))


def test_a_file_of_a_row_is_stored_and_the_field_refers_to_it(store: Driven):
    row = Row("numbers", {"id": "a"}, {"file": Attachment(b"content", "text/plain")})
    report = run(store, job(lambda _: iter([row])))
    (record,) = page(store).records
    found = msgspec.json.decode(record.body)["file"]
    assert (found["mime_type"], found["size_bytes"], report.attachment_count) == ("text/plain", 7, 1)

    async def content() -> bytes:
        return b"".join([piece async for piece in store.bare.read_blob(found["blob_id"])])

    assert store.run(content()) == b"content"


class Stopped(Exception):
    pass


def interrupted(at: int) -> Any:
    def read(resume: Mapping[str, Any]) -> Iterator[Item]:
        for item in rows(resume.get("a.txt", 0), at * 2):
            yield item
            if isinstance(item, Mark) and item.resume == at:
                raise Stopped

    return read


def test_an_interrupted_import_goes_on_at_the_last_stored_mark(store: Driven):
    at = PART_LINES * 2
    with pytest.raises(Stopped):
        run(store, job(interrupted(at)))
    starts: list[int] = []

    def read(resume: Mapping[str, Any]) -> Iterator[Item]:
        starts.append(resume.get("a.txt", 0))
        return rows(starts[0], at * 2)

    report = run(store, job(read))
    # What was in the part that was being collected was not stored, and so is not marked.
    assert starts[0] > 0
    assert starts[0] % (PART_LINES // 2) == 0
    assert (report.is_resumed, count(store)) == (True, at * 2)


def test_marks_of_another_file_and_of_a_finished_import_are_not_used(store: Driven):
    seen: list[dict[str, Any]] = []

    def read(resume: Mapping[str, Any]) -> Iterator[Item]:
        seen.append(dict(resume))
        return rows(0, 3)

    with pytest.raises(Stopped):
        run(store, job(interrupted(PART_LINES)))
    run(store, job(read, fingerprint="two"))
    run(store, job(read, fingerprint="two"))
    assert seen == [{}, {}]


def test_marks_of_an_account_hold_after_the_end(store: Driven):
    seen: list[dict[str, Any]] = []

    def read(resume: Mapping[str, Any]) -> Iterator[Item]:
        seen.append(dict(resume))
        yield Mark("INBOX", 0, {"uid": 7})

    run(store, job(read, fingerprint=None))
    run(store, job(read, fingerprint=None))
    assert seen == [{}, {"INBOX": {"uid": 7}}]


def test_files_of_which_nothing_is_read_are_reported_and_an_account_without_news_is_not(store: Driven):
    report = run(store, job(lambda _: iter([Mark("a.txt", 1)])))
    assert [(one.place, one.reason) for one in report.rejects] == [("mine", "Nothing in it could be read.")]
    assert report.reject_count == 1
    assert run(store, job(lambda _: iter([Mark("a", 1)]), fingerprint=None)).reject_count == 0
    run(store, job(lambda _: rows(0, 3)))
    assert run(store, job(lambda _: rows(0, 3))).reject_count == 0


def test_reading_that_fails_is_reported_and_what_came_before_is_stored(store: Driven):
    def read(_: Mapping[str, Any]) -> Iterator[Item]:
        yield from rows(0, 3)
        raise ResourceLimit("The archive is too large.")

    report = run(store, job(read))
    assert (report.failure, count(store)) == ("The archive is too large.", 3)


def test_a_cancelled_import_closes_its_files_and_stores_its_marks(store: Driven):
    closed: list[bool] = []

    def read(resume: Mapping[str, Any]) -> Iterator[Item]:
        try:
            yield from rows(resume.get("a.txt", 0), 10**9)
        finally:
            closed.append(True)

    async def cancelled() -> None:
        task: list[asyncio.Task[Any]] = []
        importer = Importer(store.bare, clock=lambda: NOW)
        task.append(asyncio.ensure_future(importer.run(job(read), lambda _: task[0].cancel() and None)))
        with pytest.raises(asyncio.CancelledError):
            await task[0]

    store.run(cancelled())
    assert closed == [True]
    (connection,) = store.connections()
    state = msgspec.json.decode(store.run(store.bare.state(connection.id)))
    assert state["import"]["resume"]["a.txt"] > 0


def test_a_preview_shows_columns_and_five_rows_and_stores_nothing(store: Driven):
    found = preview(job(lambda _: rows(0, 100)))
    (stream,) = found.streams
    assert [row["id"] for row in stream.rows] == ["n0", "n1", "n2", "n3", "n4"]
    assert [(one.name, one.type, list(one.roles)) for one in stream.columns] == [
        ("id", "string", ["key", "search"]),
        ("value", "integer", []),
        ("file", "object", []),
    ]
    assert store.connections() == ()
