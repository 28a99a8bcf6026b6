"""Search: the records that hold all the words, the best first; then those that hold some of them, the best first.

What may be seen is settled before anything is looked up: `visible_text` gives the segments of the index that the plan
reaches, and everything after it (matches, rarity, scores, counts, forms) is computed from these alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import NamedTuple

from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.plan import SearchPlan, SearchPosition
from headgate.model.query import SearchSort
from headgate.model.rows import SearchPage, Understood
from headgate.store.format.arrays import np
from headgate.store.format.segments import Numbers
from headgate.store.queries.rows import readable_keys
from headgate.store.queries.scope import passing
from headgate.store.search.asked import from_sender, within_spans
from headgate.store.search.hits import Match, Place, ShownHits, WordHits, matched_fields, show
from headgate.store.search.matching import FoundNeed, Matcher
from headgate.store.search.query import understand
from headgate.store.search.ranking import (
    HoldingTexts,
    Occurrences,
    bits_of,
    closeness,
    holding,
    rarity,
    restricted,
    rounded,
    score,
)
from headgate.store.search.scope import search_scope
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

#: So many matches are ranked together; of more, the newest, and the answer says so.
RANKED_MOST = 10_000
#: A record that lacks words is a match if the words it holds have at least this part of the rarity of all.
_PARTIAL_PART = 0.1
#: How many matches are looked at for how much of the query records hold.
_BEST = 3
#: What the places of this version look like.
_FORMAT = 7
#: A match holds all words; all, but some only in quoted text; all that any record holds; or some.
_WHOLE, _QUOTED, _PRESENT, _PARTIAL = 0, 1, 2, 3
_NO_TIME = -(1 << 63)
_AFTER_ALL = (1 << 63) - 1


class _RankWindow(NamedTuple):
    """Which matches are ranked together: from one place in time to another, the newer end left out."""

    top: tuple[int, int]
    bottom: tuple[int, int]


_EVERYTHING = _RankWindow((_AFTER_ALL, _AFTER_ALL), (_NO_TIME, 0))


class _Frozen(NamedTuple):
    """What stays the same from page to page, whatever comes and goes in between."""

    window: _RankWindow
    is_first_window: bool
    #: How much rarity the words of a match must have together; None: a match holds all words.
    least_worth: int | None
    rarities: tuple[int, ...]
    #: For each need the words that were taken for it because of a typing error.
    corrected: tuple[tuple[bytes, ...], ...]


class _Matches(NamedTuple):
    """Matches as columns; those that are ranked together are in order of their numbers."""

    records: Numbers
    bits: Numbers
    #: The needs that each holds in text that is not quoted.
    own_bits: Numbers
    #: What they are ordered by: what is smaller comes first.
    tier: Numbers
    by_score: Numbers
    by_time: Numbers

    def chosen(self, places: Numbers) -> _Matches:
        if places.dtype == np.bool_ and places.all():
            return self
        # Until they are ordered, the keys are one column.
        columns = {id(column): column[places] for column in {id(column): column for column in self}.values()}
        return _Matches(*(columns[id(column)] for column in self))

    def in_order(self) -> _Matches:
        return self.chosen(np.argsort(self.records))

    def keys(self) -> Numbers:
        return np.stack(self[3:])

    def counts(self) -> MatchCounts:
        is_quoted = self.own_bits != self.bits
        is_own_partial = (self.tier == _PARTIAL) & ~is_quoted
        return MatchCounts(
            int(np.count_nonzero(self.tier == _WHOLE)),
            int(np.count_nonzero(is_own_partial)),
            int(np.count_nonzero(is_quoted)),
        )


class MatchCounts(NamedTuple):
    """How many records hold all the words, how many more enough of them, and how many more only with quoted text."""

    whole: int = 0
    partial: int = 0
    quoted: int = 0


class HolderCounts(NamedTuple):
    """How many records hold a need, and how many more only in quoted text; None: they were not counted."""

    own: int | None = None
    quoted: int = 0
    #: Of ``a OR b``: how many hold each alternative.
    alternatives: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LexicalRanking:
    """The next matches in order, and what is known about all of them."""

    found: Sequence[FoundNeed]
    #: What stays the same from page to page; None: there are no matches.
    frozen: _Frozen | None
    in_order: list[Match]
    counts: MatchCounts
    ranked_count: int
    is_first_page: bool
    #: How many records hold each need.
    word_counts: tuple[HolderCounts, ...] = ()
    #: Which part of the query, by the rarity of its words, the best matches hold.
    coverage: float = 0.0


class WholeMatches(NamedTuple):
    """The row numbers of all records that hold the words, of those with quoted text alone, and how these were understood."""

    rids: Numbers
    quoted_rids: Numbers
    understood: Understood


class LexicalSearch:
    """One search for one page."""

    def __init__(self, database: Database, catalog: Catalog, memory: SegmentMemory, plan: SearchPlan) -> None:
        self._database = database
        self._catalog = catalog
        self._plan = plan
        self._scope = search_scope(catalog, plan.reaches)
        self._text = memory.visible_text(database, plan.reaches, self._scope)
        self._question = understand(plan.terms)
        self._matcher = Matcher(database, self._text)

    def page(self) -> SearchPage:
        ranking = self.ranking()
        frozen, understood = ranking.frozen, self.understood(ranking.found, ranking.word_counts)
        if frozen is None:
            return SearchPage((), None, 0, ranked_count=0, understood=understood, is_cut=self.is_cut)
        page_matches = ranking.in_order[: self._plan.most_hits]
        hits, damaged = self.show(page_matches, ranking.found)
        places = {match.place.rid: _position(frozen, match.place) for match in page_matches}
        return SearchPage(
            tuple(replace(hit, place=places[rid]) for rid, hit in hits.items()),
            self._next(frozen, page_matches, has_more=len(ranking.in_order) > len(page_matches)),
            ranking.counts.whole if ranking.is_first_page and frozen.is_first_window else None,
            ranked_all=frozen.is_first_window and frozen.window.bottom == _EVERYTHING.bottom,
            ranked_count=ranking.ranked_count,
            damaged=damaged,
            partial_count=ranking.counts.partial,
            quoted_count=ranking.counts.quoted,
            understood=understood,
            is_cut=self.is_cut,
        )

    @property
    def is_cut(self) -> bool:
        """Whether the words stand in more places than one search reads."""
        return self._matcher.is_cut

    def whole_matches(self) -> WholeMatches:
        """Find the records that hold all the words, in no order."""
        words = self._find(None)
        records = quoted = np.empty(0, np.int64)
        if words:
            texts = [self._text.columns.texts_of(word.occurrences) for word in words]
            matches = self._allowed(self._holders(words, texts))
            records, quoted = (matches.records[matches.tier == tier] for tier in (_WHOLE, _QUOTED))
        return WholeMatches(self._text.rids(records), self._text.rids(quoted), self.understood(words))

    def ranking(self) -> LexicalRanking:
        """Find the matches, and return the next of them in order: as many as the plan's limit, and one more."""
        frozen, seen = _read_position(self._plan.after, len(self._question.needs))
        words = self._find(frozen)
        if not words:
            return self._nothing(words, seen)
        columns = self._text.columns
        texts = [columns.texts_of(word.occurrences) for word in words]
        holders = self._holders(words, texts)
        rarities = frozen.rarities if frozen else self._rarities(words, holders.bits)
        matches = self._allowed(holders)
        own, only_quoted = (
            self._counts(bits) for bits in (matches.own_bits, matches.bits ^ matches.own_bits)
        )
        word_counts = tuple(
            HolderCounts(count, quoted, self._of_alternatives(word, matches.records))
            for word, count, quoted in zip(words, own, only_quoted, strict=True)
        )
        if frozen is None:
            # Those that lack words are counted where there are no others, even if none is shown.
            is_short = np.count_nonzero(matches.tier != _PARTIAL) < max(1, self._plan.limit)
            least = _least_worth(matches.bits, rarities) if is_short else None
            corrected = tuple(word.corrected for word in words)
            frozen = _Frozen(_EVERYTHING, True, least, rarities, corrected)
        matches = matches.chosen(_is_enough(matches, frozen))
        if not len(matches.records):
            return self._nothing(words, seen)
        frozen, window = self._windowed(frozen, matches)
        near = [
            word._replace(
                occurrences=restricted(word.occurrences, of_one, window.records, columns.record_end)
            )
            for word, of_one in zip(words, texts, strict=True)
        ]
        in_order = self._in_order(self._ordered(window, [word.occurrences for word in near], frozen), seen)
        return LexicalRanking(
            near,
            frozen,
            in_order,
            matches.counts(),
            len(window.records),
            seen is None,
            word_counts,
            self._coverage(in_order, frozen.rarities),
        )

    def _nothing(self, words: Sequence[FoundNeed], seen: Place | None) -> LexicalRanking:
        return LexicalRanking(words, None, [], MatchCounts(), 0, is_first_page=seen is None)

    def show(self, matches: Sequence[Match], words: Sequence[FoundNeed]) -> ShownHits:
        database, catalog, reaches = self._database, self._catalog, self._scope.reaches
        matched = matched_fields(self._text, matches, words)
        chars = self._plan.snippet_chars
        hits = WordHits(database, catalog, reaches, self._question, words, matched, chars)
        return show(database, catalog, self._plan, reaches, matches, hits.make)

    # Finding

    def _find(self, frozen: _Frozen | None) -> list[FoundNeed]:
        needs = self._question.needs
        if frozen is not None:
            return [
                self._matcher.find(need, words) for need, words in zip(needs, frozen.corrected, strict=True)
            ]
        needs_found: list[FoundNeed] = []
        for need in needs:
            word = self._matcher.find(need)
            needs_found.append(word if len(word.occurrences.keys) else self._matcher.find_with_error(need))
        return needs_found

    def _rarities(self, words: Sequence[FoundNeed], bits: Numbers) -> tuple[int, ...]:
        """Return how rare each need is: one that was taken for another word says half as much, and one that is nowhere nothing."""
        total = self._text.record_count
        rarities = (rarity(max(total, count), count) if count else 0 for count in self._counts(bits))
        return tuple(
            rare // 2 if word.corrected else rare for rare, word in zip(rarities, words, strict=True)
        )

    def _counts(self, bits: Numbers) -> tuple[int, ...]:
        """Count the records that hold each need."""
        places = range(len(self._question.needs))
        return tuple(int(np.count_nonzero(bits & bits.dtype.type(1 << place))) for place in places)

    def _of_alternatives(self, word: FoundNeed, records: Numbers) -> tuple[tuple[str, int], ...]:
        """Count the records that hold each alternative of a need; one that is in none is not corrected."""
        counted = (
            (name, np.unique(self._text.columns.records_of(occurrences)))
            for name, occurrences in word.alternatives.items()
        )
        return tuple((name, int(np.isin(holders, records).sum())) for name, holders in counted)

    def _holders(self, words: Sequence[FoundNeed], texts: Sequence[HoldingTexts]) -> _Matches:
        """Return the records that hold any need, and say which lack one, or have it only in what they quote."""
        columns = self._text.columns
        held = holding([of_one.records for of_one in texts], columns.record_end)
        own_bits = held.bits
        if columns.run_quoted.any():
            own = [
                columns.own_records(word.occurrences, of_one)
                for word, of_one in zip(words, texts, strict=True)
            ]
            own_bits = bits_of(held.records, holding(own, columns.record_end), columns.record_end)
        need_count = len(words)
        tier = np.where(np.bitwise_count(held.bits) < need_count, np.int8(_PARTIAL), np.int8(_QUOTED))
        tier[np.bitwise_count(own_bits) == need_count] = _WHOLE
        return _Matches(held.records, held.bits, own_bits, tier, tier, tier)

    def _allowed(self, matches: _Matches) -> _Matches:
        """Leave out what lacks a strict word or holds an excluded one, and what filters do not let through."""
        needs = self._question.needs
        strict = np.uint64(sum(1 << place for place, need in enumerate(needs) if need.is_strict))
        if strict:
            matches = matches.chosen(matches.bits & strict == strict)
        for need in self._question.excluded:
            out = self._text.columns.records_of(self._matcher.find(need).occurrences)
            matches = matches.chosen(~np.isin(matches.records, out))
        if self._plan.filters:
            rids = self._text.rids(matches.records)
            shelves = [self._catalog.by_sid[sid] for sid in self._scope.reaches]
            passed = passing(self._database, self._catalog, shelves, self._plan.filters, rids.tolist())
            matches = matches.chosen(np.isin(rids, passed))
        return self._as_asked(matches)

    def _as_asked(self, matches: _Matches) -> _Matches:
        """Leave out what is of other times or senders than the question names."""
        reaches = self._scope.reaches
        if self._plan.spans:
            times, rids = self._text.record_times[matches.records], self._text.rids(matches.records)
            matches = matches.chosen(within_spans(self._plan, reaches, rids, times))
        if self._plan.sender is not None:
            senders = from_sender(self._plan, reaches, self._matcher, self._text)
            matches = matches.chosen(np.isin(matches.records, senders))
        return matches

    # Ordering

    def _windowed(self, frozen: _Frozen, every: _Matches) -> tuple[_Frozen, _Matches]:
        """Find the matches that are ranked together, in order of their numbers, and where they end."""
        if frozen.window == _EVERYTHING and len(every.records) <= RANKED_MOST:
            return frozen, every.in_order()
        times = self._text.record_times[every.records]
        top, bottom = frozen.window
        if frozen.window != _EVERYTHING:
            rids = self._text.rids(every.records)
            stays = (times < top[0]) | ((times == top[0]) & (rids < top[1]))
            stays &= (times > bottom[0]) | ((times == bottom[0]) & (rids >= bottom[1]))
            every, times = every.chosen(stays), times[stays]
        if bottom != _EVERYTHING.bottom or len(every.records) <= RANKED_MOST:
            return frozen, every.in_order()
        newest = every.chosen(_newest(times, every.records)).in_order()
        times = self._text.record_times[newest.records]
        oldest = np.argmin(times)
        edge = (int(times[oldest]), int(self._text.rids(newest.records[oldest])))
        return frozen._replace(window=_RankWindow(top, edge)), newest

    def _ordered(self, matches: _Matches, near: Sequence[Occurrences], frozen: _Frozen) -> _Matches:
        times = self._text.record_times[matches.records]
        by_time = np.where(times == _NO_TIME, _AFTER_ALL, -times)
        present = np.uint64(_present(frozen))
        holds_present = (matches.tier == _PARTIAL) & (matches.bits & present == present)
        matches = matches._replace(tier=np.where(holds_present, _PRESENT, matches.tier))
        if self._plan.sort is SearchSort.TIME:
            return matches._replace(by_score=np.zeros(len(times), np.int64), by_time=by_time)
        scores = score(near, frozen.rarities, matches.records, self._text.columns)
        # Parts stand close together wherever the run that they are parts of does.
        whole = [place for place, need in enumerate(self._question.needs) if not need.is_part]
        if len(whole) > 1:
            scores += closeness(
                [near[place] for place in whole],
                [frozen.rarities[place] for place in whole],
                matches.records,
                self._text.columns,
            )
        return matches._replace(by_score=-rounded(scores, frozen.rarities), by_time=by_time)

    def _in_order(self, every: _Matches, seen: Place | None) -> list[Match]:
        """Return the next matches in order, and one more; only the keys of those that can be among them are read."""
        if seen is not None:
            every = every.chosen(~_is_before(every.keys(), np.array(seen[:3])[:, None]))
        keys = every.keys()
        wanted = self._plan.most_hits + 1
        if seen is not None:
            # Those that share the place of the last hit shown were perhaps shown before.
            wanted += int((keys == np.array(seen[:3])[:, None]).all(axis=0).sum())
        if wanted < keys.shape[1]:
            every = every.chosen(_first(keys, wanted))
        rids = self._text.rids(every.records).tolist()
        record_ids = readable_keys(self._database, rids)
        columns = (column.tolist() for column in every)
        matches = [
            Match(
                Place(tier, by_score, by_time, record_ids[rid], rid),
                float(-by_score),
                record,
                bits,
                is_quoted=own_bits != bits,
            )
            for rid, record, bits, own_bits, tier, by_score, by_time in zip(rids, *columns, strict=True)
            if rid in record_ids
        ]
        return sorted(match for match in matches if seen is None or match.place > seen)

    def _coverage(self, in_order: Sequence[Match], rarities: Sequence[int]) -> float:
        """Return the most that one of the best matches holds of the query; a word that is nowhere is the rarest."""
        needs = self._question.needs
        nowhere = rarity(self._text.record_count, 0)
        # A run without spaces is held as far as its parts are.
        is_run = [after.is_part and not need.is_part for need, after in pairwise(needs)]
        worth = [
            0 if whole else rare or nowhere for rare, whole in zip(rarities, [*is_run, False], strict=True)
        ]
        held = (
            sum(each for place, each in enumerate(worth) if rarities[place] and match.bits >> place & 1)
            for match in in_order[:_BEST]
        )
        return max(held, default=0) / max(1, sum(worth))

    # Going on

    def _next(
        self, frozen: _Frozen, page_matches: Sequence[Match], *, has_more: bool
    ) -> SearchPosition | None:
        if not self._plan.limit:
            return None
        if has_more:
            return _position(frozen, page_matches[-1].place)
        if frozen.window.bottom == _EVERYTHING.bottom:
            return None
        # The next window holds what is older than everything in this one.
        older = _RankWindow(frozen.window.bottom, _EVERYTHING.bottom)
        return _position(frozen._replace(window=older, is_first_window=False), None)

    def understood(self, needs_found: Sequence[FoundNeed], counts: Sequence[HolderCounts] = ()) -> Understood:
        """Return how the query was understood, and if they are known, how many records hold each word."""
        question = self._question
        words = tuple(
            replace(
                word.understood(need),
                count=held.own,
                quoted_count=held.quoted,
                alternatives=held.alternatives,
            )
            for word, need, held in zip(
                needs_found, question.needs, counts or repeat(HolderCounts()), strict=False
            )
            if not need.is_part
        )
        return Understood(words, question.left_out, tuple(need.name for need in question.excluded))


def _present(frozen: _Frozen) -> int:
    """Return the needs that some record holds, as bits: as they were typed, or if none is, as they were corrected."""
    held = {place for place, rare in enumerate(frozen.rarities) if rare}
    typed = {place for place in held if not frozen.corrected[place]}
    return sum(1 << place for place in typed or held)


def _worth(bits: Numbers, rarities: Sequence[int]) -> Numbers:
    """Add up the rarities of the words that each match holds."""
    worth: Numbers = np.zeros(len(bits), np.int64)
    for place, rare in enumerate(rarities):
        worth += (bits >> np.uint64(place) & np.uint64(1)).astype(np.int64) * rare
    return worth


def _least_worth(bits: Numbers, rarities: Sequence[int]) -> int:
    """Decide how much of the words a record must hold, so that about as many match as are ranked together."""
    # A word that no match holds says nothing about the others.
    anywhere: Numbers = np.bitwise_or.reduce(bits, keepdims=True)
    least = math.ceil(int(_worth(anywhere, rarities)[0]) * _PARTIAL_PART)
    worth = _worth(bits, rarities)
    worth = worth[worth >= least]
    if len(worth) <= RANKED_MOST:
        return least
    values, counts = np.unique(worth, return_counts=True)
    fitting = int(np.count_nonzero(np.cumsum(counts[::-1]) <= RANKED_MOST))
    return int(values[-max(1, fitting)])


def _is_enough(matches: _Matches, frozen: _Frozen) -> Numbers:
    is_complete = matches.tier != _PARTIAL
    if frozen.least_worth is None:
        return is_complete
    return is_complete | (_worth(matches.bits, frozen.rarities) >= frozen.least_worth)


def _is_before(keys: Numbers, edge: Numbers) -> Numbers:
    first, second, third = keys < edge
    same_first, same_second, _ = keys == edge
    return first | (same_first & (second | (same_second & third)))


def _first(keys: Numbers, wanted: int) -> Numbers:
    """Find the first columns of keys in order, so many and those that are equal to the last of them."""
    places: Numbers = np.arange(len(keys[0]))
    chosen: list[Numbers] = []
    for row in keys:
        values = row[places]
        edge = np.partition(values, wanted - 1)[wanted - 1]
        is_before = values < edge
        chosen.append(places[is_before])
        wanted -= len(chosen[-1])
        # The next key decides between those that are equal in this one.
        places = places[values == edge]
    return np.concatenate([*chosen, places])


def _newest(times: Numbers, records: Numbers) -> Numbers:
    """Choose the newest matches that are ranked together, of equal ones those with the largest numbers."""
    rest = len(times) - RANKED_MOST
    edge = np.partition(times, rest)[rest]
    newest = np.flatnonzero(times > edge)
    same = np.flatnonzero(times == edge)
    same = same[np.argsort(records[same])]
    return np.concatenate((newest, same[len(newest) - RANKED_MOST :]))


def _position(frozen: _Frozen, seen: Place | None) -> SearchPosition:
    corrected = "\n".join(" ".join(word.decode() for word in words) for words in frozen.corrected)
    window, is_first, least, rarities, _ = frozen
    # Nearly always all matches are ranked together: cursors are printed, and should be short.
    ends = (None,) if window == _EVERYTHING else (*window.top, *window.bottom)
    head = (_FORMAT, int(is_first), least, corrected.rstrip("\n"))
    return SearchPosition((*head, *ends, *rarities, *(seen or ())))


def _read_position(after: SearchPosition | None, need_count: int) -> tuple[_Frozen | None, Place | None]:
    if after is None:
        return None, None
    if after.place[0] != _FORMAT:
        raise CursorExpired(param="cursor")
    _, is_first, least, corrected, *rest = after.place
    assert isinstance(corrected, str)
    window, rest = _read_window(rest)
    lines = (corrected + "\n" * need_count).split("\n")[:need_count]
    words = tuple(tuple(word.encode() for word in line.split()) for line in lines)
    rarities = tuple(int(number or 0) for number in rest[:need_count])
    seen = rest[need_count:]
    frozen = _Frozen(window, bool(is_first), None if least is None else int(least), rarities, words)
    return frozen, Place._make(seen) if seen else None


def _read_window(rest: list[int | str | None]) -> tuple[_RankWindow, list[int | str | None]]:
    if rest[0] is None:
        return _EVERYTHING, rest[1:]
    top, top_rid, bottom, bottom_rid = (int(number or 0) for number in rest[:4])
    return _RankWindow((top, top_rid), (bottom, bottom_rid)), rest[4:]
