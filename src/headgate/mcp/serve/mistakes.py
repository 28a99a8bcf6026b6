"""Arguments that a tool does not take, refused with the name of the argument or the values that it does take."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.errors import InvalidExpand, InvalidFilter, InvalidRequest
from headgate.mcp.serve.tools import TOOLS

_WHERE = re.compile(r"`\$\.(\w+)")
_FIELD = re.compile(r"field `([^`]*)`")
#: An unknown name is repeated up to this length: it comes from the caller and can be of any size.
_NAME_CHARS = 64
#: The values of each argument that takes a few, as the input schemas list them.
_ALLOWED: Mapping[str, Sequence[str]] = {
    name: schema["enum"]
    for tool in TOOLS
    for name, schema in tool["inputSchema"]["properties"].items()
    if "enum" in schema
}
#: Names that models use for an argument, and what they mean; the first that the tool has is meant.
_MEANT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("text", "search", "words", "term", "keywords"), ("q",)),
    **dict.fromkeys(("query",), ("q", "filter")),
    **dict.fromkeys(("q",), ("filter",)),
    **dict.fromkeys(("stream", "stream_name", "stream_names", "name", "table"), ("streams", "stream", "id")),
    **dict.fromkeys(("streams",), ("stream",)),
    **dict.fromkeys(("where", "filters", "conditions"), ("filter",)),
    **dict.fromkeys(("since", "after", "from", "updated_since"), ("changes_since", "filter")),
    **dict.fromkeys(("page_size", "max_results", "top_k", "n", "size"), ("limit", "limit_chars")),
    **dict.fromkeys(("page_token", "next_cursor", "page", "offset"), ("cursor", "offset_chars")),
    **dict.fromkeys(("connector_instance_id", "connection", "connections", "account"), ("connection_id",)),
    **dict.fromkeys(("record_id", "record", "key", "uri", "url", "ids"), ("id",)),
    **dict.fromkeys(("field", "path", "select", "columns", "field_path"), ("field_path", "fields", "field")),
    **dict.fromkeys(("order_by", "sort_by"), ("sort",)),
    **dict.fromkeys(("interval", "bucket"), ("granularity",)),
    **dict.fromkeys(("timezone", "tz"), ("time_zone",)),
    **dict.fromkeys(("function", "op", "aggregation"), ("metric",)),
}


def mistake(message: str, arguments: Mapping[str, Any], names: Sequence[str]) -> InvalidRequest:
    """Make the refusal of arguments from the message of the check that they failed."""
    unknown = next((name for name in arguments if name not in names), None)
    if unknown is not None and message.startswith("Object contains unknown field"):
        return _unknown(unknown, names)
    named = _WHERE.search(message) or _FIELD.search(message)
    param = str(named[1]) if named else ""
    if param in _ALLOWED and message.startswith("Invalid enum value"):
        return InvalidRequest(
            f"{message[: _NAME_CHARS * 2]}.",
            param=param,
            hint=f"{param} is one of {', '.join(_ALLOWED[param])}.",
        )
    kinds = {"filter": InvalidFilter, "expand_limit": InvalidExpand, "expand": InvalidExpand}
    return kinds.get(param, InvalidRequest)(f"{message}.", param=param or None)


def _unknown(name: str, names: Sequence[str]) -> InvalidRequest:
    shown = name[:_NAME_CHARS]
    meant = [one for one in _MEANT.get(name.casefold(), ()) if one in names]
    close = meant or difflib.get_close_matches(shown, names, n=1)
    hint = f"Use {close[0]} instead." if close else f"The arguments are {', '.join(names)}."
    return InvalidRequest(f"There is no argument '{shown}'.", param=shown, hint=hint)
