"""What the agent does after an error: it finds the remedy in the text with regular expressions, and calls again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.journeys.agent import QUOTED, TextAgent, ids_in, is_error

Arguments = dict[str, Any]
_Found = re.Match[str]
_ATTEMPTS = 4


def recovered(agent: TextAgent, tool: str, arguments: Arguments) -> str:
    """Call until the answer is no error, each time with the remedy that the last text names."""
    text = agent.session.call(tool, arguments)
    assert is_error(text), text
    for _ in range(_ATTEMPTS):
        tool, arguments = _remedied(agent, tool, arguments, text)
        text = agent.session.call(tool, arguments)
        if not is_error(text):
            return text
    raise AssertionError(text)


def _remedied(agent: TextAgent, tool: str, arguments: Arguments, text: str) -> tuple[str, Arguments]:
    for pattern, remedy in _REMEDIES.items():
        if found := re.search(pattern, text):
            changed = remedy(agent, dict(arguments), found)
            changed_tool = changed.pop("tool", tool)
            assert (changed_tool, changed) != (tool, arguments), text
            return changed_tool, changed
    raise AssertionError(f"no remedy in {text}")


def _rename(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    value = arguments.pop(found[1])
    return {**arguments, found[2]: [value] if found[2] in {"streams", "fields"} else value}


def _set(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {**arguments, found[1]: int(found[2]) if found[2].isdigit() else found[2]}


def _set_number(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {**arguments, found[2]: int(found[1])}


def _drop(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {name: value for name, value in arguments.items() if name != found[1]}


def _only(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {found[1]: arguments[found[1]]}


def _choose_connection(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {**arguments, "connection_id": json.loads(found[1])}


def _choose_line(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {**arguments, "connection_id": found[1].removeprefix('"')}


def _choose_field(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    """Put a field that can be used into the place of the one that cannot."""
    given = arguments[found[1]]
    return {
        **arguments,
        found[1]: {found[2]: next(iter(given.values()))} if isinstance(given, dict) else found[2],
    }


def _read_from(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    arguments.pop("q")
    return {**arguments, found[1]: int(found[2])}


def _ask_for_fields(agent: TextAgent, arguments: Arguments, _: _Found) -> Arguments:
    # A handle does not show its stream, which the agent knows from the call that printed it.
    found = re.search(r"(?:^|/)(\w+):(?!//)", arguments.get("id", ""))
    stream = arguments.get("stream") or (found[1] if found else "texts")
    field = min(agent.sources(stream)[0].fields)
    return {**arguments, **({"field_path": field} if "field_path" in arguments else {"fields": [field]})}


def _ask_for_streams(agent: TextAgent, arguments: Arguments, _: _Found) -> Arguments:
    return {**arguments, "stream": min(agent.streams())}


def _ask_for_connection(agent: TextAgent, arguments: Arguments, _: _Found) -> Arguments:
    return {**arguments, "connection_id": min(agent.sources("texts")[0].connections)}


def _ask_for_id(agent: TextAgent, arguments: Arguments, _: _Found) -> Arguments:
    asked = {name: value for name, value in arguments.items() if name in {"field_path", "fields"}}
    return {**asked, "id": ids_in(agent.ask("query_records", stream="texts"))[0]}


def _list_instead(_: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {"tool": found[1], "stream": arguments["stream"], found[2]: found[3]}


def _typed(_: TextAgent, arguments: Arguments, _found: _Found) -> Arguments:
    return {**arguments, "filter": {"label": arguments["filter"]}}


def _name_stream(agent: TextAgent, arguments: Arguments, found: _Found) -> Arguments:
    return {**arguments, found[1]: ["texts"]}


#: What to do by what the text says; the first that fits is done.
_REMEDIES: Mapping[str, Callable[[TextAgent, Arguments, _Found], Arguments]] = {
    r"There is no argument '(\w+)'\..*\"hint\":\"Use (\w+) instead\.": _rename,
    r"\"hint\":\"(\w+) is one of (\w+)": _set,
    r"Expected `int` <= (\d+) - at `\$\.(\w+)`": _set_number,
    r"Ask for a smaller limit, such as (limit)=(\d+)": _set,
    r"Pass (\w+) alone\.": _only,
    rf"one connection_id of available_connections.*?\"available_connections\":\[\{{\"connection_id\":({QUOTED})": (
        _choose_connection
    ),
    r"one connection_id of available_connections.*?\"available_connections\":\[(\"[\w-]+)": _choose_line,
    r"Pass (changes_since) '(\w+)'": _set,
    r"In (\w+), these fields have [^:]+: (\w+)": _choose_field,
    r"Start again without a (cursor)": _drop,
    r"leave (\w+) out": _drop,
    r"Call schema for the stream to see the fields": _ask_for_fields,
    r"Call schema to see the streams|param\":\"stream\".*Stream name from schema": _ask_for_streams,
    r"Call schema to see the connections": _ask_for_connection,
    r"Read the field from (\w+) (\d+)": _read_from,
    r"Pass an id exactly as|Use the id 'connection_id/|Use an id from an answer|Pass id and field_path": _ask_for_id,
    r"List its records with (\w+); (\w+)=(\w+)": _list_instead,
    r"needs a (granularity): (\w+)": _set,
    r"(expand)\",\"hint\":\"Expand only relations that schema marks as usable": _drop,
    r"(field): [^.]*; not with count": _drop,
    r"\"hint\":\"Pass (streams) with the one stream": _name_stream,
    r"Pass filter as a typed object such as": _typed,
}
