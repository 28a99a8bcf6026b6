"""An agent that has only text: it finds its way with regular expressions, and makes printed calls as they are printed.

It reads the descriptions of tools and the texts of answers. JSON that is printed is decoded, as a model reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.field_lines import value_of, values_in_lines

QUOTED = r'"(?:[^"\\]|\\.)*"'
NAME = rf"(?:{QUOTED}|[\w.-]++)"
_CONNECTION = re.compile(rf"\{{connection_id:({NAME})(?:,display_name:({QUOTED}))?\}}|more:\d+|({NAME})")
_FIELD = re.compile(rf"more:\d+|({NAME})(?:\[([^\]]*)\])?")
_LIST = rf"(?:\{{connection_id:{NAME}(?:,display_name:{QUOTED})?\}}|more:\d+|{NAME}|\|)+"
_FIELDS = rf"(?:as connection_id:{NAME}|(?:{NAME}(?:\[[^\]]*\])?|more:\d+|;)+)"
_HEAD = rf"^stream name=({QUOTED}) connector_key=({QUOTED})"
_LINE = rf"(?: span=\S+)?(?: (?:time|title|who|amount)={NAME}(?:,{NAME})*)*(?: times={QUOTED})?"
_SOURCE = re.compile(
    rf"{_HEAD}(?: display_name={QUOTED})?(?: records=\d+)?{_LINE} connections=({_LIST})(?: fields=({_FIELDS}))?(?= |$)"
)
_ROW = re.compile(_HEAD)
_EMPTY = re.compile(rf"name=({QUOTED}) connector_key=")
_PART = re.compile(rf"{_HEAD} (connections|fields) from \d+ of \d+: (.*)$")
_INDEX = re.compile(rf"^stream_index .*?streams=((?:{NAME}|\|)+)$")
_AGGREGATION = re.compile(rf"([\w|]+)=({NAME}(?:,{NAME})*)")
_CALL = re.compile(r" schema args=(\{.*\})$")
_RECORD = re.compile(r"^\d+\. .* \| id=(.*)$", re.MULTILINE)
_HIT = re.compile(r"^   id=(.*)$", re.MULTILINE)
_LEFT = re.compile(
    r"(\d+) more of this page are not printed.*?repeat the call (without cursor|with the same cursor) "
    r"and with limit=(\d+)"
)
_SMALLER = re.compile(r"Ask for a smaller limit, such as limit=(\d+)")
_NEXT = re.compile(rf"next_cursor=({QUOTED})")
_BOOKMARK = re.compile(rf"next_changes_since=({QUOTED})")
_WINDOW = re.compile(r"^next read_record_field args=(\{.*\})$", re.MULTILINE)
_FENCE = re.compile(r"^--- (\w+) record text[^\n]*\n(.*)\n--- \1$", re.MULTILINE | re.DOTALL)
_GROUP = re.compile(
    rf"^({QUOTED}|[^\":\n]+?)(?: \(reads on with cursor={QUOTED}\))?(?: @ ({QUOTED}|\S+))? (-?[\d.]+)(?: of \d+ records.*)?$",
    re.MULTILINE,
)
_MORE_GROUPS = re.compile(
    rf"^\+ \d+ groups that are not printed: repeat the call with cursor=({QUOTED})$", re.MULTILINE
)
_ONE = re.compile(r": (-?[\d.]+|null)(?: ·|$)", re.MULTILINE)
ELLIPSIS = "…"


class Session(Protocol):
    """What the agent talks to."""

    def descriptions(self) -> dict[str, str]: ...
    def call(self, tool: str, arguments: dict[str, Any]) -> str: ...


def named(text: str) -> str:
    """Read a name as it is printed: quoted, or bare."""
    return json.loads(text) if text.startswith('"') else text


def is_error(text: str) -> bool:
    return text.startswith('{"error":')


@dataclass
class Source:
    """What the text says of one source of a stream: its connections, and its fields."""

    stream: str
    connector_key: str
    #: The names of connections by their ids; empty where none is printed.
    connections: dict[str, str] = field(default_factory=dict[str, str])
    #: The flags of fields by their names; empty where none are printed.
    fields: dict[str, str] = field(default_factory=dict[str, str])
    #: The fields that can be used in each kind of computation.
    aggregations: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    #: A connection that has the same fields.
    same_as: str | None = None


@dataclass
class Reading:
    """What the agent knows of a record after it made every printed call."""

    #: Values by field.
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    #: What the document says without the name of a field: its id, its title and its text.
    unnamed: list[str] = field(default_factory=list[str])
    #: URIs of files by field.
    files: dict[str, str] = field(default_factory=dict[str, str])
    #: Calls that were made, none of which may be made twice.
    made: set[str] = field(default_factory=set[str])


class TextAgent:
    """An agent at work in one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def ask(self, tool: str, **arguments: Any) -> str:
        """Make a call that has to succeed."""
        text = self.session.call(tool, arguments)
        assert not is_error(text), (tool, arguments, text[:2_000])
        return text

    def streams(self) -> set[str]:
        """Name every stream."""
        found: set[str] = set()
        waiting = [{}]
        while waiting:
            for line in self.ask("schema", **waiting.pop()).splitlines():
                if row := _ROW.search(line):
                    found.add(named(row[1]))
                if line.startswith("no records: "):
                    found |= {named(one) for one in _EMPTY.findall(line)}
                if index := _INDEX.search(line):
                    found |= {named(one) for one in re.findall(NAME, index[1])}
                waiting += [json.loads(call) for call in _CALL.findall(line)]
        return found

    def sources(self, stream: str) -> list[Source]:
        """Describe every source of a stream, with all its connections and fields."""
        found: list[Source] = []
        self._describe(found, {"stream": stream})
        by_connection = {one: source for source in found for one in source.connections}
        for source in found:
            if source.same_as is not None:
                source.fields |= by_connection[source.same_as].fields
                source.aggregations |= by_connection[source.same_as].aggregations
        return found

    def _describe(self, found: list[Source], arguments: dict[str, Any]) -> None:
        """Read a text line by line; a printed call is about the source that is printed above it."""
        for line in self.ask("schema", **arguments).splitlines():
            if part := _PART.search(line):
                (_add_connections if part[3] == "connections" else _add_fields)(found[-1], part[4])
            elif source := _SOURCE.search(line):
                found.append(Source(named(source[1]), named(source[2])))
                _add_connections(found[-1], source[3])
                if source[4]:
                    _add_fields(found[-1], source[4])
                for kinds, fields in _AGGREGATION.findall(line.rpartition(" aggregations=")[2]):
                    for kind in kinds.split("|"):
                        found[-1].aggregations[kind] = {named(one) for one in re.findall(NAME, fields)}
            for call in _CALL.findall(line):
                self._describe(found, json.loads(call))

    def pages(self, tool: str, **arguments: Any) -> list[str]:
        """Follow the printed advice until there is no more, and give the ids of the pages that were whole."""
        seen: list[str] = []
        while True:
            text = self.session.call(tool, arguments)
            if is_error(text):
                smaller = int(_SMALLER.search(text)[1])
                assert smaller < arguments.get("limit", 25), (tool, arguments, text)
                arguments["limit"] = smaller
                continue
            if left := _LEFT.search(text):
                assert (left[2] == "with the same cursor") == ("cursor" in arguments)
                assert int(left[3]) < arguments.get("limit", 25)
                arguments["limit"] = int(left[3])
                continue
            seen += ids_in(text)
            following = _NEXT.search(text)
            if following is None:
                return seen
            arguments["cursor"] = json.loads(following[1])

    def changes(self, since: str, **arguments: Any) -> tuple[list[str], str]:
        """Read what changed since a bookmark, page by page, and the next bookmark."""
        seen: list[str] = []
        arguments["changes_since"] = since
        while True:
            text = self.ask("query_records", **arguments)
            seen += _RECORD.findall(text)
            following = _NEXT.search(text)
            if following is None:
                return seen, json.loads(_BOOKMARK.search(text)[1])
            arguments["cursor"] = json.loads(following[1])

    def read(self, record_id: str) -> Reading:
        """Open a record, and make every call that its document offers."""
        found = Reading()
        self._fetch(found, {"id": record_id})
        return found

    def _fetch(self, found: Reading, arguments: dict[str, Any]) -> None:
        self._note(found, "fetch", arguments)
        document = json.loads(self.ask("fetch", **arguments))
        metadata: dict[str, Any] = document["metadata"]
        ladder = metadata.pop("content_ladder", {})
        values = values_in(document)
        asked = arguments.get("fields", [])
        if len(asked) == 1 and asked[0] not in values:
            values[asked[0]] = document["text"]
        found.values |= values
        found.unnamed += [document["id"], document["title"], document["text"]]
        for kind, rungs in ladder.items():
            for rung in rungs if isinstance(rungs, list) else ():
                self._climb(found, kind, rung, document["text"])

    def _climb(self, found: Reading, kind: str, rung: dict[str, Any], text: str) -> None:
        """Make the call of one entry of a ladder."""
        path, read = rung.get("field_path"), rung.get("read")
        if read is None:
            found.files[path], found.values[path] = rung["resource_uri"], rung
        elif read["tool"] == "fetch":
            if path is not None:
                found.values.pop(path, None)
            self._fetch(found, read["args"])
        else:
            begun = found.values.get(path, text)
            whole = self._window(found, read["args"], begun)
            found.values[path] = json.loads(whole) if kind == "json_fields" else whole

    def _window(self, found: Reading, arguments: dict[str, Any], begun: str) -> str:
        """Read a field on from where it was begun, window after window."""
        start = arguments.get("offset_chars", 0)
        pieces = [begun.removesuffix(ELLIPSIS)] if start else []
        assert sum(map(len, pieces)) == start
        following: dict[str, Any] | None = arguments | {"limit_chars": 16_384}
        while following is not None:
            self._note(found, "read_record_field", following)
            text = self.ask("read_record_field", **following)
            pieces.append(_FENCE.search(text)[2])
            call = _WINDOW.search(text)
            following = json.loads(call[1]) if call else None
        return "".join(pieces)

    @staticmethod
    def _note(found: Reading, tool: str, arguments: dict[str, Any]) -> None:
        call = json.dumps([tool, arguments])
        assert call not in found.made, f"in a circle: {call}"
        found.made.add(call)

    def number(self, **arguments: Any) -> float:
        """Ask for one number."""
        return float(_ONE.search(self.ask("aggregate", **arguments))[1])

    def groups(self, **arguments: Any) -> dict[tuple[Any, ...], float]:
        """Ask for groups, and read all that are printed or offered."""
        found: dict[tuple[Any, ...], float] = {}
        arguments = {"limit": 100, **arguments}
        while True:
            text = self.ask("aggregate", **arguments)
            for key, time, number in _GROUP.findall(text):
                place = (value_of(key), value_of(time)) if time else (value_of(key),)
                assert place not in found
                found[place] = float(number)
            following = _MORE_GROUPS.search(text)
            if following is None:
                assert re.search(r" · all \d+ groups?", text.splitlines()[0])
                return found
            arguments["cursor"] = json.loads(following[1])


def ids_in(text: str) -> list[str]:
    """Find the ids of a page or of a search."""
    return [*_RECORD.findall(text), *_HIT.findall(text)]


def values_in(document: dict[str, Any]) -> dict[str, Any]:
    """Find the values that a document names: in its metadata, and in the lines of its text."""
    metadata = document["metadata"]
    reserved = metadata.pop("fields", {})
    return {**metadata, **reserved, **values_in_lines(document["text"])}


def _entries(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return (one for one in pattern.finditer(text) if not one[0].startswith("more:"))


def _add_connections(source: Source, text: str) -> None:
    for one in _entries(_CONNECTION, text):
        label = named(one[2]) if one[2] else ""
        connection = named(one[1] or one[3])
        source.connections[connection] = label or source.connections.get(connection, "")


def _add_fields(source: Source, text: str) -> None:
    if same := re.fullmatch(rf"as connection_id:({NAME})", text):
        source.same_as = named(same[1])
        return
    for one in _entries(_FIELD, text):
        path = named(one[1])
        source.fields[path] = one[2] or source.fields.get(path, "")
