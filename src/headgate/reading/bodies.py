"""The bodies of answers, drawn from rows. They hold what the plan selected and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from headgate.model.declaration import Cardinality
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, is_blob_id
from headgate.model.instants import iso
from headgate.model.plan import AggregatePlan, ExpandPlan, TimeGroups, WindowPlan
from headgate.model.query import AggregateQuery, WindowQuery
from headgate.model.record import Children, Record, Tombstone
from headgate.model.rows import Aggregate, Extent, FieldWindow, Group, Hit, SearchPage, Snippet
from headgate.model.warning import ReadWarning
from headgate.model.wire import HitBody
from headgate.reading.links import record_path, records_path, window_path
from headgate.reading.port import Body, RecordRow, Row
from headgate.text.marks import cut_marked
from headgate.text.titles import title_field

_BLOB_MARK = b'"blob_id"'
_FURTHER_CHARS = 48


@dataclass(frozen=True, slots=True)
class Labels:
    """What rows say about connections: the connector, and what the owner calls the connection."""

    known: Mapping[ConnectionId, tuple[ConnectorKey, str | None]]

    def of(self, connection_id: ConnectionId) -> Body:
        """Give the members that tell a row's origin."""
        key, name = self.known[connection_id]
        if name is None:
            return {"connection_id": connection_id, "connector_key": key}
        return {"connection_id": connection_id, "connector_key": key, "display_name": name}


def meta(warnings: Iterable[ReadWarning], count: int | None = None, *, is_counted: bool = False) -> Body:
    """Give the ``meta`` member: how much there is, and what to know about the answer."""
    counted: Body = (
        {"kind": "exact", "value": count} if is_counted and count is not None else {"kind": "none"}
    )
    return {"count": counted, "warnings": [warning.document() for warning in warnings]}


#: The ``meta`` member of most answers.
NOTHING_TO_SAY = msgspec.Raw(msgspec.json.encode(meta(())))


def record_row(record: Record, labels: Labels, expand: Sequence[ExpandPlan] = ()) -> RecordRow:
    """Give a record's envelope."""
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
    if expand:
        row.expanded = {plan.name: _expanded(record.expanded.get(plan.name), plan, labels) for plan in expand}
    return row


def previews(record: Record) -> Body:
    """Give the true length and the digest of each text that was cut."""
    return {
        name: {"size_chars": found.size_chars, "digest": found.digest}
        for name, found in record.previews.items()
    }


def change_row(entry: Record | Tombstone, labels: Labels) -> Row:
    """Give a record's envelope, or the mark of one that has gone."""
    if isinstance(entry, Record):
        return record_row(entry, labels)
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
    """Give the ``window`` of a list: how many records there are, and the times they span."""
    body: Body = {"total": extent.total}
    if shows_times and extent.earliest is not None and extent.latest is not None:
        body |= {"earliest_at": iso(extent.earliest), "latest_at": iso(extent.latest)}
    return body


def window_body(query: WindowQuery, plan: WindowPlan, found: FieldWindow, labels: Labels) -> Body:
    """Give a part of a field, and where it stands in the whole."""
    start, end, total = found.start_chars, found.end_chars, found.total_chars
    limit = plan.window.limit_chars
    return {
        "object": "field_window",
        "stream": query.stream,
        "record_id": query.record_id,
        **labels.of(found.connection_id),
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
    """Give a number, or groups."""
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
    }


def hit_row(hit: Hit, labels: Labels) -> Body:
    """Give a hit: where it is, what matched, and how to read on."""
    return _hit_row(hit, labels, [_excerpt(hit.record, snippet) for snippet in hit.snippets])


def _hit_row(hit: Hit, labels: Labels, excerpts: list[Body]) -> Body:
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
    if hit.snippets:
        row["snippet"] = {"field": hit.snippets[0].field, "text": hit.snippets[0].text}
    return row


def titled_hit_row(hit: Hit, labels: Labels) -> Body:
    """Give a hit for a model: short excerpts, and the one field that its title is made of, if there is one."""
    row = _hit_row(hit, labels, [_short_excerpt(hit, index) for index in range(len(hit.snippets))])
    row["data"] = msgspec.json.decode(hit.record.body, type=dict[str, Any])
    name = title_field(cast("HitBody", row))
    row["data"] = {} if name is None else {name: row["data"][name]}
    return row


def search_meta(page: SearchPage, warnings: Iterable[ReadWarning], *, connections: int) -> Body:
    """Give the number of matches, and whether all of them were ranked together.

    Recall is always complete: cursors lead from one ranked window to the next, down to the oldest match.
    """
    recall: Body = {
        "complete": True,
        "ranking_scope": "all_matches" if page.ranked_all else "candidate_window",
        "truncated": False,
        "sources_searched_count": connections,
    }
    if page.ranked_count is not None:
        recall["ranked_candidate_count"] = page.ranked_count
    return {
        "count": page.count,
        "count_accuracy": "exact" if page.count is not None else "unknown",
        "recall": recall,
        "warnings": [warning.document() for warning in warnings],
    }


def _excerpt(record: Record, snippet: Snippet) -> Body:
    """Return one excerpt of a match that can be used without the hit."""
    return {
        "object": "evidence_excerpt",
        "field_path": snippet.field,
        "preview_text": snippet.text,
        "truncated": not snippet.complete,
        "provenance": "lexical_match",
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


def _expanded(children: Children | None, plan: ExpandPlan, labels: Labels) -> Row | None:
    records = () if children is None else children.records
    if plan.cardinality is Cardinality.HAS_ONE:
        return record_row(records[0], labels) if records else None
    return {
        "object": "list",
        "url": records_path(plan.child.stream),
        "has_more": children is not None and children.has_more,
        "data": [record_row(record, labels) for record in records],
    }


def _data(body: bytes) -> Any:
    """Pass a record's body on as it is; only references to files learn where to fetch them."""
    # Not "in", which first takes the mark for a number, and makes an error of that.
    return msgspec.Raw(body) if body.find(_BLOB_MARK) < 0 else _with_fetch_urls(body)


def _with_fetch_urls(body: bytes) -> dict[FieldName, Any]:
    values = msgspec.json.decode(body, type=dict[FieldName, Any])
    return {name: _fetchable(value) for name, value in values.items()}


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
