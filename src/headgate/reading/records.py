"""Pages of a stream, what changed in it, and single records."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from headgate.audit.journal import Disclosed, ShownRecord, disclosed
from headgate.errors import NotFound
from headgate.model.declaration import Cardinality, LineFields
from headgate.model.ids import FieldName, RecordId, StreamName, is_blob_id
from headgate.model.instants import iso
from headgate.model.plan import ExpandPlan, PagePlan
from headgate.model.query import ChangesQuery, Count, ListQuery, RecordQuery
from headgate.model.record import Children, Record, Tombstone
from headgate.model.rows import Page
from headgate.model.warning import ReadWarning, page_cut, records_damaged
from headgate.policy import cursors
from headgate.policy.allowance import StreamScope
from headgate.policy.cursors import Bookmark, ChangesSession
from headgate.policy.decide import Decision, decide_changes
from headgate.reading import links
from headgate.reading.empty_answers import empty_notes
from headgate.reading.home import (
    CurrentRead,
    EncodedFields,
    Labels,
    PageForm,
    Served,
    bounded,
    draw,
    labels_of,
    meta,
    only,
    short_meta,
    time_field,
    times_of,
    with_whole_key,
)
from headgate.reading.port import Body, ReadAnswer, RecordRow, Row, ShowRecord
from headgate.text.records import telling

#: From so many rows on, a value that all of them have stands above them.
_ROWS = 3
_SHARED_BYTES = 80
_read_data = msgspec.json.Decoder(dict[str, Any]).decode
_LINE_PARTS = ("time", "where", "amount", "unit", "title", "text")
_BLOB_MARK = b'"blob_id"'


async def page(read: CurrentRead, query: ListQuery, form: PageForm) -> Served:
    """Read a page of a stream."""
    decision, labels = read.decisions.page(query, read.home.seals(), form)
    plan = decision.plan
    rows_page, is_short = await _page_within(read, plan)
    token = None
    if rows_page.next is not None:
        token = cursors.seal_position(read.home.seals(), rows_page.next, decision.binding)
    line = decision.scopes[0].declaration.line
    encoded = _marked(labels, form.preview_chars)
    rows = await draw(
        _size_of(rows_page.records), record_rows, rows_page.records, labels, plan.expand, encoded
    )
    body = _list_body(query, rows, token)
    shortage = read.shortage(len(rows_page.records)) if is_short else ()
    if not rows_page.records and plan.filters and plan.after is None:
        notes, compared = await empty_notes(read, decision.scopes[0], plan.filters)
        body["meta"] = _page_meta(read, rows_page, decision, (*shortage, *notes))
        if form.page_bytes is not None:
            body = _short_page(body, query.stream, labels, line)
        return Served(body, compared)
    body["meta"] = _page_meta(read, rows_page, decision, shortage)
    if form.page_bytes is not None:
        body["meta"] |= times_of(decision.scopes)
        body = _short_page(body, query.stream, labels, line, query.fields or ())
    disclosures = records_shown(rows_page.records, plan.reach.fields, plan.expand)
    return Served(body, (*disclosures, *_extent_shown(body["meta"], plan, decision.scopes[0])))


async def _page_within(read: CurrentRead, plan: PagePlan) -> tuple[Page, bool]:
    """Read a page with as many records as may be shown, and say whether there would have been more."""
    if read.most is None:
        return await _page(read, plan), False
    within = replace(plan, limit=min(plan.limit, read.most))
    rows_page = await _page(read, within)
    fit = fitting(rows_page.records, plan.expand, read.most)
    if fit < len(rows_page.records):
        # Read again, so that the cursor follows the last record that is shown.
        within = replace(plan, limit=max(fit, 1))
        rows_page = await _page(read, within)
    if not fit and rows_page.records:
        rows_page = replace(rows_page, records=(cut_children(rows_page.records[0], plan.expand, read.most),))
    return rows_page, bool(rows_page.records) and (
        not fit or (rows_page.next is not None and within.limit < plan.limit and not rows_page.is_cut)
    )


async def _page(read: CurrentRead, plan: PagePlan) -> Page:
    if not (plan.filters or plan.with_extent or plan.count is not Count.NONE):
        return await read.home.store.page(plan)
    async with read.home.computations.of(read.context.access):
        return await read.home.store.page(plan)


def _page_meta(
    read: CurrentRead, rows_page: Page, decision: Decision[PagePlan], shortage: tuple[ReadWarning, ...]
) -> Body:
    # Where the reader named the bytes of a page, its cursor says enough.
    is_cut = rows_page.is_cut and decision.plan.page_bytes is None
    cut = [page_cut(len(rows_page.records))] if is_cut else []
    damaged = [
        *rows_page.damaged,
        *(key for record in rows_page.records for key in _damaged_children(record)),
    ]
    own = (*decision.warnings, *shortage, *cut, *(records_damaged(damaged) if damaged else ()))
    body = meta((*read.context.warnings, *own), rows_page.count)
    if decision.plan.with_extent and rows_page.extent is not None:
        scope, extent = decision.scopes[0], rows_page.extent
        times = {scope.declaration.cursor_field, scope.declaration.consent_time_field} - {None}
        body["window"] = {"total": extent.total}
        shows_times = times <= scope.capability.fields.keys()
        if shows_times and extent.earliest is not None and extent.latest is not None:
            body["window"] |= {"earliest_at": iso(extent.earliest), "latest_at": iso(extent.latest)}
    return body


async def changes(read: CurrentRead, query: ChangesQuery, form: PageForm) -> Served:
    """Read what changed in a stream."""
    allowance, seals = read.decisions.allowance, read.home.seals()
    decision = decide_changes(allowance, query, seals, **form._asdict())
    plan = bounded(decision.plan, read.most)
    changed = await read.home.store.changes(plan)
    labels = labels_of(allowance, decision.scopes)
    encoded = _marked(labels, form.preview_chars)
    rows = await draw(_size_of(changed.entries), _change_rows, changed.entries, labels, encoded)
    token = None
    if changed.next is not None:
        session = ChangesSession(decision.plan.since, changed.horizon, changed.next)
        token = cursors.seal_session(seals, session, decision.binding)
    body = _list_body(query, rows, token)
    if token is None:
        bookmark = Bookmark(changed.horizon, secrets.token_bytes(cursors.NONCE_BYTES))
        binding = cursors.bookmark_binding(allowance, query)
        body["next_changes_since"] = cursors.seal_bookmark(seals, bookmark, binding)
    cut = (page_cut(len(changed.entries)),) if changed.is_cut and form.page_bytes is None else ()
    if plan.limit < decision.plan.limit and changed.next is not None and not changed.is_cut:
        cut = read.shortage(len(changed.entries))
    body["meta"] = read.meta((*decision.warnings, *cut, *records_damaged(changed.damaged)))
    if form.page_bytes is not None:
        line = decision.scopes[0].declaration.line
        body = _short_page(body, query.stream, labels, line, query.fields or ())
    return Served(body, disclosed(changed.entries, decision.plan.reach.fields))


async def record(
    read: CurrentRead, query: RecordQuery, preview_chars: int | None, show: ShowRecord | None
) -> Served:
    query = await with_whole_key(read, query)
    plan, scopes, labels = read.decisions.record(query, preview_chars)
    entries = await read.home.store.record(plan)
    entry = only(read.decisions.allowance, scopes, entries, lambda: NotFound(param="id"))
    shortage: tuple[ReadWarning, ...] = ()
    if read.most is not None and not fitting((entry,), plan.expand, read.most):
        entry, shortage = cut_children(entry, plan.expand, read.most), read.shortage(read.most)
    size, encoded = _size_of((entry,)), _marked(labels, preview_chars)
    (row,) = await draw(size, record_rows, (entry,), labels, plan.expand, encoded)
    row.links = {"self": links.record_link(query)}
    row.meta = read.meta((*shortage, *records_damaged(_damaged_children(entry))))
    if preview_chars is not None:
        row.line_fields = _line_fields(scopes[0].declaration.line, plan.reach.fields)
    served = Served(row, records_shown((entry,), plan.reach.fields, plan.expand))
    return served if show is None else await draw(size, _as_shown, read, served, show)


def _line_fields(line: LineFields, shown: Collection[FieldName]) -> Body:
    """Name the fields of a stream's line that an answer shows."""
    parts: Body = {
        part: name for part in _LINE_PARTS if (name := getattr(line, part)) is not None and name in shown
    }
    who = [name for name in line.who if name in shown]
    return parts | {"who": who} if who else parts


def _as_shown(read: CurrentRead, served: Served, show: ShowRecord) -> Served:
    """Narrow what is logged of a record to the fields that a surface shows."""
    answer = ReadAnswer(msgspec.json.encode(served.body), read.context.request_id, served.body)
    fields = show(answer)
    entry, *children = served.shown
    names = tuple(name for name in entry.fields if name in fields)
    return Served(served.body, (replace(entry, fields=names), *children), answer.content)


def _size_of(entries: Iterable[Record | Tombstone]) -> int:
    """Add up the bytes of records and of those they are expanded with."""
    return sum([_size(entry) for entry in entries if isinstance(entry, Record)])


def _size(record: Record) -> int:
    children = record.expanded.values() if record.expanded else ()
    return len(record.body) + sum([_size_of(child.records) for child in children])


def _marked(labels: Labels, preview_chars: int | None) -> EncodedFields:
    """Return the fields to mark as encoded bytes: only a surface that shortens texts needs the mark."""
    return {} if preview_chars is None else labels.encoded


def _list_body(query: ListQuery | ChangesQuery, rows: Sequence[Row], token: str | None) -> Body:
    body: Body = {
        "object": "list",
        "data": rows,
        "has_more": token is not None,
        "url": links.records_path(query.stream),
        "links": {
            "self": links.list_link(query),
            "next": None if token is None else links.list_link(query, token),
        },
    }
    if token is not None:
        body["next_cursor"] = token
    return body


def _damaged_children(record: Record) -> list[RecordId]:
    return [key for children in record.expanded.values() for key in children.damaged]


# The short form of a page


def _short_page(
    body: Body, stream: StreamName, labels: Labels, line: LineFields, named: Collection[str] = ()
) -> Body:
    """Return a page in the short form; fields that were ``named`` stay, whatever they say.

    A row begins with its title, because hosts cut what is long; ``line`` names the fields in the order of a table.
    """
    rows: list[Row] = body["data"]
    records = [row for row in rows if isinstance(row, RecordRow)]
    values = [_titled(line, telling(_read_data(row.data), row.id, named)) for row in records]
    shared = _shared(values) if len(values) == len(rows) else {}
    for row, data in zip(records, values, strict=True):
        _shorten(row, {name: value for name, value in data.items() if name not in shared})
    for row in rows:
        if isinstance(row, dict):
            for member in ("object", "stream", "connector_key", "display_name", "emitted_at"):
                row.pop(member, None)
    connections = dict.fromkeys(_connection_of(row) for row in rows)
    order = [name for name in line.fields if any(name in data for data in values) and name not in shared]
    return {
        "object": "list",
        "stream": stream,
        "sources": [labels.of(connection) for connection in connections],
        **({"line": order} if order else {}),
        **({"all": shared} if shared else {}),
        "data": rows,
        **{name: body[name] for name in ("has_more", "next_cursor", "next_changes_since") if name in body},
        "meta": short_meta(body["meta"]),
    }


def _titled(line: LineFields, data: Body) -> Body:
    return {line.title: data[line.title], **data} if line.title in data else data


def _connection_of(row: Row) -> Any:
    return row.connection_id if isinstance(row, RecordRow) else row["connection_id"]


def _shared(values: Sequence[Body]) -> Body:
    """Return the short values that every row has."""
    if len(values) < _ROWS:
        return {}
    first, *others = values
    return {
        name: value
        for name, value in first.items()
        if all(name in data and data[name] == value and type(data[name]) is type(value) for data in others)
        and len(msgspec.json.encode(value)) <= _SHARED_BYTES
    }


def _shorten(row: RecordRow, data: Body) -> None:
    row.object = row.stream = row.connector_key = row.display_name = row.emitted_at = msgspec.UNSET
    row.data = msgspec.Raw(msgspec.json.encode(data))
    if row.previews is not msgspec.UNSET:
        # The digest is for those that read the whole text.
        row.previews = {
            name: {fact: value for fact, value in known.items() if fact != "digest"}
            for name, known in row.previews.items()
        }


# Rows


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
        row.previews = {
            name: {"size_chars": preview.size_chars, "digest": preview.digest}
            for name, preview in record.previews.items()
        }
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


def _change_rows(entries: Iterable[Record | Tombstone], labels: Labels, encoded: EncodedFields) -> list[Row]:
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


def _expanded(
    children: Children | None, plan: ExpandPlan, labels: Labels, encoded: EncodedFields
) -> Row | None:
    records = () if children is None else children.records
    if plan.cardinality is Cardinality.HAS_ONE:
        return _record_row(records[0], labels, encoded=encoded) if records else None
    return {
        "object": "list",
        "url": links.records_path(plan.child.stream),
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


# What an answer shows, for the log and for the count of a day


def children_of(record: Record, plan: ExpandPlan) -> tuple[Record, ...]:
    """Return the related records that an answer shows."""
    children = record.expanded.get(plan.name)
    if children is None:
        return ()
    # Of a relation to one record only that one is in the answer.
    return children.records[:1] if plan.cardinality is Cardinality.HAS_ONE else children.records


def fitting(records: Sequence[Record], expand: Sequence[ExpandPlan], most: int) -> int:
    """Return how many of the first records fit, each with all its related ones."""
    seen: set[ShownRecord] = set()
    for number, record in enumerate(records):
        seen.update(_shown(record, expand))
        if len(seen) > most:
            return number
    return len(records)


def cut_children(record: Record, expand: Sequence[ExpandPlan], most: int) -> Record:
    """Leave out the related records of one record that do not fit beside it."""
    seen, expanded = {_key(record)}, dict(record.expanded)
    for plan in expand:
        children = list[Record]()
        for child in children_of(record, plan):
            if _key(child) in seen or len(seen) < most:
                seen.add(_key(child))
                children.append(child)
        known = record.expanded.get(plan.name)
        if known is not None and len(children) < len(children_of(record, plan)):
            expanded[plan.name] = Children(tuple(children), has_more=True, damaged=known.damaged)
    return replace(record, expanded=expanded)


def _shown(record: Record, expand: Sequence[ExpandPlan]) -> Iterator[ShownRecord]:
    yield _key(record)
    for plan in expand:
        yield from map(_key, children_of(record, plan))


def _key(record: Record) -> ShownRecord:
    return record.connection_id, record.stream, record.id


def records_shown(
    records: tuple[Record, ...], fields: tuple[FieldName, ...], expand: Sequence[ExpandPlan]
) -> tuple[Disclosed, ...]:
    """Name the records of an answer and those that are related to them, with their fields."""
    if not expand:
        return disclosed(records, fields)
    children = (
        part
        for plan in expand
        for part in disclosed(
            [child for record in records for child in children_of(record, plan)], plan.child.fields
        )
    )
    return (*disclosed(records, fields), *children)


def _extent_shown(meta: Body, plan: PagePlan, scope: StreamScope) -> tuple[Disclosed, ...]:
    """Name the time field, if the times that all records span are shown."""
    field = time_field(scope)
    if field is None or "earliest_at" not in meta.get("window", ()):
        return ()
    return tuple(
        Disclosed(connection_id, plan.reach.stream, (field,)) for connection_id in plan.reach.connection_ids
    )
