"""What a rule of the owner hides is, for every client, as if it had never been there; the owner sees it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from msgspec.structs import replace

from headgate.errors import NotFound, ResourceLimit
from headgate.model.declaration import Cardinality
from headgate.model.hiding import MAX_RULES, HidingRule, RuleId, RuleKind
from headgate.model.ids import FieldName, RecordId, digest_of_key
from headgate.model.plan import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    ExpandPlan,
    KeyPlan,
    OffsetWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    Term,
    WindowPlan,
)
from headgate.model.query import Count, ExactFilter, Metric, Order
from headgate.model.record import Record
from headgate.policy.hiding import Hider
from headgate.store.changes import hiding
from tests.store.declared import DESK, LOOSE, MARKS, NOTES, declared, document
from tests.store.engines import NOW, Driven, fresh
from tests.store.ledger import Ledger, body
from tests.store.plans import KEYS, NOTE, WORDS

TITLE = (FieldName("title"), FieldName("body"))


def rule(number: int, kind: RuleKind, text: str, field: str | None = None) -> HidingRule:
    return HidingRule(RuleId(f"rul_{number}"), kind, text, None if field is None else FieldName(field))


RED = rule(1, RuleKind.VALUE, "red", "label")
APPLE = rule(2, RuleKind.WORDS, "apple")
SEVEN = rule(3, RuleKind.PATTERN, "^7$")
RULES = (RED, APPLE, SEVEN)


def add(ledger: Ledger, one: HidingRule) -> int:
    return ledger.store.add_rule(one, at=NOW)


def remove(ledger: Ledger, one: HidingRule) -> int:
    return ledger.store.remove_rule(one.id, at=NOW)


def owned(reach: Reach) -> Reach:
    return replace(reach, with_hidden=True)


def everything(ledger: Ledger, reach: Reach) -> list[Any]:
    """All that a reader of a reach can see, by every way of reading."""
    store = ledger.store
    pages = [
        store.page(PagePlan(reach, limit, order, count=Count.EXACT, with_extent=True, filters=filters))
        for limit in (2, 50)
        for order in Order
        for filters in ((), (ExactFilter(FieldName("label"), "red"),))
    ]
    searches = [
        store.search(SearchPlan((SearchReach(reach, TITLE),), (Term((word,)),), 50)) for word in WORDS[:6]
    ]
    # Places are sealed before they leave, and name rows, which each store numbers by itself.
    searches = [replace(page, hits=tuple(replace(hit, place=None) for hit in page.hits)) for page in searches]
    numbers = [
        store.aggregate(AggregatePlan(reach, Metric.COUNT)),
        store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=FieldName("label"))),
        store.aggregate(AggregatePlan(reach, Metric.MAX, FieldName("size"))),
    ]
    records = [store.record(RecordPlan(reach, RecordId(key))) for key in KEYS]
    keys = [store.key(KeyPlan(reach, RecordId(key[:1]), digest_of_key(key))) for key in KEYS]
    return [pages, searches, numbers, records, keys, store.summaries([reach])]


def plain(ledger: Ledger, answers: Any) -> str:
    """Write answers down without what is each store's own."""
    text = repr(answers)
    for number, name in enumerate(ledger.ids):
        text = text.replace(name, f"connection {number}")
    return text


class Copy:
    """What a client knows that asks for changes again and again."""

    def __init__(self, ledger: Ledger, reach: Reach) -> None:
        self._store, self._reach, self._since = ledger.store, reach, 0
        self.records: dict[tuple[str, str], Any] = {}

    def read(self) -> list[tuple[str, bool]]:
        page = self._store.changes(ChangesPlan(self._reach, 1000, self._since))
        assert page.next is None
        self._since = page.horizon
        for entry in page.entries:
            key = (entry.connection_id, entry.id)
            if isinstance(entry, Record):
                self.records[key] = body(entry)
            else:
                # The end of a record is reported only to a reader that had it.
                del self.records[key]
        return [(entry.id, isinstance(entry, Record)) for entry in page.entries]


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 1), st.lists(NOTE, min_size=1, max_size=6)),
    st.tuples(st.just("put"), st.integers(0, 1), st.lists(NOTE, min_size=1, max_size=6)),
    st.tuples(st.just("delete"), st.integers(0, 1), st.sampled_from(KEYS)),
    st.tuples(st.just("toggle"), st.sampled_from(RULES)),
)


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=3, max_size=9))
def test_what_a_rule_hides_is_as_if_it_had_never_been_there(engine: str, steps: list[Any]):
    known: dict[tuple[int, str], dict[str, Any]] = {}
    active: list[HidingRule] = []
    with fresh(engine) as store, fresh(engine) as without:
        ledger, other = Ledger(store, connections=2), Ledger(without, connections=2)
        reach = replace(ledger.reach(), visible=ledger.reach().fields)
        client, owner = Copy(ledger, reach), Copy(ledger, owned(ledger.reach()))
        for step in steps:
            match step:
                case "put", connection, notes:
                    ledger.put(*notes, connection=connection)
                    known.update({(connection, note["id"]): _declared(note) for note in notes})
                case "delete", connection, key:
                    ledger.remove(key, connection=connection)
                    known.pop((connection, key), None)
                case _, chosen:
                    if chosen in active:
                        active.remove(chosen)
                        remove(ledger, chosen)
                    else:
                        active.append(chosen)
                        add(ledger, chosen)
            client.read()
            owner.read()
            hider = Hider(active, NOTES)
            shown = {key: note for key, note in known.items() if not hider.hides(note)}
            assert _named(ledger, client.records) == shown
            assert _named(ledger, owner.records) == known
        for (connection, _), note in sorted(shown.items()):
            other.put(note, connection=connection)
        same = replace(other.reach(), visible=other.reach().fields)
        assert _undated(ledger, everything(ledger, reach)) == _undated(other, everything(other, same))
        assert ledger.page(owned(ledger.reach()), count=Count.EXACT).count == len(known)
        counts = store.hidden_counts()
        for one in active:
            assert counts[one.id] == sum(Hider([one], NOTES).hides(note) for note in known.values())


def _declared(note: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in note.items() if name in declared().streams[NOTES].fields}


def _named(ledger: Ledger, records: dict[tuple[str, str], Any]) -> dict[tuple[int, str], Any]:
    return {(ledger.ids.index(name), key): value for (name, key), value in records.items()}


def _undated(ledger: Ledger, answers: list[Any]) -> str:
    *others, summaries = answers
    return plain(ledger, [others, [(one.stream, one.record_count) for one in summaries]])


def _fill(ledger: Ledger, hidden: int) -> None:
    for number in range(40):
        ledger.put({"id": f"s{number}", "title": "apple pear", "label": "blue", "at": "2026-01-01T00:00:00Z"})
        if number < hidden:
            ledger.put(
                {"id": f"h{number}", "title": "apple " * 9, "label": "red", "at": "2026-01-01T00:00:00Z"}
            )


@pytest.mark.parametrize("is_late", [False, True])
def test_hidden_records_move_neither_pages_nor_hits_nor_counts(engine: str, *, is_late: bool):
    seen: list[str] = []
    for hidden in (0, 40):
        with fresh(engine) as store:
            ledger = Ledger(store, connections=2)
            if not is_late:
                add(ledger, RED)
            _fill(ledger, hidden)
            if is_late:
                assert add(ledger, RED) == hidden
            reach = replace(ledger.reach(), visible=ledger.reach().fields)
            seen.append(plain(ledger, everything(ledger, reach)))
    assert seen[0] == seen[1]


def test_a_client_sees_a_hidden_record_go_and_come_back(ledger: Ledger):
    ledger.put({"id": "a", "label": "red"}, {"id": "b", "label": "blue"})
    client = Copy(ledger, ledger.reach())
    assert client.read() == [("a", True), ("b", True)]
    assert add(ledger, RED) == 1
    assert client.read() == [("a", False)]
    ledger.put({"id": "a", "label": "red", "size": 2})
    assert client.read() == []
    ledger.put({"id": "b", "label": "Red"})
    assert client.read() == [("b", False)]
    ledger.put({"id": "b", "label": "blue"})
    assert client.read() == [("b", True)]
    assert remove(ledger, RED) == 1
    assert client.read() == [("a", True)]
    assert client.read() == []
    assert {key for _, key in client.records} == {"a", "b"}


def test_one_record_is_out_of_reach_by_every_way(ledger: Ledger):
    add(ledger, RED)
    long = "x" * 50_000 + " apple"
    ledger.put({"id": "a", "label": "red", "body": long}, {"id": "b", "label": "blue", "body": "pear"})
    store, reach = ledger.store, ledger.reach()
    window = OffsetWindow(0, 10)
    assert store.record(RecordPlan(reach, RecordId("a"))) == ()
    assert store.window(WindowPlan(reach, RecordId("a"), FieldName("body"), window)) == ()
    assert store.key(KeyPlan(reach, RecordId("a"), digest_of_key("a"))) is None
    assert [
        found.text
        for found in store.window(WindowPlan(owned(reach), RecordId("a"), FieldName("body"), window))
    ] == ["x" * 10]
    (record,) = store.record(RecordPlan(owned(reach), RecordId("a")))
    assert body(record)["body"] == long


def test_a_long_text_is_whole_after_it_was_hidden_and_shown_again(ledger: Ledger):
    long = "secret " + "x" * 50_000 + " end"
    ledger.put({"id": "a", "body": long, "extra": {"k": [1, 2.50]}, "title": "t"})
    (before,) = ledger.store.record(RecordPlan(ledger.reach(), RecordId("a")))
    words = rule(9, RuleKind.WORDS, "end", "body")
    assert add(ledger, words) == 1
    assert remove(ledger, words) == 1
    (after,) = ledger.store.record(RecordPlan(ledger.reach(), RecordId("a")))
    assert after.body == before.body


def test_a_file_of_hidden_records_alone_is_not_found(ledger: Ledger):
    async def content() -> Any:
        yield b"x"

    blob_id, _ = ledger.store.put_blob(content(), "text/plain")
    ledger.put({"id": "a", "label": "red", "file": {"blob_id": blob_id}})
    plan = BlobPlan((ledger.reach(),), blob_id)
    assert len(ledger.store.blobs(plan)) == 1
    add(ledger, RED)
    assert ledger.store.blobs(plan) == ()
    assert len(ledger.store.blobs(BlobPlan((owned(ledger.reach()),), blob_id))) == 1


def test_hidden_children_are_not_expanded_and_the_owner_sees_them(ledger: Ledger):
    add(ledger, APPLE)
    ledger.put({"id": "a"})
    ledger.put({"note": "a", "n": 1, "text": "apple"}, {"note": "a", "n": 2, "text": "pear"}, stream=MARKS)

    def children(reach: Reach, marks: Reach) -> list[str]:
        expand = ExpandPlan("marks", marks, FieldName("note"), Cardinality.HAS_MANY, 10)
        (record,) = ledger.store.record(RecordPlan(reach, RecordId("a"), (expand,)))
        return [body(one)["text"] for one in record.expanded["marks"].records]

    reach, marks = ledger.reach(), ledger.reach(MARKS)
    assert children(reach, marks) == ["pear"]
    assert children(owned(reach), owned(marks)) == ["pear", "apple"]


def test_what_an_append_only_stream_hides_stays_as_it_is(ledger: Ledger):
    add(ledger, APPLE)
    ledger.put({"note": "a", "n": 1, "text": "apple"}, stream=MARKS)
    ledger.put({"note": "a", "n": 1, "text": "pear"}, stream=MARKS)
    assert ledger.keys(ledger.reach(MARKS)) == []
    (record,) = ledger.page(owned(ledger.reach(MARKS))).records
    assert body(record)["text"] == "apple"


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("filters", [(), (ExactFilter(FieldName("done"), value=True),)])
def test_the_owner_pages_through_hidden_and_other_records_in_one_order(
    ledger: Ledger, order: Order, filters: Sequence[Any]
):
    add(ledger, RED)
    for number in range(9):
        label = "red" if number % 2 else "blue"
        for connection in (0, 1):
            note = {
                "id": f"k{number // 2}{label}",
                "label": label,
                "done": True,
                "at": "2026-01-01T00:00:00Z",
            }
            ledger.put(note, connection=connection)
    reach = owned(ledger.reach())
    seen: list[tuple[str, str]] = []
    after = None
    while True:
        page = ledger.page(reach, 1, order=order, after=after, filters=tuple(filters))
        seen += [(record.id, record.connection_id) for record in page.records]
        after = page.next
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 18
    assert [key for key, _ in seen] == sorted((key for key, _ in seen), reverse=order is Order.DESC)


def test_a_rule_is_in_effect_after_a_restart_and_for_what_comes_later(engine: str, tmp_path: Any):
    store = Driven(engine, tmp_path / "home")
    ledger = Ledger(store, connections=1)
    ledger.put({"id": "a", "label": "red"})
    add(ledger, RED)
    ledger.store = store = store.opened_again()
    try:
        ledger.put({"id": "b", "label": "red"}, {"id": "c"})
        assert ledger.keys() == ["c"]
        assert [one.id for one in store.rules()] == [RED.id]
    finally:
        store.close()


def test_a_record_that_is_marked_as_invalid_is_hidden_and_stays_marked(ledger: Ledger):
    ledger.put({"id": "a", "label": "red", "size": "many"})
    add(ledger, RED)
    (marked,) = ledger.store.marked(ledger.ids[0], NOTES, after=0, limit=5).records
    assert (marked.id, len(marked.problems)) == ("a", 1)
    remove(ledger, RED)
    (marked,) = ledger.store.marked(ledger.ids[0], NOTES, after=0, limit=5).records
    assert marked.id == "a"


def test_the_owner_deletes_what_is_hidden(ledger: Ledger):
    add(ledger, RED)
    ledger.put({"id": "a", "label": "red"})
    assert ledger.store.delete_record(ledger.ids[0], NOTES, RecordId("a"), at=NOW)
    assert ledger.keys(owned(ledger.reach())) == []
    assert not ledger.store.delete_record(ledger.ids[0], NOTES, RecordId("a"), at=NOW)


def test_a_rule_also_hides_in_a_stream_that_comes_back(ledger: Ledger):
    ledger.put({"id": "a", "text": "apple"}, {"id": "b", "text": "pear"}, stream=LOOSE)
    smaller = document("2")
    smaller["streams"] = [one for one in smaller["streams"] if one["name"] != "loose"]
    ledger.store.declare(DESK, smaller)
    add(ledger, APPLE)
    ledger.store.declare(DESK, document("3"))
    assert ledger.keys(ledger.reach(LOOSE)) == ["b"]


def test_a_preview_counts_by_stream_and_what_is_hidden_before(ledger: Ledger):
    ledger.put({"id": "a", "label": "red", "title": "apple"}, {"id": "b", "title": "apple"})
    ledger.put({"note": "a", "n": 1, "text": "apple"}, stream=MARKS)
    add(ledger, RED)
    found = ledger.store.count_found(APPLE)
    assert (found.by_stream, found.total, found.hidden_before) == ({NOTES: 2, MARKS: 1}, 3, 1)
    assert add(ledger, APPLE) == 2
    assert ledger.store.hidden_counts() == {RED.id: 1, APPLE.id: 3}


def test_there_is_an_end_to_the_number_of_rules(ledger: Ledger):
    for number in range(MAX_RULES):
        add(ledger, rule(100 + number, RuleKind.WORDS, f"w{number}"))
    with pytest.raises(ResourceLimit):
        add(ledger, RED)
    with pytest.raises(NotFound):
        remove(ledger, RED)


# The same words


_PIECES = st.sampled_from(
    (
        *(
            "test",
            "Result",
            "r\u00e9sum\u00e9",
            "\u6771\u4eac\u90fd",
            "\u0e44\u0e17\u0e22",
            "\ud55c\uad6d\uc5b4",
        ),
        *("stra\u00dfe", "\uff54\uff45\uff53\uff54", "x\u00b2", "7", "\u0915\u093f", "x" * 70, "\u0301"),
        *("\u00ad", "\u200b", "\u034f", "\ufe0f", "\u2060"),
        *(" ", " ", "-", "_", ".", "\n", "\u2013", "\u2100", "'"),
    )
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.generate],
)
@given(
    texts=st.lists(st.lists(_PIECES, min_size=1, max_size=6).map("".join), min_size=1, max_size=8),
    data=st.data(),
)
def test_a_rule_hides_whatever_a_search_for_its_words_finds(texts: list[str], data: st.DataObject):
    pieces = data.draw(st.lists(_PIECES, min_size=1, max_size=3).map("".join))
    asked = data.draw(st.sampled_from([pieces, data.draw(st.sampled_from(texts))]))
    if not any(character.isalnum() for character in asked):
        return
    one = rule(1, RuleKind.WORDS, asked)
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=1)
        ledger.put(*({"id": f"n{n}", "body": text} for n, text in enumerate(texts)))
        ledger.put({"id": "list", "body": None, "title": "x", "extra": texts})
        term = Term(tuple(asked.split()), is_strict=True)
        found = store.search(SearchPlan((SearchReach(ledger.reach(), TITLE),), (term,), 50))
        unhidden = [hit.record.id for hit in found.hits if not Hider([one], NOTES).hides(body(hit.record))]
    assert unhidden == []


def test_records_are_compared_again_when_rules_find_more_than_before(
    engine: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    """The version before did not see through what is not seen."""
    ledger = Ledger(Driven(engine, tmp_path / "home"), connections=2)
    ledger.put(*({"id": f"n{n:04}", "title": "app\u00adle" if n % 3 else "pear"} for n in range(1200)))
    with monkeypatch.context() as before:
        before.setattr(Hider, "hides", lambda *_: False)
        before.setattr(hiding, "VERSION", hiding.VERSION - 1)
        add(ledger, APPLE)
    assert len(ledger.keys(limit=2000)) == 1200
    ledger.store = ledger.store.opened_again()
    # Idle tasks are done before a store is closed.
    ledger.store = ledger.store.opened_again()
    assert len(ledger.keys(limit=2000)) == 400
    ledger.store.close()
