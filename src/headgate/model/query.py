"""Queries: what a reader asks, parsed and typed but not yet allowed. Links have parameters in the order of their members.

Every edge (REST, MCP) turns its own syntax into these values; headgate.policy turns them into plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

from headgate.model.declaration import RangeOperator
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, FieldName, RecordId, StreamName

DEFAULT_PAGE = 25
MAX_PAGE = 100
DEFAULT_GROUPS = 10
MAX_GROUPS = 100
DEFAULT_WINDOW_CHARS = 4096
MAX_WINDOW_CHARS = 16384
DEFAULT_CONTEXT_CHARS = 2048
MAX_CONTEXT_CHARS = 8192

Scalar = str | int | float | bool


class Order(StrEnum):
    """Which end of the stream comes first."""

    ASC = "asc"
    DESC = "desc"


class Count(StrEnum):
    """How exactly the whole is to be counted."""

    NONE = "none"
    ESTIMATED = "estimated"
    EXACT = "exact"


class Metric(StrEnum):
    """What an aggregate computes."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    COUNT_DISTINCT = "count_distinct"


class Granularity(StrEnum):
    """How wide a bucket of time is; weeks start on Monday."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class ExactFilter:
    """Only records whose field equals the value."""

    field: FieldName
    value: Scalar


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """Only records whose field lies on one side of the value."""

    field: FieldName
    operator: RangeOperator
    value: str | int | float


Filter = ExactFilter | RangeFilter


@dataclass(frozen=True, slots=True)
class ExpandRequest:
    """A relation to follow, and how many children at most."""

    name: str
    limit: int | None = None


class ListQuery(msgspec.Struct, frozen=True):
    """A page of a stream."""

    stream: StreamName
    limit: int = DEFAULT_PAGE
    order: Order | None = None
    sort: str | None = None
    count: Count = Count.NONE
    fields: tuple[FieldName, ...] | None = None
    view: str | None = None
    with_extent: bool = False
    connection_id: ConnectionId | None = None
    connector_key: ConnectorKey | None = None
    filters: tuple[Filter, ...] = ()
    expand: tuple[ExpandRequest, ...] = ()
    cursor: str | None = None


class ChangesQuery(msgspec.Struct, frozen=True):
    """What has changed in a stream since a bookmark, or since the beginning."""

    stream: StreamName
    since: str
    limit: int = DEFAULT_PAGE
    fields: tuple[FieldName, ...] | None = None
    connection_id: ConnectionId | None = None
    cursor: str | None = None


class RecordQuery(msgspec.Struct, frozen=True):
    stream: StreamName
    record_id: RecordId
    connection_id: ConnectionId | None = None
    fields: tuple[FieldName, ...] | None = None
    expand: tuple[ExpandRequest, ...] = ()
    #: Set where ``record_id`` is only the beginning of a long key: the digest of the whole one.
    key_digest: bytes | None = None


class WindowQuery(msgspec.Struct, frozen=True):
    """A part of one long field: from an offset, around a first match, or where a cursor points."""

    stream: StreamName
    record_id: RecordId
    field: FieldName
    connection_id: ConnectionId | None = None
    offset_chars: int | None = None
    limit_chars: int | None = None
    q: str | None = None
    before_chars: int | None = None
    after_chars: int | None = None
    cursor: str | None = None
    #: Read an object or a list as its JSON text; else such a field has no windows.
    as_json: bool = False
    #: As in `RecordQuery`.
    key_digest: bytes | None = None


class ExtractType(StrEnum):
    """What is read from a text."""

    NUMBER = "number"
    DATE = "date"


class Extraction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first number or date after a phrase in a record's texts."""

    after: Annotated[str, msgspec.Meta(min_length=1)]
    type: ExtractType


class AggregateQuery(msgspec.Struct, frozen=True):
    """One number, or one number for each group; both keys make a group of each pair of a value and a bucket."""

    stream: StreamName
    metric: Metric
    field: FieldName | None = None
    group_by: FieldName | None = None
    group_by_time: FieldName | None = None
    granularity: Granularity | None = None
    time_zone: str | None = None
    connection_id: ConnectionId | None = None
    connector_key: ConnectorKey | None = None
    limit: int = DEFAULT_GROUPS
    filters: tuple[Filter, ...] = ()
    #: Only records that hold all of these words, in any searched field or in those of ``in_fields``.
    q: str | None = None
    in_fields: tuple[FieldName, ...] | None = None
    #: What the metric is of, in place of a field.
    extract: Extraction | None = None


class SearchMode(StrEnum):
    """How matches are found: by words, by meaning, or both."""

    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


class SearchSort(StrEnum):
    """In which order hits come: the best first, or the newest first."""

    RELEVANCE = "relevance"
    TIME = "time"


class SearchQuery(msgspec.Struct, frozen=True):
    """Records that hold some words."""

    q: str
    streams: tuple[StreamName, ...] | None = None
    connection_id: ConnectionId | None = None
    connector_key: ConnectorKey | None = None
    limit: int = DEFAULT_PAGE
    sort: SearchSort = SearchSort.RELEVANCE
    filters: tuple[Filter, ...] = ()
    cursor: str | None = None
    mode: SearchMode = SearchMode.LEXICAL
    #: By words alone while that is all there is for what the caller sees: without a model, or before all vectors are made.
    or_words: bool = False
    #: The only fields that are searched; None for all.
    in_fields: tuple[FieldName, ...] | None = None
    #: Whether hits that are alike are shown as one; None: as the form of the answer has it.
    collapse: bool | None = None
    #: Whether days, senders and orders that q names narrow and order the search; None: as the form of the answer has it.
    understand: bool | None = None


class SchemaQuery(msgspec.Struct, frozen=True):
    """What the token may read, and what it may ask."""

    stream: StreamName | None = None
    connection_id: ConnectionId | None = None
    connector_key: ConnectorKey | None = None
    full: bool = False
    #: Everything about one stream of one connection: refused when that is not what was named.
    exhaustive: bool = False


class BlobQuery(msgspec.Struct, frozen=True):
    """One file that a record refers to."""

    blob_id: BlobId
    connection_id: ConnectionId | None = None


Query = (
    ListQuery
    | ChangesQuery
    | RecordQuery
    | WindowQuery
    | AggregateQuery
    | SearchQuery
    | SchemaQuery
    | BlobQuery
)
