"""Matches by text and by record, compared with what is found occurrence by occurrence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headgate.store.format.segments import POSITION_BITS
from headgate.store.search import ranking
from headgate.store.search.ranking import Occurrences, TextColumns, nowhere, restricted

_TEXTS, _RECORDS = 3000, 1000


def _columns(dice: Any) -> TextColumns:
    """Make texts of records: a record has several, in any order."""
    nothing = np.zeros(0, np.int64)
    return TextColumns(dice.integers(0, _RECORDS, _TEXTS), nothing, nothing, nothing, nothing, _RECORDS)


def _found(dice: Any, count: int) -> Occurrences:
    """Make occurrences as they are read: in order within a segment, with newer segments before older ones."""
    texts = np.concatenate([np.sort(part) for part in np.split(dice.integers(0, _TEXTS, count), 3)])
    keys = texts << POSITION_BITS | dice.integers(0, 1 << POSITION_BITS, count)
    return Occurrences(keys, dice.random(count))


@pytest.mark.parametrize("at_once", [1, 2, 7, 1 << 16])
@pytest.mark.parametrize("count", [3, 30, 3000])
def test_occurrences_in_chosen_records_are_those_of_a_look_at_each(
    monkeypatch: pytest.MonkeyPatch, count: int, at_once: int
) -> None:
    monkeypatch.setattr(ranking, "_AT_ONCE", at_once)
    dice = np.random.default_rng(count)
    columns, found = _columns(dice), _found(dice, count)
    of_records = columns.records_of(found)
    texts = columns.texts_of(found)
    assert set(texts.records.tolist()) == set(of_records.tolist())
    chosen = dice.choice(_RECORDS, _RECORDS // 3, replace=False)
    stays = restricted(found, texts, chosen, _RECORDS)
    every = zip(found.keys.tolist(), found.factors.tolist(), of_records.tolist(), strict=True)
    wanted = sorted((key, factor) for key, factor, record in every if record in set(chosen.tolist()))
    assert sorted(zip(stays.keys.tolist(), stays.factors.tolist(), strict=True)) == wanted
    assert stays.keys.tolist() == [key for key, _ in wanted]


def test_a_word_that_is_nowhere_has_no_texts() -> None:
    texts = _columns(np.random.default_rng(1)).texts_of(nowhere())
    assert len(texts.records) == len(texts.firsts) == 0
    assert len(restricted(nowhere(), texts, np.arange(_RECORDS), _RECORDS).keys) == 0
