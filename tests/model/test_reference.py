from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.errors import InvalidResultId
from headgate.model.ids import (
    ConnectionId,
    RecordId,
    RecordRef,
    StreamName,
    format_result_id,
    parse_result_id,
)

PART = st.text(st.sampled_from('ab:/\\.[]{}",; \né会\u202e\u200d😀'), max_size=8) | st.text(max_size=8)
REF = st.builds(RecordRef, st.none() | PART.map(ConnectionId), PART.map(StreamName), PART.map(RecordId))


@pytest.mark.requirement("S1-03")
def test_both_grammars_are_read():
    assert parse_result_id("cin_a/orders:o1") == RecordRef(
        ConnectionId("cin_a"), StreamName("orders"), RecordId("o1")
    )
    assert parse_result_id("orders:o1") == RecordRef(None, StreamName("orders"), RecordId("o1"))


def test_a_record_id_may_hold_colons_and_a_compound_key():
    assert parse_result_id("cin_a/days:2026-04-01T10:00:00").record_id == "2026-04-01T10:00:00"
    assert parse_result_id('cin_a/days:["u","a b"]').record_id == '["u","a b"]'


@pytest.mark.parametrize(
    "bad",
    [
        "cin_aaa/orders:../../x",
        "../c/o:1",
        "cin_aaa/",
        "/orders:o1",
        "cin_aaa/orders",
        "a/b/o:1",
        "orders:",
        ":o1",
        "x",
        "",
        "cin/./o:1",
        "cin/o:.",
        "a\\b/o:1",
        "c:d/o:1",
        "cin/o:a\nb",
        "cin/o:a\u202eb",
    ],
)
def test_an_id_outside_the_grammar_is_refused_with_both_grammars(bad: str):
    with pytest.raises(InvalidResultId) as refused:
        parse_result_id(bad)
    assert "connection_id/stream:record_id" in refused.value.message
    assert "'stream:record_id'" in refused.value.message


@given(REF)
def test_a_written_id_reads_back_as_the_same_reference(ref: RecordRef):
    written = format_result_id(ref)
    assert written is None or parse_result_id(written) == ref


@given(REF, REF)
def test_different_references_never_share_an_id(left: RecordRef, right: RecordRef):
    if left != right:
        written = format_result_id(left)
        assert written is None or written != format_result_id(right)


@given(st.text(max_size=30))
def test_an_id_that_is_read_is_written_back_unchanged(text: str):
    try:
        ref = parse_result_id(text)
    except InvalidResultId:
        return
    assert format_result_id(ref) == text


@pytest.mark.parametrize(
    ("connection", "stream", "record"),
    [
        ("c/d", "s", "r"),
        ("c:d", "s", "r"),
        ("c", "s", "a/b"),
        ("c", "s", "a..b"),
        ("c", "s", "a\nb"),
        ("c", "s:t", "r"),
    ],
)
def test_what_the_grammar_cannot_hold_has_no_id(connection: str, stream: str, record: str):
    ref = RecordRef(ConnectionId(connection), StreamName(stream), RecordId(record))
    assert format_result_id(ref) is None


@pytest.mark.parametrize("record", ['["a b","c"]', "x" * 400, "ünï 会議", "{a},[b];'\"", "  "])
def test_ids_with_spaces_brackets_quotes_and_any_script_are_kept_as_they_are(record: str):
    ref = RecordRef(ConnectionId("cin_a"), StreamName("orders"), RecordId(record))
    assert format_result_id(ref) == f"cin_a/orders:{record}"
