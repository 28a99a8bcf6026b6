from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from headgate.text.document import Space, document
from headgate.text.ladder import Handles, Known, Windows, shorten
from headgate.text.records import records_text, times_fact
from headgate.text.search import search_text
from headgate.text.window import WindowText, window_text
from headgate.text.writing import QUERY_TEXT, SEARCH_TEXT, json_text, line, size, unfenced

HANDLES = Handles(
    "cin_a/messages:m1", lambda path: f"pdpp://field-window/{path}", lambda b: f"pdpp://blob/{b}"
)
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
IDS = st.text(st.sampled_from('abcé世 "[],:{}'), min_size=1, max_size=120).map(
    lambda key: "cin_a/messages:" + key
)
ENCODED = base64.b64encode(bytes(range(256)) * 40).decode()


def shown_for(results: list[dict[str, object]], **body: object) -> str:
    """Write the text of a search whose hits fit the results."""
    hits = [
        {key: one.get(key) for key in ("connection_id", "display_name")}
        | {"stream": "messages", "connector_key": "slack", "snippet": {"text": one["title"]}}
        for one in results
    ]
    return search_text({"data": hits, **body}, results)


def result(result_id: str, text: str, *, connection: str = "cin_a") -> dict[str, object]:
    return {
        "id": result_id,
        "title": text,
        "url": "u",
        "connection_id": connection,
        "display_name": text,
        "match_windows": [
            {
                "field_path": "text",
                "complete": False,
                "read": {"tool": "read_record_field", "args": {"id": result_id, "field_path": "text"}},
            }
        ],
    }


@pytest.mark.requirement("S1-04", "S1-05", "S1-31", "S1-38")
@given(st.lists(st.tuples(IDS, ANY_TEXT), min_size=1, max_size=8))
def test_a_search_text_fits_and_its_ids_are_whole(hits: list[tuple[str, str]]):
    results = [result(*hit) for hit in hits]
    shown = shown_for(results, has_more=True, next_cursor="se1.abc", meta={"count": 42})
    assert size(shown) <= SEARCH_TEXT
    ends = [text.removeprefix("   id=") for text in shown.splitlines() if text.startswith("   id=")]
    assert ends == [hit[0] for hit in hits]
    known = r"(search: |sources: |\d+\. |   (\"|\[text: read from 0\]|id=)|fetch\(id\) )"
    assert all(re.match(known, text) for text in shown.splitlines())
    assert "not printed" not in shown


@pytest.mark.requirement("S1-05")
def test_an_id_of_four_hundred_characters_is_printed_whole():
    result_id = 'cin_a/messages:["' + "k" * 397 + '"]'
    shown = shown_for([result(result_id, "x" * 200)] * 5)
    assert f"   id={result_id}\n" in shown
    assert size(shown) <= SEARCH_TEXT


@pytest.mark.requirement("S2-53")
def test_a_search_over_several_connections_says_how_many_hits_each_gave():
    shown = shown_for([result("a/m:1", "t"), result("b/m:1", "t", connection="b"), result("a/m:2", "t")])
    assert shown.splitlines()[1] == "sources: t (slack) 2 · t (slack) 1"
    assert shown_for([result("a/m:1", "t")]).splitlines()[1] == "sources: t (slack) 1"


def test_a_search_that_found_nothing_invents_nothing():
    shown = search_text({"has_more": False, "meta": {"count": 0}}, [])
    assert shown.startswith("search: 0 hit(s). has_more=false count=exact:0")
    assert "id=" not in shown


@pytest.mark.requirement("S1-29", "S1-30")
def test_a_connection_is_printed_only_where_the_id_does_not_hold_it():
    plain = result("messages:1", "t", connection="odd/one")
    shown = shown_for([result("cin_a/messages:1", "t"), plain])
    lines = [text for text in shown.splitlines() if text.startswith("   id=")]
    assert ["connection_id=" in text for text in lines] == [False, True]


@given(st.lists(st.tuples(IDS, st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=4)), max_size=8))
def test_a_page_of_records_fits_and_its_ids_are_whole(rows: list[tuple[str, dict[str, str]]]):
    body = {"data": [{"data": data} for _, data in rows], "has_more": True, "next_cursor": "pg1.x"}
    named = [(record_id, {"data": data}) for record_id, data in rows]
    shown = records_text("messages", body, named)
    assert size(shown) <= QUERY_TEXT
    assert "next_cursor=" in shown.splitlines()[0]
    assert all(
        re.match(r"records from|\d\. |Pass an id|Nothing on this page", text) or text.endswith(" | id")
        for text in shown.splitlines()
    )
    printed = re.findall(r"^(\d)\. .*$", shown, re.MULTILINE)
    assert [int(at) for at in printed] == list(range(1, len(rows) + 1))
    lines = [text for text in shown.splitlines() if re.match(r"\d\. ", text)]
    assert all(text.endswith(f" | id={row[0]}") for text, row in zip(lines, rows, strict=True))
    assert "not printed" not in shown


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ({"data": []}, "No record fits. Loosen or leave out filter"),
        ({"data": [], "next_changes_since": "ch1.x"}, "Nothing changed. Next time pass changes_since"),
        ({"data": [{"data": {}}], "next_changes_since": "ch1.x"}, "Next time pass changes_since="),
        (
            {"data": [{"data": {}}], "has_more": True, "next_cursor": "c"},
            "For the next page repeat the call with cursor",
        ),
    ],
)
def test_a_page_says_what_to_do_next(body: dict[str, object], hint: str):
    assert hint in records_text("messages", body, [("a/m:1", row) for row in body["data"]])


@pytest.mark.requirement("S2-25", "S2-47", "S3-28")
def test_a_page_names_its_cursors_and_count_and_how_to_read_on():
    body = {
        "data": [{"data": {"id": "m1", "text": "long " * 100}}],
        "has_more": True,
        "next_cursor": "pg1.a",
        "next_changes_since": "ch1.b",
        "meta": {"count": {"kind": "exact", "value": 42}},
    }
    shown = records_text("messages", body, [("cin_a/messages:m1", body["data"][0])])
    assert 'has_more=true next_cursor="pg1.a" next_changes_since="ch1.b" count=exact:42' in shown
    assert '\n"id" | text | id\n1. m1 | "long long' in shown
    row = {"data": {"text": "long " * 40}, "previews": {"text": {"size_chars": 500}}}
    shown = records_text("messages", {"data": [row]}, [("cin_a/messages:m1", row)])
    assert '…"[+300 from 200] | id=cin_a/messages:m1\n' in shown
    assert "read_record_field with the id, field_path of the column and offset_chars=m reads on." in shown


def test_a_deleted_record_is_marked_as_deleted():
    body = {"data": [{"deleted": True, "deleted_at": "2026-02-11T18:30:00Z"}]}
    assert '1. deleted_at="2026-02-11T18:30:00Z" | id=c/m:1' in records_text(
        "m", body, [("c/m:1", body["data"][0])]
    )


WORDS = st.sampled_from(["word ", "世界は広い", "слово ", '"quoted" \\\\ ', "\u202e"])


FIELDS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    st.one_of(
        st.none(),
        st.integers(),
        st.builds(lambda word, words: word * words, WORDS, st.integers(0, 60)),
        st.builds(lambda word, words: [word] * words, WORDS, st.integers(0, 60)),
    ),
    max_size=14,
)


@given(st.integers(1, 100), st.integers(1, 150), FIELDS)
def test_whatever_fields_are_called_25_rows_are_printed(total: int, key_chars: int, data: dict[str, object]):
    ids = [f"cin_a/messages:{n:03}{'k' * key_chars}" for n in range(total)]
    body = {"data": [{"data": data}] * total, "has_more": True, "next_cursor": "pg1." + "x" * 180}
    shown = records_text("messages", body, [(one, {"data": data}) for one in ids])
    assert size(shown) <= QUERY_TEXT
    assert len(re.findall(r"^\d+\. .* id=\S+$", shown, re.MULTILINE)) >= min(total, 25)


def test_short_values_are_whole_where_long_ones_are_cut():
    row = {"data": {"body": "words " * 90, "subject": "The roof", "size": 3}}
    shown = records_text("m", {"data": [row] * 25}, [("c/m:1", row)] * 25)
    assert (
        len(
            re.findall(
                r'^\d+\. "words [^|]*…"\[\+\d+ from \d+\] \| The roof \| 3 \| id=c/m:1$', shown, re.MULTILINE
            )
        )
        == 25
    )


@settings(deadline=None)
@given(
    st.integers(1, 100),
    st.integers(1, 160),
    WORDS,
    st.integers(0, 100),
    st.sampled_from([None, "pg1.before"]),
)
def test_rows_left_out_are_counted_from_what_is_printed(
    total: int, key_chars: int, word: str, words: int, cursor: str | None
):
    ids = [f"cin_a/messages:{n:03}{'k' * key_chars}" for n in range(total)]
    data = {"subject": word * 3, "body": word * words, "size": 3, "more": {"a": [word * words]}}
    body = {"data": [{"data": data}] * total, "has_more": True, "next_cursor": "pg1." + "x" * 180}
    shown = records_text("messages", body, [(one, {"data": data}) for one in ids], cursor=cursor)
    assert size(shown) <= QUERY_TEXT
    printed = re.findall(r"^\d+\. .* id=(\S+)$", shown, re.MULTILINE)
    assert printed == ids[: len(printed)]
    assert len(printed) >= min(total, 25)
    left = re.search(
        r"(\d+) more of this page are not printed.* repeat the call (.*) and with limit=(\d+)", shown
    )
    assert (int(left[1]) if left else 0) == total - len(printed)
    if left:
        assert left[2] == ("with the same cursor" if cursor else "without cursor")
        assert int(left[3]) == len(printed)
        assert "For the next page" not in shown
    assert all(shown.count(one) == 1 for one in printed)


@settings(deadline=None)
@given(st.integers(1, 100), st.integers(1, 140), WORDS, st.integers(1, 100))
def test_hits_left_out_are_counted_from_what_is_printed(total: int, key_chars: int, word: str, words: int):
    ids = [f"cin_{n % 3}/messages:{n:03}{'k' * key_chars}" for n in range(total)]
    results = [result(one, word * words, connection=f"cin_{n % 3}") for n, one in enumerate(ids)]
    shown = shown_for(results, has_more=True, next_cursor="se1." + "x" * 180)
    assert size(shown) <= SEARCH_TEXT
    printed = re.findall(r"^   id=(\S+)$", shown, re.MULTILINE)
    assert printed == ids[: len(printed)]
    assert len(printed) >= min(total, 25)
    left = re.search(r"(\d+) more of this page are not printed.* without cursor and with limit=(\d+)", shown)
    assert (int(left[1]) if left else 0) == total - len(printed)
    assert left is None or int(left[2]) == len(printed)
    assert all(shown.count(one) == 1 for one in printed)
    # Evidence for every hit that is printed.
    assert shown.count("[text: read from 0]") == len(printed)


def test_the_source_of_a_row_is_printed_where_it_has_one():
    row = {"data": {"a": 1}, "display_name": "Home mail"}
    shown = records_text("m", {"data": [row]}, [("c/m:1", row)])
    assert '\nall: source="Home mail"\na | id\n1. 1 | id=c/m:1\n' in shown
    other = {**row, "display_name": "Work mail"}
    shown = records_text("m", {"data": [row, other]}, [("c/m:1", row), ("d/m:1", other)])
    assert '\na | source | id\n1. 1 | "Home mail" | id=c/m:1\n2. 1 | "Work mail" | id=d/m:1\n' in shown


def test_fields_that_do_not_fit_are_named_with_the_call_that_reads_them():
    row = {"data": {f"field_{n:02}": "words " * 20 for n in range(12)}}
    shown = records_text("m", {"data": [row] * 25}, [("c/m:1", row)] * 25)
    found = re.search(r"\(\+(\d+) fields: (.*?)\)", shown)
    named = found[2].split(", ")
    assert int(found[1]) >= len(named) - 1 > 0
    assert "names what a row leaves out: call fetch with its id, or ask with fields." in shown


def test_an_object_that_is_cut_is_marked_like_a_text():
    row = {"data": {"tags": ["a"], "parts": ["part"] * 1000}}
    shown = records_text("m", {"data": [row] * 20}, [("c/m:1", row)] * 20)
    assert re.search(r'^1\. \["a"\] \| "\[.*…"\[\+\d+ from 0\] \| id=c/m:1$', shown, re.MULTILINE)


def test_related_records_are_printed_by_their_ids():
    row = {"data": {"a": 1}, "expanded": {"files": ["c/f:1", "c/f:2"], "author": []}}
    shown = records_text("m", {"data": [row]}, [("c/m:1", row)])
    assert "1. 1 | expanded files=[c/f:1, c/f:2] expanded author=[] | id=c/m:1" in shown
    row = {"data": {"a": 1}, "expanded": {"files": [f"c/f:{n}" for n in range(50)]}}
    shown = records_text("m", {"data": [row] * 25}, [("c/m:1", row)] * 25)
    printed, left = re.search(r"expanded files=\[(.*?), \+(\d+) more: fetch with expand\]", shown).groups()
    assert len(printed.split(", ")) + int(left) == 50
    assert len(re.findall(r"^\d+\. ", shown, re.MULTILINE)) == 25


@pytest.mark.parametrize("windows", [Windows.JSON, Windows.NONE])
def test_fields_that_are_cut_are_named_or_counted(windows: Windows):
    row = {"data": {f"field{n}": "words " * 400 for n in range(11)}}
    shown = records_text("m", {"data": [row]}, [("c/m:1", row)], windows=windows)
    assert shown.count("…") == len(re.findall(r"\[\+\d+ from \d+\]", shown)) == 11
    assert f"{windows.tool} with the id" in shown


@pytest.mark.requirement("S3-09", "S3-29")
@given(ANY_TEXT, ANY_TEXT)
def test_a_window_text_has_a_header_lines_to_copy_and_a_fence(path: str, text: str):
    window = WindowText(
        id='cin_a/m:["a","b"]',
        field_path=path,
        text=text,
        start_chars=10,
        end_chars=10 + len(text),
        total_chars=5000,
        complete=False,
        next={"cursor": "fw1.n"},
        previous={"cursor": "fw1.p"},
    )
    lines = window_text(window).splitlines()
    assert json.loads(lines[0])["next_cursor"] == "fw1.n"
    args = json.loads(lines[1].removeprefix("next read_record_field args="))
    assert args == {"id": window.id, "field_path": path, "cursor": "fw1.n"}
    assert lines[2].startswith("previous read_record_field args=")
    if line(text) == text:
        assert unfenced(window_text(window)) == text


@pytest.mark.requirement("S3-30", "S3-31", "S3-32", "S3-33")
def test_what_is_too_long_or_binary_is_begun_and_can_be_read_on():
    data = {
        "text": "long " * 2000,
        "begun": "half",
        "short": "whole",
        "photo": {"blob_id": "blob_9", "mime_type": "image/png", "size_bytes": 81234, "sha256": "ab"},
        "raw": ENCODED,
        "nested": {"deep": [ENCODED], "list": ["x" * 900] * 10},
        "count": 3,
    }
    shown, ladder = shorten(data, HANDLES, inline_chars=100, lengths={"begun": Known(9000, "cd")})
    assert ENCODED[:64] not in json_text(shown) + json_text(ladder.members())
    assert shown["short"] == "whole"
    assert shown["count"] == 3
    by_path = {rung["field_path"]: rung for rungs in ladder.members().values() for rung in rungs}
    assert set(by_path) == {"text", "begun", "photo", "raw", "nested"}
    assert by_path["text"]["size_chars"] == 10000
    assert by_path["begun"]["size_chars"] == 9000
    assert by_path["begun"]["digest"] == "sha256:cd"
    assert by_path["photo"]["mime_type"] == "image/png"
    assert by_path["photo"]["resource_uri"] == "pdpp://blob/blob_9"
    assert all("read" in rung or "resource_uri" in rung for rung in by_path.values())


def test_a_record_that_fits_is_left_as_it_is():
    data = {"text": "short", "tags": ["a"], "author": {"id": "u1"}}
    shown, ladder = shorten(data, HANDLES, inline_chars=100, lengths={})
    assert shown is data
    assert ladder.members() == {}


@pytest.mark.requirement("S2-61", "S2-64", "S2-67")
def test_a_document_has_five_members_and_says_whence_it_is():
    row = {
        "object": "record",
        "id": "m1",
        "stream": "messages",
        "connection_id": "cin_a",
        "connector_key": "slack",
        "emitted_at": "2026-01-01T00:00:00Z",
        "data": {"id": "m1", "subject": "Plan", "text": "hello", "nested": {"a": 1}},
    }
    made, *_ = document(row, lambda: HANDLES, asked_id=HANDLES.id, url="https://h/x", lengths={})
    assert set(made) == {"id", "title", "text", "url", "metadata"}
    assert (made["title"], made["text"]) == ("Plan", "hello")
    assert made["metadata"]["connection_id"] == "cin_a"
    # Its key is in its id, and its time was not given.
    assert "record_id" not in made["metadata"]
    assert made["metadata"]["emitted_at"] == "2026-01-01T00:00:00Z"
    assert made["metadata"]["nested"] == {"a": 1}
    assert "other_fields" not in made["metadata"]


def test_every_field_beside_a_text_is_inline_or_on_the_ladder_with_its_call():
    data = {
        "text": "hello",
        "empty": None,
        "tags": ["a", "b"],
        "note": "n" * 161,
        "long": "l" * 9_000,
        "list": ["entry"] * 2_000,
        "holder": {"name": "x", "raw": ENCODED},
        "file": {"blob_id": "blob_9", "mime_type": "image/png", "caption": "the canal"},
    }
    made, shown, _ = document(
        {"stream": "m", "data": data}, lambda: HANDLES, asked_id="m:1", url="", lengths={}, space=Space(5_000)
    )
    metadata = made["metadata"]
    rungs = {
        rung["field_path"]: rung
        for kind, rungs in metadata["content_ladder"].items()
        if kind in {"field_windows", "json_fields"}
        for rung in rungs
    }
    assert "empty" not in metadata
    assert metadata["tags"] == ["a", "b"]
    assert metadata["note"] == "n" * 161
    assert set(rungs) == {"long", "list", "holder", "file"}
    assert metadata["long"] == "l" * rungs["long"]["read"]["args"]["offset_chars"] + "…"
    assert all(path in json.dumps(rung["read"]["args"]) for path, rung in rungs.items())
    assert {path: rung["size_chars"] for path, rung in rungs.items()} == {
        path: len(data[path] if isinstance(data[path], str) else json_text(data[path])) for path in rungs
    }
    # A document would leave the bytes and the caption out again.
    assert {rungs[path]["read"]["tool"] for path in ("holder", "file")} == {"read_record_field"}
    assert shown == data.keys() - {"empty"}


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_cut_text_ends_with_an_ellipsis_and_is_read_on_from_there(is_begun: bool):  # noqa: FBT001 - a case
    body = "".join(f"{n:04} " for n in range(4_000))
    lengths = {"text": Known(len(body))} if is_begun else {}
    data = {"text": body[:16_384] if is_begun else body}
    made, *_ = document(
        {"stream": "m", "data": data}, lambda: HANDLES, asked_id="m:1", url="", lengths=lengths
    )
    assert made["text"].endswith("…")
    (rung,) = made["metadata"]["content_ladder"]["field_windows"]
    at = rung["read"]["args"]["offset_chars"]
    assert made["text"][:-1] + body[at:] == body
    assert rung["size_chars"] == made["metadata"]["text_total_chars"] == len(body)


@settings(max_examples=30)
@given(st.dictionaries(ANY_TEXT, st.one_of(ANY_TEXT, st.integers(), st.lists(ANY_TEXT))))
def test_a_document_without_a_text_field_shows_its_data(data: dict[str, object]):
    made, *_ = document({"stream": "m", "data": data}, lambda: HANDLES, asked_id="m:1", url="", lengths={})
    assert isinstance(made["text"], str)
    assert len(made["text"]) <= 16384


@pytest.mark.parametrize(
    ("deleted", "advice"),
    [((1, 1), ["nothing to read of them"]), ((1, 0), ["Pass an id to fetch", "nothing to read of them"])],
)
def test_a_page_of_deleted_records_does_not_say_to_fetch_them(deleted: tuple[int, int], advice: list[str]):
    gone = {"deleted": True, "deleted_at": "2026-02-11T18:30:00Z"}
    rows = [gone if one else {"data": {"a": 1}} for one in deleted]
    text = records_text("m", {"data": rows}, [(f"c/m:{n}", row) for n, row in enumerate(rows)])
    found = [one for one in ("Pass an id to fetch", "nothing to read of them") if one in text]
    assert found == advice


@pytest.mark.parametrize(
    ("meta", "fact"),
    [({"times": "UTC"}, "times: UTC"), ({}, ""), ({"times": 3}, ""), ({"times": "a\nb"}, "times: a\\u000ab")],
)
def test_the_head_of_an_answer_says_whose_clock_its_times_are_of(meta: dict[str, Any], fact: str):
    assert times_fact(meta) == fact


@pytest.mark.parametrize("line", [None, "at", {"at": 1}, [None, 3, ["at"], "nowhere"], ["who", "at", "who"]])
def test_a_table_has_the_order_of_the_line_whatever_another_server_sends_as_one(line: Any):
    rows = [{"data": {"what": "a", "at": "b", "who": "c"}}]
    shown = records_text("messages", {"data": rows, "line": line}, [("a/m:1", rows[0])])
    columns = "who | at | what" if line == ["who", "at", "who"] else "what | at | who"
    assert shown.splitlines()[1] == f"{columns} | id"
