"""The shape of a source-declaration document, as it comes from outside.

Only the shape: which members there are and what type they have. What the members mean to each other is
checked in headgate.schema.declare.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Names = Annotated[list[Text], Field(min_length=1)]


class _DocumentPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SourceDocument(_DocumentPart):
    """Which source is declared."""

    kind: Literal["connector", "provider_native"]
    id: Text


class PublisherDocument(_DocumentPart):
    """Who wrote the declaration."""

    id: Text


class SourceDisplayDocument(_DocumentPart):
    """How people know the source."""

    name: Text


class StreamDisplayDocument(_DocumentPart):
    """What an owner reads about a stream before consenting."""

    label: str = ""
    detail: str = ""


class SelectionDocument(_DocumentPart):
    """How far a request may narrow a stream."""

    fields: bool
    resources: bool


class ViewDocument(_DocumentPart):
    """A named set of fields."""

    id: Text
    label: Text
    fields: Names


class RelationshipDocument(_DocumentPart):
    """A child stream."""

    name: Text
    stream: Text
    foreign_key: Text
    cardinality: Literal["has_many", "has_one"]


class ExpandDocument(_DocumentPart):
    """A relationship that reads may follow."""

    name: Text
    default_limit: int | None = None
    max_limit: int | None = None


class SearchDocument(_DocumentPart):
    """Fields that search looks into."""

    lexical_fields: list[Text] = []
    semantic_fields: list[Text] = []


class AggregationsDocument(_DocumentPart):
    """Fields that may be counted, added up and grouped by."""

    count: Literal[True] | None = None
    sum: list[Text] = []
    min: list[Text] = []
    max: list[Text] = []
    count_distinct: list[Text] = []
    group_by: list[Text] = []
    group_by_time: list[Text] = []


class QueryDocument(_DocumentPart):
    """What may be asked of a stream."""

    range_filters: dict[Text, list[Literal["gte", "gt", "lte", "lt"]]] = {}
    expand: list[ExpandDocument] = []
    search: SearchDocument = SearchDocument()
    aggregations: AggregationsDocument | None = None


class StreamDocument(_DocumentPart):
    name: Text
    semantics: Literal["append_only", "mutable_state"]
    json_schema: dict[str, Any] = Field(alias="schema")
    primary_key: Names
    selection: SelectionDocument
    description: str = ""
    display: StreamDisplayDocument = StreamDisplayDocument()
    cursor_field: Text | None = None
    consent_time_field: Text | None = None
    views: list[ViewDocument] = []
    relationships: list[RelationshipDocument] = []
    query: QueryDocument = QueryDocument()


class PresetStreamDocument(_DocumentPart):
    name: Text
    view: Text | None = None
    fields: Names | None = None


class PresetDocument(_DocumentPart):
    """A ready choice of streams."""

    id: Text
    label: str = ""
    streams: Annotated[list[PresetStreamDocument], Field(min_length=1)]


class DeclarationDocument(_DocumentPart):
    """The whole document."""

    protocol_version: Literal["0.1.0"]
    source: SourceDocument
    declaration_version: Text
    publisher: PublisherDocument
    display: SourceDisplayDocument
    streams: Annotated[list[StreamDocument], Field(min_length=1)]
    selection_presets: list[PresetDocument] = []
    extensions: dict[Text, Any] = {}
