"""Source declarations: which streams a source has, what their records look like, what may be asked of them.

These values are made only by headgate.schema.declare, which checks a document from outside first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headgate.model.ids import FieldName, SourceId, StreamName

PROTOCOL_VERSION = "0.1.0"
DEFAULT_CHILDREN = 10
MAX_CHILDREN = 50


#: What times a stream can have beside those of UTC or of a named zone: as its source wrote them, or days alone.
WITH_OFFSETS = "as written, with offsets"
ZONE_UNKNOWN = "as written, zone unknown"
DAYS = "days, without a zone"
#: Fields that name a record, the best first: its title is made of one, and a match in one counts more.
TITLE_FIELDS = ("title", "name", "subject", "summary")
#: Fields that name the people of a record, by name or address.
PEOPLE_FIELDS = frozenset(
    {
        "attendees",
        "author",
        "authors",
        "bcc",
        "cc",
        "contact",
        "contacts",
        "counterparty",
        "creator",
        "from",
        "organizer",
        "owner",
        "participants",
        "people",
        "recipient",
        "recipients",
        "reply_to",
        "sender",
        "sender_email",
        "sender_name",
        "to",
        "user",
    }
)


class Semantics(StrEnum):
    """What a second record of the same key means."""

    APPEND_ONLY = "append_only"
    MUTABLE_STATE = "mutable_state"


class FieldKind(StrEnum):
    """How a field's values compare, which decides what may be asked of it."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATE_TIME = "date_time"
    #: Objects, arrays, and anything whose type the schema leaves open.
    JSON = "json"

    @property
    def is_scalar(self) -> bool:
        """Values are equal or not, so exact filters and groups make sense."""
        return self is not FieldKind.JSON

    @property
    def is_time(self) -> bool:
        """Values are points in time."""
        return self in {FieldKind.DATE, FieldKind.DATE_TIME}

    @property
    def is_ordered(self) -> bool:
        """Values have an order that a range filter can use."""
        return self.is_time or self.is_number

    @property
    def is_number(self) -> bool:
        """Values can be added up."""
        return self in {FieldKind.INTEGER, FieldKind.NUMBER}


class RangeOperator(StrEnum):
    """How a range filter compares."""

    GTE = "gte"
    GT = "gt"
    LTE = "lte"
    LT = "lt"


class Cardinality(StrEnum):
    """How many children a relation leads to."""

    HAS_MANY = "has_many"
    HAS_ONE = "has_one"


@dataclass(frozen=True, slots=True)
class Field:
    """One top-level key of a stream's records."""

    name: FieldName
    kind: FieldKind
    #: The JSON Schema type names, for show.
    types: tuple[str, ...]
    #: The property's own schema, as declared.
    schema: Mapping[str, Any]
    required: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A named set of fields, for people to choose by."""

    id: str
    label: str
    fields: tuple[FieldName, ...]


@dataclass(frozen=True, slots=True)
class Relationship:
    """A child stream whose records hold this stream's key in one of their fields."""

    name: str
    stream: StreamName
    foreign_key: FieldName
    cardinality: Cardinality


@dataclass(frozen=True, slots=True)
class Expansion:
    """A relationship that reads may follow, and how many children come along."""

    name: str
    default_limit: int = DEFAULT_CHILDREN
    max_limit: int = MAX_CHILDREN


@dataclass(frozen=True, slots=True)
class Aggregations:
    """Which fields each metric and each grouping may use."""

    count: bool = False
    sum: tuple[FieldName, ...] = ()
    min: tuple[FieldName, ...] = ()
    max: tuple[FieldName, ...] = ()
    count_distinct: tuple[FieldName, ...] = ()
    group_by: tuple[FieldName, ...] = ()
    group_by_time: tuple[FieldName, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryCapabilities:
    """What may be asked of a stream beyond reading it in order."""

    range_filters: Mapping[FieldName, tuple[RangeOperator, ...]] = field(
        default_factory=dict[FieldName, tuple[RangeOperator, ...]]
    )
    expand: tuple[Expansion, ...] = ()
    lexical_fields: tuple[FieldName, ...] = ()
    semantic_fields: tuple[FieldName, ...] = ()
    aggregations: Aggregations | None = None

    @property
    def meaning_fields(self) -> tuple[FieldName, ...]:
        """The fields that a search by meaning looks at: those declared for it, else the searched ones.

        A declaration that names none was often written for servers without such a search. Fields that name people
        are left out: a name has no meaning.
        """
        return self.semantic_fields or tuple(
            name for name in self.lexical_fields if name not in PEOPLE_FIELDS
        )


@dataclass(frozen=True, slots=True)
class LineFields:
    """The fields that say in one line what a record is: when, who, where, how much, its name and its text."""

    time: FieldName | None = None
    #: Who it is from, and to whom.
    who: tuple[FieldName, ...] = ()
    where: FieldName | None = None
    amount: FieldName | None = None
    #: What the amount is counted in.
    unit: FieldName | None = None
    title: FieldName | None = None
    text: FieldName | None = None
    #: What was written in another record and stands here again; no part of the line.
    quoted: FieldName | None = None

    @property
    def fields(self) -> tuple[FieldName, ...]:
        """The fields of the line, what tells records apart first: when, from whom, how much, what."""
        sender, others = self.who[:1], self.who[1:]
        names = (self.time, *sender, self.amount, self.unit, self.title, *others, self.where, self.text)
        return tuple(name for name in names if name is not None)


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """One stream: its records' shape, identity and order, and what may be asked of it."""

    name: StreamName
    semantics: Semantics
    schema: Mapping[str, Any]
    fields: Mapping[FieldName, Field]
    primary_key: tuple[FieldName, ...]
    cursor_field: FieldName | None = None
    consent_time_field: FieldName | None = None
    selects_fields: bool = True
    selects_resources: bool = False
    description: str = ""
    label: str = ""
    detail: str = ""
    views: tuple[View, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    query: QueryCapabilities = field(default_factory=QueryCapabilities)
    line: LineFields = field(default_factory=LineFields)
    #: Whose clock its times are of: UTC, a zone by name, or one of the words above.
    times: str = ZONE_UNKNOWN
    #: The stream whose records hold all its searched words as well, in fields of the same names.
    repeats: StreamName | None = None


@dataclass(frozen=True, slots=True)
class PresetStream:
    """One stream of a preset, narrowed by a view or by fields, or whole."""

    name: StreamName
    view: str | None = None
    fields: tuple[FieldName, ...] | None = None


@dataclass(frozen=True, slots=True)
class SelectionPreset:
    """A ready choice of streams that a client may ask for by name."""

    id: str
    label: str
    streams: tuple[PresetStream, ...]


@dataclass(frozen=True, slots=True)
class SourceDeclaration:
    """One version of what a source has."""

    source_id: SourceId
    source_kind: str
    version: str
    publisher_id: str
    display_name: str
    streams: Mapping[StreamName, StreamDeclaration]
    presets: tuple[SelectionPreset, ...] = ()
    extensions: Mapping[str, Any] = field(default_factory=dict[str, Any])
