"""One call of a REST endpoint: its access, its parameters, and the parts of the program it may use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from starlette.types import Receive

from headgate.errors import BodyCutShort, InvalidRequest, ResourceLimit
from headgate.model.grant import Access
from headgate.model.ids import ConnectionId, RequestId
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.reading.port import ReadAnswer
from headgate.web.api.definitions import Endpoint
from headgate.web.api.params import Given
from headgate.web.http import BODY_CUT
from headgate.web.replies import HttpReply
from headgate.wiring import Services


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
        """Bind the resource server to this call."""
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
        """Read the whole body."""
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
