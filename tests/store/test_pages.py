from __future__ import annotations

import hashlib
import json

import pytest
from msgspec.structs import replace

from headgate.errors import GrantInvalid
from headgate.model.declaration import Cardinality
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName, RecordId
from headgate.model.plan import ExpandPlan, PagePlan, RecordPlan
from headgate.model.query import Count, ExactFilter, Order, RangeFilter
from headgate.model.record import Preview
from headgate.model.rows import Extent
from tests.store.declared import GAUGES, LOOSE, MARKS, NOTES, ODD, PAGES
from tests.store.ledger import Ledger, body

MINUTES = [f"2026-01-01T00:{minute:02}:00Z" for minute in range(60)]


def _walk(ledger: Ledger, plan: PagePlan) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while True:
        page = ledger.store.page(plan)
        found += [(record.connection_id, record.id) for record in page.records]
        if page.next is None:
            return found
        plan = replace(plan, after=page.next)


def test_one_record_is_found_in_every_connection_that_has_it(ledger: Ledger):
    for connection in (0, 1):
        ledger.put({"id": "a", "size": connection}, connection=connection)
    found = ledger.store.record(RecordPlan(ledger.reach(), RecordId("a")))
    assert {(record.connection_id, body(record)["size"]) for record in found} == {
        (ledger.ids[0], 0),
        (ledger.ids[1], 1),
    }
    (one,) = ledger.store.record(RecordPlan(ledger.reach(connections=[1]), RecordId("a")))
    assert one.connection_id == ledger.ids[1]


@pytest.mark.parametrize("narrowed", [{"resources": ["b"]}, {"since": "2026-02-01"}, {"until": "2026-01-01"}])
def test_a_record_outside_the_reach_is_as_one_that_is_not_there(ledger: Ledger, narrowed: dict[str, object]):
    ledger.put({"id": "a", "at": "2026-01-01T00:00:00Z"})
    reach = ledger.reach(**narrowed)
    assert ledger.store.record(RecordPlan(reach, RecordId("a"))) == ()
    assert ledger.page(reach, count=Count.EXACT).count == 0


def test_a_time_bound_includes_its_beginning_and_excludes_its_end(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "at": f"2026-01-0{n}T00:00:00Z"} for n in (1, 2, 3)), {"id": "none"})
    assert ledger.keys(ledger.reach(since="2026-01-01", until="2026-01-03")) == ["2", "1"]


def test_a_bound_on_a_field_that_places_nothing_in_time_is_refused(ledger: Ledger):
    ledger.put({"id": "a"})
    reach = replace(ledger.reach(), time=TimeConstraint(FieldName("seen_at"), 0))
    with pytest.raises(GrantInvalid):
        ledger.store.page(PagePlan(reach, 10))


def test_a_connection_that_does_not_exist_has_no_records(ledger: Ledger):
    ledger.put({"id": "a"})
    reach = replace(ledger.reach(), connection_ids=(ConnectionId("cin_" + "f" * 24), ledger.ids[0]))
    assert ledger.keys(reach) == ["a"]
    assert ledger.page(
        replace(reach, connection_ids=()), count=Count.EXACT, with_extent=True
    ).extent == Extent(0, None, None)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_merge_connections_and_hold_every_record_once(ledger: Ledger, order: Order, limit: int):
    for connection in (0, 1):
        ledger.put(
            *({"id": f"{n:02}", "at": MINUTES[n // 4]} for n in range(16)),
            {"id": "zz"},
            {"id": "aa", "at": "soon"},
            connection=connection,
        )
    found = _walk(ledger, PagePlan(ledger.reach(), limit, order))
    assert len(set(found)) == len(found) == 36
    keys = [key for _, key in found]
    placed = [f"{n // 2:02}" for n in range(32)]
    expected = [*placed, "aa", "aa", "zz", "zz"]
    assert keys == (expected if order is Order.ASC else [*reversed(placed), "zz", "zz", "aa", "aa"])


@pytest.mark.parametrize("order", list(Order))
def test_what_comes_in_between_pages_moves_nothing(ledger: Ledger, order: Order):
    ledger.put(*({"id": f"{n:02}", "at": MINUTES[n]} for n in range(0, 40, 2)))
    plan = PagePlan(ledger.reach(), 5, order)
    page, found = ledger.store.page(plan), []
    for n in (1, 7, 13, 21, 39):
        found += [record.id for record in page.records]
        ledger.put({"id": f"{n:02}", "at": MINUTES[n]}, {"id": f"new{n}", "at": MINUTES[20]})
        ledger.remove(found[0])
        assert page.next is not None
        page = ledger.store.page(replace(plan, after=page.next))
        if page.next is None:
            break
    found += [record.id for record in page.records]
    old = [key for key in found if key.isdigit() and int(key) % 2 == 0]
    assert len(found) == len(set(found))
    assert old == sorted(old, reverse=order is Order.DESC)
    assert len(old) >= 20 - 5


def test_text_and_numbers_and_keys_alone_give_an_order_too(ledger: Ledger):
    ledger.put(
        *({"id": n, "slug": slug} for n, slug in enumerate(["b", "B", "ä", "😀", "\ufffd", None])),
        stream=PAGES,
    )
    slugs = [body(record)["slug"] for record in ledger.page(ledger.reach(PAGES), order=Order.ASC).records]
    assert slugs == ["B", "b", "ä", "\ufffd", "😀", None]
    levels = [1, -2.5, 10, 9.75, "10", None]
    ledger.put(*({"id": f"{n}", "level": level} for n, level in enumerate(levels)), stream=GAUGES)
    found = [body(record)["level"] for record in ledger.page(ledger.reach(GAUGES), order=Order.ASC).records]
    assert found == [-2.5, 1, 9.75, 10, "10", None]
    ledger.put({"id": "10"}, {"id": "9"}, {"id": "ü"}, stream=LOOSE)
    assert ledger.keys(ledger.reach(LOOSE), order=Order.ASC) == ["10", "9", "ü"]


def test_a_reader_who_may_not_see_the_cursor_field_gets_the_order_of_keys(ledger: Ledger):
    ledger.put({"id": "a", "at": MINUTES[9]}, {"id": "c", "at": MINUTES[1]}, {"id": "b"})
    plan = PagePlan(ledger.reach(fields=["id"]), 1, Order.ASC, by_cursor_field=False)
    first = ledger.store.page(plan)
    assert first.next is not None
    assert first.next.sort is None
    assert [key for _, key in _walk(ledger, plan)] == ["a", "b", "c"]


def test_only_granted_fields_are_in_a_record(ledger: Ledger):
    ledger.put({"id": "a", "title": "t", "secret": "s", ODD: "o", "size": None})
    (record,) = ledger.page(ledger.reach(fields=["size", "title"])).records
    assert record.body == b'{"size":null,"title":"t"}'
    (record,) = ledger.page(ledger.reach(fields=[ODD, "missing"])).records
    assert body(record) == {ODD: "o"}
    (record,) = ledger.page(ledger.reach(fields=[])).records
    assert record.body == b"{}"


def test_long_texts_are_begun_and_their_length_and_digest_given(ledger: Ledger):
    long, longer = "ä" * 600, "🎉x" * 40_000
    ledger.put({"id": "a", "title": long, "body": longer, "code": "y" * 500, "extra": ["z" * 900]})
    (record,) = ledger.page(
        ledger.reach(fields=["title", "body", "code", "extra"]), preview_chars=500
    ).records
    values = body(record)
    assert (values["title"], values["body"], values["code"]) == (long[:500], longer[:500], "y" * 500)
    assert values["extra"] == ["z" * 900]
    assert record.previews == {
        name: Preview(len(text), hashlib.sha256(text.encode()).hexdigest())
        for name, text in (("title", long), ("body", longer))
    }
    (whole,) = ledger.page(ledger.reach(fields=["title", "body"])).records
    assert (body(whole), whole.previews) == ({"title": long, "body": longer}, {})
    (narrow,) = ledger.page(ledger.reach(fields=["id"]), preview_chars=500).records
    assert (narrow.body, narrow.previews) == (b'{"id":"a"}', {})


def test_a_long_text_can_become_short_and_long_again(ledger: Ledger):
    for text in ("x" * 50_000, "short", "y" * 40_000, "z" * 90_000):
        ledger.put({"id": "a", "body": text, "title": "same"})
        (record,) = ledger.page().records
        assert body(record)["body"] == text


def test_exact_filters_find_every_kind_and_nothing_like_it(ledger: Ledger):
    ledger.put(
        {
            "id": "a",
            "code": "7",
            "label": "x",
            "size": 7,
            "weight": 7,
            "done": True,
            "day": "2026-01-01",
            ODD: "ö",
        },
        {
            "id": "b",
            "code": 7,
            "label": "X",
            "size": "7",
            "weight": 7.5,
            "done": 1,
            "day": "2026-01-02",
            ODD: "o",
        },
        {"id": "c", "code": None, "size": 7.0, "done": False, "at": "2026-01-01T01:00:00+01:00"},
    )
    midnight = 1_767_225_600_000_000
    for name, value, keys in (
        ("code", "7", ["a"]),
        ("label", "x", ["a"]),
        ("size", 7, ["a", "c"]),
        ("size", 2**70, []),
        ("weight", 10**400, []),
        ("weight", 7.5, ["b"]),
        ("weight", 7, ["a"]),
        ("done", True, ["a"]),
        ("done", False, ["c"]),
        ("day", midnight, ["a"]),
        ("at", midnight, ["c"]),
        (ODD, "ö", ["a"]),
    ):
        plan = PagePlan(
            ledger.reach(),
            9,
            Order.ASC,
            by_cursor_field=False,
            filters=(ExactFilter(FieldName(name), value),),
        )
        assert (name, value, [record.id for record in ledger.store.page(plan).records]) == (name, value, keys)


def test_range_filters_leave_out_what_has_no_value(ledger: Ledger):
    ledger.put({"id": "a", "size": -5}, {"id": "b", "size": 5}, {"id": "c"}, {"id": "d", "size": "5"})
    size = FieldName("size")
    for operator, value, keys in (
        ("lt", 5, ["a"]),
        ("lte", 5, ["b", "a"]),
        ("gt", -5, ["b"]),
        ("gte", -6, ["b", "a"]),
    ):
        assert ledger.keys(filters=(RangeFilter(size, operator, value),)) == keys
    assert ledger.keys(filters=(RangeFilter(size, "gte", 0), RangeFilter(size, "lt", 5))) == []
    assert ledger.keys(filters=(RangeFilter(size, "lt", 2**70), RangeFilter(size, "gt", -(2**70)))) == [
        "b",
        "a",
    ]


def test_texts_that_share_a_checksum_are_not_confused(ledger: Ledger):
    # Two of the best known pairs: CRC-32 cannot tell "plumless" from "buckeroo".
    ledger.put({"id": "a", "code": "plumless"}, {"id": "b", "code": "buckeroo"})
    filters = (ExactFilter(FieldName("code"), "buckeroo"),)
    page = ledger.page(filters=filters, count=Count.EXACT, with_extent=True)
    assert ([record.id for record in page.records], page.count) == (["b"], 1)
    assert page.extent == Extent(1, None, None)


def test_counts_and_extents_are_of_the_whole_and_not_of_the_page(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "at": MINUTES[n], "size": n} for n in range(9)), {"id": "x", "size": 99})
    page = ledger.page(
        limit=2, count=Count.EXACT, with_extent=True, filters=(RangeFilter(FieldName("size"), "gte", 3),)
    )
    assert page.count == 7
    assert page.extent == Extent(7, 1_767_225_600_000_000 + 180_000_000, 1_767_225_600_000_000 + 480_000_000)
    assert ledger.page(limit=2).count is None


# Children


def _marks(ledger: Ledger, limit: int = 2, **narrowed: object) -> ExpandPlan:
    reach = ledger.reach(MARKS, fields=["n"], **narrowed)
    return ExpandPlan("marks", reach, FieldName("note"), Cardinality.HAS_MANY, limit)


def test_children_come_along_in_their_order_and_only_so_many(ledger: Ledger):
    ledger.put({"id": "a"}, {"id": "b"})
    ledger.put(
        *({"note": "a", "n": n, "hidden": "h"} for n in range(3)), {"note": "ab", "n": 9}, stream=MARKS
    )
    records = {record.id: record for record in ledger.page(expand=(_marks(ledger),)).records}
    children = records["a"].expanded["marks"]
    assert [child.body for child in children.records] == [b'{"n":2}', b'{"n":1}']
    assert children.has_more
    assert (records["b"].expanded["marks"].records, records["b"].expanded["marks"].has_more) == ((), False)
    (one,) = ledger.store.record(RecordPlan(ledger.reach(), RecordId("a"), expand=(_marks(ledger, 3),)))
    assert (len(one.expanded["marks"].records), one.expanded["marks"].has_more) == (3, False)


def test_children_belong_to_their_parents_connection_and_to_the_childrens_reach(ledger: Ledger):
    for connection in (0, 1):
        ledger.put({"id": "a"}, connection=connection)
        ledger.put({"note": "a", "n": connection}, {"note": "a", "n": 7}, stream=MARKS, connection=connection)
    expand = (_marks(ledger, connections=[1], resources=['["a","1"]']),)
    found = {
        record.connection_id: record.expanded["marks"].records
        for record in ledger.page(expand=expand).records
    }
    assert found[ledger.ids[0]] == ()
    assert [child.id for child in found[ledger.ids[1]]] == ['["a","1"]']


@pytest.mark.parametrize(
    ("key", "numbers", "found"),
    [("7", [7, 7.0, 70, None, "7"], 2), ("007", [7], 0), ("abc", [0], 0), ("-0", [0], 0), ("1e1", [10], 0)],
)
def test_a_number_is_the_key_that_it_is_written_as(
    ledger: Ledger, key: str, numbers: list[object], found: int
):
    ledger.put({"id": key})
    ledger.put(*({"id": f"{n}", "number": number} for n, number in enumerate(numbers)), stream=GAUGES)
    plan = ExpandPlan("gauge", ledger.reach(GAUGES), FieldName("number"), Cardinality.HAS_ONE, 5)
    (record,) = ledger.page(expand=(plan,)).records
    assert len(record.expanded["gauge"].records) == found


def test_bodies_are_json_whatever_is_in_them(ledger: Ledger):
    ledger.put({"id": "a", "extra": {"nested": [None, True, 1.5, "\u2028"]}, "title": "\x1f"})
    (record,) = ledger.page().records
    assert json.loads(record.body) == {
        "id": "a",
        "title": "\x1f",
        "extra": {"nested": [None, True, 1.5, "\u2028"]},
    }
    assert record.stream == NOTES
