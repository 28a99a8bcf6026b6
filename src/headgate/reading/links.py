"""Addresses of reads: the path and parameters that would ask the same again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.query import (
    DEFAULT_GROUPS,
    DEFAULT_PAGE,
    AggregateQuery,
    ChangesQuery,
    Count,
    ExactFilter,
    ExpandRequest,
    Filter,
    ListQuery,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    SearchSort,
    WindowQuery,
)

Params = Iterable[tuple[str, object]]
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")


def quoted(text: str) -> str:
    """Write a text for a path; most need no change, and seeing that is much quicker than quoting."""
    return text if _PLAIN.fullmatch(text) else quote(text, safe="")


#: For names that come again and again, as those of streams and connections do.
quoted_name = lru_cache(maxsize=1024)(quoted)


def _quoted_param(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else quote_plus(text)


@lru_cache(maxsize=256)
def stream_path(stream: StreamName) -> str:
    """Return the address of a stream."""
    return f"/v1/streams/{quoted(stream)}"


@lru_cache(maxsize=256)
def records_path(stream: StreamName) -> str:
    """Return the address of a stream's records."""
    return f"{stream_path(stream)}/records"


def record_path(stream: StreamName, record_id: RecordId) -> str:
    """Return the address of a record."""
    return f"{records_path(stream)}/{quoted(record_id)}"


def window_path(stream: StreamName, record_id: RecordId) -> str:
    """Return the address of windows into a record."""
    return f"{record_path(stream, record_id)}/field-window"


def with_params(path: str, params: Params) -> str:
    """Put parameters behind a path; those without a value are left out."""
    given = [
        f"{_quoted_param(name)}={_quoted_param(str(value))}" for name, value in params if value is not None
    ]
    return f"{path}?{'&'.join(given)}" if given else path


def list_link(query: ListQuery | ChangesQuery, cursor: str | None) -> str:
    """Return the address of a page."""
    params = _changes(query) if isinstance(query, ChangesQuery) else _list(query)
    return with_params(records_path(query.stream), [*params, ("cursor", cursor)])


def record_link(query: RecordQuery) -> str:
    """Return the address of a record, as it was asked for."""
    path = record_path(query.stream, query.record_id)
    if query.connection_id is None and query.fields is None and not query.expand:
        return path
    if query.fields is None and not query.expand:
        return f"{path}?connection_id={_quoted_param(str(query.connection_id))}"
    fields = None if query.fields is None else ",".join(query.fields)
    params = [("connection_id", query.connection_id), ("fields", fields), *_expand(query.expand)]
    return with_params(path, params)


def window_link(query: WindowQuery) -> str:
    """Return the address of a window."""
    names = (
        "field",
        "connection_id",
        "offset_chars",
        "limit_chars",
        "q",
        "before_chars",
        "after_chars",
        "cursor",
    )
    params = [(name, getattr(query, name)) for name in names]
    reading = "json" if query.as_json else None
    return with_params(window_path(query.stream, query.record_id), [*params, ("as", reading)])


def aggregate_link(query: AggregateQuery) -> str:
    """Return the address of a number."""
    names = (
        "metric",
        "field",
        "group_by",
        "group_by_time",
        "granularity",
        "time_zone",
        "connection_id",
        "connector_key",
    )
    params = [
        *((name, getattr(query, name)) for name in names),
        ("limit", None if query.limit == DEFAULT_GROUPS else query.limit),
        *_filters(query.filters),
    ]
    return with_params(f"{stream_path(query.stream)}/aggregate", params)


def search_link(query: SearchQuery, cursor: str | None) -> str:
    """Return the address of a page of hits."""
    params = [
        ("q", query.q),
        *(("streams[]", name) for name in query.streams or ()),
        ("connection_id", query.connection_id),
        ("connector_key", query.connector_key),
        ("limit", None if query.limit == DEFAULT_PAGE else query.limit),
        ("sort", None if query.sort is SearchSort.RELEVANCE else query.sort),
        *_filters(query.filters),
        ("cursor", cursor),
    ]
    return with_params(search_path(query.mode), params)


def search_path(mode: SearchMode) -> str:
    """Return the address of a kind of search."""
    return "/v1/search" if mode is SearchMode.LEXICAL else f"/v1/search/{mode}"


def schema_link(query: SchemaQuery) -> str:
    """Return the address of a schema document."""
    params = [
        ("view", None if query.full else "compact"),
        ("stream", query.stream),
        ("connection_id", query.connection_id),
        ("connector_key", query.connector_key),
        ("detail", "full" if query.exhaustive else None),
    ]
    return with_params("/v1/schema", params)


def connection_link(path: str, connection_id: ConnectionId | None) -> str:
    """Return an address narrowed to a connection."""
    return with_params(path, [("connection_id", connection_id)])


def _list(query: ListQuery) -> Iterator[tuple[str, object]]:
    yield "limit", None if query.limit == DEFAULT_PAGE else query.limit
    yield "order", query.order
    yield "sort", query.sort
    yield "count", None if query.count is Count.NONE else query.count
    yield "fields", None if query.fields is None else ",".join(query.fields)
    yield "view", query.view
    yield "window", "exact" if query.with_extent else None
    yield "connection_id", query.connection_id
    yield "connector_key", query.connector_key
    yield from _filters(query.filters)
    yield from _expand(query.expand)


def _changes(query: ChangesQuery) -> Iterator[tuple[str, object]]:
    yield "limit", None if query.limit == DEFAULT_PAGE else query.limit
    yield "fields", None if query.fields is None else ",".join(query.fields)
    yield "connection_id", query.connection_id
    yield "changes_since", query.since


def _filters(filters: Iterable[Filter]) -> Iterator[tuple[str, object]]:
    for one in filters:
        if isinstance(one, ExactFilter):
            yield f"filter[{one.field}]", one.value
        else:
            yield f"filter[{one.field}][{one.operator}]", one.value


def _expand(requests: Iterable[ExpandRequest]) -> Iterator[tuple[str, object]]:
    for request in requests:
        yield "expand", request.name
        yield f"expand_limit[{request.name}]", request.limit
