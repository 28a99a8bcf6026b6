"""One call of a REST endpoint: its parameters, read by their definition, its access, and its body.

What is not defined is refused, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive

from headgate.errors import (
    BodyCutShort,
    InvalidArgument,
    InvalidFieldPath,
    InvalidRequest,
    InvalidWindow,
    ResourceLimit,
    UnsupportedVersion,
)
from headgate.model.declaration import RangeOperator
from headgate.model.grant import Access
from headgate.model.ids import ConnectionId, FieldName, RequestId, connection_id, field_name
from headgate.model.query import ExactFilter, ExpandRequest, Extraction, Filter, RangeFilter
from headgate.model.warning import ReadWarning, WarningCode
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.reading.port import ReadAnswer
from headgate.web.api.definitions import Endpoint, Param, Shape
from headgate.web.http import BODY_CUT
from headgate.web.replies import PDPP_VERSION, Handler, HttpReply, RequestContext, WebRequest
from headgate.wiring import Services

MAX_PARAMS = 200
_OLD_NAMES = {"connector_instance_id": "connection_id", "connector_id": "connector_key"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_BRACKET = re.compile(r"(filter|expand_limit|extract)\[(.+)\]")
_RANGE = re.compile(r"(.+)\]\[(\w+)")


class Given(msgspec.Struct, frozen=True):
    """The parameters of one request."""

    values: Mapping[str, Any]
    filters: tuple[Filter, ...] = ()
    expand_limits: Mapping[str, int] = {}
    warnings: tuple[ReadWarning, ...] = ()

    def get(self, name: str) -> Any:
        """Return a parameter's value, or None."""
        return self.values.get(name)

    def connection(self) -> ConnectionId | None:
        """Return the connection that was chosen."""
        chosen = self.values.get("connection_id")
        return None if chosen is None else connection_id(chosen)

    def fields(self) -> tuple[FieldName, ...] | None:
        names = self.values.get("fields")
        return None if names is None else tuple(field_name(name) for name in names)

    def expand(self) -> tuple[ExpandRequest, ...]:
        """Return the relations that were asked for, with their limits."""
        names: list[str] = self.values.get("expand") or []
        for name in self.expand_limits:
            if name not in names:
                raise InvalidRequest(f"expand_limit of '{name}' needs expand={name}.", param="expand_limit")
        return tuple(ExpandRequest(name, self.expand_limits.get(name)) for name in names)


#: No parameters at all, as with most reads of one record.
NOTHING = Given({})


def read_params(endpoint: Endpoint, query_string: bytes) -> Given:
    if not query_string and not endpoint.requires:
        return NOTHING
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=MAX_PARAMS,
            strict_parsing=False,
        )
    except ValueError:
        raise InvalidRequest("The query string cannot be read.") from None
    known = {param.name: param for param in endpoint.params}
    values: dict[str, Any] = {}
    filters: list[Filter] = []
    limits: dict[str, int] = {}
    extract: list[tuple[str, str]] = []
    warnings: list[ReadWarning] = []
    for name, text in pairs:
        bracket = _BRACKET.fullmatch(name)
        if bracket is not None and bracket[1] in known:
            if bracket[1] == "filter":
                filters.append(_filter(bracket[2], text))
            elif bracket[1] == "extract":
                extract.append((bracket[2], text))
            else:
                limits[bracket[2]] = _integer("expand_limit", text)
            continue
        _take(known, values, name, text, warnings)
    if extract:
        values["extract"] = _extraction(extract)
    return _checked(endpoint, values, Given(values, tuple(filters), limits, tuple(warnings)))


def _extraction(pairs: Sequence[tuple[str, str]]) -> Extraction:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise InvalidRequest("A member of extract was given twice.", param="extract")
    try:
        return msgspec.convert(members, Extraction)
    except msgspec.ValidationError:
        raise InvalidRequest(
            "extract has two members: extract[after], a phrase, and extract[type], number or date.",
            param="extract",
        ) from None


def _take(
    known: Mapping[str, Param], values: dict[str, Any], name: str, text: str, warnings: list[ReadWarning]
) -> None:
    param = known.get(name) or known.get(name.removesuffix("[]"))
    if param is None or (name != param.name and param.shape is not Shape.REPEATED):
        raise InvalidRequest(f"There is no parameter '{name[:80]}' here.", param=name[:80])
    match param.shape:
        case Shape.FILTER | Shape.LIMITS | Shape.EXTRACT:
            raise InvalidRequest(f"{param.name} needs a name in brackets.", param=param.name)
        case Shape.NAMES:
            names = [part for part in text.split(",") if part]
            values[param.name] = [*values.get(param.name, ()), *names]
        case Shape.REPEATED:
            values[param.name] = [*values.get(param.name, ()), text]
        case _:
            if param.name in values:
                raise InvalidRequest(f"{param.name} was given twice.", param=param.name)
            values[param.name] = _single(param, text, warnings)


def _single(param: Param, text: str, warnings: list[ReadWarning]) -> Any:
    if param.shape is Shape.INTEGER:
        return _integer(param.name, text)
    if param.shape in {Shape.LENIENT_INTEGER, Shape.LENIENT_LIMIT}:
        return _lenient(param, text, warnings)
    if param.shape is Shape.BOOLEAN:
        return _boolean(param.name, text)
    if param.choices and text not in param.choices:
        raise InvalidRequest(f"{param.name} must be one of {', '.join(param.choices)}.", param=param.name)
    return text


def _boolean(name: str, text: str) -> bool:
    if text not in {"true", "false"}:
        raise InvalidRequest(f"{name} must be true or false.", param=name)
    return text == "true"


def _integer(name: str, text: str) -> int:
    if _INTEGER.fullmatch(text):
        return int(text)
    error = InvalidWindow if name.endswith("_chars") else InvalidRequest
    raise error(f"{name} must be a whole number.", param=name)


def _lenient(param: Param, text: str, warnings: list[ReadWarning]) -> int | None:
    if _INTEGER.fullmatch(text) and int(text) >= (param.shape is Shape.LENIENT_INTEGER):
        return int(text)
    warnings.append(
        ReadWarning(
            WarningCode.COMPATIBILITY_FALLBACK, f"{param.name} cannot be used; the default was.", param.name
        )
    )
    return None


def _filter(inside: str, text: str) -> Filter:
    ranged = _RANGE.fullmatch(inside)
    if ranged is None:
        return ExactFilter(field_name(inside), text)
    try:
        operator = RangeOperator(ranged[2])
    except ValueError:
        raise InvalidRequest("A range filter is gte, gt, lte or lt.", param="filter") from None
    return RangeFilter(field_name(ranged[1]), operator, text)


def _checked(endpoint: Endpoint, values: dict[str, Any], params: Given) -> Given:
    warnings = params.warnings
    for old, new in _OLD_NAMES.items():
        value = values.pop(old, None)
        if value is None:
            continue
        if values.setdefault(new, value) != value:
            raise InvalidArgument(f"{new} and {old} disagree.", param=old)
        message = f"{old} is an old name; send {new}."
        warnings = (*warnings, ReadWarning(WarningCode.DEPRECATED_ALIAS, message, old))
    for param in endpoint.requires:
        if not values.get(param.name):
            raise _missing(endpoint, param)
    return Given(values, params.filters, params.expand_limits, warnings)


def _missing(endpoint: Endpoint, param: Param) -> InvalidRequest:
    if endpoint.id == "window":
        return InvalidFieldPath("field is required.", param=param.name)
    if param.choices:
        return InvalidRequest(f"{param.name} must be one of {', '.join(param.choices)}.", param=param.name)
    return InvalidRequest(f"{param.name} is required.", param=param.name)


class Call(msgspec.Struct, frozen=True):
    """One request for an endpoint, admitted and parsed."""

    endpoint: Endpoint
    method: str
    access: Access
    path: Mapping[str, str]
    given: Given
    headers: Mapping[bytes, bytes]
    request_id: RequestId
    receive: Receive
    #: What the server notes about the request while it arrives.
    state: Mapping[str, Any]
    services: Services

    def resource_server(self) -> LocalResourceServer:
        context = ReadContext(self.access, self.request_id, self.endpoint.route, self.given.warnings)
        return LocalResourceServer(self.services.reads, context)

    def needed_connection(self) -> ConnectionId:
        """Return the connection; the endpoint's definition requires it."""
        connection = self.given.connection()
        assert connection is not None
        return connection

    async def pieces(self) -> AsyncIterator[bytes]:
        """Read the body piece by piece, and no more of it than the endpoint takes."""
        assert self.endpoint.body is not None
        if self.headers.get(b"content-encoding", b"identity").lower() != b"identity":
            # What a few bytes unpack to is not known before they are unpacked.
            raise InvalidRequest("The body must not be compressed.", param="Content-Encoding")
        left = self.endpoint.body.most_bytes
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect" or BODY_CUT in self.state:
                raise BodyCutShort
            piece: bytes = message.get("body", b"")
            left -= len(piece)
            if left < 0:
                raise ResourceLimit(f"The body must have at most {self.endpoint.body.most_bytes} bytes.")
            if piece:
                yield piece
            if not message.get("more_body", False):
                return

    async def whole_body(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def document(self) -> dict[str, Any]:
        """Read the body as a JSON object."""
        try:
            document = msgspec.json.decode(await self.whole_body())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidRequest("The body must be JSON.") from None
        if not isinstance(document, dict):
            raise InvalidRequest("The body must be a JSON object.")
        return cast("dict[str, Any]", document)


#: Reads return the resource server's answer; every other endpoint returns a reply.
EndpointHandler = Callable[[Call], Awaitable[ReadAnswer | HttpReply]]


def check_version(context: RequestContext) -> None:
    """Refuse a request that names another version of the protocol."""
    _, version = PDPP_VERSION
    requested = context.headers.values.get(b"pdpp-version")
    if requested is not None and requested != version:
        raise UnsupportedVersion(f"This server speaks PDPP-Version {version.decode()}.", param="PDPP-Version")


def bound(endpoint: Endpoint, handler: EndpointHandler) -> Handler:
    """Parse a request by the endpoint's definition before its function is called."""

    async def answer(request: WebRequest) -> HttpReply:
        context = request.context
        assert context.access is not None
        call = Call(
            endpoint=endpoint,
            method=request.scope["method"],
            access=context.access,
            path=request.places,
            given=read_params(endpoint, request.scope["query_string"]),
            headers=context.headers.values,
            request_id=context.request_id,
            receive=request.receive,
            state=request.scope.get("state", {}),
            services=request.services,
        )
        answered = await handler(call)
        return HttpReply(answered.content) if isinstance(answered, ReadAnswer) else answered

    return answer
