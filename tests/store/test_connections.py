from __future__ import annotations

import pytest

from headgate.errors import ConnectionNotFound, InvalidDeclaration, StreamNotDeclared
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName
from headgate.model.plan import AggregatePlan, PagePlan, Reach, RecordPlan, SearchPlan, SearchReach, Term
from headgate.model.query import ExactFilter, Metric, RangeFilter
from headgate.model.rows import Batch
from headgate.store.changes import accounts
from headgate.store.sql.catalog import current
from headgate.store.sql.database import Database
from tests.store.declared import DESK, LOOSE, NOTES, PAGES, document, stream_of
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

NOWHERE = ConnectionId("cin_" + "0" * 24)
UNDONE = ConnectionId("undone")


def test_a_connection_gets_an_id_of_its_own_and_keeps_its_name(ledger: Ledger):
    first, second = ledger.store.connections()
    assert (first.id, second.id) == ("desk-0", "desk-1")
    assert (first.connector_key, first.display_name, first.created_at) == (DESK, "Desk 0", NOW)


def test_an_id_is_given_once_whatever_becomes_of_its_connection(ledger: Ledger):
    store = ledger.store
    made = [store.create_connection(DESK, name).id for name in ("Bank", "BANK!", "Bank 2", "日本", "")]
    assert made == ["bank", "bank-2", "bank-2-2", "desk", "desk-2"]
    store.rename_connection(made[0], "Old bank")
    store.delete_connection(made[1])
    store.delete_connection(made[4])
    assert [store.create_connection(DESK, name).id for name in ("bank", "")] == ["bank-3", "desk-3"]
    assert store.create_connection(DESK, "Old bank").id == "old-bank"


def test_connections_that_are_made_at_once_get_ids_of_their_own(ledger: Ledger):
    bare = ledger.store.bare
    made = ledger.store.together(*(bare.create_connection(DESK, "Bank") for _ in range(5)))
    assert {one.id for one in made} == {"bank", "bank-2", "bank-3", "bank-4", "bank-5"}


def test_a_connection_can_be_renamed_and_nothing_else_changes(ledger: Ledger):
    before = ledger.store.connections()
    renamed = ledger.store.rename_connection(ledger.ids[1], "Büro")
    assert renamed.display_name == "Büro"
    assert ledger.store.connections() == (before[0], renamed)


@pytest.mark.parametrize("way", ["run", "run_alone"])
def test_the_writer_forgets_a_catalog_whose_change_is_undone(ledger: Ledger, way: str):
    store = ledger.store
    submit = getattr(store.bare._writer, way)

    def create_and_fail(database: Database) -> None:
        assert accounts.create(database, DESK, "undone", at=NOW).id == UNDONE
        assert UNDONE in current(database).connections
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.run(submit(create_and_fail))
    # It raises the catalog's number to the one that was undone.
    store.rename_connection(ledger.ids[0], "Desk")
    assert UNDONE not in store.run(submit(lambda database: current(database).connections))


def test_a_connection_needs_a_declared_connector(store: Driven):
    with pytest.raises(StreamNotDeclared):
        store.create_connection(ConnectorKey("nobody"), "x")


def test_what_is_not_there_cannot_be_renamed_deleted_or_written_to(ledger: Ledger):
    store = ledger.store
    for call in (
        lambda: store.rename_connection(NOWHERE, "x"),
        lambda: store.delete_connection(NOWHERE),
        lambda: store.state(NOWHERE),
        lambda: store.put_state(NOWHERE, b"{}"),
        lambda: store.ingest(Batch(NOWHERE, NOTES, [], NOW)),
    ):
        with pytest.raises(ConnectionNotFound):
            call()


def test_deleting_a_connection_takes_its_records_and_no_others(ledger: Ledger):
    for connection in (0, 1):
        ledger.put({"id": "a", "title": "apple", "size": 1}, connection=connection)
    ledger.store.delete_connection(ledger.ids[0])
    assert [one.id for one in ledger.store.connections()] == [ledger.ids[1]]
    assert [record.connection_id for record in ledger.page().records] == [ledger.ids[1]]
    count = ledger.store.aggregate(AggregatePlan(ledger.reach(), Metric.SUM, FieldName("size")))
    assert (count.filtered_record_count, count.value) == (1, 1)
    plan = SearchPlan((SearchReach(ledger.reach(), (FieldName("title"),)),), (Term(("apple",)),), 10)
    assert [hit.record.connection_id for hit in ledger.store.search(plan).hits] == [ledger.ids[1]]


def test_a_write_that_meets_a_deletion_leaves_nothing_behind(ledger: Ledger):
    batch = Batch(ledger.ids[0], NOTES, [b'{"data":{"id":"a"}}'], NOW)
    bare = ledger.store.bare
    _, outcome = ledger.store.together(bare.delete_connection(ledger.ids[0]), bare.ingest(batch))
    assert isinstance(outcome, ConnectionNotFound)
    assert ledger.page().records == ()


def test_a_collectors_state_is_kept_as_it_is(ledger: Ledger):
    assert ledger.store.state(ledger.ids[0]) is None
    ledger.store.put_state(ledger.ids[0], b'{"page": 3}')
    assert ledger.store.state(ledger.ids[0]) == b'{"page": 3}'
    assert ledger.store.state(ledger.ids[1]) is None


def test_everything_is_there_again_after_opening_the_store_anew(ledger: Ledger):
    ledger.put({"id": "a", "title": "apple", "at": "2026-01-01T00:00:00Z"})
    ledger.store.put_state(ledger.ids[0], b"1")
    before = (ledger.store.connections(), ledger.store.declarations(), ledger.page())
    ledger.store.close()
    again = Driven(ledger.store.engine, ledger.store.directory)
    try:
        assert (
            again.connections(),
            again.declarations(),
            again.page(PagePlan(ledger.reach(), 100)),
        ) == before
        assert again.state(ledger.ids[0]) == b"1"
    finally:
        again.close()
        ledger.store.__init__(ledger.store.engine, ledger.store.directory)


# Declarations


def test_the_same_declaration_twice_is_one(ledger: Ledger):
    again = ledger.store.declare(DESK, document())
    assert ledger.store.declarations() == {DESK: again}


def test_a_version_that_means_something_else_is_refused_and_the_old_one_stays(ledger: Ledger):
    before = ledger.store.declarations()
    other = document()
    other["display"]["name"] = "Another desk"
    with pytest.raises(InvalidDeclaration):
        ledger.store.declare(DESK, other)
    assert ledger.store.declarations() == before


def test_a_new_version_adds_what_is_new_to_records_that_are_there(ledger: Ledger):
    ledger.put(
        {"id": "a", "mood": "glad", "rank": 3, "memo": "plum pie", "code": "x"},
        {"id": "b", "mood": "sad", "rank": 1, "memo": "none", "code": "y"},
        {"id": "c", "rank": "3", "mood": None},
    )
    ledger.store.declare(DESK, _richer())
    ledger.put({"id": "d", "mood": "glad", "rank": 9, "memo": "plum jam", "code": "x"})
    mood, rank, memo, code = map(FieldName, ("mood", "rank", "memo", "code"))
    reach = Reach(NOTES, ledger.ids, (mood,))
    assert _keys(ledger, reach, ExactFilter(mood, "glad")) == {"a", "d"}
    assert _keys(ledger, reach, RangeFilter(rank, "gte", 3)) == {"a", "d"}
    assert _keys(ledger, reach, ExactFilter(code, "x")) == {"a", "d"}
    groups = ledger.store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=mood)).groups
    assert [(group.key, group.count) for group in groups] == [("glad", 2), ("sad", 1), (None, 1)]
    groups = ledger.store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=code)).groups
    assert [(group.key, group.count) for group in groups] == [("x", 2), ("y", 1), (None, 1)]
    found = ledger.store.search(SearchPlan((SearchReach(reach, (memo,)),), (Term(("plum",)),), 10))
    assert {hit.record.id for hit in found.hits} == {"a", "d"}


def _richer() -> dict[str, object]:
    richer = document("2")
    notes = stream_of(richer, "notes")
    notes["schema"]["properties"] |= {
        "mood": {"type": "string"},
        "rank": {"type": "integer"},
        "memo": {"type": "string"},
    }
    notes["query"]["search"]["lexical_fields"].append("memo")
    notes["query"]["range_filters"]["rank"] = ["gte"]
    notes["query"]["aggregations"]["group_by"] += ["mood", "code"]
    return richer


def _keys(ledger: Ledger, reach: Reach, *filters: object) -> set[str]:
    return set(ledger.keys(reach, filters=filters))


def test_a_write_that_meets_a_new_version_has_its_columns_too(ledger: Ledger):
    bare = ledger.store.bare
    batch = Batch(ledger.ids[0], NOTES, [b'{"data":{"id":"a","mood":"glad","memo":"plum"}}'], NOW)
    for outcome in ledger.store.together(bare.declare(DESK, _richer()), bare.ingest(batch)):
        assert not isinstance(outcome, Exception)
    reach = Reach(NOTES, ledger.ids, (FieldName("mood"),))
    assert ledger.keys(reach, filters=(ExactFilter(FieldName("mood"), "glad"),)) == ["a"]
    plan = SearchPlan((SearchReach(reach, (FieldName("memo"),)),), (Term(("plum",)),), 10)
    assert [hit.record.id for hit in ledger.store.search(plan).hits] == ["a"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("primary_key", ["title"]),
        ("semantics", "append_only"),
        ("cursor_field", "seen_at"),
        ("cursor_field", None),
        ("consent_time_field", "seen_at"),
    ],
)
def test_a_version_that_would_change_what_is_stored_is_refused(ledger: Ledger, member: str, value: object):
    changed = document("2")
    stream_of(changed, "notes")[member] = value
    if value is None:
        del stream_of(changed, "notes")[member]
    with pytest.raises(InvalidDeclaration):
        ledger.store.declare(DESK, changed)
    assert ledger.store.declarations()[DESK].version == "1"


def test_a_field_cannot_become_another_type_even_after_it_was_left_out(ledger: Ledger):
    without, changed = document("2"), document("3")
    for version in (without, changed):
        stream_of(version, "notes")["schema"]["properties"].pop("code")
    ledger.store.declare(DESK, without)
    stream_of(changed, "notes")["schema"]["properties"]["code"] = {"type": "integer"}
    with pytest.raises(InvalidDeclaration):
        ledger.store.declare(DESK, changed)


def test_a_stream_that_was_left_out_cannot_be_read_and_is_whole_when_it_comes_back(ledger: Ledger):
    ledger.put({"id": "a", "text": "kept"}, stream=LOOSE)
    without = document("2")
    without["streams"].remove(stream_of(without, "loose"))
    ledger.store.declare(DESK, without)
    assert ledger.store.record(RecordPlan(ledger.reach(LOOSE), "a")) == ()
    with pytest.raises(StreamNotDeclared):
        ledger.put({"id": "b"}, stream=LOOSE)
    assert ledger.store.delete_connection(ledger.ids[1]) is None
    ledger.store.declare(DESK, document("3"))
    ledger.put({"id": "b"}, stream=LOOSE)
    assert ledger.keys(ledger.reach(LOOSE)) == ["b", "a"]


def test_summaries_count_what_a_reach_covers(ledger: Ledger):
    ledger.put({"id": "a", "at": "2026-01-01T00:00:00Z"}, {"id": "b"})
    ledger.put({"id": "a"}, connection=1, received_at=NOW + 5)
    whole = ledger.store.summaries([ledger.reach()])
    assert [(one.record_count, one.last_updated) for one in whole] == [(2, NOW), (1, NOW + 5)]
    part = ledger.store.summaries([ledger.reach(since="2026-01-01"), ledger.reach(resources=["a"])])
    assert [one.record_count for one in part] == [1, 0, 1, 1]
    # When a record came in that cannot be seen is not reported.
    assert {one.last_updated for one in part} == {None}


def test_a_stream_that_was_left_out_is_not_found_by_searching_everything_else(ledger: Ledger):
    ledger.put({"id": 1, "text": "apple"}, stream=PAGES)
    ledger.put({"id": "a", "title": "apple"})
    without = document("2")
    without["streams"].remove(stream_of(without, "pages"))
    ledger.store.declare(DESK, without)
    reach = SearchReach(ledger.reach(), (FieldName("title"), FieldName("body")))
    found = ledger.store.search(SearchPlan((reach,), (Term(("apple",)),), 10))
    assert ([hit.record.id for hit in found.hits], found.count) == (["a"], 1)
