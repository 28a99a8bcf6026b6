"""The text of a number and of its groups: what it is of, a line for each group, and keys of any length."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.model.query import ExactFilter, RangeFilter, RangeOperator
from headgate.text.aggregate import aggregate_text, cut_keys, key_text, read_place
from headgate.text.writing import AGGREGATE_TEXT, json_text, size, unfenced
from tests.field_lines import value_of

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
ENCODED = base64.b64encode(bytes(range(256)) * 40).decode()


def test_an_aggregate_says_what_it_is_of_and_has_a_line_for_each_group():
    plain = {"stream": "messages", "metric": "count", "value": 42, "filtered_record_count": 42}
    assert aggregate_text(plain) == "count of messages: 42"
    groups = [{"key": f"k{n}", "count": 9 - n} for n in range(7)]
    grouped = plain | {"group_by": "channel", "groups": groups, "value": None}
    head = "count of messages by channel · 42 records"
    lines = aggregate_text(grouped | {"other_count": 0}).splitlines()
    assert lines == [f"{head} · all 7 groups", "k0 9", "k1 8", "k2 7", "k3 6", "k4 5", "k5 4", "k6 3"]
    lines = aggregate_text(grouped | {"other_count": 15}).splitlines()
    assert lines[0] == f"{head} · first 7 groups"
    assert lines[-1] == "+ 15 records (36%) in groups beyond limit: raise limit, up to 100"


def test_an_aggregate_says_which_records_are_counted():
    body = {"stream": "m", "metric": "sum", "field": "n", "value": -4048.97, "filtered_record_count": 9}
    filters = [
        ExactFilter("kind", "by rail"),
        ExactFilter("n", 3),
        RangeFilter("at", RangeOperator.GTE, "2025-03-01"),
        RangeFilter("at", RangeOperator.LT, "2025-04-01"),
    ]
    shown = aggregate_text(body | {"q": 'boat "a b"', "in": ["body"], "missing_value_count": 2}, 0, filters)
    narrowed = (
        'holding "boat \\"a b\\"" in body where kind="by rail" and n=3 and at>=2025-03-01 and at<2025-04-01'
    )
    assert shown == f"sum of n of m {narrowed}: -4048.97 · 9 records · 2 without a value"
    many = [ExactFilter(f"field_{n}", "v" * 500) for n in range(50)]
    assert size(aggregate_text(body, 0, many)) < 700
    assert re.search(r" and \d+ more: -4048.97", aggregate_text(body, 0, many))


KEYS = st.one_of(
    ANY_TEXT,
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(
        [
            "Groceries",
            "Room 5",
            "5",
            "a 3 of 4",
            "x @ y",
            "2025-01-01",
            "",
            " ",
            "true",
            "a\nb 3",
            "a\u2028b 3",
            "+ 9 groups",
            "words: x",
            "Eating out",
            "1-2",
            "世界",
            "O'Neil & Sons",
            "ann@example.org",
            "a · b",
        ]
    ),
)
GROUP = re.compile(r'("(?:[^"\\]|\\.)*"|[^":\n]+?)(?: \(reads on with cursor="[^"]+"\))? (\d+)')


@given(st.lists(KEYS, max_size=12), st.integers(0, 99))
def test_the_key_of_a_group_can_be_taken_for_nothing_else(keys: list[Any], count: int):
    groups = [{"key": key, "count": count} for key in keys]
    body = {"stream": "m", "metric": "count", "group_by": "f", "groups": groups, "other_count": 0}
    _, *lines = aggregate_text(body).split("\n")
    assert len(lines) == len(keys)
    for key, shown in zip(keys, lines, strict=True):
        assert len(shown.splitlines()) == 1
        written, number = GROUP.fullmatch(shown).groups()
        assert int(number) == count
        whole = value_of(written)
        assert (whole == key and type(whole) is type(key)) or str(key).startswith(whole.removesuffix("…"))


def test_an_aggregate_advises_what_can_be_done_about_the_groups_that_are_missing():
    def shown(count: int) -> str:
        groups = [{"key": n, "count": 1, "value": 2} for n in range(count)]
        return aggregate_text(
            {"stream": "m", "metric": "sum", "field": "n", "groups": groups, "other_count": 9}
        )

    assert "raise limit" in shown(99)
    # The limit cannot be raised.
    assert "raise limit" not in shown(100)
    assert "narrow with filter" in shown(100)
    assert "\n0 2 of 1 records\n" in shown(3)


def test_an_aggregate_shows_the_values_of_groups_both_keys_and_what_had_no_value():
    groups = [{"key": "shop", "time": "2026-01-01", "count": 3, "value": -12.5, "missing_value_count": 1}]
    shown = aggregate_text(
        {"stream": "bank", "metric": "sum", "field": "amount", "group_by": "payee", "groups": groups}
        | {"filtered_record_count": 4, "missing_value_count": 1, "unreadable_value_count": 2}
    )
    assert "\nshop @ 2026-01-01 -12.5 of 3 records, 1 without a value" in shown
    head = "sum of amount of bank by payee · 4 records · 1 without a value · 2 with a value of another type"
    assert shown.splitlines()[0] == f"{head} · 1 group, others unknown"


@pytest.mark.parametrize(
    ("granularity", "key", "written"),
    [
        ("month", "2026-04-01", "2026-04"),
        ("year", "2026-01-01", '"2026"'),
        ("day", "2026-04-01", "2026-04-01"),
    ],
)
def test_a_group_of_a_month_or_a_year_is_named_by_it_and_not_by_its_first_day(
    granularity: str, key: str, written: str
):
    body = {"stream": "bank", "metric": "count", "group_by_time": "at", "granularity": granularity}
    assert f"\n{written} 3" in aggregate_text({**body, "groups": [{"key": key, "count": 3}]})
    both = [{"key": "2026-04-01", "time": key, "count": 3}]
    assert f"\n2026-04-01 @ {written} 3" in aggregate_text({**body, "group_by": "payee", "groups": both})


@given(st.lists(st.tuples(ANY_TEXT, st.integers(0)), max_size=100))
def test_an_aggregate_text_fits(pairs: list[tuple[str, int]]):
    groups = [{"key": key, "count": count} for key, count in pairs]
    shown = aggregate_text({"stream": "m", "metric": "count", "group_by": "f", "groups": groups})
    assert size(shown) <= AGGREGATE_TEXT


@given(
    st.lists(
        st.sampled_from(["short", "long " * 40, "世" * 3_000, "\\" * 20_000, "a\nb" * 2_000]), max_size=100
    ),
    st.sampled_from([60, 1024]),
)
def test_every_group_and_every_key_is_read_whole_by_the_printed_cursors(keys: list[str], limit_chars: int):
    keys = [f"{n} {key}" for n, key in enumerate(keys)]
    body = {"stream": "m", "metric": "count", "group_by": "f"}
    body["groups"] = [{"key": key, "count": 1} for key in keys]
    found: list[str] = []
    while True:
        shown = aggregate_text(body, len(found))
        assert size(shown) <= AGGREGATE_TEXT
        for key, cursor in re.findall(
            r'^("(?:[^"\\]|\\.)*"|[^":\n]+?)(?: \(reads on with cursor="([0-9:a-f]+)"\))? 1$',
            shown.partition("\n")[2],
            re.MULTILINE,
        ):
            found.append(
                json.loads(key).removesuffix("…") + read_on(body, cursor) if cursor else value_of(key)
            )
        following = re.search(
            r'^\+ (\d+) groups that are not printed: repeat the call with cursor="(\d+)"$',
            shown,
            re.MULTILINE,
        )
        if following is None:
            break
        assert int(following[2]) == len(found) == len(keys) - int(following[1])
    assert found == keys
    for key, group in zip(keys, cut_keys(body["groups"], limit_chars), strict=True):
        cursor = group.get("key_cursor")
        assert key == (group["key"].removesuffix("…") + read_on(body, cursor) if cursor else group["key"])


def read_on(body: dict[str, Any], cursor: str) -> str:
    text = ""
    while True:
        shown = key_text(body, read_place(cursor))
        text += unfenced(shown)
        following = re.search(r'^repeat the call with cursor="(.*)"$', shown, re.MULTILINE)
        if following is None:
            return text
        cursor = following[1]


def test_a_cursor_into_another_key_is_not_read():
    groups = [{"key": key * 100, "count": 1} for key in ("ab", "cd")]
    first, second = (read_place(group["key_cursor"]) for group in cut_keys(groups, 60))
    assert key_text({"groups": groups[::-1]}, first) is None
    assert key_text({"groups": groups[:1]}, second) is None
    assert key_text({"groups": [{"key": ENCODED, "count": 1}]}, first) is None
    assert [read_place(cursor) for cursor in ("", "x", "1:2", "-1", "1:2:zz")] == [None] * 5


def test_encoded_bytes_are_no_key():
    groups = [{"key": ENCODED, "count": 1}]
    shown = aggregate_text({"stream": "m", "metric": "count", "group_by": "f", "groups": groups})
    assert ENCODED[:40] not in shown + json_text(cut_keys(groups, 1024))
    assert '"mime_type":"application/octet-stream"' in shown
