"""See as an agent sees: the owner runs a tool under a client's grants, and looks at the exact answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.errors import InvalidArgument
from headgate.mcp.serve.call import TOOL_HANDLERS, call_with
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import Outcome
from headgate.model.grant import Access
from headgate.model.ids import RequestId
from headgate.model.reads import READS, arguments_of
from headgate.reading.home import ReadableHome, ReadContext
from headgate.reading.local import LocalResourceServer

#: What a word without a name is taken for.
_MAIN = {
    "schema": "stream",
    "query_records": "stream",
    "aggregate": "stream",
    "search": "query",
    "fetch": "id",
}


async def look(
    services: ReadableHome, access: Access, tool: str, arguments: Mapping[str, Any], provider_url: str
) -> Outcome:
    """Run a tool as a client would be answered; the log names it as the owner's own look."""
    _refuse_unknown(tool)

    async def reader_of(_via: str) -> Reader:
        request_id = RequestId(f"req_{secrets.token_hex(8)}")
        via = f"look:{tool} as {access.client_id}"
        context = ReadContext(access, request_id, via, is_look=True)
        return Reader(
            LocalResourceServer(services, context), HandleMaker(services.sealer), provider_url, request_id
        )

    return await call_with(reader_of, tool, arguments)


def read_arguments(tool: str, words: Sequence[str]) -> dict[str, Any]:
    """Read arguments as a person types them: one JSON object, or words such as ``limit=5``.

    A word without a name is the main argument: the words to search for, the record to fetch, the stream.

    Raises:
        InvalidArgument: they cannot be read, or there is no such tool.
    """
    _refuse_unknown(tool)
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _json_object(words[0])
    read = next(read for read in READS if read.tool == tool)
    # Also those that are not listed.
    properties = {argument.name: argument.schema for argument in arguments_of(read)}
    arguments: dict[str, Any] = {}
    for word in words:
        name, is_named, value = word.partition("=")
        if not is_named or name not in properties:
            if tool not in _MAIN or _MAIN[tool] in arguments:
                raise InvalidArgument(
                    f"'{word}' is no argument of {tool}.", hint=f"Its arguments are {', '.join(properties)}."
                )
            name, value = _MAIN[tool], word
        arguments[name] = _value(properties[name], value)
    return arguments


def _refuse_unknown(tool: str) -> None:
    if tool not in TOOL_HANDLERS:
        raise InvalidArgument(
            f"There is no tool '{tool}'.", param="tool", hint=f"The tools are {', '.join(TOOL_HANDLERS)}."
        )


def _json_object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidArgument(
            "The arguments are not JSON.", hint='Write them like {"query": "roof"}.'
        ) from None
    if not isinstance(document, dict):
        raise InvalidArgument("The arguments are no JSON object.")
    return document  # pyright: ignore[reportUnknownVariableType] - what json.loads gives


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Read a value: a text where the tool takes one, else JSON if it is any."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
