from __future__ import annotations

from hypothesis import given, strategies as st

from headgate.model.wire import (
    LEGEND,
    FieldFlags,
    FlagBody,
    aggregations_of,
    flag_line,
    searches_of,
    usable_only,
)

YES: FlagBody = {"declared": True, "usable": True}
NO: FlagBody = {"declared": False, "usable": False}
REFUSED: FlagBody = {"declared": True, "usable": False, "reason": "not_granted"}
FULL: FieldFlags = {
    "type": "string",
    "role": "body",
    "granted": True,
    "exact_filter": YES,
    "range_filter": {**YES, "operators": ["gte", "lt"]},
    "lexical_search": YES,
    "semantic_search": NO,
    "aggregation": {"group_by": YES, "sum": NO, "count_distinct": YES},
}


def test_capabilities_become_one_line():
    assert flag_line(FULL) == "t=string,role=body,eq,r=gte|lt,lex,a=count_distinct|group_by"
    assert flag_line({"type": "string", "granted": False}) == "t=string,g=false"
    assert flag_line({}) == "declared"


def test_a_refused_use_has_its_reason_unless_it_is_left_out():
    flags: FieldFlags = {"type": "string", "exact_filter": REFUSED, "lexical_search": YES}
    assert flag_line(flags) == "t=string,eq=unusable:not_granted,lex"
    assert flag_line(usable_only(flags)) == "t=string,lex"


FLAGS = st.sampled_from([YES, NO, REFUSED])


@given(FLAGS, FLAGS, st.dictionaries(st.sampled_from(["sum", "group_by", "max"]), FLAGS))
def test_a_line_is_read_back_as_it_was_written(
    lexical: FlagBody, semantic: FlagBody, aggregation: dict[str, FlagBody]
):
    line = flag_line({"lexical_search": lexical, "semantic_search": semantic, "aggregation": aggregation})
    searches = {"lexical": lexical, "semantic": semantic}
    assert searches_of(line) == [mode for mode, flag in searches.items() if flag is YES]
    assert set(aggregations_of(line)) == {kind for kind, flag in aggregation.items() if flag is YES}


def test_every_flag_is_in_the_legend():
    letters = {flag.partition("=")[0] for flag in flag_line(FULL | {"semantic_search": YES}).split(",")}
    assert letters | {"g=false"} == LEGEND.keys()


def test_a_refused_aggregation_is_none():
    assert aggregations_of("t=string,a=unusable:not_granted") == []
