"""Addresses of reads: the path and parameters that would ask the same again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from msgspec import structs

from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.query import (
    AggregateQuery,
    ChangesQuery,
    ExactFilter,
    ExpandRequest,
    Filter,
    ListQuery,
    Query,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    WindowQuery,
)

Params = Iterable[tuple[str, object]]
#: Members of queries that are no parameters: the path has them, or no request does.
_IN_PATH = frozenset({"stream", "record_id", "mode", "or_words", "key_digest"})
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
    return f"{record_path(stream, record_id)}/field-window"


def with_params(path: str, params: Params) -> str:
    """Put parameters behind a path; those without a value are left out."""
    pairs = [
        f"{_quoted_param(name)}={_quoted_param(str(value))}" for name, value in params if value is not None
    ]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def to_params(query: Query, cursor: str | None = None, *, besides: frozenset[str] = _IN_PATH) -> Params:
    """Write the members of a query that are set as parameters, with the cursor of another page if there is one."""
    for name, default in _members(type(query)):
        value = cursor if cursor is not None and name == "cursor" else getattr(query, name)
        if name in besides or value == default:
            continue
        write = _WRITTEN.get(name)
        if write is None:
            yield name, value
        else:
            yield from write(value)


@cache
def _members(kind: type[Query]) -> tuple[tuple[str, Any], ...]:
    return tuple((member.name, member.default) for member in structs.fields(kind))


def list_link(query: ListQuery | ChangesQuery, cursor: str | None = None) -> str:
    """Return the address of a page."""
    return with_params(records_path(query.stream), to_params(query, cursor))


def record_link(query: RecordQuery) -> str:
    """Return the address of a record, as it was asked for."""
    return with_params(record_path(query.stream, query.record_id), to_params(query))


def window_link(query: WindowQuery) -> str:
    """Return the address of a window."""
    return with_params(window_path(query.stream, query.record_id), to_params(query))


def aggregate_link(query: AggregateQuery) -> str:
    """Return the address of a number."""
    return with_params(f"{stream_path(query.stream)}/aggregate", to_params(query))


def search_link(query: SearchQuery, cursor: str | None = None) -> str:
    """Return the address of a page of hits."""
    return with_params(search_path(query), to_params(query, cursor))


def search_path(query: SearchQuery) -> str:
    """Return the address of a kind of search; both or words is that by words, with a preference."""
    by_words = query.or_words or query.mode is SearchMode.LEXICAL
    return "/v1/search" if by_words else f"/v1/search/{query.mode}"


def schema_link(query: SchemaQuery) -> str:
    """Return the address of a schema document."""
    view = None if query.full else "compact"
    return with_params("/v1/schema", [("view", view), *to_params(query, besides=frozenset({"full"}))])


def connection_link(path: str, connection_id: ConnectionId | None) -> str:
    """Return an address narrowed to a connection."""
    return with_params(path, [("connection_id", connection_id)])


def _filters(filters: Iterable[Filter]) -> Params:
    for condition in filters:
        operator = "" if isinstance(condition, ExactFilter) else f"[{condition.operator}]"
        yield f"filter[{condition.field}]{operator}", condition.value


def _expand(requests: Iterable[ExpandRequest]) -> Params:
    for request in requests:
        yield "expand", request.name
        yield f"expand_limit[{request.name}]", request.limit


#: The members of queries that are no parameters of the same name and value.
_WRITTEN: Mapping[str, Callable[[Any], Params]] = {
    "fields": lambda names: [("fields", ",".join(names))],
    "in_fields": lambda names: [("in", ",".join(names))],
    "extract": lambda wanted: [("extract[after]", wanted.after), ("extract[type]", wanted.type)],
    "streams": lambda names: [("streams[]", name) for name in names],
    "filters": _filters,
    "expand": _expand,
    "since": lambda bookmark: [("changes_since", bookmark)],
    "with_extent": lambda _: [("window", "exact")],
    "as_json": lambda _: [("as", "json")],
    "collapse": lambda is_wanted: [("collapse", "true" if is_wanted else "false")],
    "understand": lambda is_wanted: [("understand", "true" if is_wanted else "false")],
    "exhaustive": lambda _: [("detail", "full")],
}
