"""What an access reaches, worked out once: each visible stream of each source, with its capability.

The owner needs no grant: everything declared and connected is visible. A client sees the streams, fields
and connections of its grants as far as they still exist; nothing that came later widens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.errors import FieldNotGranted, HeadgateError, InvalidRequest, InvalidSort, UnknownField
from headgate.model.declaration import Field, SourceDeclaration, StreamDeclaration
from headgate.model.grant import Access, Grant, StreamGrant, TimeConstraint
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, GrantId, RecordId, StreamName
from headgate.model.plan import Reach
from headgate.model.record import Connection
from headgate.nearest import listed, near, nearest, quoted
from headgate.policy.capability import FILTERS, Refusal, Rules, StreamCapability, Use, capability_of

#: What a declaration says about the meaning of a field, beside its type.
_MEANING = ("title", "description", "x_pdpp_role", "format", "contentMediaType", "contentEncoding")


@dataclass(frozen=True, slots=True)
class SourceCatalog:
    """What is declared and connected in a home at this moment."""

    declarations: Mapping[ConnectorKey, SourceDeclaration]
    connections: Mapping[ConnectionId, Connection]
    #: Every version that was declared, the newest last.
    versions: Mapping[ConnectorKey, Sequence[SourceDeclaration]] = field(
        default_factory=dict[ConnectorKey, Sequence[SourceDeclaration]]
    )

    def since(self, connector_key: ConnectorKey, version: str) -> Sequence[SourceDeclaration]:
        """Return the versions from one on; only the newest if that one is not known."""
        known = self.versions.get(connector_key, ())
        places = [place for place, declaration in enumerate(known) if declaration.version == version]
        return known[places[0] :] if places else (self.declarations[connector_key],)

    def source(self, source_id: str) -> tuple[ConnectorKey, SourceDeclaration] | None:
        return next(
            ((key, source) for key, source in self.declarations.items() if source.source_id == source_id),
            None,
        )

    def connections_of(self, connector_key: ConnectorKey) -> tuple[ConnectionId, ...]:
        """Return the connections of a connector, oldest first."""
        return tuple(
            connection.id
            for connection in self.connections.values()
            if connection.connector_key == connector_key
        )


@dataclass(frozen=True, slots=True)
class StreamScope:
    """What one access may see of one stream of one source, under one grant."""

    #: None for the owner.
    grant_id: GrantId | None
    connector_key: ConnectorKey
    source: SourceDeclaration
    declaration: StreamDeclaration
    #: Those granted connections that still exist.
    connections: tuple[Connection, ...]
    capability: StreamCapability
    time: TimeConstraint | None
    resources: frozenset[RecordId] | None
    #: The scopes of single grants that this one joins; none if it is of one grant itself.
    parts: tuple[StreamScope, ...] = ()

    @property
    def is_owner(self) -> bool:
        """Nothing is hidden from the owner."""
        return self.grant_id is None

    @property
    def stream(self) -> StreamName:
        """The stream's name."""
        return self.declaration.name

    def reach(self, fields: tuple[FieldName, ...]) -> Reach:
        """Turn the scope into a reach that selects these fields."""
        return Reach(
            stream=self.stream,
            connection_ids=tuple([connection.id for connection in self.connections]),
            fields=fields,
            time=self.time,
            resources=self.resources,
            visible=None if self.is_owner else tuple(self.capability.fields),
            with_hidden=self.is_owner,
        )

    def on(self, connection_id: ConnectionId) -> StreamScope | None:
        chosen = [connection for connection in self.connections if connection.id == connection_id]
        return self.among(chosen) if chosen else None

    def allows_as(self, other: StreamScope) -> bool:
        """Return whether another grant allows the same of the same stream, on its own connections."""
        return (self.connector_key, self.stream, self.time, self.resources) == (
            other.connector_key,
            other.stream,
            other.time,
            other.resources,
        ) and self.capability == other.capability

    def among(self, connections: Sequence[Connection]) -> StreamScope:
        return replace(self, connections=tuple(connections))


@dataclass(frozen=True, slots=True)
class Allowance:
    """Everything an access reaches."""

    access: Access
    rules: Rules
    scopes: tuple[StreamScope, ...]
    by_stream: Mapping[StreamName, tuple[StreamScope, ...]] = field(
        default_factory=dict[StreamName, tuple[StreamScope, ...]]
    )

    @property
    def refuses_extras(self) -> bool:
        """Filters, expansion and views are refused to this access, as the core protocol does."""
        return self.rules.strict_core and not self.access.is_owner

    @property
    def identity(self) -> tuple[str, ...]:
        """Who cursors are made for: they open for the same grants only."""
        if self.access.is_owner:
            return ("owner", self.access.subject_id)
        return ("client", *sorted(grant.id for grant in self.access.grants))


def allow(access: Access, catalog: SourceCatalog, rules: Rules) -> Allowance:
    """Work out what an access reaches."""
    if access.is_owner:
        reached = _owned(catalog, rules)
    else:
        reached = (scope for grant in access.grants for scope in _granted(grant, catalog, rules))
    scopes = tuple(reached)
    by_stream: dict[StreamName, tuple[StreamScope, ...]] = {}
    for scope in scopes:
        by_stream[scope.stream] = (*by_stream.get(scope.stream, ()), scope)
    return Allowance(access, rules, scopes, by_stream)


def _owned(catalog: SourceCatalog, rules: Rules) -> Iterator[StreamScope]:
    for key, source in catalog.declarations.items():
        connections = catalog.connections_of(key)
        if connections:
            streams = [
                StreamGrant(name, connections, tuple(stream.fields))
                for name, stream in source.streams.items()
                if stream.fields
            ]
            yield from _scopes(None, key, source, streams, catalog=catalog, refused=_refused(rules, None))


def _granted(grant: Grant, catalog: SourceCatalog, rules: Rules) -> Iterator[StreamScope]:
    entry = catalog.source(grant.source_id)
    if entry is None:
        return
    key, source = entry
    alive = set(catalog.connections_of(key))
    since = catalog.since(key, grant.declaration_version)
    streams = [
        replace(stream, connection_ids=connections, fields=fields)
        for stream in grant.streams
        if stream.name in source.streams
        and (connections := tuple(name for name in stream.connection_ids if name in alive))
        and (fields := _fields_since(stream, since))
    ]
    yield from _scopes(grant.id, key, source, streams, catalog=catalog, refused=_refused(rules, grant.id))


def _fields_since(granted: StreamGrant, versions: Sequence[SourceDeclaration]) -> tuple[FieldName, ...]:
    """Return the fields that were declared all the time, and as they were when they were granted.

    One that was dropped and comes back may mean something else, and one that is described otherwise does.
    """
    streams = [version.streams.get(granted.name) for version in versions]
    declared = [dict[FieldName, Field]() if stream is None else stream.fields for stream in streams]
    return tuple(
        name
        for name in granted.fields
        if all(name in fields and _means_the_same(declared[0][name], fields[name]) for fields in declared)
    )


def _means_the_same(granted: Field, later: Field) -> bool:
    """Compare what is declared of a field; what was not declared before may be added, and a text may be left out."""
    if granted.types and (not later.types or set(later.types) - {*granted.types, "null"}):
        return False
    pairs = ((granted.schema.get(member), later.schema.get(member)) for member in _MEANING)
    return all(old is None or new is None or old == new for old, new in pairs)


def _refused(rules: Rules, grant_id: GrantId | None) -> dict[Use, Refusal]:
    refused = {} if rules.has_meaning else {Use.SEMANTIC_SEARCH: Refusal.NOT_AVAILABLE}
    if rules.strict_core and grant_id is not None:
        refused |= dict.fromkeys(FILTERS, Refusal.STRICT_CORE)
    return refused


def _scopes(
    grant_id: GrantId | None,
    key: ConnectorKey,
    source: SourceDeclaration,
    streams: Iterable[StreamGrant],
    *,
    catalog: SourceCatalog,
    refused: Mapping[Use, Refusal],
) -> Iterator[StreamScope]:
    visible = {stream.name: stream for stream in streams}
    strict = refused.get(Use.EXACT_FILTER)
    for name, granted in visible.items():
        declaration = source.streams[name]
        related = {
            other.name: other.fields
            for other in visible.values()
            if set(other.connection_ids) & set(granted.connection_ids)
        }
        capability = capability_of(
            declaration, granted.fields, related=related, refused=refused, refused_expansion=strict
        )
        connections = tuple(catalog.connections[connection_id] for connection_id in granted.connection_ids)
        yield StreamScope(
            grant_id, key, source, declaration, connections, capability, granted.time, granted.resources
        )


def authorize(scope: StreamScope, name: FieldName, use: Use) -> Field:
    """Return the field, if this access may use it so.

    For clients a field that is not granted and one that does not exist are the same.
    """
    capability = scope.capability.fields.get(name)
    if capability is None:
        raise _invisible(scope, name, use)
    if not capability.usable(use):
        raise _unusable(scope, name, use)
    return capability.field


def _invisible(scope: StreamScope, name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SELECT and name == "*":
        return InvalidRequest("fields names fields one by one; '*' is not one.", param="fields")
    return invisible([scope], name, use)


def invisible(scopes: Sequence[StreamScope], name: FieldName, use: Use) -> HeadgateError:
    """Make the refusal of a field that none of some scopes of a stream shows: it names what does work."""
    names = list(dict.fromkeys(field for scope in scopes for field in scope.capability.fields))
    message = f"{scopes[0].stream} has no field {quoted(name)} that you may read.{near(name, names)}"
    if use is Use.SELECT:
        message += "" if nearest(name, names) else listed("Fields", names)
    else:
        # Where a name is near, a filter by it is likely; what has a range helps further than that.
        offered = Use.RANGE_FILTER if use in FILTERS and nearest(name, names) else use
        usable = dict.fromkeys(field for scope in scopes for field in scope.capability.with_use(offered))
        message += listed(f"{_LABELS[offered]} fields", list(usable))
    return (UnknownField if scopes[0].is_owner else FieldNotGranted)(message, param=_PARAMS[use])


def _unusable(scope: StreamScope, name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SORT:
        return not_sorted(scope, name)
    param, hint = _PARAMS[use], _fields_with(scope, use)
    if use not in FILTERS:
        return InvalidRequest(f"'{name}' is not declared for {use.value}.", param=param, hint=hint)
    operators = scope.capability.fields[name].operators
    if use is Use.EXACT_FILTER and operators:
        hint = f"'{name}' has a range ({', '.join(operators)}). {hint}"
    return InvalidRequest(f"'{name}' has no {use.value.replace('_', ' ')}.", param=param, hint=hint)


def not_sorted(scope: StreamScope, name: FieldName) -> InvalidSort:
    """Make the refusal of an order that a stream does not have."""
    field = scope.capability.sort_field
    hint = "" if field is None else f"Sort by {field} or -{field}, or leave sort out."
    return InvalidSort(f"{scope.stream} is not ordered by {quoted(name)}.", param="sort", hint=hint)


def _fields_with(scope: StreamScope, use: Use) -> str:
    """Name the fields that this access may use so, as many as a hint has room for."""
    names = [name for name, capability in scope.capability.fields.items() if capability.usable(use)]
    param, words = _PARAMS[use], use.value.replace("_", " ")
    if not names:
        return f"No field of this stream can be used so; leave {param} out."
    rest = "; call schema with the stream for the others" if len(names) > _MOST_NAMES else ""
    return f"In {param}, these fields have {words}: {', '.join(names[:_MOST_NAMES])}{rest}."


_MOST_NAMES = 20
_LABELS = {
    Use.SORT: "Sort",
    Use.EXACT_FILTER: "Filter",
    Use.RANGE_FILTER: "Range",
    Use.LEXICAL_SEARCH: "Searched",
    Use.SEMANTIC_SEARCH: "Searched",
    Use.COUNT_DISTINCT: "Distinct",
    Use.GROUP_BY: "Group",
    Use.GROUP_BY_TIME: "Time",
    Use.SUM: "Sum",
    Use.MIN: "Min",
    Use.MAX: "Max",
}
_PARAMS = {
    Use.SELECT: "fields",
    Use.SORT: "sort",
    Use.EXACT_FILTER: "filter",
    Use.RANGE_FILTER: "filter",
    Use.LEXICAL_SEARCH: "in",
    Use.SEMANTIC_SEARCH: "in",
    Use.COUNT_DISTINCT: "field",
    Use.GROUP_BY: "group_by",
    Use.GROUP_BY_TIME: "group_by_time",
    Use.SUM: "field",
    Use.MIN: "field",
    Use.MAX: "field",
}
