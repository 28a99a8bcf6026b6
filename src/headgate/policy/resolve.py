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
    entry = catalog.source(request.source_id)
    if entry is None:
        raise _refused("The source is not connected here.", "source")
    key, source = entry
    requests = list(_asked(request, source))
    names = [stream.name for stream in requests]
    if len(set(names)) != len(names) or not names:
        raise _refused("Each stream is named once, and at least one is.", "streams")
    streams = tuple(_stream(stream_request, source, catalog, key) for stream_request in requests)
    return Terms(key, source, streams)


def granted_fields(stream: StreamDeclaration, requested: Sequence[FieldName] | None) -> tuple[FieldName, ...]:
    """Return the fields of a grant, in the declared order.

    Required fields and the key come along always: a record is known by its key, and cannot be made
    sense of without what its schema requires.
    """
    if requested is None:
        return tuple(stream.fields)
    wanted = set(requested) | set(stream.primary_key)
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
    preset = next((declared for declared in source.presets if declared.id == name), None)
    if preset is None:
        raise _refused(f"The source has no preset '{name}'.", "selection_preset")
    for stream in preset.streams:
        yield StreamRequest(stream.name, fields=stream.fields, view=stream.view)


def _everything(request: StreamRequest, source: SourceDeclaration) -> Iterator[StreamRequest]:
    """Ask for every stream; with a time range, for every stream that has times."""
    if request.fields is not None or request.view is not None or request.resources is not None:
        raise _refused("'*' takes no fields, view or resources.", "streams")
    is_timed = request.since is not None or request.until is not None
    for stream in source.streams.values():
        if stream.fields and not (is_timed and stream.consent_time_field is None):
            yield StreamRequest(
                stream.name, connection_ids=request.connection_ids, since=request.since, until=request.until
            )


def _stream(
    request: StreamRequest, source: SourceDeclaration, catalog: SourceCatalog, key: ConnectorKey
) -> StreamGrant:
    stream = source.streams.get(StreamName(request.name))
    if stream is None:
        raise _refused(f"The source has no stream '{request.name}'.", "streams")
    if request.resources is not None and not stream.selects_resources:
        raise _refused(f"Records of '{stream.name}' cannot be chosen one by one.", "resources")
    return StreamGrant(
        name=stream.name,
        connection_ids=_connections(request, catalog, key),
        fields=granted_fields(stream, _fields(request, stream)),
        time=_time(request, stream),
        resources=request.resources,
    )


def _fields(request: StreamRequest, stream: StreamDeclaration) -> Sequence[FieldName] | None:
    if request.view is not None:
        view = next((declared for declared in stream.views if declared.id == request.view), None)
        if view is None or request.fields is not None:
            raise _refused(f"'{stream.name}' takes fields or one of its views.", "view")
        return view.fields
    if request.fields is None:
        return None
    if not stream.selects_fields:
        raise _refused(f"Fields of '{stream.name}' cannot be chosen one by one.", "fields")
    for name in request.fields:
        if name not in stream.fields:
            raise _refused(f"'{stream.name}' has no field '{name}'.", "fields")
    return request.fields


def _time(request: StreamRequest, stream: StreamDeclaration) -> TimeConstraint | None:
    if request.since is None and request.until is None:
        return None
    if stream.consent_time_field is None:
        raise _refused(f"'{stream.name}' has no time to choose by.", "time_range")
    if request.since is not None and request.until is not None and request.since >= request.until:
        raise _refused("The time range ends before it begins.", "time_range")
    return TimeConstraint(stream.consent_time_field, request.since, request.until)


def _connections(
    request: StreamRequest, catalog: SourceCatalog, key: ConnectorKey
) -> tuple[ConnectionId, ...]:
    there = catalog.connections_of(key)
    if request.connection_ids is None:
        if len(there) == 1:
            return there
        raise _choose_one(catalog, there)
    for name in request.connection_ids:
        if name not in there:
            raise _refused("The source has no such connection.", "instance_ids")
    return tuple(dict.fromkeys(request.connection_ids))


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
