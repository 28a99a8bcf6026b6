from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.errors import IdempotencyConflict
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import AggregatePlan, RecordPlan
from headgate.model.query import ExactFilter, Metric
from headgate.model.record import MAX_KEYS
from headgate.model.rows import Batch, IngestReport, OnInvalid
from headgate.store.format.lines import MAX_DEPTH, MAX_LINE_BYTES
from tests.store.declared import DESK, MARKS, NOTES, ODD, document, stream_of
from tests.store.engines import NOW
from tests.store.ledger import Ledger, body

DAY = 24 * 3600 * 1_000_000


def _values(ledger: Ledger, key: str = "a") -> dict[str, Any]:
    (record,) = ledger.store.record(RecordPlan(ledger.reach(connections=[0]), RecordId(key)))
    return body(record)


def test_a_second_record_of_a_key_replaces_the_first_whole(ledger: Ledger):
    ledger.put({"id": "a", "title": "old", "size": 1})
    ledger.put({"id": "a", "title": "new"})
    assert _values(ledger) == {"id": "a", "title": "new"}
    assert ledger.page(count="exact").count == 1


def test_in_an_append_only_stream_the_first_record_of_a_key_stays(ledger: Ledger):
    ledger.put({"note": "a", "n": 1, "text": "first"}, {"note": "a", "n": 1, "text": "second"}, stream=MARKS)
    ledger.put({"note": "a", "n": 1, "text": "third"}, stream=MARKS)
    (record,) = ledger.page(ledger.reach(MARKS)).records
    assert (record.id, body(record)["text"]) == ('["a","1"]', "first")


def test_a_record_removed_and_sent_again_is_the_new_one(ledger: Ledger):
    lines = [
        b'{"data":{"note":"a","n":1,"text":"old"}}',
        b'{"op":"delete","key":["a",1]}',
        b'{"data":{"note":"a","n":1,"text":"new"}}',
        b'{"data":{"note":"a","n":1,"text":"newer"}}',
    ]
    for some in (lines, lines[1:]):
        ledger.send(*some, stream=MARKS)
        (record,) = ledger.page(ledger.reach(MARKS)).records
        assert body(record)["text"] == "new"


def test_when_a_batch_names_a_record_twice_the_last_line_counts(ledger: Ledger):
    report = ledger.send(
        b'{"data":{"id":"a","title":"one"}}',
        b'{"data":{"id":"b","title":"two"}}',
        b'{"data":{"id":"a","title":"three"}}',
        b'{"op":"delete","key":"b"}',
    )
    assert report == IngestReport(4)
    assert [body(record) for record in ledger.page().records] == [{"id": "a", "title": "three"}]


def test_deleting_what_is_not_there_is_no_error(ledger: Ledger):
    assert ledger.send(b'{"op":"delete","key":"a"}') == IngestReport(1)
    assert ledger.store.delete_record(ledger.ids[0], NOTES, RecordId("a"), at=NOW) is False


def test_a_single_record_can_be_removed(ledger: Ledger):
    ledger.put({"id": "a"}, {"id": "b"})
    assert ledger.store.delete_record(ledger.ids[0], NOTES, RecordId("a"), at=NOW) is True
    assert ledger.keys() == ["b"]


def test_the_time_a_record_was_emitted_is_its_own_or_that_of_its_batch(ledger: Ledger):
    ledger.send(
        b'{"data":{"id":"a"},"emitted_at":"2026-01-01T00:00:00.000001+01:00"}',
        b'{"data":{"id":"b"}}',
        received_at=7,
    )
    times = {record.id: record.emitted_at for record in ledger.page().records}
    assert times == {"a": 1_767_222_000_000_001, "b": 7}


def test_values_keep_the_very_text_they_came_in(ledger: Ledger):
    ledger.send(b'{"data": { "id":"a" , "weight":1.10, "extra":{"b" : [1e2]}, "size":10 }}')
    (record,) = ledger.page(ledger.reach(fields=["weight", "extra"])).records
    assert record.body == b'{"weight":1.10,"extra":{"b" : [1e2]}}'


# Bad lines


@pytest.mark.parametrize(
    ("line", "code", "pointer"),
    [
        (b"", "invalid_record", ""),
        (b"{", "invalid_record", ""),
        (b"[]", "invalid_record", ""),
        (b'{"data":[]}', "invalid_record", "/data"),
        (b"{}", "invalid_record", "/data"),
        (b'{"data":{"id":"x"},"stream":"marks"}', "invalid_record", "/stream"),
        (b'{"data":{"id":"x"},"emitted_at":"soon"}', "invalid_record", "/emitted_at"),
        (b'{"data":{"id":"x"},"op":"merge"}', "invalid_record", ""),
        (b'{"data":{"id":"x"},"key":"y"}', "invalid_record_identity", ""),
        (b'{"data":{"title":"x"}}', "invalid_record_identity", ""),
        (b'{"data":{"id":null}}', "invalid_record_identity", ""),
        (b'{"data":{"id":["x"]}}', "invalid_record", ""),
        (b'{"data":{"id":""}}', "invalid_record", ""),
        (b'{"op":"delete"}', "invalid_record", "/key"),
        (b'{"data":{"id":"x","title":"a\\u0000b"}}', "invalid_record", "/data/title"),
        (b'{"data":{"id":"x","extra":[{"a/b~c":"\\u0000"}]}}', "invalid_record", "/data/extra/0/a~1b~0c"),
        (b'{"data":{"id":"x","a\\u0000":1}}', "invalid_record", "/data"),
        (b'{"data":{"id":"x","title":"\\ud800"}}', "invalid_record", "/data/title"),
        (b'{"data":{"id":"x","extra":{"a/b":["\\udfff"]}}}', "invalid_record", "/data/extra/a~1b/0"),
        (b'{"data":{"id":"x","title":"\xff"}}', "invalid_record", "/data"),
        (b'{"data":{"id":"x","size":9223372036854775808}}', "invalid_record", "/data/size"),
        (b'{"data":{"id":"x","extra":[-9223372036854775809]}}', "invalid_record", "/data/extra/0"),
        (b'{"data":{"id":"x","size":' + b"9" * 5000 + b"}}", "invalid_record", "/data"),
        (b'{"data":{"id":"x","weight":1e400}}', "invalid_record", "/data"),
        (b'{"data":{"id":"x","weight":NaN}}', "invalid_record", ""),
        (b'{"data":{"id":"x","weight":-Infinity}}', "invalid_record", ""),
        (b'{"data":{"id":"' + b"x" * 1025 + b'"}}', "invalid_record", ""),
    ],
)
def test_a_bad_line_is_reported_with_its_place_and_the_good_ones_are_stored(
    ledger: Ledger, line: bytes, code: str, pointer: str
):
    report = ledger.send(b'{"data":{"id":"a"}}', line, b'{"data":{"id":"b"}}')
    assert (report.accepted, report.rejected) == (2, 1)
    (error,) = report.errors
    assert (error.index, error.code, error.pointer) == (1, code, pointer)
    assert error.message
    assert ledger.keys() == ["b", "a"]


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"size": "9"}, "/data/size"),
        ({"size": 1.5}, "/data/size"),
        ({"size": 1e300}, "/data/size"),
        ({"size": True}, "/data/size"),
        ({"weight": "heavy"}, "/data/weight"),
        ({"done": 1}, "/data/done"),
        ({"title": 5}, "/data/title"),
        ({"file": None}, "/data/file"),
        ({"at": "soon"}, "/data/at"),
        ({"at": 5}, "/data/at"),
        ({"seen_at": "2026-13-01T00:00:00Z"}, "/data/seen_at"),
        ({"day": "2026-02-30"}, "/data/day"),
        ({ODD: 5}, '/data/we"ird\\u0041 na.me~0~1(0)'),
    ],
)
def test_a_record_that_breaks_its_schema_is_rejected_with_its_place(
    ledger: Ledger, values: dict[str, Any], pointer: str
):
    lines = [
        json.dumps({"data": {"id": key, **one}}).encode()
        for key, one in zip("abc", ({}, values, {}), strict=True)
    ]
    report = ledger.send(*lines)
    assert (report.accepted, report.rejected) == (2, 1)
    (error,) = report.errors
    assert (error.index, error.code, error.pointer) == (1, "invalid_record", pointer)
    assert ledger.keys() == ["c", "a"]
    assert _marked(ledger) == {}


@pytest.mark.parametrize("at", ["2026-01-01", "2026-01-01T10:00", "2026-01-01T10:00:00.5+02:00", None])
def test_a_time_is_taken_as_it_can_be_read(ledger: Ledger, at: str | None):
    line = json.dumps({"data": {"id": "a", "at": at, "day": "2026-01-01"}}).encode()
    assert ledger.send(line) == IngestReport(1)


def test_a_field_that_is_required_must_be_there_and_its_pointer_says_where(ledger: Ledger):
    newer = document("2")
    schema = stream_of(newer, NOTES)["schema"]
    schema["required"] = ["id", "title"]
    schema["properties"]["extra"] = {"type": "object", "required": ["a/b"]}
    ledger.store.declare(DESK, newer)
    (missing, inner) = ledger.send(
        b'{"data":{"id":"a"}}', b'{"data":{"id":"b","title":"t","extra":{}}}'
    ).errors
    assert (missing.pointer, inner.pointer) == ("/data/title", "/data/extra/a~1b")


def test_a_line_that_breaks_its_schema_in_several_places_says_how_many(ledger: Ledger):
    (error,) = ledger.send(b'{"data":{"id":"a","size":"x","weight":"y","at":"z"}}').errors
    assert (error.pointer, error.message) == (
        "/data/size",
        "The value is not of type integer or null. (and 2 more)",
    )


def test_what_breaks_its_schema_can_be_kept_with_a_mark(ledger: Ledger):
    report = ledger.send(
        b'{"data":{"id":"a","size":"9"}}',
        b'{"data":{"id":"b"}}',
        b"{",
        b'{"data":{"id":"c","at":"soon","size":1}}',
        on_invalid=OnInvalid.KEEP,
    )
    assert (report.accepted, report.rejected) == (3, 1)
    assert [(one.index, one.pointer) for one in report.invalid] == [(0, "/data/size"), (3, "/data/at")]
    assert _values(ledger) == {"id": "a", "size": "9"}
    assert _marked(ledger) == {"a": ["/data/size"], "c": ["/data/at"]}
    ledger.send(b'{"data":{"id":"a","size":9}}')
    ledger.remove("c")
    assert _marked(ledger) == {}


def test_marked_records_are_listed_page_by_page(ledger: Ledger):
    ledger.put(*({"id": f"k{n}", "size": "x"} for n in range(5)), {"id": "good"})
    ledger.put({"id": "other", "size": "x"}, connection=1)
    found, after = list[str](), 0
    for _ in range(3):
        page = ledger.store.marked(ledger.ids[0], NOTES, after=after, limit=2)
        found += [one.id for one in page.records]
        after = page.next_after or 0
    assert (found, after) == ([f"k{n}" for n in range(5)], 0)


def test_a_repeated_batch_answers_with_its_marks(ledger: Ledger):
    line = b'{"data":{"id":"a","size":"9"}}'
    first = ledger.send(line, key="once", on_invalid=OnInvalid.KEEP)
    assert ledger.send(line, key="once", on_invalid=OnInvalid.KEEP) == first
    with pytest.raises(IdempotencyConflict):
        ledger.send(line, key="once")


def test_values_that_a_later_declaration_cannot_read_are_marked(ledger: Ledger):
    ledger.put({"id": "a", "stars": "five"}, {"id": "b", "stars": 4})
    newer = document("2")
    stream = stream_of(newer, NOTES)
    stream["schema"]["properties"]["stars"] = {"type": "integer"}
    stream["query"]["aggregations"]["sum"].append("stars")
    ledger.store.declare(DESK, newer)
    assert _marked(ledger) == {"a": ["/data/stars"]}
    found = ledger.store.aggregate(AggregatePlan(ledger.reach(), Metric.SUM, FieldName("stars")))
    assert (found.value, found.missing_count, found.unreadable_count) == (4, 0, 1)


def _marked(ledger: Ledger) -> dict[str, list[str]]:
    page = ledger.store.marked(ledger.ids[0], NOTES, after=0, limit=100)
    return {one.id: [problem.pointer for problem in one.problems] for one in page.records}


def test_nesting_is_kept_up_to_a_depth_that_every_reader_can_follow(ledger: Ledger):
    def nested(depth: int) -> bytes:
        return b'{"data":{"id":"a","extra":' + b"[" * depth + b"]" * depth + b"}}"

    # The object that holds the data is one level, the field's value starts the next.
    assert ledger.send(nested(MAX_DEPTH - 1)) == IngestReport(1)
    for depth in (MAX_DEPTH, 500, 100_000):
        (error,) = ledger.send(nested(depth)).errors
        assert error.code == "invalid_record"
    assert ledger.keys(filters=(ExactFilter(FieldName("code"), "x"),)) == []
    ledger.put({"id": "a", "title": "now flat"})
    assert _values(ledger)["title"] == "now flat"


@pytest.mark.parametrize("place", ["", "/extra", "/extra/0/a"])
def test_an_object_may_have_a_thousand_members_and_no_more(ledger: Ledger, place: str):
    def line(count: int) -> bytes:
        members = {f"k{n}": n for n in range(count)}
        data = {
            "": {"id": "a"} | dict(list(members.items())[:-1]),
            "/extra": {"id": "a", "extra": members},
            "/extra/0/a": {"id": "a", "extra": [{"a": members}]},
        }[place]
        return json.dumps({"data": data}).encode()

    assert ledger.send(line(MAX_KEYS)) == IngestReport(1)
    (error,) = ledger.send(line(MAX_KEYS + 1)).errors
    assert (error.code, error.pointer) == ("invalid_record", f"/data{place}")


def test_a_name_that_stands_twice_counts_as_it_stood_last(ledger: Ledger):
    ledger.send(b'{"data":{"id":"a","code":"first","code":"last","label":"x","label":"y"}}')
    assert _values(ledger)["code"] == "last"
    assert ledger.keys(filters=(ExactFilter(FieldName("code"), "last"),)) == ["a"]
    assert ledger.keys(filters=(ExactFilter(FieldName("code"), "first"),)) == []
    assert ledger.keys(filters=(ExactFilter(FieldName("label"), "y"),)) == ["a"]


def test_a_line_of_32_mib_is_taken_and_a_longer_one_refused(ledger: Ledger):
    frame = len(b'{"data":{"id":"a","body":""}}')
    text = b"x" * (MAX_LINE_BYTES - frame)
    report = ledger.send(
        b'{"data":{"id":"a","body":"%b"}}' % text, b'{"data":{"id":"b","body":"%b."}}' % text
    )
    assert (report.accepted, [error.code for error in report.errors]) == (1, ["resource_limit"])
    (record,) = ledger.store.record(RecordPlan(ledger.reach(), RecordId("a")))
    assert len(body(record)["body"]) == len(text)


@pytest.mark.parametrize(
    "key", ["a/b", "..", "a:b", "\n", "\u202e", "ü", "x" * 1024, '"', "\\", "%00", "🎉", " "]
)
def test_any_text_without_nul_can_be_a_key(ledger: Ledger, key: str):
    ledger.put({"id": key, "size": 1})
    assert ledger.keys() == [key]
    assert _values(ledger, key) == {"id": key, "size": 1}
    assert ledger.keys(ledger.reach(resources=[key])) == [key]
    ledger.remove(key)
    assert ledger.keys() == []


def test_every_text_comes_back_as_it_went_in(ledger: Ledger):
    strange = '🎉 \u200d\ufeff\u202e"\\/\b\f\n\r\t\x01\x7f\u2028 <mark> \U0001d4b3 e\u0301 \uffff'
    ledger.put({"id": "a", "title": strange, "extra": {strange: [strange]}, "undeclared": strange})
    assert _values(ledger) == {"id": "a", "title": strange, "extra": {strange: [strange]}}


# Sending again


def test_a_batch_sent_again_with_its_key_is_answered_as_before_and_not_taken_again(ledger: Ledger):
    lines = (b'{"data":{"id":"a"}}', b"bad")
    first = ledger.send(*lines, key="k1")
    ledger.remove("a")
    assert ledger.send(*lines, key="k1") == first
    assert ledger.keys() == []
    assert ledger.send(*lines, key="k2").accepted == 1
    assert ledger.keys() == ["a"]


def test_a_key_used_with_another_batch_is_a_conflict_and_nothing_is_taken(ledger: Ledger):
    ledger.send(b'{"data":{"id":"a"}}', key="k")
    for other in ({"connection": 1}, {"stream": MARKS}):
        with pytest.raises(IdempotencyConflict):
            ledger.send(b'{"data":{"id":"a"}}', key="k", **other)
    with pytest.raises(IdempotencyConflict):
        ledger.send(b'{"data":{"id":"b"}}', key="k")
    assert ledger.keys() == ["a"]


def test_a_key_is_forgotten_after_a_day(ledger: Ledger):
    ledger.send(b'{"data":{"id":"a"}}', key="k")
    assert ledger.send(b'{"data":{"id":"b"}}', key="k", received_at=NOW + DAY).accepted == 1
    assert ledger.keys() == ["b", "a"]


def test_many_writers_at_once_are_all_kept(ledger: Ledger):

    batches = [
        Batch(
            ledger.ids[n % 2],
            NOTES,
            [json.dumps({"data": {"id": f"{n}-{m}", "size": m}}).encode() for m in range(5)],
            NOW,
        )
        for n in range(40)
    ]
    reports = ledger.store.together(*(ledger.store.bare.ingest(batch) for batch in batches))
    assert reports == [IngestReport(5)] * 40
    total = ledger.store.aggregate(AggregatePlan(ledger.reach(), Metric.SUM, FieldName("size")))
    assert (total.filtered_record_count, total.value) == (200, 400)
