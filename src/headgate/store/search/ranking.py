"""Weigh matches. Pure functions over arrays; everything that goes in is visible to the reader.

A record's score is the sum over the query's words of the word's rarity times how well the record holds it (BM25F: how
often its fields hold the word, weighted, is added up before it is saturated, so that a title cannot make up for words
that are missing), and a little for words that stand close together. The usual length of a text is fixed: an average
would change with every record. Scores are rounded, so that of records that match about as well the newest comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from headgate.store.format.arrays import np
from headgate.store.format.segments import POSITION_BITS, Numbers

#: How much the field counts in which a word stands.
TITLE_WEIGHT, PEOPLE_WEIGHT, PROSE_WEIGHT, QUOTED_WEIGHT = 3.0, 2.0, 1.0, 0.25
#: How much a match counts that is not the word as it was typed.
FORM_FACTOR, PREFIX_FACTOR, CORRECTED_FACTOR = 0.6, 0.8, 0.5
_SATURATION, _LENGTH_PART, _USUAL_LENGTH = 1.6, 0.75, 64.0
_CLOSENESS = 0.5
#: Closeness is not looked at where there is more to compare: the words are frequent, so closeness says little.
_CLOSE_MOST = 400_000
#: Where more than one record in so many holds a word, matches are noted in a column of all records.
_ONE_IN = 32
#: Where more than one record in so many does, these are gone through in order.
_FEW_ONE_IN = 4
#: So many occurrences are looked through at a time: what is made of them stays in the processor's cache.
_AT_ONCE = 1 << 16
#: The bits of so many needs fit in one byte: what is looked through for every record should be small.
_FEW_NEEDS = 8
#: Scores are compared in hundredths of what all words together can give about; rarities are in thousandths.
_STEPS = 100
RARITY_STEPS = 1000


class Occurrences(NamedTuple):
    """Where a word was found, as ``text << 16 | position``, and how much each match counts."""

    keys: Numbers
    factors: Numbers


def nowhere() -> Occurrences:
    return Occurrences(np.empty(0, np.int64), np.empty(0, np.float64))


class HoldingTexts(NamedTuple):
    """The texts in which a word was found: a frequent word stands in most of them several times in a row."""

    #: The place of the first occurrence in each text.
    firsts: Numbers
    records: Numbers

    def occurrences_in(self, is_chosen: Numbers, end: int) -> Numbers:
        """Return the places of the occurrences in chosen texts; there are occurrences up to an end."""
        texts = np.flatnonzero(is_chosen)
        firsts = self.firsts[texts]
        ends: Numbers = np.append(self.firsts, end)[texts + 1]
        sizes: Numbers = ends - firsts
        before: Numbers = np.cumsum(sizes) - sizes
        places: Numbers = np.repeat(firsts - before, sizes)
        return places + np.arange(len(places))


class TextColumns(NamedTuple):
    """What is known of every visible text: its record, how many words it has, and what is known of its field."""

    records: Numbers
    lengths: Numbers
    #: The first text of each run of texts of one field, the weight of that field, and whether its text is quoted.
    run_starts: Numbers
    run_weights: Numbers
    run_quoted: Numbers
    #: Numbers of records are smaller than this.
    record_end: int

    def records_of(self, occurrences: Occurrences) -> Numbers:
        return self.records[occurrences.keys >> POSITION_BITS]

    def texts_of(self, occurrences: Occurrences) -> HoldingTexts:
        """Return the texts in which there are occurrences, with the record of each."""
        firsts = [np.zeros(min(1, len(occurrences.keys)), np.int64)]
        for start in range(0, len(occurrences.keys) - 1, _AT_ONCE):
            texts = occurrences.keys[start : start + _AT_ONCE + 1] >> POSITION_BITS
            firsts.append(np.flatnonzero(texts[1:] != texts[:-1]) + (start + 1))
        every = np.concatenate(firsts)
        return HoldingTexts(every, self.records[occurrences.keys[every] >> POSITION_BITS])

    def own_records(self, occurrences: Occurrences, texts: HoldingTexts) -> Numbers:
        """Return the records of those texts that are not quoted."""
        runs = self.runs_of(occurrences.keys[texts.firsts] >> POSITION_BITS)
        return texts.records[~self.run_quoted[runs]]

    def runs_of(self, texts: Numbers) -> Numbers:
        """Return the place of the run that each text belongs to."""
        return np.searchsorted(self.run_starts, texts, "right") - 1


class Held(NamedTuple):
    """The records that hold any need, in no order, and which needs each holds, as bits."""

    records: Numbers
    bits: Numbers


def together(occurrences: Sequence[Occurrences]) -> Occurrences:
    if not occurrences:
        return nowhere()
    if len(occurrences) == 1:
        return occurrences[0]
    return Occurrences(*(np.concatenate(column) for column in zip(*occurrences, strict=True)))


def holding(needs: Sequence[Numbers], record_end: int) -> Held:
    """Return which records hold which needs; for each need the records of its texts are given."""
    kind = np.uint8 if len(needs) <= _FEW_NEEDS else np.uint64
    if sum(map(len, needs)) * _ONE_IN > record_end:
        if len(needs) == 1:
            holders = _distinct(needs[0], record_end)
            return Held(holders, np.ones(len(holders), kind))
        every = np.zeros(record_end, kind)
        every[needs[0]] = 1
        for place, records in enumerate(needs[1:], 1):
            every[records] |= kind(1 << place)
        holders = np.flatnonzero(every != 0)
        return Held(holders, every[holders])
    holders, places = np.unique(np.concatenate(needs), return_inverse=True)
    bits = np.zeros(len(holders), kind)
    end = 0
    for place, records in enumerate(needs):
        start, end = end, end + len(records)
        bits[places[start:end]] |= kind(1 << place)
    return Held(holders, bits)


def bits_of(records: Numbers, held: Held, record_end: int) -> Numbers:
    """Return which needs each of some records holds, by what is known of others."""
    every = np.zeros(record_end, held.bits.dtype)
    every[held.records] = held.bits
    return every[records]


def _distinct(numbers: Numbers, end: int) -> Numbers:
    """Return each number once; where there are few, going through all that there could be takes twice as long."""
    if len(numbers) * _FEW_ONE_IN > end:
        is_there = np.zeros(end, np.bool_)
        is_there[numbers] = True
        return np.flatnonzero(is_there)
    last: Numbers = np.empty(end, np.int32)
    places: Numbers = np.arange(len(numbers), dtype=np.int32)
    last[numbers] = places
    return numbers[last[numbers] == places]


def restricted(
    occurrences: Occurrences, texts: HoldingTexts, chosen: Numbers, record_end: int
) -> Occurrences:
    """Leave only the occurrences in chosen records, in order."""
    is_chosen = np.zeros(record_end, np.bool_)
    is_chosen[chosen] = True
    stays = texts.occurrences_in(is_chosen[texts.records], len(occurrences.keys))
    keys, factors = occurrences.keys[stays], occurrences.factors[stays]
    order = np.argsort(keys, kind="stable")
    return Occurrences(keys[order], factors[order])


def rarity(record_count: int, holding: int) -> int:
    """Return how rare a word is that so many of so many visible records hold; in thousandths."""
    return round(RARITY_STEPS * math.log(1 + (record_count - holding + 0.5) / (holding + 0.5)))


def score(
    needs: Sequence[Occurrences], rarities: Sequence[int], records: Numbers, columns: TextColumns
) -> Numbers:
    """Add up what the needs give to each of some records; all occurrences are in these, and in order."""
    sums = np.zeros(len(records))
    for occurrences, rare in zip(needs, rarities, strict=True):
        if len(occurrences.keys):
            sums += _degrees(occurrences, records, columns) * (rare / RARITY_STEPS)
    return sums


def _degrees(occurrences: Occurrences, records: Numbers, columns: TextColumns) -> Numbers:
    """Return how well each record holds a need."""
    texts = occurrences.keys >> POSITION_BITS
    firsts = np.flatnonzero(np.concatenate(([True], texts[1:] != texts[:-1])))
    frequencies = np.add.reduceat(occurrences.factors, firsts)
    texts = texts[firsts]
    lengths = 1 - _LENGTH_PART + _LENGTH_PART * columns.lengths[texts] / _USUAL_LENGTH
    weighted = frequencies * columns.run_weights[columns.runs_of(texts)] / lengths
    of_records = np.bincount(np.searchsorted(records, columns.records[texts]), weighted, len(records))
    return of_records * (_SATURATION + 1) / (of_records + _SATURATION)


def closeness(
    needs: Sequence[Occurrences], rarities: Sequence[int], records: Numbers, columns: TextColumns
) -> Numbers:
    """Return what a record gains by words of the query that stand close together, in their order or not."""
    gained = np.zeros(len(records))
    for at, (left, right) in enumerate(pairwise(needs)):
        if not len(left.keys) or not len(right.keys) or len(left.keys) + len(right.keys) > _CLOSE_MOST:
            continue
        texts, gaps = _gaps(left.keys, right.keys)
        worth = _CLOSENESS * min(rarities[at], rarities[at + 1]) / RARITY_STEPS / gaps
        best = np.zeros(len(records))
        np.maximum.at(best, np.searchsorted(records, columns.records[texts]), worth)
        gained += best
    return gained


def _gaps(wanted: Numbers, others: Numbers) -> tuple[Numbers, Numbers]:
    """Return how far the nearest occurrence of another word is, for those in a text that has one."""
    after = np.searchsorted(others, wanted)
    gaps = np.full(len(wanted), np.inf)
    for places in (np.minimum(after, len(others) - 1), np.maximum(after - 1, 0)):
        near = others[places]
        distance = np.maximum(np.abs(near - wanted), 1)
        is_same = near >> POSITION_BITS == wanted >> POSITION_BITS
        gaps = np.where(is_same, np.minimum(gaps, distance), gaps)
    is_near = np.isfinite(gaps)
    return (wanted >> POSITION_BITS)[is_near], gaps[is_near]


def rounded(scores: Numbers, rarities: Sequence[int]) -> Numbers:
    """Round scores to the steps in which they are compared: parts of what one word of average rarity gives."""
    whole = max(1, sum(rarities)) / RARITY_STEPS
    return np.rint(scores / whole * _STEPS).astype(np.int64)


def in_a_row(words: Sequence[Occurrences]) -> Occurrences:
    """Keep the occurrences of the first word that the others follow one by one."""
    every = [np.sort(word.keys) - distance for distance, word in enumerate(words)]
    # The rarest word leaves the fewest to compare.
    every.sort(key=len)
    keys = every[0]
    for others in every[1:]:
        if not len(others):
            return nowhere()
        places = np.minimum(np.searchsorted(others, keys), len(others) - 1)
        keys = keys[others[places] == keys]
    return Occurrences(keys, np.ones(len(keys)))
