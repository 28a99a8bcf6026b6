"""Search: hits by words, by meaning, or both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from headgate.audit.journal import Disclosed, disclosed
from headgate.model.declaration import LineFields
from headgate.model.ids import FieldName
from headgate.model.instants import iso
from headgate.model.query import SearchMode, SearchQuery
from headgate.model.rows import Hit, SearchPage, Snippet, Understood
from headgate.model.warning import ReadWarning, index_building, records_damaged, search_partial
from headgate.policy import cursors
from headgate.policy.allowance import StreamScope
from headgate.policy.decide import decide_search
from headgate.reading.home import CurrentRead, Labels, Served, bounded, labels_of, time_field
from headgate.reading.links import record_path, search_link, search_path, window_path
from headgate.reading.port import Body
from headgate.text.line import line_body, line_fields
from headgate.text.search import cut_marked

_SCORE_KINDS = {SearchMode.LEXICAL: "relevance", SearchMode.SEMANTIC: "cosine_similarity"}
_FURTHER_CHARS = 48


async def search(read: CurrentRead, query: SearchQuery, line_chars: int | None) -> Served:
    """Find records; with ``line_chars`` hits are for a model, and bring along the lines of their records."""
    allowance, seals = read.decisions.allowance, read.home.seals()
    decision = decide_search(allowance, query, seals, line_chars=line_chars)
    plan = bounded(decision.plan, read.most)
    page = SearchPage((), None, 0)
    if plan.reaches:
        async with read.home.searches.of(read.context.access):
            page = await read.home.store.search(plan)
    token = None
    if page.next is not None:
        token = cursors.seal_hit(seals, page.next, decision.binding)
    labels = labels_of(allowance, decision.scopes)
    streams = {
        (connection.id, scope.stream): scope for scope in decision.scopes for connection in scope.connections
    }
    hits = [(hit, streams[hit.record.connection_id, hit.record.stream]) for hit in page.hits]
    if line_chars is None:
        rows = [_hit_row(hit, labels, query.mode) for hit, _ in hits]
        fields = [_matched_fields(hit, scope) for hit, scope in hits]
    else:
        rows = [_hit_row_with_line(hit, scope.declaration.line, labels, query.mode) for hit, scope in hits]
        fields = [_line_fields(hit, scope) for hit, scope in hits]
    lacks = (index_building(),) if page.is_index_building else ()
    lacks += (search_partial(),) if page.is_cut else ()
    if plan.limit < decision.plan.limit and page.next is not None:
        lacks += read.shortage(len(page.hits))
    warnings = (*read.context.warnings, *decision.warnings, *lacks, *records_damaged(page.damaged))
    searched = {connection.id for scope in decision.scopes for connection in scope.connections}
    body: Body = {
        "object": "list",
        "data": rows,
        "has_more": page.next is not None,
        "url": search_path(query.mode),
        "links": {"self": search_link(query), "next": None if token is None else search_link(query, token)},
        "meta": _meta(page, warnings, connections=len(searched)),
    }
    if query.in_fields is not None:
        body["meta"]["in"] = list(query.in_fields)
    if token is not None:
        body["next_cursor"] = token
    return Served(body, _hits_shown(page, fields))


def _hit_row(hit: Hit, labels: Labels, mode: SearchMode, excerpts: list[Body] | None = None) -> Body:
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
        "evidence_excerpts": (
            [_excerpt(hit, snippet) for snippet in hit.snippets] if excerpts is None else excerpts
        ),
        "record_url": record_path(record.stream, record.id),
    }
    if hit.authored_at is not None:
        row["authored_at"] = iso(hit.authored_at)
    if hit.missing:
        row |= {"match": "partial", "missing": list(hit.missing)}
    if hit.snippets:
        row["snippet"] = {"field": hit.snippets[0].field, "text": hit.snippets[0].text}
    return row if mode is SearchMode.LEXICAL else row | _retrieval(hit, mode)


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


def _hit_row_with_line(hit: Hit, line: LineFields, labels: Labels, mode: SearchMode) -> Body:
    """Return a hit for a model: its line first, then short excerpts."""
    # What a text says about the match is worth more than the name of a person or a place.
    beside = {*line.who, line.where}
    snippets = sorted(hit.snippets, key=lambda snippet: snippet.field in beside)
    hit = replace(hit, snippets=tuple(snippets))
    excerpts = [_short_excerpt(hit, index) for index in range(len(snippets))]
    return {"line": line_body(line, _data(hit)), **_hit_row(hit, labels, mode, excerpts)}


def _data(hit: Hit) -> dict[str, Any]:
    return msgspec.json.decode(hit.record.body, type=dict[str, Any])


def _meta(page: SearchPage, warnings: Iterable[ReadWarning], *, connections: int) -> Body:
    """Return the number of matches, and whether all of them were ranked together.

    By words, recall is complete unless they stand in more places than one search reads: cursors lead from one ranked
    window to the next, down to the oldest match. By meaning it is not while vectors are still to be made.
    """
    recall: Body = {
        "complete": not page.pending_count and not page.is_cut,
        "ranking_scope": "all_matches" if page.ranked_all else "candidate_window",
        "truncated": page.is_cut,
        "sources_searched_count": connections,
    }
    if page.ranked_count is not None:
        recall["ranked_candidate_count"] = page.ranked_count
    if page.pending_count:
        recall["pending_count"] = page.pending_count
    return {
        # As many as the pages give, so that a reader of the number misses none.
        "count": None if page.count is None or page.is_cut else page.count + page.partial_count,
        "count_accuracy": "unknown" if page.count is None or page.is_cut else "exact",
        **({"partial_count": page.partial_count} if page.partial_count else {}),
        "understood": understood_body(page.understood),
        "recall": recall,
        "warnings": [warning.document() for warning in warnings],
    }


def understood_body(understood: Understood) -> Body:
    """Return how a query was understood: its words with other forms that were found, and what was left out."""
    words = [
        {
            "word": word.word,
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


def _excerpt(hit: Hit, snippet: Snippet) -> Body:
    """Return one excerpt of a match that can be used without the hit."""
    record = hit.record
    by_meaning = bool(hit.scores) and SearchMode.LEXICAL not in hit.scores
    return {
        "object": "evidence_excerpt",
        "field_path": snippet.field,
        "preview_text": snippet.text,
        "truncated": not snippet.complete,
        "provenance": "semantic_match" if by_meaning else "lexical_match",
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


def _short_excerpt(hit: Hit, index: int) -> Body:
    """Return one excerpt of a match, and where to read on below the hit's ``record_url``.

    The hit already has the record's identity and the first snippet, so the excerpt omits them; further fields
    are cut shorter, and a field that is complete has no place to read on.
    """
    snippet = hit.snippets[index]
    body: Body = {"field_path": snippet.field}
    if index:
        body["preview_text"] = cut_marked(snippet.text, _FURTHER_CHARS)
    body["truncated"] = not snippet.complete
    return body if snippet.complete else body | {"read": {"offset_chars": snippet.match_chars}}


def _hits_shown(page: SearchPage, fields: Sequence[tuple[FieldName, ...]]) -> tuple[Disclosed, ...]:
    """Name the fields that each hit shows."""
    return tuple(
        part for hit, names in zip(page.hits, fields, strict=True) for part in disclosed([hit.record], names)
    )


def _matched_fields(hit: Hit, scope: StreamScope) -> tuple[FieldName, ...]:
    """Name the fields that a hit without a line shows: those of the snippets, and of the record's time."""
    time = None if hit.authored_at is None else time_field(scope)
    named = [*(snippet.field for snippet in hit.snippets), time]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _line_fields(hit: Hit, scope: StreamScope) -> tuple[FieldName, ...]:
    line = line_fields(scope.declaration.line, _data(hit))
    return tuple(dict.fromkeys((*_matched_fields(hit, scope), *line)))
