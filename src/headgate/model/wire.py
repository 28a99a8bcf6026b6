"""The JSON bodies of the resource server, as types: what a surface reads out of an answer.

A body may come from another server, and members it leaves out are not there: so every member that is not
needed to tell a body's kind may be missing. The types describe; they check nothing.
"""

from __future__ import annotations

from typing import Any, Required, TypeAlias, TypedDict

from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, RecordId, StreamName

#: A JSON object as it is decoded or about to be encoded.
Json: TypeAlias = dict[str, Any]


class TextPreview(TypedDict, total=False):
    """The true length of a text that was cut, or that is declared as encoded bytes."""

    size_chars: Required[int]
    #: SHA-256 of the whole text, in hex.
    digest: str
    #: The type of the bytes, if the text is declared as encoded bytes.
    mime_type: str


class RecordBody(TypedDict, total=False):
    """A record's envelope, or the mark of a deleted one."""

    object: str
    id: RecordId
    stream: StreamName
    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str
    #: The granted and selected fields.
    data: dict[str, Any]
    emitted_at: str
    #: What the MCP tools add: the id by which ``fetch`` opens the record.
    fetch_id: str
    #: And how many fields it leaves out of a row that alone is larger than a page.
    more_fields: int
    previews: dict[FieldName, TextPreview]
    #: Which fields say when, who, how much and what.
    line_fields: dict[str, Any]
    #: Related records by relation: one record, a list, or None.
    expanded: dict[str, RecordBody | ChildrenBody | None]
    links: dict[str, Any]
    meta: PageMeta
    deleted: bool
    deleted_at: str


class ChildrenBody(TypedDict, total=False):
    """The records of a relation to many."""

    object: str
    url: str
    has_more: bool
    data: list[RecordBody]


class CountBody(TypedDict, total=False):
    """How many records there are: ``kind`` is ``exact``, or ``none`` without a ``value``."""

    kind: str
    value: int


class ExtentBody(TypedDict, total=False):
    """The number of records of a stream, and the times they span."""

    total: int
    earliest_at: str
    latest_at: str


class PageMeta(TypedDict, total=False):
    """What to know about a page."""

    count: CountBody
    warnings: list[dict[str, Any]]
    window: ExtentBody


class PageBody(TypedDict, total=False):
    """A page of records or changes."""

    object: str
    data: list[RecordBody]
    has_more: bool
    url: str
    links: dict[str, Any]
    next_cursor: str
    next_changes_since: str
    meta: PageMeta
    #: In the short form, for models: what all rows share.
    stream: StreamName
    sources: list[dict[str, str]]
    #: The fields that say when, who, how much and what, in this order.
    line: list[FieldName]
    all: dict[FieldName, Any]


class SnippetBody(TypedDict, total=False):
    """The words around a match."""

    field: FieldName
    text: str


class ExcerptBody(TypedDict, total=False):
    """One proof of a match, and where to read on."""

    object: str
    field_path: FieldName
    preview_text: str
    truncated: bool
    provenance: str
    read: dict[str, Any]


class LineBody(TypedDict, total=False):
    """What a record is, in one line: each part as text."""

    title: str
    time: str
    who: str
    where: str
    amount: str


class HitBody(TypedDict, total=False):
    """A search hit."""

    object: str
    id: str
    stream: StreamName
    record_key: RecordId
    connector_id: str
    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str
    emitted_at: str
    authored_at: str
    matched_fields: list[FieldName]
    evidence_excerpts: list[ExcerptBody]
    snippet: SnippetBody
    record_url: str
    #: "partial" where the record holds some of the words but not those that are missing.
    match: str
    missing: list[str]
    #: True where it holds a word only in text that it quotes.
    quoted: bool
    #: Which kind of search it is a hit of, what found it there, and how good a match it is.
    retrieval_mode: str
    retrieval_sources: list[str]
    score: dict[str, Any]
    scores: dict[str, dict[str, Any]]
    #: In the short form, for models: the line of its record, where its text goes on, what found it, and how many
    #: hits are like it and of which time.
    line: LineBody
    read: dict[str, Any]
    found_by: list[str]
    alike: dict[str, Any]


class RecallBody(TypedDict, total=False):
    """Whether every match was ranked."""

    complete: bool
    ranking_scope: str
    truncated: bool
    sources_searched_count: int
    ranked_candidate_count: int
    #: How many visible records, or more, cannot be found by meaning yet.
    pending_count: int


class UnderstoodWordBody(TypedDict, total=False):
    """A word of a query, and what of the text was taken for it."""

    word: str
    count: int
    quoted_count: int
    alternatives: dict[str, int]
    forms: list[str]
    corrected_to: list[str]


class AskedBody(TypedDict, total=False):
    """Some words of a query that say more than that a record holds them."""

    phrase: str
    #: Each from the first day to the last one.
    days: list[dict[str, str]]
    sender: str
    sort: str
    asks: str


class UnderstoodBody(TypedDict, total=False):
    """How a query was understood."""

    words: list[UnderstoodWordBody]
    left_out: list[str]
    excluded: list[str]
    #: What of the query was taken for days, a sender or an order, and what would have left no record.
    asked: list[AskedBody]
    not_used: list[AskedBody]


class SearchMeta(TypedDict, total=False):
    """What to know about a page of hits."""

    #: How many records the pages show; of these, how many lack words, and how many hold some only in quoted text.
    count: int | None
    count_accuracy: str
    partial_count: int
    quoted_count: int
    #: Of a search by words and meaning, whose hits are not counted: how many records hold all the words.
    matched_all: int
    #: How the hits were found, where the search chose it.
    mode: str
    understood: UnderstoodBody
    recall: RecallBody
    warnings: list[dict[str, Any]]
    reduced: str


class SearchBody(TypedDict, total=False):
    """A page of hits."""

    object: str
    data: list[HitBody]
    has_more: bool
    url: str
    links: dict[str, Any]
    next_cursor: str
    meta: SearchMeta


class WindowedField(TypedDict, total=False):
    """The field that a window shows a part of."""

    path: str
    #: ``string``, or ``json`` for an object or a list.
    type: str
    size_chars: int
    digest: str


class TextWindow(TypedDict, total=False):
    """A part of a text, and its place in the whole."""

    text: Required[str]
    start_chars: Required[int]
    end_chars: Required[int]
    limit_chars: Required[int]
    total_chars: int
    complete: Required[bool]
    has_more: bool
    next_offset_chars: int | None
    previous_offset_chars: int | None
    match_start_chars: int | None
    match_end_chars: int | None
    next_cursor: str | None
    previous_cursor: str | None


class FieldWindowBody(TypedDict, total=False):
    """A part of one field of one record."""

    object: str
    stream: Required[StreamName]
    record_id: Required[RecordId]
    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str
    field: WindowedField
    window: Required[TextWindow]
    url: str
    links: dict[str, Any]
    meta: PageMeta


class GroupBody(TypedDict, total=False):
    """One group of an aggregation."""

    key: Any
    count: int
    value: int | float | str | None
    time: str | None
    missing_value_count: int
    unreadable_value_count: int


class ExtractBody(TypedDict, total=False):
    """What a number is of that was read from texts."""

    after: str
    type: str


class AggregateMeta(PageMeta, total=False):
    """What to know about a number."""

    #: Where it is one of the records that hold some words.
    understood: UnderstoodBody


class AggregateBody(TypedDict, total=False):
    """A number, or one for each group."""

    object: str
    stream: StreamName
    metric: str
    field: FieldName | None
    group_by: FieldName | None
    group_by_time: FieldName | None
    granularity: str | None
    time_zone: str | None
    approximate: bool
    filtered_record_count: int
    quoted_count: int
    missing_value_count: int
    unreadable_value_count: int
    value: int | float | str | None
    limit: int
    groups: list[GroupBody]
    other_count: int
    q: str
    #: Of a count: the period of which every record is there, where that is known.
    coverage: dict[str, str]
    extract: ExtractBody
    value_count: int
    links: dict[str, Any]
    meta: AggregateMeta


class GrantedConnection(TypedDict, total=False):
    """A connection that a stream is granted of."""

    connection_id: ConnectionId
    display_name: str


class FlagBody(TypedDict, total=False):
    """Whether a use of a field is declared, and whether this token may make it."""

    declared: bool
    usable: bool
    reason: str
    operators: list[str]


class FieldFlags(TypedDict, total=False):
    """What may be done with a field, in a full schema."""

    type: str
    granted: bool
    role: str
    exact_filter: FlagBody
    range_filter: FlagBody
    lexical_search: FlagBody
    semantic_search: FlagBody
    aggregation: dict[str, FlagBody]


class RelationBody(TypedDict, total=False):
    """A relation to another stream, and whether it can be expanded."""

    name: str
    stream: StreamName
    foreign_key: FieldName
    cardinality: str
    target_stream: StreamName
    child_parent_key_field: FieldName
    default_limit: int
    max_limit: int
    granted: bool
    usable: bool
    reason: str


class StreamBody(TypedDict, total=False):
    """A stream of a schema, compact or full."""

    object: str
    name: StreamName
    connector_key: ConnectorKey
    connection_id: ConnectionId
    display_name: str
    record_count: int
    granted: bool
    primary_key: list[FieldName]
    cursor_field: FieldName | None
    consent_time_field: FieldName | None
    #: A line of flags in a compact schema.
    field_capabilities: dict[FieldName, str | FieldFlags]
    expand_capabilities: list[RelationBody]
    relationships: list[RelationBody]
    #: Ids in a compact schema, documents in a full one.
    views: list[Any]
    count: bool
    granted_connections: list[GrantedConnection]
    semantics: str
    schema: dict[str, Any]
    selection: dict[str, bool]
    query: dict[str, Any]
    freshness: dict[str, Any]
    description: str
    label: str
    detail: str
    time_constraint: dict[str, Any]
    #: In a compact schema: the first and the last day of its records, the fields of its line, whose clock its times are
    #: of, and frequent values of fields that have few.
    span: list[str]
    coverage: dict[str, str]
    line: dict[str, Any]
    times: str
    values: dict[FieldName, list[str]]


class ConnectorBody(TypedDict, total=False):
    """A connector of a schema, with its streams."""

    object: str
    connector_key: ConnectorKey
    connector_id: str
    source: dict[str, str]
    display_name: str
    stream_count: int
    grant_id: str
    granted_connections: list[GrantedConnection]
    streams: list[StreamBody]


class SchemaBody(TypedDict, total=False):
    """What an access may read and ask."""

    object: str
    bearer: dict[str, Any]
    connectors: list[ConnectorBody]
    detail: str
    connector_count: int
    stream_count: int
    links: dict[str, Any]
    meta: PageMeta


LEGEND = {
    "t": "declared type",
    "role": "presentation role",
    "eq": "filter by value: {field: value}",
    "r": "filter by range: {field: {op: value}}",
    "lex": "found by search",
    "sem": "found by semantic search",
    "a": "aggregations of this field",
    "g=false": "not granted",
}
_AGGREGATIONS = ("count_distinct", "group_by", "group_by_time", "sum", "min", "max")
_SEARCHES = {"lex": "lexical", "sem": "semantic"}
_UNUSABLE = "unusable:"


def flag_line(flags: FieldFlags) -> str:
    """Write the flags of a field as one line; a use that is declared and refused has its reason."""
    parts = [f"t={kind}"] if (kind := flags.get("type")) else []
    parts += [f"role={role}"] if (role := flags.get("role")) else []
    if flags.get("granted") is False:
        return ",".join([*parts, "g=false"])
    parts += _flag("eq", flags.get("exact_filter"))
    parts += _flag("r", flags.get("range_filter"))
    parts += _flag("lex", flags.get("lexical_search"))
    parts += _flag("sem", flags.get("semantic_search"))
    aggregations = flags.get("aggregation") or {}
    usable = [kind for kind in _AGGREGATIONS if aggregations.get(kind, {}).get("usable")]
    parts += [f"a={'|'.join(usable)}"] if usable else []
    return ",".join(parts) or "declared"


def usable_only(flags: FieldFlags) -> FieldFlags:
    """Leave out the uses that are refused."""
    uses = ("exact_filter", "range_filter", "lexical_search", "semantic_search")
    refused = [use for use in uses if not flags.get(use, {}).get("usable")]
    chosen = flags.copy()
    for use in refused:
        chosen.pop(use, None)
    return chosen


def searches_of(line: str) -> list[str]:
    """Read which searches find a field: lexical, semantic, or both."""
    flags = line.split(",")
    return [search for flag, search in _SEARCHES.items() if flag in flags]


def aggregations_of(line: str) -> list[str]:
    """Read which aggregations a field allows."""
    written = [flag.removeprefix("a=") for flag in line.split(",") if flag.startswith("a=")]
    return [kind for kinds in written if not kinds.startswith(_UNUSABLE) for kind in kinds.split("|")]


def _flag(letters: str, flag: FlagBody | None) -> list[str]:
    if not flag:
        return []
    if flag.get("usable"):
        operators = "|".join(flag.get("operators", ()))
        return [f"{letters}={operators}" if letters == "r" else letters]
    return [f"{letters}={_UNUSABLE}{flag.get('reason')}"] if flag.get("declared") else []
