"""The addresses of the REST interface: each endpoint of the list bound to the function that answers it."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.errors import Unsupported, UnsupportedVersion
from headgate.model.query import SearchMode
from headgate.reading.port import ReadAnswer
from headgate.web.addresses import Address, Handler, WebRequest
from headgate.web.admission import Callers
from headgate.web.api import owner, reads
from headgate.web.api.calls import Call, EndpointHandler
from headgate.web.api.definitions import ENDPOINTS, Endpoint, Who
from headgate.web.api.params import read_params
from headgate.web.context import RequestContext
from headgate.web.replies import PDPP_VERSION, HttpReply

_HANDLERS: Mapping[str, EndpointHandler] = {
    "schema": reads.schema,
    "connectors": reads.connectors,
    "streams": reads.streams,
    "stream": reads.stream,
    "records": reads.records,
    "record": reads.record,
    "window": reads.window,
    "aggregate": reads.aggregate,
    "search": reads.search,
    "blob": reads.blob,
    "declare": owner.declare,
    "connect": owner.connect,
    "connection": owner.connection,
    "rename": owner.rename,
    "disconnect": owner.disconnect,
    "ingest": owner.ingest,
    "remove": owner.remove,
    "keep_blob": owner.keep_blob,
    "state": owner.state,
    "put_state": owner.put_state,
}
_CALLERS = {Who.READER: Callers.READERS, Who.OWNER: Callers.OWNER}


def api_addresses() -> tuple[Address, ...]:
    """Make the rows of the table that belong to the REST interface."""
    defined = (
        Address(
            endpoint.method,
            endpoint.path,
            _CALLERS[endpoint.who],
            _bound(endpoint, _HANDLERS[endpoint.id]),
            headers=(PDPP_VERSION,),
            check=_check_version,
            endpoint=endpoint,
        )
        for endpoint in ENDPOINTS
    )
    # Part of the protocol, but not offered: clients learn that, and which search to use.
    absent = (
        Address("GET", f"/v1/search/{mode}", Callers.READERS, _no_such_search, headers=(PDPP_VERSION,))
        for mode in (SearchMode.SEMANTIC, SearchMode.HYBRID)
    )
    return (*defined, *absent)


async def _no_such_search(request: WebRequest) -> HttpReply:
    raise Unsupported(f"This server has no {request.scope['path'].strip('/').rpartition('/')[2]} search.")


def _bound(endpoint: Endpoint, handler: EndpointHandler) -> Handler:
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
            services=request.services,
        )
        answered = await handler(call)
        return HttpReply(answered.content) if isinstance(answered, ReadAnswer) else answered

    return answer


def _check_version(context: RequestContext) -> None:
    _, version = PDPP_VERSION
    requested = context.headers.values.get(b"pdpp-version")
    if requested is not None and requested != version:
        raise UnsupportedVersion(f"This server speaks PDPP-Version {version.decode()}.", param="PDPP-Version")
