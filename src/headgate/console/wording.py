"""The log in words: what an agent did, and why it was refused."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.audit.journal import Disclosure
from headgate.errors import all_errors, default_message
from headgate.model.ids import ConnectionId

_MCP = "mcp:"
#: The owner looks at what an agent sees.
_LOOK = "look:"
#: A client called an operation of a remote server.
_CALL = "call "
#: What each tool and route of agents is for; what is not here stands as it is logged.
_DID = {
    "search": "searched",
    "GET /v1/search": "searched",
    "GET /v1/search/semantic": "searched",
    "GET /v1/search/hybrid": "searched",
    "query_records": "listed records",
    "GET /v1/streams/{stream}/records": "listed records",
    "fetch": "opened a record",
    "GET /v1/streams/{stream}/records/{id}": "opened a record",
    "read_record_field": "read a long text",
    "GET /v1/streams/{stream}/records/{id}/field-window": "read a long text",
    "aggregate": "counted or added up",
    "GET /v1/streams/{stream}/aggregate": "counted or added up",
    "schema": "asked what there is",
    "GET /v1/schema": "asked what there is",
    "GET /v1/connectors": "asked what there is",
    "GET /v1/streams": "asked what there is",
    "GET /v1/streams/{stream}": "asked what there is",
    "GET /v1/blobs/{blob_id}": "opened a file",
    "POST /mcp": "called",
    "console": "looked in the console",
}
_REFUSED = {
    "MCP_TOOL_ERROR": "the tool reported an error",
    "grant_stream_not_allowed": "it may not read that",
    "field_not_granted": "it may not read that field",
    "unknown_field": "there is no such field",
    "not_found": "there is no such record, or it may not read it",
    "connection_not_found": "there is no such source, or it may not read it",
    "ambiguous_connection": "several sources have that; it had to choose one",
    "insufficient_scope": "its permission does not cover that",
    "grant_time_range_exceeded": "it may not read records of that time",
    "grant_revoked": "you had ended its permission",
    "package_revoked": "you had ended its permission",
    "grant_expired": "its permission had ended",
    "grant_consumed": "its permission was for one read",
    "rate_limit_exceeded": "it had read as much as it may in a day, or asked too often",
}

_DEFAULTS = {error.code: default_message(error).rstrip(".") for error in all_errors()}


def did_words(via: str) -> str:
    """Say what a tool or route does."""
    if via.startswith(_CALL):
        return f"called {via.removeprefix(_CALL)}"
    name, _, agent = via.removeprefix(_MCP).removeprefix(_LOOK).partition(" as ")
    did = _DID.get(name, name)
    return f"{did} as {agent}" if agent else did


def refusal_words(code: str) -> str:
    """Say why a read was refused."""
    default = _DEFAULTS.get(code, code)
    return _REFUSED.get(code) or default[:1].lower() + default[1:]


def asked_words(event: Disclosure, sources: Mapping[ConnectionId, str]) -> str:
    """Say what a read asked for, of what the log has of it; empty where it has nothing."""
    asked = event.asked
    if not asked:
        return ""
    where = "" if asked.connection_id is None else sources.get(asked.connection_id, "a source that is gone")
    return " of ".join(filter(None, (", ".join(asked.fields), ", ".join(asked.streams), where)))


def is_refused(event: Disclosure) -> bool:
    """Return whether a read was refused."""
    return event.is_refused


#: The functions that templates may use by name.
FILTERS = (did_words, refusal_words, asked_words, is_refused)
