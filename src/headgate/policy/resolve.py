"""Selection requests, made concrete: what an owner is asked to approve, in terms nothing can widen.

Views, presets, wildcards and left-out connections mean something only against a declaration at one moment.
They are resolved here once; a grant holds names and bounds alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import AmbiguousConnection, HeadgateError, InvalidAuthorizationDetails
from headgate.model.declaration import SourceDeclaration, StreamDeclaration
from headgate.model.grant import StreamGrant, TimeConstraint
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, RecordId, SourceId, StreamName
from headgate.policy.allowance import SourceCatalog

WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """One stream that a client asks for; ``*`` asks for all of them."""

    name: str
    connection_ids: tuple[ConnectionId, ...] | None = None
    fields: tuple[FieldName, ...] | None = None
    view: str | None = None
    #: Microseconds since 1970.
    since: int | None = None
    until: int | None = None
    resources: frozenset[RecordId] | None = None


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """What a client asks for of one source: streams, or a preset by name."""

    source_id: SourceId
    streams: tuple[StreamRequest, ...] = ()
    preset: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What would be granted, concretely."""

    connector_key: ConnectorKey
    source: SourceDeclaration
    streams: tuple[StreamGrant, ...]


def resolve(request: SelectionRequest, catalog: SourceCatalog) -> Terms:
    """Make a request concrete."""
    found = catalog.source(request.source_id)
    if found is None:
        raise _refused("The source is not connected here.", "source")
    key, source = found
    asked = list(_asked(request, source))
    names = [stream.name for stream in asked]
    if len(set(names)) != len(names) or not names:
        raise _refused("Each stream is named once, and at least one is.", "streams")
    streams = tuple(_stream(one, source, catalog, key) for one in asked)
    return Terms(key, source, streams)


def granted_fields(stream: StreamDeclaration, asked: Sequence[FieldName] | None) -> tuple[FieldName, ...]:
    """Return the fields of a grant, in the declared order.

    Required fields and the key come along always: a record is known by its key, and cannot be made
    sense of without what its schema requires.
    """
    if asked is None:
        return tuple(stream.fields)
    wanted = set(asked) | set(stream.primary_key)
    return tuple(name for name, field in stream.fields.items() if name in wanted or field.required)


def _asked(request: SelectionRequest, source: SourceDeclaration) -> Iterator[StreamRequest]:
    if (request.preset is None) == (not request.streams):
        raise _refused("Ask for streams or for a preset, not both.", "streams")
    if request.preset is not None:
        yield from _preset(request.preset, source)
        return
    first, *others = request.streams
    if first.name == WILDCARD and not others:
        yield from _everything(first, source)
        return
    if any(stream.name == WILDCARD for stream in request.streams):
        raise _refused("'*' stands alone.", "streams")
    yield from request.streams


def _preset(name: str, source: SourceDeclaration) -> Iterator[StreamRequest]:
    preset = next((one for one in source.presets if one.id == name), None)
    if preset is None:
        raise _refused(f"The source has no preset '{name}'.", "selection_preset")
    for stream in preset.streams:
        yield StreamRequest(stream.name, fields=stream.fields, view=stream.view)


def _everything(asked: StreamRequest, source: SourceDeclaration) -> Iterator[StreamRequest]:
    """Ask for every stream; with a time range, for every stream that has times."""
    if asked.fields is not None or asked.view is not None or asked.resources is not None:
        raise _refused("'*' takes no fields, view or resources.", "streams")
    is_timed = asked.since is not None or asked.until is not None
    for stream in source.streams.values():
        if stream.fields and not (is_timed and stream.consent_time_field is None):
            yield StreamRequest(
                stream.name, connection_ids=asked.connection_ids, since=asked.since, until=asked.until
            )


def _stream(
    asked: StreamRequest, source: SourceDeclaration, catalog: SourceCatalog, key: ConnectorKey
) -> StreamGrant:
    stream = source.streams.get(StreamName(asked.name))
    if stream is None:
        raise _refused(f"The source has no stream '{asked.name}'.", "streams")
    if asked.resources is not None and not stream.selects_resources:
        raise _refused(f"Records of '{stream.name}' cannot be chosen one by one.", "resources")
    return StreamGrant(
        name=stream.name,
        connection_ids=_connections(asked, catalog, key),
        fields=granted_fields(stream, _fields(asked, stream)),
        time=_time(asked, stream),
        resources=asked.resources,
    )


def _fields(asked: StreamRequest, stream: StreamDeclaration) -> Sequence[FieldName] | None:
    if asked.view is not None:
        view = next((one for one in stream.views if one.id == asked.view), None)
        if view is None or asked.fields is not None:
            raise _refused(f"'{stream.name}' takes fields or one of its views.", "view")
        return view.fields
    if asked.fields is None:
        return None
    if not stream.selects_fields:
        raise _refused(f"Fields of '{stream.name}' cannot be chosen one by one.", "fields")
    for name in asked.fields:
        if name not in stream.fields:
            raise _refused(f"'{stream.name}' has no field '{name}'.", "fields")
    return asked.fields


def _time(asked: StreamRequest, stream: StreamDeclaration) -> TimeConstraint | None:
    if asked.since is None and asked.until is None:
        return None
    if stream.consent_time_field is None:
        raise _refused(f"'{stream.name}' has no time to choose by.", "time_range")
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:
        raise _refused("The time range ends before it begins.", "time_range")
    return TimeConstraint(stream.consent_time_field, asked.since, asked.until)


def _connections(asked: StreamRequest, catalog: SourceCatalog, key: ConnectorKey) -> tuple[ConnectionId, ...]:
    there = catalog.connections_of(key)
    if asked.connection_ids is None:
        if len(there) == 1:
            return there
        raise _choose_one(catalog, there)
    for name in asked.connection_ids:
        if name not in there:
            raise _refused("The source has no such connection.", "instance_ids")
    return tuple(dict.fromkeys(asked.connection_ids))


def _choose_one(catalog: SourceCatalog, there: Sequence[ConnectionId]) -> HeadgateError:
    if not there:
        return _refused("The source has no connection.", "instance_ids")
    choices: list[dict[str, Any]] = [
        {"connection_id": name, "display_name": catalog.connections[name].label} for name in there
    ]
    return AmbiguousConnection(
        param="instance_ids", data={"available_connections": choices, "retry_with": "instance_ids"}
    )


def _refused(message: str, param: str) -> InvalidAuthorizationDetails:
    return InvalidAuthorizationDetails(message, param=param)
