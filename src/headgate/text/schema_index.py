"""The index of a schema: each connector with its connections, a line for each stream, and the names of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.model.wire import ConnectorBody, GrantedConnection, SchemaBody
from headgate.text.schema import (
    NOTHING,
    SchemaPlace,
    SchemaRow,
    add_records,
    connection_text,
    connectors_of,
    granted_of,
    heading,
    key_of,
    label_of,
    name_of,
    record_facts,
    rows_of,
    span_of,
)
from headgate.text.writing import (
    SCHEMA_INDEX_TEXT,
    SCHEMA_NAMES_TEXT,
    Line,
    compose,
    fitting,
    json_text,
    size,
)

_NEXT_INDEX = (
    "next: schema(stream[, connection_id]) lists connections, fields, filters, sort, expand and aggregations"
)
_UNSTATED = " (zone of times and coverage: unknown where not stated)"
_ROWS = 50
_CONNECTIONS = 8


def index_text(document: SchemaBody, arguments: Mapping[str, str] = NOTHING, first: int = 0) -> str:
    """Write the index of everything granted: each connector with its connections, each stream, and how to go on.

    ``asked`` are the arguments of the call; with ``first`` only names are listed, from that one on.
    """
    rows = list(rows_of(document))
    lines = [Line(f"{heading(document, rows)}{_UNSTATED if rows else ''}")]
    named = list(dict.fromkeys(name_of(stream) for _, stream in rows))
    if first:
        return compose(
            [*lines, *_names(named, len(rows), arguments, first), Line(_NEXT_INDEX)], SCHEMA_INDEX_TEXT
        )
    printed = [*_connector_lines(document), *_stream_lines(rows[:_ROWS])]
    if len(rows) > _ROWS:
        lines += _stream_indexes(document, named, len(rows), arguments)
        printed.append(Line(f"more_streams={len(rows) - _ROWS} (see stream_index)"))
    elif sum(size(line.text) + 1 for line in [*lines, *printed]) > SCHEMA_INDEX_TEXT - size(_NEXT_INDEX):
        # Few streams with long names can also be too much for their rows: then the names alone go in.
        lines += _names(named, len(rows), arguments)
    return compose([*lines, *printed, Line(_NEXT_INDEX)], SCHEMA_INDEX_TEXT)


def _connector_lines(document: SchemaBody) -> list[Line]:
    """Write each connector once, with its connections, whatever number of grants it is in."""
    connections: dict[str, list[GrantedConnection]] = {}
    labels: dict[str, str] = {}
    for connector in connectors_of(document):
        known = connections.setdefault(key_of(connector), [])
        labels.setdefault(key_of(connector), label_of(connector))
        streams = connector.get("streams", [])
        granted = connector.get("granted_connections") or [
            entry for stream in streams for entry in granted_of(connector, stream)
        ]
        known += [connection for connection in granted if connection not in known]
    return [
        Line(f"connector connector_key={key}{labels[key]} connections={_first_connections(granted)}", 1)
        for key, granted in connections.items()
    ]


def _stream_lines(rows: Sequence[SchemaRow]) -> list[Line]:
    """Write a line for each stream that has records, and one that names the others."""
    lines: list[Line] = []
    empty: list[str] = []
    for connector, stream in _joined(rows):
        if stream.get("record_count") == 0:
            empty.append(f"name={json_text(stream.get('name'))} connector_key={key_of(connector)}")
            continue
        facts = [f"stream name={json_text(stream.get('name'))} connector_key={key_of(connector)}"]
        facts += record_facts(stream)
        own = stream.get("granted_connections")
        facts += [f"connections={_first_connections(own)}"] if own else []
        lines.append(Line(" ".join(facts), 2))
    return [*lines, *([Line(f"no records: {'; '.join(empty)}", 2)] if empty else [])]


def _joined(rows: Sequence[SchemaRow]) -> list[SchemaRow]:
    """Add up a stream that one connector has in several grants."""
    joined: dict[str, SchemaRow] = {}
    for connector, stream in rows:
        key = json_text([connector.get("connector_key"), stream.get("name")])
        if key not in joined:
            joined[key] = connector, stream.copy()
            continue
        first = joined[key][1]
        add_records(first, stream)
        # What each has is no longer that of one grant: the connector's line has every connection.
        first.pop("granted_connections", None)
        first.pop("connection_id", None)
        spans = [span for span in (span_of(first), span_of(stream)) if span]
        if spans:
            first["span"] = [min(span[0] for span in spans), max(span[1] for span in spans)]
    return list(joined.values())


def _stream_indexes(
    document: SchemaBody, named: Sequence[str], total: int, arguments: Mapping[str, str]
) -> list[Line]:
    """Name every stream: by connector, or all together where that would be too much."""
    each = [_stream_index(connector) for connector in connectors_of(document)]
    if sum(size(_as_json(text)) for text in each) <= SCHEMA_NAMES_TEXT:
        return [Line(text) for text in each]
    return _names(named, total, arguments)


def _names(named: Sequence[str], total: int, arguments: Mapping[str, str], first: int = 0) -> list[Line]:
    """Name the streams from one on, as many as fit, with the call that names the others."""
    stop = first + max(1, len(fitting(map(_as_json, named[first:]), SCHEMA_NAMES_TEXT)))
    index = Line(f"stream_index stream_count={total} streams={'|'.join(named[first:stop])}")
    if stop >= len(named):
        return [index]
    return [
        index,
        Line(f"more_names={len(named) - stop} do not fit: {SchemaPlace('streams', stop).call(arguments)}"),
    ]


def _as_json(text: str) -> str:
    # A text is a JSON string in the end, where quotes take two bytes.
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _stream_index(connector: ConnectorBody) -> str:
    streams = connector.get("streams", [])
    names = "|".join(dict.fromkeys(name_of(stream) for stream in streams))
    return f"stream_index connector_key={key_of(connector)} stream_count={len(streams)} streams={names}"


def _first_connections(granted: Sequence[GrantedConnection]) -> str:
    entries = [connection_text(connection) for connection in granted[:_CONNECTIONS]]
    more = [f"more:{len(granted) - _CONNECTIONS}"] if len(granted) > _CONNECTIONS else []
    return "|".join([*entries, *more]) or "none"
