"""The six reads, each described once: the names, types, bounds and meaning of what a caller may ask.

The tools of MCP with their input schemas, the parameters and the OpenAPI operations of REST, and the hints for mistaken
arguments are derived from these. What only one surface has stays there. A sentence is read by models, which pay for
every word.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, inspect

from headgate.errors import InvalidExpand, InvalidRequest
from headgate.model import ids
from headgate.model.query import (
    DEFAULT_GROUPS,
    DEFAULT_PAGE,
    AggregateQuery,
    ChangesQuery,
    Count,
    ExpandRequest,
    Extraction,
    Filter,
    Granularity,
    ListQuery,
    Metric,
    Order,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    SearchSort,
)

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]
Limit = Annotated[int, Meta(ge=1, le=100)]
HitLimit = Annotated[int, Meta(ge=0, le=100)]
Context = Annotated[int, Meta(ge=0, le=8192)]
_JSON_NAMES = {"ge": "minimum", "le": "maximum"}
_JSON_TYPES: dict[type[inspect.Type], str] = {
    inspect.BoolType: "boolean",
    inspect.DictType: "object",
    inspect.StructType: "object",
}
#: Where an argument stands in the other surface: in the path of REST, or nowhere.
IN_PATH, ONLY_TOOL = "path", "tool"


class Detail(StrEnum):
    """How much a schema says."""

    COMPACT = "compact"
    FULL = "full"


def _arg(about: str, *, rest: str = "", at: str = "", **schema: Any) -> Meta:
    """Describe an argument; ``rest`` is its sentence there where the other would be wrong.

    A tool accepts one without a sentence and does not list it: the same is listed under another name.
    """
    return Meta(description=about, extra={"rest": rest, "at": at}, extra_json_schema=schema or None)


_REST_CONNECTION = "One connection; ids are in schema."
_STREAM = _arg("Stream name from schema.", at=IN_PATH)
_CONNECTION = _arg("One connection.", rest=_REST_CONNECTION)
_CONNECTOR = _arg("One connector.", rest="All connections of this connector.")
_CURSOR = _arg(
    "The last next_cursor; keep the rest.", rest="next_cursor of the last answer; keep the other arguments."
)
_PRINTED = _arg("As printed; keep the rest.", at=ONLY_TOOL)
_FIELDS = _arg("Only these fields.")
_EXPAND = _arg("Relations to add.", rest="Relations of schema to add.")
_EXPAND_LIMIT = _arg(
    "Relation to most children.", rest="`expand_limit[relation]=n`: the most children per record."
)
_REST_WORDS = _arg("", rest='Words, `"words in a row"`, `beginnings*`, `-without`, `this OR that`.')
_IN = _arg("Search only these fields.", rest="Only these fields are searched.")
_EXTRACT = _arg(
    'In place of field, from texts: {"after": phrase, "type": "number" or "date"}.',
    rest="`extract[after]=the total is` and `extract[type]=number` or `date`, in place of `field`: the first one "
    "after the phrase in a record's searched text.",
)
_REST_FILTER = "`filter[field]=value`, or `filter[field][gte|gt|lte|lt]=value` on fields that declare it."
_FILTER = _arg("Field to value, or to {gte,gt,lte,lt}; schema says which fields (eq, r=).", rest=_REST_FILTER)


class Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"in_fields": "in"}):
    """The arguments of one read; null means the same as leaving one out."""

    #: As the tool is called.
    tool: ClassVar[str]


class SchemaRead(Read, frozen=True):
    """What the caller may read."""

    tool: ClassVar[str] = "schema"
    detail: Annotated[Detail | None, _arg("full needs stream.", at=ONLY_TOOL)] = None
    stream: Annotated[Text | None, _arg("Its fields.", rest="Stream name from schema.")] = None
    connection_id: Annotated[Text | None, _CONNECTION] = None
    connector_key: Annotated[Text | None, _CONNECTOR] = None
    cursor: Annotated[Text | None, _PRINTED] = None


class RecordsRead(Read, frozen=True):
    """A page of one stream, or what changed in it."""

    tool: ClassVar[str] = "query_records"
    stream: Annotated[Text, _STREAM]
    limit: Annotated[Limit | None, _arg("Rows; default 25.")] = None
    cursor: Annotated[Text | None, _CURSOR] = None
    changes_since: Annotated[
        Text | None,
        _arg(
            "'beginning', or the last next_changes_since; no date. Needs one connection.",
            rest="'beginning', or next_changes_since of an earlier answer; no date. Needs one connection: "
            "pass connection_id when several have the stream.",
        ),
    ] = None
    order: Annotated[Order | None, _arg("Default desc.", rest="By the sort field; default desc.")] = None
    sort: Annotated[
        Text | None,
        _arg(
            "Its time field; - in front: descending.",
            rest="The sort field of schema, with - in front for descending.",
        ),
    ] = None
    count: Annotated[
        Count | None, _arg("Also count all matches.", rest="Also count all matches; default none.")
    ] = None
    filter: Annotated[dict[str, Any] | None, _FILTER] = None
    fields: Annotated[Texts | None, _FIELDS] = None
    view: Annotated[Text | None, _arg("In place of fields.", rest="A view of schema in place of fields.")] = (
        None
    )
    expand: Annotated[Texts | None, _EXPAND] = None
    expand_limit: Annotated[dict[str, Any] | None, _EXPAND_LIMIT] = None
    connection_id: Annotated[Text | None, _CONNECTION] = None
    connector_key: Annotated[Text | None, _CONNECTOR] = None


class AggregateRead(Read, frozen=True):
    """One number over a stream, or one for each group."""

    tool: ClassVar[str] = "aggregate"
    stream: Annotated[Text, _STREAM]
    metric: Annotated[Metric, _arg("All but count need field.")]
    field: Annotated[
        Text | None, _arg("Of the metric; not with count.", rest="What the metric is of; not with count.")
    ] = None
    group_by: Annotated[
        Text | None, _arg("A field; largest groups first.", rest="A field; the largest groups come first.")
    ] = None
    group_by_time: Annotated[
        Text | None,
        _arg(
            "A time field; oldest first. Needs granularity.",
            rest="A time field; groups come oldest first. Needs granularity.",
        ),
    ] = None
    granularity: Annotated[
        Granularity | None, _arg("Of group_by_time.", rest="Length of a group of group_by_time.")
    ] = None
    time_zone: Annotated[
        Text | None, _arg("IANA name; default UTC.", rest="IANA name for group_by_time; default UTC.")
    ] = None
    limit: Annotated[Limit | None, _arg("Groups; default 10.")] = None
    cursor: Annotated[Text | None, _PRINTED] = None
    filter: Annotated[dict[str, Any] | None, _arg("As in query_records.", rest=_REST_FILTER)] = None
    query: Annotated[Text | None, _arg("Only records with all these words.", at=ONLY_TOOL)] = None
    q: Annotated[Text | None, _REST_WORDS] = None
    in_fields: Annotated[Texts | None, _IN] = None
    extract: Annotated[Extraction | None, _EXTRACT] = None
    connection_id: Annotated[Text | None, _CONNECTION] = None
    connector_key: Annotated[Text | None, _CONNECTOR] = None


class SearchRead(Read, frozen=True):
    """Records by words."""

    tool: ClassVar[str] = "search"
    query: Annotated[Text | None, _arg("The words.", at=ONLY_TOOL)] = None
    q: Annotated[Text | None, _REST_WORDS] = None
    streams: Annotated[Texts | None, _arg("Only these streams.")] = None
    in_fields: Annotated[Texts | None, _IN] = None
    limit: Annotated[HitLimit | None, _arg("Default 10; 0 only counts.")] = None
    cursor: Annotated[Text | None, _CURSOR] = None
    # A server with a model offers the other modes as well.
    mode: Annotated[SearchMode | None, _arg("Default lexical.", at=ONLY_TOOL, enum=["lexical"])] = None
    sort: Annotated[
        SearchSort | None, _arg("time: newest first.", rest="Default relevance; time is newest first.")
    ] = None
    collapse: Annotated[
        bool | None, _arg("false: show alike hits.", rest="`true` shows hits that are alike as one.")
    ] = None
    understand: Annotated[
        bool | None,
        _arg(
            "false: words alone.",
            rest="`true` takes days, senders and `latest` in `q` as filters and order; `meta.understood` names them.",
        ),
    ] = None
    filter: Annotated[
        dict[str, Any] | None, _arg("As in query_records; needs one stream.", rest=_REST_FILTER)
    ] = None
    connection_id: Annotated[Text | None, _CONNECTION] = None
    connector_key: Annotated[Text | None, _CONNECTOR] = None


class FetchRead(Read, frozen=True):
    """One record."""

    tool: ClassVar[str] = "fetch"
    id: Annotated[Text, _arg("As printed, or fetch_id.", at=IN_PATH)]
    stream: Annotated[Text | None, _arg("With the bare id of a record.", at=IN_PATH)] = None
    fields: Annotated[Texts | None, _FIELDS] = None
    expand: Annotated[Texts | None, _EXPAND] = None
    expand_limit: Annotated[dict[str, Any] | None, _EXPAND_LIMIT] = None
    connection_id: Annotated[Text | None, _arg("If the id holds none.", rest=_REST_CONNECTION)] = None


class WindowRead(Read, frozen=True, kw_only=True):
    """A window of one long field."""

    tool: ClassVar[str] = "read_record_field"
    id: Annotated[
        Text | None, _arg("As for fetch. Without it connection_id, stream and record_id.", at=IN_PATH)
    ] = None
    connection_id: Annotated[Text | None, _arg("Without id.", rest=_REST_CONNECTION)] = None
    stream: Annotated[Text | None, _arg("Without id.", at=IN_PATH)] = None
    record_id: Annotated[Text | None, _arg("Without id.", at=IN_PATH)] = None
    field_path: Annotated[Text, _arg("Top-level field name.", at=ONLY_TOOL)]
    cursor: Annotated[Text | None, _arg("As printed.", rest="As an earlier window printed it.")] = None
    offset_chars: Annotated[
        Annotated[int, Meta(ge=0)] | None, _arg("Default 0.", rest="Where to begin; default 0.")
    ] = None
    limit_chars: Annotated[Annotated[int, Meta(ge=1, le=16384)] | None, _arg("Default 4096.")] = None
    q: Annotated[
        Text | None, _arg("Read around its first place.", rest="Read around the first place with this text.")
    ] = None
    before_chars: Annotated[
        Context | None, _arg("With q; default 2048.", rest="With q: context before; default 2048.")
    ] = None
    after_chars: Annotated[
        Context | None, _arg("With q; default 2048.", rest="With q: context after; default 2048.")
    ] = None


#: In the order in which the tools are listed.
READS: tuple[type[Read], ...] = (SchemaRead, RecordsRead, AggregateRead, SearchRead, FetchRead, WindowRead)


class Argument(msgspec.Struct, frozen=True):
    """One argument of a read, as the surfaces see it."""

    name: str
    is_required: bool
    about: str
    rest_about: str
    at: str
    #: Its JSON Schema, without the sentence.
    schema: dict[str, Any]


def arguments_of(read: type[Read]) -> Iterator[Argument]:
    """Describe the arguments of a read, in their order."""
    described: Any = inspect.type_info(read)
    for member in described.fields:
        # Every member is annotated.
        schema: dict[str, Any] = dict(member.type.extra_json_schema)
        surfaces: dict[str, str] = member.type.extra
        about = schema.pop("description")
        yield Argument(
            member.encode_name,
            is_required=member.required,
            about=about,
            rest_about=surfaces["rest"] or about,
            at=surfaces["at"],
            schema={**_schema_of(member.type.type), **schema},
        )


def input_schema(read: type[Read]) -> dict[str, Any]:
    """Write the input schema of a read's tool. It has no combinator at its root: some hosts drop such a tool."""
    arguments = list(arguments_of(read))
    required = [argument.name for argument in arguments if argument.is_required]
    return {
        "type": "object",
        "properties": {
            argument.name: {**argument.schema, "description": argument.about}
            for argument in arguments
            if argument.about
        },
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _schema_of(kind: inspect.Type) -> dict[str, Any]:
    match kind:
        case inspect.UnionType(types):
            return _schema_of(next(part for part in types if not isinstance(part, inspect.NoneType)))
        case inspect.IntType():
            bounds = {name: getattr(kind, bound) for bound, name in _JSON_NAMES.items()}
            return {"type": "integer", **{name: value for name, value in bounds.items() if value is not None}}
        case inspect.EnumType(names):
            return {"type": "string", "enum": [str(choice) for choice in names]}
        case inspect.ListType():
            return {"type": "array", "items": {"type": "string"}}
        case _:
            return {"type": _JSON_TYPES.get(type(kind), "string")}


def schema_query(read: SchemaRead, *, full: bool, exhaustive: bool) -> SchemaQuery:
    """Return the query for a schema."""
    stream = None if read.stream is None else ids.stream_name(read.stream)
    return SchemaQuery(
        stream,
        connection(read.connection_id),
        full=full,
        exhaustive=exhaustive,
        connector_key=connector(read.connector_key),
    )


def list_query(
    read: RecordsRead,
    filters: tuple[Filter, ...],
    expand: tuple[ExpandRequest, ...],
    *,
    with_extent: bool = False,
) -> ListQuery | ChangesQuery:
    """Return the query for a page, or for what changed."""
    if read.changes_since is not None:
        _refuse_beside_changes(read, filters, expand)
        return ChangesQuery(
            ids.stream_name(read.stream),
            read.changes_since,
            connection_id=connection(read.connection_id),
            limit=read.limit or DEFAULT_PAGE,
            fields=fields(read.fields),
            cursor=read.cursor,
        )
    return ListQuery(
        ids.stream_name(read.stream),
        connection_id=connection(read.connection_id),
        connector_key=connector(read.connector_key),
        limit=read.limit or DEFAULT_PAGE,
        order=None if read.order is None else Order(read.order),
        sort=read.sort,
        count=Count.NONE if read.count is None else Count(read.count),
        fields=fields(read.fields),
        view=read.view,
        filters=filters,
        expand=expand,
        cursor=read.cursor,
        with_extent=with_extent,
    )


def _refuse_beside_changes(
    read: RecordsRead, filters: tuple[Filter, ...], expand: tuple[ExpandRequest, ...]
) -> None:
    if expand or read.expand is not None or read.expand_limit is not None:
        raise InvalidExpand("changes_since excludes expand.", param="expand")
    for name in ("sort", "order", "count", "filter", "view", "connector_key"):
        if getattr(read, name) is not None or (name == "filter" and filters):
            raise InvalidRequest(f"changes_since excludes {name}.", param=name)


def aggregate_query(read: AggregateRead, words: str | None, filters: tuple[Filter, ...]) -> AggregateQuery:
    """Return the query for a number, or for one of each group."""
    return AggregateQuery(
        ids.stream_name(read.stream),
        Metric(read.metric),
        field=field(read.field),
        group_by=field(read.group_by),
        group_by_time=field(read.group_by_time),
        granularity=None if read.granularity is None else Granularity(read.granularity),
        time_zone=read.time_zone,
        limit=DEFAULT_GROUPS if read.limit is None else read.limit,
        filters=filters,
        q=words,
        in_fields=fields(read.in_fields),
        extract=read.extract,
        connection_id=connection(read.connection_id),
        connector_key=connector(read.connector_key),
    )


def search_query(
    read: SearchRead,
    words: str,
    filters: tuple[Filter, ...],
    mode: SearchMode,
    *,
    or_words: bool = False,
    default_limit: int = DEFAULT_PAGE,
) -> SearchQuery:
    """Return the query for hits."""
    return SearchQuery(
        words,
        streams=None if read.streams is None else tuple(map(ids.stream_name, read.streams)),
        connection_id=connection(read.connection_id),
        connector_key=connector(read.connector_key),
        limit=default_limit if read.limit is None else read.limit,
        filters=filters,
        cursor=read.cursor,
        mode=mode,
        or_words=or_words,
        sort=SearchSort(read.sort or SearchSort.RELEVANCE),
        in_fields=fields(read.in_fields),
        collapse=read.collapse,
        understand=read.understand,
    )


def connection(text: str | None) -> ids.ConnectionId | None:
    """Read the id of a connection, if there is one."""
    return None if text is None else ids.connection_id(text)


def connector(text: str | None) -> ids.ConnectorKey | None:
    """Read the key of a connector, if there is one."""
    return None if text is None else ids.connector_key(text)


def field(text: str | None) -> ids.FieldName | None:
    """Read the name of a field, if there is one."""
    return None if text is None else ids.field_name(text)


def fields(names: list[str] | None) -> tuple[ids.FieldName, ...] | None:
    """Read the names of fields, if there are any."""
    return None if names is None else tuple(map(ids.field_name, names))
