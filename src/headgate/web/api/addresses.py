"""The addresses of the REST interface: each endpoint of the list bound to the function that answers it."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.reading.port import WINDOW_TYPES
from headgate.web.admission import Callers, Sharing
from headgate.web.api import owner, reads
from headgate.web.api.calls import EndpointHandler, bound, check_version
from headgate.web.api.definitions import ENDPOINTS, Who
from headgate.web.front import Address
from headgate.web.replies import PDPP_VERSION, Header

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
    "semantic_search": reads.semantic_search,
    "hybrid_search": reads.hybrid_search,
    "blob": reads.blob,
    "declare": owner.declare,
    "connect": owner.connect,
    "connection": owner.connection,
    "rename": owner.rename,
    "disconnect": owner.disconnect,
    "ingest": owner.ingest,
    "invalid_records": owner.invalid_records,
    "remove": owner.remove,
    "keep_blob": owner.keep_blob,
    "import_file": owner.import_file,
    "import_progress": owner.import_progress,
    "state": owner.state,
    "put_state": owner.put_state,
}
#: A client asks for a window without naming a field to learn of these types, so they are in refusals too.
_MORE_HEADERS: Mapping[str, tuple[Header, ...]] = {"window": ((WINDOW_TYPES.encode(), b"text, json"),)}
#: Agents cite records by their address here; for the owner's browser that is a page of the console.
_PAGES = {"record": "/console/records/{stream}/{id}"}
_CALLERS = {Who.READER: Callers.READERS, Who.OWNER: Callers.OWNER}


def api_addresses() -> tuple[Address, ...]:
    """Make the rows of the table that belong to the REST interface."""
    return tuple(
        Address(
            endpoint.method,
            endpoint.path,
            _CALLERS[endpoint.who],
            bound(endpoint, _HANDLERS[endpoint.id]),
            headers=(PDPP_VERSION, *_MORE_HEADERS.get(endpoint.id, ())),
            check=check_version,
            endpoint=endpoint,
            sharing=Sharing.LISTED,
            page=_PAGES.get(endpoint.id, ""),
        )
        for endpoint in ENDPOINTS
    )
