"""Run a tool: check its arguments and make a query of them, read, and turn every result or failure into an outcome.

An error in the arguments is answered without a call to the resource server.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from headgate.errors import (
    ConflictingConnectionId,
    HeadgateError,
    InvalidExpand,
    InvalidFieldWindowSelector,
    InvalidFilter,
    InvalidRequest,
    InvalidResultId,
    ToolHandlerFailed,
)
from headgate.mcp.serve.failures import failed, refused
from headgate.mcp.serve.fetch import fetch
from headgate.mcp.serve.field import read_record_field
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.records import aggregate, query_records
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.schema import schema
from headgate.mcp.serve.search import DEFAULT_HITS, search
from headgate.model import ids, reads
from headgate.model.declaration import RangeOperator
from headgate.model.ids import RecordRef, is_unicode
from headgate.model.query import (
    DEFAULT_CONTEXT_CHARS,
    AggregateQuery,
    ChangesQuery,
    ExactFilter,
    ExpandRequest,
    Filter,
    ListQuery,
    RangeFilter,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    WindowQuery,
)
from headgate.model.reads import (
    AggregateRead,
    FetchRead,
    Read,
    RecordsRead,
    SchemaRead,
    SearchRead,
    WindowRead,
)
from headgate.telemetry import get_logger

_MAX_FILTERS = 32
_WHERE = re.compile(r"`\$\.(\w+)")
_FIELD = re.compile(r"field `([^`]*)`")
#: An unknown name is repeated up to this length: it comes from the caller and can be of any size.
_NAME_CHARS = 64
#: The values of each argument that takes a few, as they are listed.
_ALLOWED: Mapping[str, Sequence[str]] = {
    argument.name: argument.schema["enum"]
    for read in reads.READS
    for argument in reads.arguments_of(read)
    if "enum" in argument.schema
}
_EXTRACT_HINT = 'extract is {"after": a phrase, "type": "number" or "date"}.'
#: Names that models use for an argument, and what they mean; the first that the tool has is meant.
_MEANT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("text", "search", "words", "term", "keywords"), ("query", "q")),
    **dict.fromkeys(("query",), ("q", "filter")),
    **dict.fromkeys(("q",), ("filter",)),
    **dict.fromkeys(("stream", "stream_name", "stream_names", "name", "table"), ("streams", "stream", "id")),
    **dict.fromkeys(("streams",), ("stream",)),
    **dict.fromkeys(("where", "filters", "conditions"), ("filter",)),
    **dict.fromkeys(("since", "after", "from", "updated_since"), ("changes_since", "filter")),
    **dict.fromkeys(("page_size", "max_results", "top_k", "n", "size"), ("limit", "limit_chars")),
    **dict.fromkeys(("page_token", "next_cursor", "page", "offset"), ("cursor", "offset_chars")),
    **dict.fromkeys(("connector_instance_id", "connection", "connections", "account"), ("connection_id",)),
    **dict.fromkeys(("record_id", "record", "key", "uri", "url", "ids"), ("id",)),
    **dict.fromkeys(("field", "path", "select", "columns", "field_path"), ("field_path", "fields", "field")),
    **dict.fromkeys(("fields", "search_fields", "in_fields"), ("fields", "in")),
    **dict.fromkeys(("order_by", "sort_by"), ("sort",)),
    **dict.fromkeys(("interval", "bucket"), ("granularity",)),
    **dict.fromkeys(("timezone", "tz"), ("time_zone",)),
    **dict.fromkeys(("function", "op", "aggregation"), ("metric",)),
}

_T = TypeVar("_T", bound=Read)


def typed(arguments: Mapping[str, Any], shape: type[_T]) -> _T:
    """Check names, types and ranges."""
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), arguments, shape.__struct_encode_fields__) from error


def _mistake(message: str, arguments: Mapping[str, Any], names: Sequence[str]) -> InvalidRequest:
    """Make the refusal of arguments from the message of the check that they failed."""
    unknown = next((name for name in arguments if name not in names), None)
    if unknown is not None and message.startswith("Object contains unknown field"):
        return _unknown(unknown, names)
    named = _WHERE.search(message) or _FIELD.search(message)
    param = str(named[1]) if named else ""
    if param in _ALLOWED and message.startswith("Invalid enum value"):
        return InvalidRequest(
            f"{message[: _NAME_CHARS * 2]}.",
            param=param,
            hint=f"{param} is one of {', '.join(_ALLOWED[param])}.",
        )
    if param == "extract":
        return InvalidRequest(f"{message}.", param=param, hint=_EXTRACT_HINT)
    kinds = {"filter": InvalidFilter, "expand_limit": InvalidExpand, "expand": InvalidExpand}
    return kinds.get(param, InvalidRequest)(f"{message}.", param=param or None)


def _unknown(name: str, names: Sequence[str]) -> InvalidRequest:
    begun = name[:_NAME_CHARS]
    meant = [known for known in _MEANT.get(name.casefold(), ()) if known in names]
    close = meant or difflib.get_close_matches(begun, names, n=1)
    hint = f"Use {close[0]} instead." if close else f"The arguments are {', '.join(names)}."
    return InvalidRequest(f"There is no argument '{begun}'.", param=begun, hint=hint)


def schema_query(arguments: Mapping[str, Any]) -> tuple[SchemaQuery, str | None]:
    """Read the query of ``schema``, and where its text goes on."""
    read = typed(arguments, SchemaRead)
    if read.detail == "full" and read.stream is None:
        raise InvalidRequest(
            "detail 'full' needs a stream.",
            param="detail",
            hint='Call schema() first, then schema(stream, connection_id, detail: "full").',
        )
    _refuse_path(read.stream)
    is_full = read.detail == "full"
    return reads.schema_query(read, full=is_full, exhaustive=is_full), read.cursor


def list_query(arguments: Mapping[str, Any]) -> ListQuery | ChangesQuery:
    """Read the query of ``query_records``."""
    read = typed(arguments, RecordsRead)
    _refuse_path(read.stream)
    return reads.list_query(read, filters(read.filter), expansions(read.expand, read.expand_limit))


def aggregate_query(arguments: Mapping[str, Any]) -> tuple[AggregateQuery, str | None]:
    """Read the query of ``aggregate``, and where its text goes on."""
    read = typed(arguments, AggregateRead)
    _refuse_path(read.stream)
    return reads.aggregate_query(read, _words(read), filters(read.filter)), read.cursor


def search_query(arguments: Mapping[str, Any]) -> SearchQuery:
    """Read the query of ``search``."""
    read = typed(arguments, SearchRead)
    words = _words(read)
    if words is None:
        raise InvalidRequest("The words to search for are missing.", param="q", hint="Pass them in query.")
    for stream in read.streams or ():
        _refuse_path(stream)
    chosen = filters(read.filter)
    if chosen and (read.streams is None or len(read.streams) != 1):
        raise InvalidFilter(
            "A filter in search needs exactly one stream in streams.",
            param="filter",
            hint="Pass streams with the one stream whose fields filter names.",
        )
    mode = read.mode or SearchMode.HYBRID
    return reads.search_query(
        read, words, chosen, mode, or_words=read.mode is None, default_limit=DEFAULT_HITS
    )


def record_query(arguments: Mapping[str, Any], handles: HandleMaker) -> tuple[RecordQuery, str | None]:
    """Read the query of ``fetch``, and the id that the call gave, if it is one that names its stream."""
    read = typed(arguments, FetchRead)
    ref = None if read.stream is None else _bare_record(read.id, _stream(read.stream), handles)
    asked_id = read.id if ref is None else None
    ref = scoped(ref or handles.read_id(read.id), reads.connection(read.connection_id))
    query = RecordQuery(
        ref.stream,
        ref.record_id,
        connection_id=ref.connection_id,
        fields=reads.fields(read.fields),
        expand=expansions(read.expand, read.expand_limit),
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
    """Read the query of ``read_record_field``."""
    read = typed(arguments, WindowRead)
    _refuse_two_windows(read)
    ref = _record(read, handles)
    has_context = read.q is not None and read.limit_chars is None
    context = DEFAULT_CONTEXT_CHARS if has_context else None
    return WindowQuery(
        ref.stream,
        ref.record_id,
        ids.field_name(read.field_path),
        ref.connection_id,
        offset_chars=read.offset_chars,
        limit_chars=read.limit_chars,
        q=read.q,
        before_chars=context if read.before_chars is None else read.before_chars,
        after_chars=context if read.after_chars is None else read.after_chars,
        cursor=read.cursor,
        as_json=True,
        key_digest=ref.key_digest,
    )


def scoped(ref: RecordRef, connection_id: ids.ConnectionId | None) -> RecordRef:
    """Join the connection in an id with the one beside it."""
    if connection_id is None or connection_id == ref.connection_id:
        return ref
    if ref.connection_id is not None:
        raise ConflictingConnectionId(
            f"The id names connection '{ref.connection_id}', connection_id names '{connection_id}'.",
            param="connection_id",
        )
    return replace(ref, connection_id=connection_id)


def filters(conditions: Mapping[str, Any] | None) -> tuple[Filter, ...]:
    """Read a typed filter object."""
    if conditions is None:
        return ()
    if not conditions or len(conditions) > _MAX_FILTERS:
        raise InvalidFilter(f"filter needs 1 to {_MAX_FILTERS} fields.", param="filter")
    return tuple(condition for name, value in conditions.items() for condition in _filter(name, value))


def expansions(names: list[str] | None, limits: Mapping[str, Any] | None) -> tuple[ExpandRequest, ...]:
    """Read relations and their limits."""
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


def _words(read: SearchRead | AggregateRead) -> str | None:
    """Take the words from either of the two names that hosts use."""
    if read.q is not None and read.query is not None:
        raise InvalidRequest("q and query are the same argument.", param="q", hint="Pass query alone.")
    return read.query or read.q


def _refuse_two_windows(read: WindowRead) -> None:
    explicit = [
        name
        for name in ("offset_chars", "q", "before_chars", "after_chars")
        if getattr(read, name) is not None
    ]
    if read.cursor is not None and explicit:
        raise InvalidFieldWindowSelector(
            "Going on with cursor excludes selecting a window with offset_chars, q, before_chars or after_chars.",
            param=explicit[0],
        )
    if read.q is not None and read.offset_chars is not None:
        raise InvalidFieldWindowSelector("q and offset_chars exclude each other.", param="offset_chars")
    if read.q is None and explicit and explicit != ["offset_chars"]:
        raise InvalidFieldWindowSelector("before_chars and after_chars need q.", param=explicit[-1])


def _record(read: WindowRead, handles: HandleMaker) -> RecordRef:
    triple = (read.connection_id, read.stream, read.record_id)
    if read.id is None:
        connection, stream, record = triple
        if connection is None or stream is None or record is None:
            raise InvalidFieldWindowSelector(
                "Without id, connection_id, stream and record_id are all needed."
            )
        return RecordRef(ids.connection_id(connection), _stream(stream), ids.record_id(record))
    if any(part is not None for part in triple):
        raise InvalidFieldWindowSelector("id excludes connection_id, stream and record_id.", param="id")
    try:
        ref = handles.read_id(read.id)
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
    _refuse_path(text)
    return ids.stream_name(text)


def _refuse_path(stream: str | None) -> None:
    if stream is not None and ids.is_path_like(stream):
        raise InvalidRequest("A stream's name has no path in it.", param="stream")


Arguments = Mapping[str, Any]
#: Gives the reader of one call, which is named for the log.
ReaderOfCall = Callable[[str], Awaitable[Reader]]

_LONE_SURROGATE = InvalidRequest("The arguments hold an unpaired UTF-16 surrogate.")
_Handler = Callable[[Reader, Arguments], Awaitable[Outcome]]


#: The tools in the order in which they are listed. When one returns, its arguments are read and nothing else is.
TOOL_HANDLERS: Mapping[str, _Handler] = {
    "schema": lambda reader, arguments: schema(reader, *schema_query(arguments)),
    "query_records": lambda reader, arguments: query_records(reader, list_query(arguments)),
    "aggregate": lambda reader, arguments: aggregate(reader, *aggregate_query(arguments)),
    "search": lambda reader, arguments: search(reader, search_query(arguments)),
    "fetch": lambda reader, arguments: fetch(reader, *record_query(arguments, reader.handles)),
    "read_record_field": lambda reader, arguments: read_record_field(
        reader, window_query(arguments, reader.handles)
    ),
}


async def call(name: str, arguments: Arguments, reader: Reader) -> Outcome:
    """Call one of the six tools; a failure is an outcome as well."""
    try:
        # The arguments are read when this returns; the port has not been called yet.
        running = TOOL_HANDLERS[name](reader, arguments)
    except HeadgateError as error:
        return refused(error, name)
    try:
        return await running
    except HeadgateError as error:
        return failed(error, name, reader.request_id)
    except Exception:  # noqa: BLE001 - a client learns that it failed, and nothing more
        get_logger().exception("tool_failed", tool=name)
        return failed(ToolHandlerFailed(), name, reader.request_id)


async def call_with(reader_of: ReaderOfCall, name: str, arguments: Arguments) -> Outcome:
    """Call a tool with a reader that is made for this call; failing to make it is an outcome as well."""
    if not is_text(arguments):
        return refused(_LONE_SURROGATE, name)
    try:
        reader = await reader_of(f"mcp:{name}")
    except HeadgateError as error:
        return failed(error, name)
    return await call(name, arguments, reader)


def is_text(value: Any) -> bool:
    """Return whether every text in a value can be encoded; JSON can hold lone surrogates, which cannot."""
    if isinstance(value, str):
        return is_unicode(value)
    if isinstance(value, dict):
        return all(is_text(key) and is_text(member) for key, member in cast("Arguments", value).items())
    return not isinstance(value, list) or all(is_text(item) for item in cast("list[Any]", value))
