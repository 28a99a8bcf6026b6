"""The bodies of answers, drawn from rows. They hold what the plan selected and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from headgate.model.declaration import Cardinality
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName, is_blob_id
from headgate.model.instants import iso
from headgate.model.plan import AggregatePlan, ExpandPlan, TimeGroups
from headgate.model.query import AggregateQuery, SearchMode, WindowQuery
from headgate.model.record import Children, Record, Tombstone
from headgate.model.rows import (
    Aggregate,
    Extent,
    FieldWindow,
    Group,
    Hit,
    SearchPage,
    Snippet,
    Understood,
)
from headgate.model.warning import ReadWarning
from headgate.model.wire import HitBody
from headgate.reading.links import record_path, records_path, window_path
from headgate.reading.port import Body, RecordRow, Row
from headgate.text.marks import cut_marked
from headgate.text.titles import title_field

_SCORE_KINDS = {SearchMode.LEXICAL: "relevance", SearchMode.SEMANTIC: "cosine_similarity"}
_BLOB_MARK = b'"blob_id"'
_FURTHER_CHARS = 48


#: By stream: the fields whose texts are declared as encoded bytes, with the type of the bytes.
EncodedFields = Mapping[StreamName, Mapping[FieldName, str]]


@dataclass(frozen=True, slots=True)
class Labels:
    """What rows say about connections: the connector, and what the owner calls the connection."""

    known: Mapping[ConnectionId, tuple[ConnectorKey, str | None]]
    #: The fields of each stream that are declared as encoded bytes.
    encoded: EncodedFields = field(default_factory=dict[StreamName, Mapping[FieldName, str]])

    def of(self, connection_id: ConnectionId) -> Body:
        """Return the members that tell a row's origin."""
        key, name = self.known[connection_id]
        if name is None:
            return {"connection_id": connection_id, "connector_key": key}
        return {"connection_id": connection_id, "connector_key": key, "display_name": name}


def meta(warnings: Iterable[ReadWarning], count: int | None = None, *, is_counted: bool = False) -> Body:
    """Return the ``meta`` member: how much there is, and what to know about the answer."""
    counted: Body = (
        {"kind": "exact", "value": count} if is_counted and count is not None else {"kind": "none"}
    )
    return {"count": counted, "warnings": [warning.document() for warning in warnings]}


#: The ``meta`` member of most answers.
NOTHING_TO_SAY = msgspec.Raw(msgspec.json.encode(meta(())))


def record_rows(
    records: Iterable[Record], labels: Labels, expand: Sequence[ExpandPlan], encoded: EncodedFields
) -> list[RecordRow]:
    """Return the envelopes of records; ``encoded`` are the fields that previews are to mark as encoded bytes."""
    return [_record_row(record, labels, expand, encoded=encoded) for record in records]


def _record_row(
    record: Record, labels: Labels, expand: Sequence[ExpandPlan] = (), *, encoded: EncodedFields
) -> RecordRow:
    key, name = labels.known[record.connection_id]
    row = RecordRow(
        "record",
        record.id,
        record.stream,
        record.connection_id,
        key,
        msgspec.UNSET if name is None else name,
        _data(record.body),
        iso(record.emitted_at),
    )
    if record.previews:
        row.previews = previews(record)
    if record.stream in encoded:
        _mark_encoded(row, record.body, encoded[record.stream])
    if expand:
        row.expanded = {
            plan.name: _expanded(record.expanded.get(plan.name), plan, labels, encoded) for plan in expand
        }
    return row


def _mark_encoded(row: RecordRow, body: bytes, fields: Mapping[FieldName, str]) -> None:
    """Add the texts that are declared as encoded bytes to a row's previews."""
    data = msgspec.json.decode(body, type=dict[FieldName, Any])
    known: Body = {} if row.previews is msgspec.UNSET else row.previews
    for name, mime_type in fields.items():
        text = data.get(name)
        if isinstance(text, str):
            known = {**known, name: {"size_chars": len(text), **known.get(name, {}), "mime_type": mime_type}}
    row.previews = known or msgspec.UNSET


def previews(record: Record) -> Body:
    """Return the true length and the digest of each text that was cut."""
    return {
        name: {"size_chars": found.size_chars, "digest": found.digest}
        for name, found in record.previews.items()
    }


def change_rows(entries: Iterable[Record | Tombstone], labels: Labels, encoded: EncodedFields) -> list[Row]:
    """Return the envelope of each record, or the mark of one that has gone."""
    return [_change_row(entry, labels, encoded) for entry in entries]


def _change_row(entry: Record | Tombstone, labels: Labels, encoded: EncodedFields) -> Row:
    if isinstance(entry, Record):
        return _record_row(entry, labels, encoded=encoded)
    return {
        "object": "record",
        "id": entry.id,
        "stream": entry.stream,
        **labels.of(entry.connection_id),
        "deleted": True,
        "deleted_at": iso(entry.deleted_at),
        "emitted_at": iso(entry.emitted_at),
    }


def extent_body(extent: Extent, *, shows_times: bool) -> Body:
    """Return the ``window`` of a list: how many records there are, and the times they span."""
    body: Body = {"total": extent.total}
    if shows_times and extent.earliest is not None and extent.latest is not None:
        body |= {"earliest_at": iso(extent.earliest), "latest_at": iso(extent.latest)}
    return body


def window_body(query: WindowQuery, limit: int, found: FieldWindow, origin: Body) -> Body:
    """Return a part of a field, and where it stands in the whole."""
    start, end, total = found.start_chars, found.end_chars, found.total_chars
    return {
        "object": "field_window",
        "stream": query.stream,
        "record_id": query.record_id,
        **origin,
        "field": {
            "path": query.field,
            "type": "json" if found.is_json else "string",
            "size_chars": total,
            "digest": f"sha256:{found.digest}",
        },
        "window": {
            "text": found.text,
            "start_chars": start,
            "end_chars": end,
            "limit_chars": limit,
            "total_chars": total,
            "complete": start == 0 and end == total,
            "has_more": end < total,
            "next_offset_chars": end if end < total else None,
            "previous_offset_chars": max(0, start - limit) if start else None,
            "match_start_chars": found.match_start_chars,
            "match_end_chars": found.match_end_chars,
            "next_cursor": None,
            "previous_cursor": None,
        },
        "url": window_path(query.stream, query.record_id),
    }


def aggregate_body(query: AggregateQuery, plan: AggregatePlan, found: Aggregate) -> Body:
    """Return a number, or groups."""
    by_time = plan.group_by if isinstance(plan.group_by, TimeGroups) else plan.then_by
    body: Body = {
        "object": "aggregation",
        "stream": query.stream,
        "metric": query.metric,
        "field": query.field,
        "group_by": query.group_by,
        "group_by_time": query.group_by_time,
        "granularity": query.granularity,
        "time_zone": None if by_time is None else by_time.time_zone,
        "approximate": False,
        "filtered_record_count": found.filtered_record_count,
    }
    if found.missing_count is not None:
        body["missing_value_count"] = found.missing_count
        body["unreadable_value_count"] = found.unreadable_count
    if found.groups is None:
        return body | {"value": found.value}
    groups = [_group_row(plan, group) for group in found.groups]
    return body | {"limit": plan.limit, "groups": groups, "other_count": found.other_count}


def _group_row(plan: AggregatePlan, group: Group) -> Body:
    return {
        "key": group.key,
        **({} if plan.then_by is None else {"time": group.time}),
        "count": group.count,
        **({} if plan.field is None else {"value": group.value}),
        # Few groups have any: a group without these members has none.
        **({"missing_value_count": group.missing_count} if group.missing_count else {}),
        **({"unreadable_value_count": group.unreadable_count} if group.unreadable_count else {}),
    }


def hit_row(hit: Hit, labels: Labels, mode: SearchMode = SearchMode.LEXICAL) -> Body:
    """Return a hit: where it is, what matched, and how to read on."""
    return _hit_row(hit, labels, mode, [_excerpt(hit, snippet) for snippet in hit.snippets])


def _hit_row(hit: Hit, labels: Labels, mode: SearchMode, excerpts: list[Body]) -> Body:
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
        "evidence_excerpts": excerpts,
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


def titled_hit_row(hit: Hit, labels: Labels, mode: SearchMode = SearchMode.LEXICAL) -> Body:
    """Return a hit for a model: short excerpts, and the one field that its title is made of, if there is one."""
    row = _hit_row(hit, labels, mode, [_short_excerpt(hit, index) for index in range(len(hit.snippets))])
    row["data"] = msgspec.json.decode(hit.record.body, type=dict[str, Any])
    name = title_field(cast("HitBody", row))
    row["data"] = {} if name is None else {name: row["data"][name]}
    return row


def search_meta(page: SearchPage, warnings: Iterable[ReadWarning], *, connections: int) -> Body:
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
        "understood": _understood(page.understood),
        "recall": recall,
        "warnings": [warning.document() for warning in warnings],
    }


def _understood(found: Understood) -> Body:
    """Return how a query was understood: its words with other forms that were found, and what was left out."""
    words = [
        {
            "word": word.word,
            **({"forms": list(word.forms)} if word.forms else {}),
            **({"corrected_to": list(word.corrected)} if word.corrected else {}),
        }
        for word in found.words
    ]
    body: Body = {"words": words}
    if found.left_out:
        body["left_out"] = list(found.left_out)
    if found.excluded:
        body["excluded"] = list(found.excluded)
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


def _expanded(
    children: Children | None, plan: ExpandPlan, labels: Labels, encoded: EncodedFields
) -> Row | None:
    records = () if children is None else children.records
    if plan.cardinality is Cardinality.HAS_ONE:
        return _record_row(records[0], labels, encoded=encoded) if records else None
    return {
        "object": "list",
        "url": records_path(plan.child.stream),
        "has_more": children is not None and children.has_more,
        "data": [_record_row(record, labels, encoded=encoded) for record in records],
    }


def _data(body: bytes) -> msgspec.Raw:
    """Pass a record's body on as it is; only references to files learn where to fetch them."""
    # Not "in", which first takes the mark for a number, and makes an error of that.
    return msgspec.Raw(body if body.find(_BLOB_MARK) < 0 else _with_fetch_urls(body))


def _with_fetch_urls(body: bytes) -> bytes:
    values = msgspec.json.decode(body, type=dict[FieldName, Any])
    # Encoded at once: the answer, which is written in the event loop, then only copies it.
    return msgspec.json.encode({name: _fetchable(value) for name, value in values.items()})


def _fetchable(value: Any) -> Any:
    if isinstance(value, list):
        return [_fetchable(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    reference = cast("dict[str, Any]", value)
    blob = reference.get("blob_id")
    if not isinstance(blob, str) or not is_blob_id(blob):
        return reference
    return reference | {"fetch_url": f"/v1/blobs/{blob}"}
