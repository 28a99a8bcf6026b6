"""Run a tool: read its arguments, read through the port, and turn every result or failure into an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from headgate.errors import HeadgateError, InvalidRequest, ToolHandlerFailed
from headgate.mcp.serve.arguments import (
    aggregate_query,
    list_query,
    record_query,
    schema_query,
    search_query,
    window_query,
)
from headgate.mcp.serve.errors import failed, refused
from headgate.mcp.serve.fetch import fetch
from headgate.mcp.serve.field import read_record_field
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.records import aggregate, query_records
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.schema import schema
from headgate.mcp.serve.search import search
from headgate.model.ids import is_unicode
from headgate.telemetry import get_logger

Arguments = Mapping[str, Any]
#: Gives the reader of one call, which is named for the log.
ReaderOfCall = Callable[[str], Awaitable[Reader]]

_LONE_SURROGATE = InvalidRequest("The arguments hold an unpaired UTF-16 surrogate.")
_Handler = Callable[[Reader, Arguments], Awaitable[Outcome]]


def _schema(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    query, cursor = schema_query(arguments)
    return schema(reader, query, cursor)


def _query_records(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    return query_records(reader, list_query(arguments))


def _aggregate(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    query, cursor = aggregate_query(arguments)
    return aggregate(reader, query, cursor)


def _search(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    return search(reader, search_query(arguments))


def _fetch(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    query, asked_id = record_query(arguments, reader.handles)
    return fetch(reader, query, asked_id)


def _read_record_field(reader: Reader, arguments: Arguments) -> Awaitable[Outcome]:
    return read_record_field(reader, window_query(arguments, reader.handles))


#: The tools in the order in which they are listed.
TOOL_HANDLERS: Mapping[str, _Handler] = {
    "schema": _schema,
    "query_records": _query_records,
    "aggregate": _aggregate,
    "search": _search,
    "fetch": _fetch,
    "read_record_field": _read_record_field,
}


async def call(name: str, arguments: Arguments, reader: Reader) -> Outcome:
    """Call one of the six tools; a failure is an outcome as well."""
    try:
        # The arguments are read when this returns; the port has not been called yet.
        running = TOOL_HANDLERS[name](reader, arguments)
    except HeadgateError as error:
        return refused(error, name)
    try:
        return await running
    except HeadgateError as error:
        return failed(error, name, reader.provider_url, reader.request_id)
    except Exception:  # noqa: BLE001 - a client learns that it failed, and nothing more
        get_logger().exception("tool_failed", tool=name)
        return failed(ToolHandlerFailed(), name, reader.provider_url, reader.request_id)


async def call_with(reader_of: ReaderOfCall, name: str, arguments: Arguments) -> Outcome:
    """Call a tool with a reader that is made for this call; failing to make it is an outcome as well."""
    if not is_text(arguments):
        return refused(_LONE_SURROGATE, name)
    try:
        reader = await reader_of(f"mcp:{name}")
    except HeadgateError as error:
        return failed(error, name, "")
    return await call(name, arguments, reader)


def is_text(value: Any) -> bool:
    """Return whether every text in a value can be encoded; JSON can hold lone surrogates, which cannot."""
    if isinstance(value, str):
        return is_unicode(value)
    if isinstance(value, dict):
        return all(is_text(key) and is_text(member) for key, member in cast("Arguments", value).items())
    return not isinstance(value, list) or all(is_text(item) for item in cast("list[Any]", value))
