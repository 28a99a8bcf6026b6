"""Precise requests (RFC 9396): ``authorization_details`` of PDPP's type, read from outside."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headgate.auth.documents import DETAIL_TYPE
from headgate.auth.grants import DEFAULT_PURPOSE
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest
from headgate.model.grant import AccessMode
from headgate.model.ids import connection_id, field_name, record_id, source_id
from headgate.model.instants import instant
from headgate.policy.resolve import SelectionRequest, StreamRequest

_MAX_CHARS = 32 * 1024
_MAX_DETAILS = 16
_MAX_PURPOSE_CHARS = 300


class _DetailSource(msgspec.Struct, frozen=True):
    id: str


class _DetailTime(msgspec.Struct, frozen=True):
    since: str | None = None
    until: str | None = None


class _DetailStream(msgspec.Struct, frozen=True):
    name: str
    instance_ids: list[str] | None = None
    fields: list[str] | None = None
    view: str | None = None
    time_range: _DetailTime | None = None
    resources: list[str] | None = None


class _Detail(msgspec.Struct, frozen=True):
    """One entry. Members that are only claims of the client are not read."""

    type: str
    source: _DetailSource
    streams: list[_DetailStream] = []
    selection_preset: str | None = None
    access_mode: AccessMode = AccessMode.CONTINUOUS
    purpose_code: str = DEFAULT_PURPOSE
    purpose_description: str = ""


@dataclass(frozen=True, slots=True)
class PreciseRequest:
    """What a client asks for, and what it says it is for."""

    selections: tuple[SelectionRequest, ...]
    access_mode: AccessMode
    purpose_code: str
    purpose_description: str


def read_details(text: str) -> PreciseRequest:
    """Read ``authorization_details``."""
    if len(text) > _MAX_CHARS:
        raise InvalidAuthorizationDetails("The request is too long.")
    try:
        details = msgspec.json.decode(text, type=list[_Detail])
        selections = tuple(map(_selection, details))
    except (msgspec.MsgspecError, InvalidRequest, ValueError, RecursionError):
        raise InvalidAuthorizationDetails from None
    if not 1 <= len(details) <= _MAX_DETAILS or any(detail.type != DETAIL_TYPE for detail in details):
        raise InvalidAuthorizationDetails(f"Each of 1 to {_MAX_DETAILS} details has the type {DETAIL_TYPE}.")
    first = details[0]
    is_single = any(detail.access_mode is AccessMode.SINGLE_USE for detail in details)
    return PreciseRequest(
        selections,
        AccessMode.SINGLE_USE if is_single else AccessMode.CONTINUOUS,
        first.purpose_code[:_MAX_PURPOSE_CHARS],
        first.purpose_description[:_MAX_PURPOSE_CHARS],
    )


def _selection(detail: _Detail) -> SelectionRequest:
    streams = tuple(map(_stream, detail.streams))
    return SelectionRequest(source_id(detail.source.id), streams, detail.selection_preset)


def _stream(detail: _DetailStream) -> StreamRequest:
    time = detail.time_range or _DetailTime()
    return StreamRequest(
        detail.name,
        None if detail.instance_ids is None else tuple(map(connection_id, detail.instance_ids)),
        None if detail.fields is None else tuple(map(field_name, detail.fields)),
        detail.view,
        _time(time.since),
        _time(time.until),
        None if detail.resources is None else frozenset(map(record_id, detail.resources)),
    )


def _time(text: str | None) -> int | None:
    if text is not None and instant(text) is None:
        raise InvalidAuthorizationDetails("A time cannot be read.", param="time_range")
    return None if text is None else instant(text)
