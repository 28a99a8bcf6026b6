"""Search: hits by words, by meaning, or both."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from headgate.audit.journal import Disclosed, disclosed
from headgate.model.asked import Asked, Days, Phrase
from headgate.model.declaration import LineFields
from headgate.model.ids import FieldName
from headgate.model.instants import iso
from headgate.model.plan import HIT_CHARS, SearchPlan, SearchPosition
from headgate.model.query import SearchMode, SearchQuery, SearchSort
from headgate.model.rows import Hit, SearchPage, Snippet, Understood
from headgate.model.warning import ReadWarning, index_building, records_damaged, search_partial
from headgate.model.wire import LineBody
from headgate.policy import cursors
from headgate.policy.allowance import StreamScope
from headgate.policy.decide import Decision, decide_search
from headgate.reading.asked import search_as_asked
from headgate.reading.empty_answers import search_notes
from headgate.reading.home import CurrentRead, Labels, Served, bounded, labels_of, time_field, times_of
from headgate.reading.links import record_path, search_link, search_path, window_path
from headgate.reading.port import Body
from headgate.text.line import beginning_of, line_body, line_fields, undated
from headgate.text.search import cut_marked, unmarked
from headgate.text.writing import ELLIPSIS, with_whole_words

_SCORE_KINDS = {SearchMode.LEXICAL: "relevance", SearchMode.SEMANTIC: "cosine_similarity"}
#: A page that has so many hits with all the words ends before those that lack some; any page ends before those that
#: hold fewer than half as many words as its first.
_ENOUGH_HITS = 5
#: The rank of a match in a person or a place, which the line of the record names.
_IN_LINE = 3
#: Quotes, a word that is left out, a beginning, or alternatives.
_OPERATOR = re.compile(r"[\"*]|(?:^|\s)-\S|(?:^|\s)OR(?:\s|$)")
#: What a surface adds to a hit: its id, and its address.
_HIT_BYTES = 160


class _Room(NamedTuple):
    """How many characters of its text a hit shows: of a long one, and of one that is whole."""

    cut_chars: int
    whole_chars: int

    def of(self, size_chars: int | None) -> int:
        """Return the room for a text of a size; a size that is not known is large."""
        is_short = size_chars is not None and size_chars <= self.whole_chars
        return self.whole_chars if is_short else self.cut_chars


#: How much of its text a hit shows, by its place on the page: of a long one, and up to what length it is whole.
_FIRST_ROOMS = (
    _Room(HIT_CHARS, HIT_CHARS),
    _Room(360, HIT_CHARS),
    _Room(280, 360),
    _Room(240, 320),
    _Room(160, 320),
)
_LATER_ROOM = _Room(120, 160)


@dataclass(slots=True)
class _PageHit:
    """A hit of a page: what is written of it, which of its fields that shows, and the hits that are alike."""

    hit: Hit
    row: Body
    fields: tuple[FieldName, ...]
    alike: list[_PageHit] = field(default_factory=list["_PageHit"])


async def search(
    read: CurrentRead, query: SearchQuery, line_chars: int | None, page_bytes: int | None
) -> Served:
    """Find records; with ``line_chars`` hits have the lines of their records, and with ``page_bytes`` little else."""
    if page_bytes is not None:
        line_chars = line_chars or HIT_CHARS
        query = query if query.collapse is not None else replace(query, collapse=True)
        query = query if query.understand is not None else replace(query, understand=True)
    allowance, seals = read.decisions.allowance, read.home.seals()
    query = _by_words_if_nothing_else(query, has_meaning=allowance.rules.has_meaning)
    decision = decide_search(allowance, query, seals, line_chars=line_chars)
    plan = _bounded(decision.plan, read.most)
    page, asked = SearchPage((), None, 0, mode=query.mode), None
    if plan.reaches:
        plan, page, asked = await search_as_asked(read, plan, query)
    short_chars = None if page_bytes is None else line_chars
    has_lines = line_chars is not None or bool(query.collapse)
    drawing = _Drawing(
        decision.scopes,
        labels_of(allowance, decision.scopes),
        query,
        page.mode,
        short_chars,
        has_lines=has_lines,
        absent=frozenset(
            word.word
            for word in page.understood.words
            if word.corrected or (word.count == 0 and not word.quoted_count)
        ),
    )
    hits, after = _on_page(page, plan.limit, drawing, page_bytes)
    notes, compared = await _empty_notes(read, decision, page)
    token = None if after is None else cursors.seal_hit(seals, replace(after, asked=asked), decision.binding)
    body: Body = {
        "object": "list",
        "data": [hit.row for hit in hits],
        "has_more": token is not None,
        "meta": _meta(read, decision, plan, page, len(hits), notes, is_short=page_bytes is not None),
    }
    if page_bytes is not None:
        body["meta"] |= times_of(drawing.scopes_of(hits))
    else:
        next_link = None if token is None else search_link(query, token)
        body |= {"url": search_path(query), "links": {"self": search_link(query), "next": next_link}}
    if asked is not None:
        body["meta"]["understood"] |= asked_body(asked)
    if query.or_words:
        body["meta"]["mode"] = page.mode
    if query.in_fields is not None:
        body["meta"]["in"] = list(query.in_fields)
    if token is not None:
        body["next_cursor"] = token
    return Served(body, (*_hits_shown(hits), *compared))


def _by_words_if_nothing_else(query: SearchQuery, *, has_meaning: bool) -> SearchQuery:
    """Search by words where both would do and there is no model, every match is wanted, or words are.

    Every match is wanted to count, or in order of time; words are where a query has quotes, a sign or OR, which say
    nothing about meaning, or is not to be understood as more than words.
    """
    are_words_wanted = query.understand is False or _OPERATOR.search(query.q) is not None
    is_every_match_wanted = not query.limit or query.sort is SearchSort.TIME
    if query.or_words and (not has_meaning or is_every_match_wanted or are_words_wanted):
        return replace(query, mode=SearchMode.LEXICAL, or_words=False)
    return query


async def _empty_notes(
    read: CurrentRead, decision: Decision[SearchPlan], page: SearchPage
) -> tuple[tuple[ReadWarning, ...], tuple[Disclosed, ...]]:
    plan = decision.plan
    if page.hits or page.count or page.partial_count or page.quoted_count or plan.after is not None:
        return (), ()
    return await search_notes(read, decision.scopes, plan.filters)


def _bounded(plan: SearchPlan, most: int | None) -> SearchPlan:
    """Limit a plan to as many records as may be shown; those that are alike count like any other."""
    limited = bounded(plan, most)
    return limited if most is None else replace(limited, ahead=min(plan.ahead, most - limited.limit))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Writes hits, each as the query and the surface want it."""

    scopes: tuple[StreamScope, ...]
    labels: Labels
    query: SearchQuery
    #: How the hits were found.
    mode: SearchMode
    #: How much a hit of the short form shows of a text; None for the long form.
    short_chars: int | None
    has_lines: bool
    #: Words that no record holds: the head of a page says so, and its hits need not.
    absent: frozenset[str] = frozenset()

    def streams(self) -> dict[tuple[str, str], StreamScope]:
        return {
            (connection.id, scope.stream): scope for scope in self.scopes for connection in scope.connections
        }

    def scopes_of(self, hits: Sequence[_PageHit]) -> list[StreamScope]:
        """Return the scopes that some hits are of."""
        shown = {(drawn.hit.record.connection_id, drawn.hit.record.stream) for drawn in hits}
        return [
            scope
            for scope in self.scopes
            if any((connection.id, scope.stream) in shown for connection in scope.connections)
        ]

    def draw(self, hit: Hit, scope: StreamScope, place: int = 0) -> _PageHit:
        """Write a hit as it stands at a place of its page: later ones show less of their text."""
        matched = _matched_fields(hit, scope)
        if not self.has_lines:
            return _PageHit(hit, _hit_row(hit, self.labels, self.mode), matched)
        declared = scope.declaration.line
        data = msgspec.json.decode(hit.record.body, type=dict[str, Any])
        line = line_body(declared, data)
        of_line = line_fields(declared, data)
        if self.short_chars is None:
            row = {**_hit_row(hit, self.labels, self.mode), "line": line}
            return _PageHit(hit, row, tuple(dict.fromkeys((*matched, *of_line))))
        room = _room_at(place, self.short_chars)
        evidence = _evidence(hit, declared, line, room) or _beginning(hit, declared, data, line, room)
        row = {"line": line, **_short_row(hit, self.labels, self.mode, self.absent), **evidence}
        texts = [evidence["snippet"]["field"]] if evidence else []
        return _PageHit(hit, row, tuple(dict.fromkeys((*texts, *of_line))))


def _on_page(
    page: SearchPage, limit: int, drawing: _Drawing, page_bytes: int | None
) -> tuple[list[_PageHit], SearchPosition | None]:
    """Choose the hits of a page, and say where the next one begins.

    Hits that are alike are shown as one, and a page for a model ends before it gets too large, and before the hits
    that lack words if enough of them have all.
    """
    streams = drawing.streams()
    hits: list[_PageHit] = []
    same: dict[bytes | None, _PageHit] = {}
    space = page_bytes
    for place, hit in enumerate(page.hits):
        scope = streams[hit.record.connection_id, hit.record.stream]
        drawn = drawing.draw(hit, scope)
        # Taken before later hits show less: those that are alike are so wherever they stand.
        likeness = _likeness(drawn) if drawing.query.collapse else None
        if likeness in same:
            same[likeness].alike.append(drawn)
            continue
        if hits:
            drawn = drawing.draw(hit, scope, len(hits))
        is_apart = page_bytes is not None and bool(hits) and _is_apart(hit, hits, page.understood)
        if space is not None:
            space -= _size(drawn)
        is_full = len(hits) == limit or (space is not None and space < 0)
        if hits and (is_apart or is_full):
            return _with_alike(hits), page.hits[place - 1].place
        hits.append(drawn)
        if likeness is not None:
            same[likeness] = drawn
    return _with_alike(hits), page.next


def _is_apart(hit: Hit, hits: Sequence[_PageHit], understood: Understood) -> bool:
    """Return whether a hit is so much worse than the first of its page that it comes with the cursor."""
    first = hits[0].hit
    if len(hits) >= _ENOUGH_HITS and _tier(hit) > _tier(first):
        return True
    if SearchMode.SEMANTIC in hit.scores:
        return False
    word_count = len(understood.words)
    return 2 * (word_count - len(hit.missing)) < word_count - len(first.missing)


def _tier(hit: Hit) -> int:
    """Return how well a hit holds the words: all of them, some of them only in quoted text, or not all."""
    return 2 if hit.missing or _is_by_meaning(hit) else int(hit.is_quoted)


def _is_by_meaning(hit: Hit) -> bool:
    """Return whether a hit was found by meaning alone."""
    return bool(hit.scores) and SearchMode.LEXICAL not in hit.scores


def _size(drawn: _PageHit) -> int:
    return len(msgspec.json.encode(drawn.row)) + 2 * len(drawn.hit.record.id.encode()) + _HIT_BYTES


def _likeness(drawn: _PageHit) -> bytes:
    """Write what a reader sees of a hit but its time and its id; of a payment, whatever month it is for."""
    row = drawn.row
    line = {part: text for part, text in row["line"].items() if part != "time"}
    if "amount" in line and "title" in line:
        line["title"] = undated(line["title"])
    snippet = row.get("snippet", {})
    return msgspec.json.encode(
        (
            row["connection_id"],
            row["stream"],
            line,
            snippet.get("field"),
            snippet.get("text"),
            row.get("missing"),
            row.get("quoted"),
        )
    )


def _with_alike(hits: list[_PageHit]) -> list[_PageHit]:
    for drawn in hits:
        if drawn.alike:
            timed = [
                (other.hit.authored_at, other) for other in drawn.alike if other.hit.authored_at is not None
            ]
            timed.sort(key=lambda entry: entry[0])
            ends = {"earliest": timed[0], "latest": timed[-1]} if timed else {}
            # As the line writes it: whose clock it is of is known to the source alone.
            span = {end: other.row["line"].get("time") or iso(time) for end, (time, other) in ends.items()}
            drawn.row["alike"] = {"count": len(drawn.alike), **span}
    return hits


def _hit_row(hit: Hit, labels: Labels, mode: SearchMode) -> Body:
    """Return a hit: where it is, what matched, and how to read on."""
    record = hit.record
    origin = labels.of(record.connection_id)
    row: Body = {
        "object": "search_result",
        "stream": record.stream,
        "record_key": record.id,
        "connector_id": origin["connector_key"],
        **origin,
        "emitted_at": iso(record.emitted_at),
        "matched_fields": list(hit.matched_fields),
        "evidence_excerpts": [_excerpt(hit, snippet) for snippet in hit.snippets],
        "record_url": record_path(record.stream, record.id),
    }
    if hit.authored_at is not None:
        row["authored_at"] = iso(hit.authored_at)
    if hit.missing:
        row["match"] = "partial"
    row |= _lacks(hit)
    if hit.snippets:
        row["snippet"] = {"field": hit.snippets[0].field, "text": hit.snippets[0].text}
    return row if mode is SearchMode.LEXICAL else row | _retrieval(hit, mode)


def _short_row(hit: Hit, labels: Labels, mode: SearchMode, absent: Collection[str]) -> Body:
    """Return what a hit for a model says beside its line and its evidence, each fact once."""
    record = hit.record
    row: Body = {"stream": record.stream, "record_key": record.id, **labels.of(record.connection_id)}
    row |= _lacks(hit, absent)
    is_apart = mode is SearchMode.HYBRID and _is_by_meaning(hit)
    return row | ({"found_by": list(hit.scores)} if is_apart else {})


def _lacks(hit: Hit, absent: Collection[str] = ()) -> Body:
    """Return the words that a hit does not hold and others do, and whether it holds some only in what it quotes."""
    missing = [word for word in hit.missing if word not in absent]
    body: Body = {"missing": missing} if missing else {}
    return body | ({"quoted": True} if hit.is_quoted else {})


def _room_at(place: int, most_chars: int) -> _Room:
    """Return how much of its text a hit at a place of its page shows."""
    room = _FIRST_ROOMS[place] if place < len(_FIRST_ROOMS) else _LATER_ROOM
    return _Room(*(min(chars, most_chars) for chars in room))


def _evidence(hit: Hit, declared: LineFields, line: LineBody, room: _Room) -> Body:
    """Return the words around a match, and where the text goes on if it is cut; nothing where the line has them."""
    # What a text says about the match is worth more than the title, or the name of a person or a place.
    snippet = min(hit.snippets, key=lambda snippet: _rank(snippet.field, declared), default=None)
    if snippet is None or _rank(snippet.field, declared) == _IN_LINE:
        return {}
    if snippet.field == declared.quoted and not hit.is_quoted:
        # The record says it in its own words elsewhere: what it quotes would only hide them.
        return {}
    whole = unmarked(snippet.text)
    text = unmarked(cut_marked(snippet.text, room.of(snippet.size_chars)))
    line_text = " ".join(text.split())
    line_text = line_text if text == whole else with_whole_words(line_text)
    if any(line_text.strip(ELLIPSIS) in str(part) for part in line.values()):
        return {}
    evidence = {"snippet": {"field": snippet.field, "text": line_text}}
    if snippet.complete and text == whole:
        return evidence
    # From where the excerpt begins: the match and what follows it are read together.
    before = whole.strip(ELLIPSIS).find(text.strip(ELLIPSIS))
    return evidence | _reading_on(snippet.field, snippet.start_chars + before, snippet.size_chars)


def _beginning(hit: Hit, declared: LineFields, data: Mapping[str, Any], line: LineBody, room: _Room) -> Body:
    """Return the beginning of a record's text, beside a line that shows the match: short records are whole then."""
    if declared.text is None:
        return {}
    preview = hit.record.previews.get(declared.text)
    size_chars = len(str(data.get(declared.text))) if preview is None else preview.size_chars
    text = with_whole_words(beginning_of(declared, data, room.of(size_chars)))
    if not text or text.strip(ELLIPSIS) in line.get("title", ""):
        return {}
    evidence = {"snippet": {"field": declared.text, "text": text}}
    if not text.endswith(ELLIPSIS) and preview is None:
        return evidence
    return evidence | _reading_on(declared.text, len(text.removesuffix(ELLIPSIS)), size_chars)


def _rank(field_name: FieldName, declared: LineFields) -> int:
    """Order the fields that hold a match: the text first, what the line says anyway last."""
    if field_name == declared.text:
        return 0
    if field_name in {*declared.who, declared.where}:
        return _IN_LINE
    return 2 if field_name == declared.title else 1


def _reading_on(field_name: FieldName, offset_chars: int, size_chars: int | None) -> Body:
    """Return from where on a text is read of which a hit shows a part, and how long it is."""
    size = {} if size_chars is None else {"size_chars": size_chars}
    return {"read": {"field_path": field_name, "offset_chars": offset_chars, **size}}


def _retrieval(hit: Hit, mode: SearchMode) -> Body:
    """Return what found a hit, and how good a match it is there."""
    scores = {
        source: {"kind": _SCORE_KINDS[source], "value": value, "order": "higher_is_better"}
        for source, value in hit.scores.items()
    }
    body: Body = {"retrieval_mode": mode}
    if mode is SearchMode.SEMANTIC:
        return body | {"score": scores[mode]}
    return body | {"retrieval_sources": list(scores), "scores": scores}


def _meta(
    read: CurrentRead,
    decision: Decision[SearchPlan],
    plan: SearchPlan,
    page: SearchPage,
    hit_count: int,
    notes: tuple[ReadWarning, ...],
    *,
    is_short: bool,
) -> Body:
    """Return the number of matches, and whether all of them were ranked together.

    By words, recall is complete unless they stand in more places than one search reads: cursors lead from one ranked
    window to the next, down to the oldest match. By meaning it is not while vectors are still to be made.
    """
    lacks = notes + ((index_building(),) if page.is_index_building else ())
    lacks += (search_partial(),) if page.is_cut else ()
    if plan.limit < decision.plan.limit and page.next is not None:
        lacks += read.shortage(hit_count)
    warnings = (*read.context.warnings, *decision.warnings, *lacks, *records_damaged(page.damaged))
    searched = {connection.id for scope in decision.scopes for connection in scope.connections}
    recall: Body = {
        "complete": not page.pending_count and not page.is_cut,
        "ranking_scope": "all_matches" if page.ranked_all else "candidate_window",
        "truncated": page.is_cut,
        "sources_searched_count": len(searched),
    }
    if page.ranked_count is not None:
        recall["ranked_candidate_count"] = page.ranked_count
    if page.pending_count:
        recall["pending_count"] = page.pending_count
    body: Body = {
        # As many as the pages give, so that a reader of the number misses none.
        "count": None
        if page.count is None or page.is_cut
        else page.count + page.partial_count + page.quoted_count,
        "count_accuracy": "unknown" if page.count is None or page.is_cut else "exact",
        **({"partial_count": page.partial_count} if page.partial_count else {}),
        **({"quoted_count": page.quoted_count} if page.quoted_count else {}),
        **({"matched_all": page.matched_all} if page.matched_all else {}),
        "understood": understood_body(page.understood),
    }
    if not is_short or not recall["complete"] or not page.ranked_all:
        body["recall"] = recall
    if not is_short or warnings:
        body["warnings"] = [warning.document() for warning in warnings]
    return body


def understood_body(understood: Understood) -> Body:
    """Return how a query was understood: its words with other forms that were found, and what was left out."""
    words = [
        {
            "word": word.word,
            **({} if word.count is None else {"count": word.count}),
            **({"quoted_count": word.quoted_count} if word.quoted_count else {}),
            **({"alternatives": dict(word.alternatives)} if word.alternatives else {}),
            **({"forms": list(word.forms)} if word.forms else {}),
            **({"corrected_to": list(word.corrected)} if word.corrected else {}),
        }
        for word in understood.words
    ]
    body: Body = {"words": words}
    if understood.left_out:
        body["left_out"] = list(understood.left_out)
    if understood.excluded:
        body["excluded"] = list(understood.excluded)
    return body


def asked_body(asked: Asked) -> Body:
    """Return what of a query was taken for more than words, and what of that was not used."""
    listed = {"asked": asked.phrases, "not_used": asked.dropped}
    return {name: [_phrase_body(phrase) for phrase in phrases] for name, phrases in listed.items() if phrases}


def _phrase_body(phrase: Phrase) -> Body:
    body: Body = {"phrase": phrase.text}
    if phrase.days:
        body["days"] = [_days_body(days) for days in phrase.days]
    if phrase.sender is not None:
        body["sender"] = phrase.sender
    if phrase.is_latest:
        body["sort"] = SearchSort.TIME
    return body | ({} if phrase.asks is None else {"asks": phrase.asks})


def _days_body(days: Days) -> Body:
    """Name the first day and the last one."""
    last = None if days.until is None else days.until - timedelta(days=1)
    return {
        **({} if days.since is None else {"first": days.since.isoformat()}),
        **({} if last is None else {"last": last.isoformat()}),
    }


def _excerpt(hit: Hit, snippet: Snippet) -> Body:
    """Return one excerpt of a match that can be used without the hit."""
    record = hit.record
    return {
        "object": "evidence_excerpt",
        "field_path": snippet.field,
        "preview_text": snippet.text,
        "truncated": not snippet.complete,
        "provenance": "semantic_match" if _is_by_meaning(hit) else "lexical_match",
        "read": {
            "object": "field_window_read",
            "method": "GET",
            "route": window_path(record.stream, record.id),
            "stream": record.stream,
            "record_id": record.id,
            "field": snippet.field,
            "connection_id": record.connection_id,
            "offset_chars": 0 if snippet.complete else snippet.match_chars,
        },
    }


def _hits_shown(hits: Sequence[_PageHit]) -> tuple[Disclosed, ...]:
    """Name the fields that each hit shows; those that are alike show the same."""
    return tuple(
        part
        for drawn in hits
        for hit in (drawn.hit, *(other.hit for other in drawn.alike))
        for part in disclosed([hit.record], drawn.fields)
    )


def _matched_fields(hit: Hit, scope: StreamScope) -> tuple[FieldName, ...]:
    """Name the fields that a hit without a line shows: those of the snippets, and of the record's time."""
    time = None if hit.authored_at is None else time_field(scope)
    named: Iterable[FieldName | None] = [*(snippet.field for snippet in hit.snippets), time]
    return tuple(dict.fromkeys(name for name in named if name is not None))
