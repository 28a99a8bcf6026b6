"""Read the arguments of a call: checked, typed and turned into a query.

An error found here is answered without a call to the resource server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from headgate.errors import (
    ConflictingConnectionId,
    InvalidExpand,
    InvalidFieldWindowSelector,
    InvalidFilter,
    InvalidRequest,
    InvalidResultId,
)
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.mistakes import mistake
from headgate.model import ids
from headgate.model.declaration import RangeOperator
from headgate.model.query import (
    DEFAULT_CONTEXT_CHARS,
    DEFAULT_GROUPS,
    DEFAULT_PAGE,
    AggregateQuery,
    ChangesQuery,
    Count,
    ExactFilter,
    ExpandRequest,
    Filter,
    Granularity,
    ListQuery,
    Metric,
    Order,
    RangeFilter,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    SearchSort,
    WindowQuery,
)
from headgate.model.reference import RecordRef

_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[list[_Text], Meta(min_length=1)]
_Limit = Annotated[int, Meta(ge=1, le=100)]
_WindowLimit = Annotated[int, Meta(ge=1, le=16384)]
_Context = Annotated[int, Meta(ge=0, le=8192)]
_MAX_FILTERS = 32


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments without unknown names; null means the same as leaving one out."""


class SchemaArguments(_Strict, frozen=True):
    """The arguments of ``schema``."""

    detail: Literal["compact", "full"] | None = None
    stream: _Text | None = None
    connection_id: _Text | None = None
    connector_key: _Text | None = None
    cursor: _Text | None = None


class QueryArguments(_Strict, frozen=True):
    """The arguments of ``query_records``."""

    stream: _Text
    limit: _Limit | None = None
    cursor: _Text | None = None
    changes_since: _Text | None = None
    order: Order | None = None
    sort: _Text | None = None
    count: Count | None = None
    filter: dict[str, Any] | None = None
    fields: _Texts | None = None
    view: _Text | None = None
    expand: _Texts | None = None
    expand_limit: dict[str, Any] | None = None
    connection_id: _Text | None = None
    connector_key: _Text | None = None


class AggregateArguments(_Strict, frozen=True):
    """The arguments of ``aggregate``."""

    stream: _Text
    metric: Metric
    field: _Text | None = None
    group_by: _Text | None = None
    group_by_time: _Text | None = None
    granularity: Granularity | None = None
    time_zone: _Text | None = None
    limit: _Limit | None = None
    cursor: _Text | None = None
    filter: dict[str, Any] | None = None
    connection_id: _Text | None = None
    connector_key: _Text | None = None


class SearchArguments(_Strict, frozen=True):
    """The arguments of ``search``."""

    q: _Text | None = None
    query: _Text | None = None
    streams: _Texts | None = None
    limit: _Limit | None = None
    cursor: _Text | None = None
    mode: SearchMode | None = None
    sort: SearchSort | None = None
    filter: dict[str, Any] | None = None
    connection_id: _Text | None = None
    connector_key: _Text | None = None


class FetchArguments(_Strict, frozen=True):
    """The arguments of ``fetch``."""

    id: _Text
    stream: _Text | None = None
    fields: _Texts | None = None
    expand: _Texts | None = None
    expand_limit: dict[str, Any] | None = None
    connection_id: _Text | None = None


class FieldArguments(_Strict, frozen=True):
    """The arguments of ``read_record_field``."""

    field_path: _Text
    id: _Text | None = None
    connection_id: _Text | None = None
    stream: _Text | None = None
    record_id: _Text | None = None
    cursor: _Text | None = None
    offset_chars: Annotated[int, Meta(ge=0)] | None = None
    limit_chars: _WindowLimit | None = None
    q: _Text | None = None
    before_chars: _Context | None = None
    after_chars: _Context | None = None


_T = TypeVar("_T", bound=_Strict)


def typed(arguments: Mapping[str, Any], shape: type[_T]) -> _T:
    """Check names, types and ranges.

    Raises:
        InvalidFilter, InvalidExpand: the filter or expand_limit is no object.
        InvalidRequest: anything else is not as the tool's input schema says.
    """
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise mistake(str(error), arguments, shape.__struct_fields__) from error


def schema_query(arguments: Mapping[str, Any]) -> tuple[SchemaQuery, str | None]:
    """Read the query of ``schema``, and where its text goes on."""
    given = typed(arguments, SchemaArguments)
    if given.detail == "full" and given.stream is None:
        raise InvalidRequest(
            "detail 'full' needs a stream.",
            param="detail",
            hint='Call schema() first, then schema(stream, connection_id, detail: "full").',
        )
    stream = None if given.stream is None else _stream(given.stream)
    is_full = given.detail == "full"
    query = SchemaQuery(
        stream,
        _connection(given.connection_id),
        full=is_full,
        exhaustive=is_full,
        connector_key=_connector(given.connector_key),
    )
    return query, given.cursor


def list_query(arguments: Mapping[str, Any]) -> ListQuery | ChangesQuery:
    """Read the query of ``query_records``."""
    given = typed(arguments, QueryArguments)
    if given.changes_since is not None:
        return _changes(given, given.changes_since)
    return ListQuery(
        _stream(given.stream),
        connection_id=_connection(given.connection_id),
        connector_key=_connector(given.connector_key),
        limit=given.limit or DEFAULT_PAGE,
        order=given.order,
        sort=given.sort,
        count=given.count or Count.NONE,
        fields=_fields(given.fields),
        view=given.view,
        filters=filters(given.filter),
        expand=expansions(given.expand, given.expand_limit),
        cursor=given.cursor,
    )


def aggregate_query(arguments: Mapping[str, Any]) -> tuple[AggregateQuery, str | None]:
    """Read the query of ``aggregate``, and where its text goes on."""
    given = typed(arguments, AggregateArguments)
    query = AggregateQuery(
        _stream(given.stream),
        given.metric,
        field=_field(given.field),
        group_by=_field(given.group_by),
        group_by_time=_field(given.group_by_time),
        granularity=given.granularity,
        time_zone=given.time_zone,
        limit=given.limit or DEFAULT_GROUPS,
        filters=filters(given.filter),
        connection_id=_connection(given.connection_id),
        connector_key=_connector(given.connector_key),
    )
    return query, given.cursor


def search_query(arguments: Mapping[str, Any]) -> SearchQuery:
    """Read the query of ``search``."""
    given = typed(arguments, SearchArguments)
    words = _words(given)
    streams = None if given.streams is None else tuple(_stream(stream) for stream in given.streams)
    chosen = filters(given.filter)
    if chosen and (streams is None or len(streams) != 1):
        raise InvalidFilter(
            "A filter in search needs exactly one stream in streams.",
            param="filter",
            hint="Pass streams with the one stream whose fields filter names.",
        )
    return SearchQuery(
        words,
        streams=streams,
        connection_id=_connection(given.connection_id),
        connector_key=_connector(given.connector_key),
        limit=given.limit or DEFAULT_PAGE,
        filters=chosen,
        cursor=given.cursor,
        mode=given.mode or SearchMode.LEXICAL,
        sort=given.sort or SearchSort.RELEVANCE,
    )


def record_query(arguments: Mapping[str, Any], handles: HandleMaker) -> tuple[RecordQuery, str | None]:
    """Read the query of ``fetch``, and the id that the call gave, if it is one that names its stream."""
    given = typed(arguments, FetchArguments)
    ref = None if given.stream is None else _bare_record(given.id, _stream(given.stream), handles)
    asked_id = given.id if ref is None else None
    ref = scoped(ref or handles.read_id(given.id), _connection(given.connection_id))
    query = RecordQuery(
        ref.stream,
        ref.record_id,
        connection_id=ref.connection_id,
        fields=_fields(given.fields),
        expand=expansions(given.expand, given.expand_limit),
        key_digest=ref.key_digest,
    )
    return query, asked_id


def _bare_record(text: str, stream: ids.StreamName, handles: HandleMaker) -> RecordRef | None:
    """Read the id of a record beside the name of its stream; None for an id that names the stream itself."""
    try:
        if handles.read_id(text).stream == stream:
            return None
    except InvalidResultId:
        pass
    return RecordRef(None, stream, ids.record_id(text))


def window_query(arguments: Mapping[str, Any], handles: HandleMaker) -> WindowQuery:
    """Read the query of ``read_record_field``.

    Raises:
        InvalidFieldWindowSelector: record or window are selected in two ways, or in none that is complete.
    """
    given = typed(arguments, FieldArguments)
    _refuse_two_windows(given)
    ref = _record(given, handles)
    has_context = given.q is not None and given.limit_chars is None
    context = DEFAULT_CONTEXT_CHARS if has_context else None
    return WindowQuery(
        ref.stream,
        ref.record_id,
        ids.field_name(given.field_path),
        ref.connection_id,
        offset_chars=given.offset_chars,
        limit_chars=given.limit_chars,
        q=given.q,
        before_chars=context if given.before_chars is None else given.before_chars,
        after_chars=context if given.after_chars is None else given.after_chars,
        cursor=given.cursor,
        as_json=True,
        key_digest=ref.key_digest,
    )


def scoped(ref: RecordRef, connection_id: ids.ConnectionId | None) -> RecordRef:
    """Join the connection in an id with the one beside it.

    Raises:
        ConflictingConnectionId: they differ.
    """
    if connection_id is None or connection_id == ref.connection_id:
        return ref
    if ref.connection_id is not None:
        raise ConflictingConnectionId(
            f"The id names connection '{ref.connection_id}', connection_id names '{connection_id}'.",
            param="connection_id",
        )
    return replace(ref, connection_id=connection_id)


def filters(given: Mapping[str, Any] | None) -> tuple[Filter, ...]:
    """Read a typed filter object.

    Raises:
        InvalidFilter: it is empty, or a member is neither a value nor a range.
    """
    if given is None:
        return ()
    if not given or len(given) > _MAX_FILTERS:
        raise InvalidFilter(f"filter needs 1 to {_MAX_FILTERS} fields.", param="filter")
    return tuple(found for name, value in given.items() for found in _filter(name, value))


def expansions(names: list[str] | None, limits: Mapping[str, Any] | None) -> tuple[ExpandRequest, ...]:
    """Read relations and their limits.

    Raises:
        InvalidExpand: a limit is no positive number, or is for a relation that is not expanded.
    """
    if names is None and limits is None:
        return ()
    if limits is not None and not limits:
        raise InvalidExpand("expand_limit must not be empty.", param="expand_limit")
    for relation, limit in (limits or {}).items():
        if relation not in (names or []):
            raise InvalidExpand(f"expand_limit names '{relation}', expand does not.", param="expand_limit")
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise InvalidExpand(
                f"expand_limit of '{relation}' must be a whole number from 1.", param="expand_limit"
            )
    if any("[" in relation or "]" in relation for relation in names or []):
        raise InvalidExpand("Name relations without brackets.", param="expand")
    return tuple(ExpandRequest(name, (limits or {}).get(name)) for name in names or [])


def _filter(name: str, value: Any) -> list[Filter]:
    if not name or "[" in name or "]" in name:
        raise InvalidFilter("Name fields as they are, without brackets.", param="filter")
    field = ids.field_name(name)
    if isinstance(value, str | int | float):
        return [ExactFilter(field, value)]
    if not isinstance(value, dict) or not value:
        raise InvalidFilter(f"'{name}' needs a value, or a range with gte, gt, lte or lt.", param="filter")
    return [_bound(field, operator, bound) for operator, bound in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON object


def _bound(field: ids.FieldName, operator: Any, bound: Any) -> RangeFilter:
    if operator not in set(RangeOperator):
        raise InvalidFilter(f"'{operator}' is no range; use gte, gt, lte or lt.", param="filter")
    if isinstance(bound, bool) or not isinstance(bound, str | int | float):
        raise InvalidFilter(f"The range of '{field}' needs a text or a number.", param="filter")
    return RangeFilter(field, RangeOperator(operator), bound)


def _words(given: SearchArguments) -> str:
    """Take the words of a search from either of the two names that hosts use."""
    if given.q is not None and given.query is not None:
        raise InvalidRequest("q and query are the same argument.", param="query", hint="Pass q alone.")
    words = given.q or given.query
    if words is None:
        raise InvalidRequest("The words to search for are missing.", param="q", hint="Pass them in q.")
    return words


def _changes(given: QueryArguments, since: str) -> ChangesQuery:
    if given.expand is not None or given.expand_limit is not None:
        raise InvalidExpand("changes_since excludes expand.", param="expand")
    for name in ("sort", "order", "count", "filter", "view", "connector_key"):
        if getattr(given, name) is not None:
            raise InvalidRequest(f"changes_since excludes {name}.", param=name)
    return ChangesQuery(
        _stream(given.stream),
        since,
        connection_id=_connection(given.connection_id),
        limit=given.limit or DEFAULT_PAGE,
        fields=_fields(given.fields),
        cursor=given.cursor,
    )


def _refuse_two_windows(given: FieldArguments) -> None:
    explicit = [
        name
        for name in ("offset_chars", "q", "before_chars", "after_chars")
        if getattr(given, name) is not None
    ]
    if given.cursor is not None and explicit:
        raise InvalidFieldWindowSelector(
            "Going on with cursor excludes selecting a window with offset_chars, q, before_chars or after_chars.",
            param=explicit[0],
        )
    if given.q is not None and given.offset_chars is not None:
        raise InvalidFieldWindowSelector("q and offset_chars exclude each other.", param="offset_chars")
    if given.q is None and explicit and explicit != ["offset_chars"]:
        raise InvalidFieldWindowSelector("before_chars and after_chars need q.", param=explicit[-1])


def _record(given: FieldArguments, handles: HandleMaker) -> RecordRef:
    triple = (given.connection_id, given.stream, given.record_id)
    if given.id is None:
        connection, stream, record = triple
        if connection is None or stream is None or record is None:
            raise InvalidFieldWindowSelector(
                "Without id, connection_id, stream and record_id are all needed."
            )
        return RecordRef(ids.connection_id(connection), _stream(stream), ids.record_id(record))
    if any(part is not None for part in triple):
        raise InvalidFieldWindowSelector("id excludes connection_id, stream and record_id.", param="id")
    try:
        ref = handles.read_id(given.id)
    except InvalidResultId as error:
        raise InvalidResultId(error.message, param="id") from error
    if ref.connection_id is None:
        raise InvalidFieldWindowSelector(
            "This id names no connection.",
            param="id",
            hint="Use the id 'connection_id/stream:record_id' that search, query_records or fetch printed.",
        )
    return ref


def _stream(text: str) -> ids.StreamName:
    if ids.is_path_like(text):
        raise InvalidRequest("A stream's name has no path in it.", param="stream")
    return ids.stream_name(text)


def _connection(text: str | None) -> ids.ConnectionId | None:
    return None if text is None else ids.connection_id(text)


def _connector(text: str | None) -> ids.ConnectorKey | None:
    return None if text is None else ids.connector_key(text)


def _field(text: str | None) -> ids.FieldName | None:
    return None if text is None else ids.field_name(text)


def _fields(names: list[str] | None) -> tuple[ids.FieldName, ...] | None:
    return None if names is None else tuple(ids.field_name(name) for name in names)
