"""What may be asked of a stream: the one object that drives schema flags, texts and enforcement.

A capability is worked out from a declaration and what is granted of it. Whatever it does not hold is
refused, and whatever it holds is accepted: there is no second list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headgate.model.declaration import (
    Aggregations,
    Expansion,
    Field,
    RangeOperator,
    Relationship,
    StreamDeclaration,
    View,
)
from headgate.model.ids import FieldName, StreamName


class Use(StrEnum):
    """What a clause does with a field."""

    SELECT = "select"
    SORT = "sort"
    EXACT_FILTER = "exact_filter"
    RANGE_FILTER = "range_filter"
    LEXICAL_SEARCH = "lexical_search"
    SEMANTIC_SEARCH = "semantic_search"
    COUNT_DISTINCT = "count_distinct"
    GROUP_BY = "group_by"
    GROUP_BY_TIME = "group_by_time"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


AGGREGATIONS = (Use.COUNT_DISTINCT, Use.GROUP_BY, Use.GROUP_BY_TIME, Use.SUM, Use.MIN, Use.MAX)
FILTERS = frozenset({Use.EXACT_FILTER, Use.RANGE_FILTER})


class Refusal(StrEnum):
    """Why something that is declared cannot be used."""

    STRICT_CORE = "strict_core"
    NOT_AVAILABLE = "not_available"


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner's settings that bear on what may be asked."""

    #: Refuse filters, expansion and views to clients, as the core protocol does.
    strict_core: bool = False
    #: There is a model, so that texts can be compared by meaning.
    has_meaning: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """Whether a use is declared, and whether this token may make it."""

    declared: bool
    usable: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FieldCapability:
    """One visible field and everything that may be done with it."""

    field: Field
    declared: frozenset[Use]
    refused: Mapping[Use, Refusal]
    operators: tuple[RangeOperator, ...] = ()

    def flag(self, use: Use) -> Flag:
        """Return whether a use is declared and allowed, with the reason if it is refused."""
        declared = use in self.declared
        reason = self.refused.get(use) if declared else None
        return Flag(declared, declared and reason is None, None if reason is None else reason.value)

    def usable(self, use: Use) -> bool:
        """Return whether a use is declared and allowed."""
        return use in self.declared and use not in self.refused


@dataclass(frozen=True, slots=True)
class RelationCapability:
    """A relation that leads to a visible stream through a visible field."""

    relation: Relationship
    expansion: Expansion
    refused: Refusal | None = None


@dataclass(frozen=True, slots=True)
class StreamCapability:
    """Everything that may be asked of one stream, for one token."""

    fields: Mapping[FieldName, FieldCapability]
    relations: Mapping[str, RelationCapability]
    views: Mapping[str, View]
    #: The cursor field, when it is visible: the only one that can be sorted by.
    sort_field: FieldName | None
    #: True when records may be counted; None when the stream has no aggregations at all.
    counts: bool | None

    def with_use(self, use: Use) -> tuple[FieldName, ...]:
        """Return the fields that may be used so."""
        return tuple(name for name, capability in self.fields.items() if capability.usable(use))


def capability_of(
    stream: StreamDeclaration,
    granted: Collection[FieldName],
    *,
    related: Mapping[StreamName, Collection[FieldName]],
    refused: Mapping[Use, Refusal],
    refused_expansion: Refusal | None = None,
) -> StreamCapability:
    """Work out what may be asked of a stream.

    ``related`` holds the visible fields of each visible stream of the same source, by stream name.
    """
    # In the order of the line: a reader of a row meets when, who, how much and what before the rest.
    names = dict.fromkeys((*(name for name in stream.line.fields if name in granted), *granted))
    fields = {name: _field(stream, stream.fields[name], refused) for name in names if name in stream.fields}
    aggregations = stream.query.aggregations
    return StreamCapability(
        fields=fields,
        relations={
            relation.relation.name: relation for relation in _relations(stream, related, refused_expansion)
        },
        views={view.id: view for view in stream.views if fields.keys() >= set(view.fields)},
        sort_field=stream.cursor_field if stream.cursor_field in fields else None,
        counts=None if aggregations is None else aggregations.count,
    )


def _field(stream: StreamDeclaration, field: Field, refused: Mapping[Use, Refusal]) -> FieldCapability:
    declared = frozenset(_declared(stream, field, has_meaning=Use.SEMANTIC_SEARCH not in refused))
    return FieldCapability(
        field=field,
        declared=declared,
        refused={use: reason for use, reason in refused.items() if use in declared},
        operators=tuple(stream.query.range_filters.get(field.name, ())),
    )


def _declared(stream: StreamDeclaration, field: Field, *, has_meaning: bool) -> Iterator[Use]:
    query = stream.query
    # Without a model, only what the declaration itself names is mentioned.
    compared = query.meaning_fields if has_meaning else query.semantic_fields
    aggregations = query.aggregations or Aggregations()
    yield Use.SELECT
    if field.kind.is_scalar:
        yield Use.EXACT_FILTER
    for use, names in (
        (Use.SORT, (stream.cursor_field,)),
        (Use.RANGE_FILTER, query.range_filters),
        (Use.LEXICAL_SEARCH, query.lexical_fields),
        (Use.SEMANTIC_SEARCH, compared),
        (Use.COUNT_DISTINCT, aggregations.count_distinct),
        (Use.GROUP_BY, aggregations.group_by),
        (Use.GROUP_BY_TIME, aggregations.group_by_time),
        (Use.SUM, aggregations.sum),
        (Use.MIN, aggregations.min),
        (Use.MAX, aggregations.max),
    ):
        if field.name in names:
            yield use


def _relations(
    stream: StreamDeclaration, related: Mapping[StreamName, Collection[FieldName]], refused: Refusal | None
) -> Iterator[RelationCapability]:
    relations = {relation.name: relation for relation in stream.relationships}
    for expansion in stream.query.expand:
        relation = relations[expansion.name]
        if relation.foreign_key in related.get(relation.stream, ()):
            yield RelationCapability(relation, expansion, refused)
