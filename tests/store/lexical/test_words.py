from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.model.plan import parse_terms
from headgate.store.format.analyser import index_tokens, normal_forms
from headgate.store.format.languages import (
    bits_of,
    languages_in,
    languages_of,
    question_words,
    scan_start,
    stems_of,
)
from headgate.store.format.word_filter import is_one_error_away, near_words
from headgate.store.search.query import understand
from headgate.words import index_words, query_words, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Bridge-plan, v2!", ["the", "bridge", "plan", "v2"]),
        ("Crème BRÛLÉE à la carte", ["creme", "brulee", "a", "la", "carte"]),
        ("Größe… “quoted” plain ascii words follow here", ["grosse", "quoted", "plain"]),
        ("東京都 x", ["東京", "京都", "都", "x"]),
        ("user_name@example.org", ["user", "name", "example", "org"]),
    ],
)
def test_a_text_is_cut_into_folded_words(text: str, words: list[str]):
    assert words_of(text)[: len(words)] == words


@given(st.text(max_size=80))
def test_a_word_of_any_text_is_a_word_of_a_query_for_it(text: str):
    for word in index_words(text):
        found, _ = query_words(word.decode(), is_prefix=False)
        assert found[:1] == (word.decode(),) or len(word.decode()) <= 2


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_text_is_cut_alike_whether_its_words_are_folded_one_by_one_or_together(left: str, right: str):
    """Few characters beside ASCII are folded by word, many at once."""
    plain = " plain ascii words" * 40
    assert words_of(left + plain)[: len(words_of(left))] == words_of(left)
    assert words_of(f"{left} {right}") == words_of(left) + words_of(right)


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("3 March 2026", {"@2026-03-03"}),
        ("3rd of March 2026", {"@2026-03-03"}),
        ("am 3. März 2026", {"@2026-03-03"}),
        ("le 3 août 2026", {"@2026-08-03"}),
        ("March 3, 2026", {"@2026-03-03"}),
        ("2026/03/03", {"@2026-03-03"}),
        ("04/03/2026", {"@2026-03-04", "@2026-04-03"}),
        ("31.12.2026", {"@2026-12-31"}),
        ("1.234,50", {"#1234.5"}),
        ("1'234.50 and 1234.5", {"#1234.5"}),
        ("1.234", {"#1234", "#1.234"}),
        ("1.234.567", {"#1234567"}),
        ("version 1.2.3 at 10.0.0.1", set[str]()),
        ("call 1234 or 12", set[str]()),
        ("32.13.2026", set[str]()),
    ],
)
def test_dates_and_numbers_have_one_form(text: str, forms: set[str]):
    assert {form for _, _, form in normal_forms(text)} == forms


@given(st.text(alphabet="0123456789.,'/- marchMAY", max_size=40))
def test_any_text_has_forms_that_lie_in_it(text: str):
    for start, end, form in normal_forms(text):
        assert 0 <= start < end <= len(text)
        assert form[0] in "@#"


@pytest.mark.parametrize("other", ["brdge", "bridgee", "brigde", "bradge", "abridge", "ridge"])
def test_words_that_are_one_error_away(other: str):
    assert is_one_error_away("bridge", other)
    assert is_one_error_away(other, "bridge")


@pytest.mark.parametrize("other", ["bridge", "brid", "brigd", "birdeg", "bridging"])
def test_words_that_are_not_one_error_away(other: str):
    assert not is_one_error_away("bridge", other)


@given(st.text("abcdef", min_size=5, max_size=8), st.text("abcdef", min_size=4, max_size=9))
def test_a_word_one_error_away_shares_two_letters_or_is_among_the_near_ones(word: str, other: str):
    if is_one_error_away(word, other):
        assert other[:2] == word[:2] or other in set(near_words(word))
    assert all(is_one_error_away(word, near) for near in near_words(word))


def test_languages_are_known_by_their_frequent_words():
    german = {word.encode(): 3 for word in ("das", "ich", "und", "nicht", "haus")}
    assert languages_of(german, 15) == ("german",)
    assert languages_of({b"x": 9}, 9) == languages_of({}, 0) == ()
    assert languages_in(bits_of(("english", "russian"))) == ("english", "russian")


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        (("how", "did", "he", "die"), {"how", "did", "he"}),
        (("wann", "war", "die", "rechnung"), {"wann", "war", "die"}),
        (("invoice",), set[str]()),
    ],
)
def test_words_without_a_subject_are_those_of_the_language_of_most(
    words: tuple[str, ...], left_out: set[str]
):
    assert question_words(words) == left_out


@pytest.mark.parametrize(
    ("word", "form"), [("city", "cities"), ("invoice", "invoicing"), ("plan", "planned")]
)
def test_every_form_begins_with_what_is_scanned(word: str, form: str):
    assert stems_of(word, ("english",)) == stems_of(form, ("english",))
    assert form.startswith(scan_start(word, ("english",)))
    assert word.startswith(scan_start(form, ("english",)))


def test_several_words_that_make_a_date_are_one_need():
    question = understand(parse_terms("invoice of 3 March 2026 please"))
    assert [need.name for need in question.needs] == ["invoice", "3 March 2026", "please"]
    assert question.left_out == ("of",)


@pytest.mark.parametrize(
    ("q", "names"),
    [
        ('"bridge?"', ['"bridge"']),
        ('where is the "old bridge?" (really!)', ['"old bridge"', "really"]),
        ("bridge? -draft! brid* 1.234,50?", ["bridge", "brid*", "1.234,50"]),
        ("café? किताब। o'neill's c++", ["café", "किताब", "o'neill's", "c"]),
        ('"yes, it is - now!"', ['"yes it is now"']),
    ],
)
def test_a_word_is_named_without_the_punctuation_around_it(q: str, names: list[str]):
    assert [need.name for need in understand(parse_terms(q)).needs] == names


def test_a_long_number_is_indexed_by_its_beginning():
    (form,) = {form for _, _, form in normal_forms(f"pi is 3.{'14159' * 40}")}
    assert form == f"#3.{'14159' * 40}"[:64]
    assert max(map(len, index_tokens(f"{'7' * 99},{'5' * 99} {'x' * 99}"))) == 64
