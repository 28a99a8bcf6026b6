from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.errors import InvalidRequest
from headgate.model.plan import Term, parse_terms


@pytest.mark.parametrize(
    ("q", "terms"),
    [
        ("bridge", [Term(("bridge",))]),
        ("bridge plan", [Term(("bridge",)), Term(("plan",))]),
        ('"bridge plan" x', [Term(("bridge", "plan"), is_strict=True), Term(("x",))]),
        ("brid*", [Term(("brid",), is_prefix=True)]),
        ('"never closed', [Term(("never", "closed"), is_strict=True)]),
        ("a AND body:b", [Term(("a",)), Term(("AND",)), Term(("body:b",))]),
        ("- x !", [Term(("x",))]),
        ("会議", [Term(("会議",))]),
        ("a -b", [Term(("a",)), Term(("b",), is_excluded=True)]),
        ('-"b c" a-d', [Term(("b", "c"), is_strict=True, is_excluded=True), Term(("a-d",))]),
        (
            "a OR b OR c* d",
            [Term(("a",), alternatives=(Term(("b",)), Term(("c",), is_prefix=True))), Term(("d",))],
        ),
        ("OR a", [Term(("OR",)), Term(("a",))]),
        ("a OR", [Term(("a",)), Term(("OR",))]),
        ("a OR -b", [Term(("a",)), Term(("OR",)), Term(("b",), is_excluded=True)]),
        ('a "OR" b', [Term(("a",)), Term(("OR",), is_strict=True), Term(("b",))]),
    ],
)
def test_a_query_is_words_phrases_and_beginnings(q: str, terms: list[Term]):
    assert parse_terms(q) == tuple(terms)


@pytest.mark.parametrize(
    "q", ["", "   ", '""', "***", '"!" -', "x" * 513, "a " * 65, "-a", "a OR " * 64 + "b"]
)
def test_a_query_without_words_or_with_too_many_is_refused(q: str):
    with pytest.raises(InvalidRequest) as refused:
        parse_terms(q)
    assert refused.value.param == "q"


@given(st.text(max_size=60))
def test_any_text_is_terms_or_a_refusal(q: str):
    try:
        terms = parse_terms(q)
    except InvalidRequest:
        return
    assert all(word and not set(word) & set('" \n\t') for term in terms for word in term.words)
