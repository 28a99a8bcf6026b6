"""Large JSON documents, value by value."""

from __future__ import annotations

import io
import json
import tracemalloc

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.formats import json_values as module
from headgate.sources.formats.json_values import json_line, json_values

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def values(document: bytes | str, *wanted: str) -> list[tuple[str, object, str | None]]:
    raw = document.encode() if isinstance(document, str) else document
    return [
        (found.path, found.value, found.problem) for found in json_values(io.BytesIO(raw), frozenset(wanted))
    ]


class Endless(io.RawIOBase):
    """A file of the same bytes without an end."""

    def __init__(self, start: bytes, more: bytes) -> None:
        self._start, self._more = start, more

    def read(self, size=-1):
        start, self._start = self._start, b""
        return start or self._more * size


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=4))
def test_the_values_of_a_list_are_what_a_parser_of_whole_documents_finds(items):
    document = {"before": [1, {"list": [2]}], "list": items, "after": {"x": items}}
    assert [value for _, value, _ in values(json.dumps(document), "list.item")] == items


def test_a_value_that_nests_too_deep_is_left_out_and_the_next_one_is_read():
    deep = "[" * 70 + "]" * 70
    assert values(f'{{"skipped": {deep}, "list": [1, {deep}, 2]}}', "list.item") == [
        ("list.item", 1, None),
        ("list.item", None, "It nests deeper than 64 levels."),
        ("list.item", 2, None),
    ]


@pytest.mark.parametrize(
    "document", ["", "[1", "[1}", "[1] 2", "\ufeff", '["\\x"]', b'["\xff"]', "[" + "9" * 5000 + "]"]
)
def test_a_broken_document_ends_with_a_problem(document):
    assert values(document, "item")[-1] == ("", None, "The rest is not JSON; the file may be cut.")


@pytest.mark.parametrize("content", [Endless(b"", b"["), Endless(b'["', b"a"), Endless(b'{"a":', b"[")])
def test_a_document_without_an_end_is_given_up_in_bounded_memory(content, monkeypatch):
    monkeypatch.setattr(module, "MAX_VALUE_BYTES", 1_000_000)
    tracemalloc.start()
    (found,) = json_values(content, frozenset({"list.item"}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.problem == "The rest is one text without an end, or only brackets."
    assert peak < 10_000_000


def test_a_value_with_too_many_bytes_or_parts_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "_MAX_PARTS", 1000)
    document = '{"list": [[' + "[]," * 600 + "0], 7]}"
    assert values(document, "list.item") == [
        ("list.item", None, "It has more than 1000 parts."),
        ("list.item", 7, None),
    ]
    monkeypatch.setattr(module, "MAX_VALUE_BYTES", 100_000)
    large = '{"list": [["' + '","'.join(["x" * 1000] * 300) + '"], 7]}'
    assert [problem for _, _, problem in values(large, "list.item")] == [
        "It has more than 100000 bytes.",
        None,
    ]


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b'{"a": "\xff"}', b"[" * 100_000, b'{"a":' * 100_000])
def test_a_line_that_is_no_object_is_none(line):
    assert json_line(line) is None
