"""The text of a schema: an index of every stream, or all that one stream allows, in a line with a legend.

It is made from a schema document, whether that holds flag lines or full objects for its fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from headgate.model.flags import aggregations_of, flag_line, searches_of, usable_only
from headgate.model.wire import ConnectorBody, FieldFlags, GrantedConnection, SchemaBody, StreamBody
from headgate.text.budget import (
    SCHEMA_INDEX_TEXT,
    SCHEMA_NAMES_TEXT,
    SCHEMA_STREAM_TEXT,
    Line,
    compose,
    cut,
    size,
)
from headgate.text.quote import json_text, name

_LEGEND_LINE = (
    "field_capability_legend field[flags] t=type eq=exact_filter r=range_filter_ops lex=lexical_search "
    "sem=semantic_search a=aggregations g=false=not_granted; "
    "sort=field ascending or -field descending; expand=relation(default..max)"
)
_NEXT_INDEX = "next: schema(stream[, connection_id]) lists fields, filters, sort, expand and aggregations"
_NEXT_STREAM = (
    "next: query_records, aggregate or search with these names; add connection_id to choose a source"
)
_ROWS = 50
_CONNECTIONS = 8
_NAME_CHARS = 60
_LEAST_LINE = 400
#: The members that make two streams allow the same.
_SHAPE = ("name", "cursor_field", "field_capabilities", "expand_capabilities", "views", "count", "query")


_Row = tuple[ConnectorBody, StreamBody]


def index_text(document: SchemaBody) -> str:
    """Write the index of everything granted: each stream, each connection, and how to go on."""
    rows = list(_rows(document))
    lines = [Line(_heading(document, rows))]
    if len(rows) > _ROWS:
        lines += _stream_indexes(document, rows)
    lines += [Line(_index_row(connector, stream), 2) for connector, stream in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(Line(f"more_streams={len(rows) - _ROWS} (see stream_index)", 1))
    lines.append(Line(_NEXT_INDEX, 1))
    return compose(_all_named(lines, rows), SCHEMA_INDEX_TEXT)


_RAW_SCHEMA = (
    "raw JSON Schema: in structuredContent at data.connectors[].streams[].schema, not in this text; "
    "the fields below have the same types and flags."
)


def stream_text(document: SchemaBody, *, connection_id: str | None, is_full: bool = False) -> str:
    """Write what one stream allows: a line for each connector that has it, with all its connections.

    Sources of one connector that allow the same share a line, so that their fields are printed once.
    """
    rows = _merged(_rows(document))
    lines = [Line(_heading(document, list(_rows(document)))), Line(_LEGEND_LINE)]
    if connection_id is not None:
        lines.append(Line(f"schema_scope connection_id={json_text(connection_id)}"))
    if is_full:
        lines.append(Line(_RAW_SCHEMA))
    ending = _NEXT_STREAM if rows else "No granted stream has that name; call schema() for the index."
    more = "more_sources={} do not fit; schema(stream, connection_id) describes one of them"
    space = SCHEMA_STREAM_TEXT - sum(size(line.text) + 1 for line in lines) - size(ending) - size(more) - 8
    printed = 0
    for connector, stream in rows:
        share = max(_LEAST_LINE, space // (len(rows) - printed))
        text = stream_line(connector, stream, min(share, space))
        space -= size(text) + 1
        if space < 0 and printed:
            break
        lines.append(Line(text))
        printed += 1
    lines += [Line(more.format(len(rows) - printed))] if printed < len(rows) else []
    return compose([*lines, Line(ending)], SCHEMA_STREAM_TEXT)


def _merged(rows: Iterable[_Row]) -> list[_Row]:
    """Join the sources of one connector whose streams allow the same."""
    found: dict[str, _Row] = {}
    for connector, stream in rows:
        shape = {member: stream.get(member) for member in _SHAPE}
        key = json_text([connector.get("connector_key"), shape])
        if key not in found:
            found[key] = connector, {**stream, "granted_connections": list(_granted(connector, stream))}
            continue
        first = found[key][1]
        known = {one.get("connection_id") for one in first.get("granted_connections", [])}
        first.setdefault("granted_connections", []).extend(
            one for one in _granted(connector, stream) if one.get("connection_id") not in known
        )
        counts = first.get("record_count"), stream.get("record_count")
        if isinstance(counts[0], int) and isinstance(counts[1], int):
            first["record_count"] = counts[0] + counts[1]
    return list(found.values())


def _line_of(capability: str | FieldFlags) -> str:
    """Write the flags of a field; a compact schema holds them as a line already."""
    return capability if isinstance(capability, str) else flag_line(usable_only(capability))


def stream_line(connector: ConnectorBody, stream: StreamBody, limit_bytes: int) -> str:
    """Write everything one stream of one source allows in one line."""
    capabilities = stream.get("field_capabilities") or {}
    named: dict[str, str] = {path: _line_of(one) for path, one in capabilities.items()}
    head = _index_row(connector, stream, limit_bytes // 2)
    tail = " ".join(
        [
            "projection=fields",
            f"sort={_sort(stream)}",
            "count=none|estimated|exact",
            f"expand={_expand(stream)}",
            f"search={_search(named)}",
            f"aggregations={_aggregations(stream, named, limit_bytes // 8)}",
            *([f"views={views}"] if (views := _views(stream)) else []),
        ]
    )
    return f"{head} fields={_fields(named, limit_bytes - size(head) - size(tail))} {tail}"


def _heading(document: SchemaBody, rows: Sequence[Any]) -> str:
    return f"schema: connectors={len(_connectors(document))} streams={len(rows)}"


def _connectors(document: SchemaBody) -> Sequence[ConnectorBody]:
    return document.get("connectors", [])


def _rows(document: SchemaBody) -> Iterable[_Row]:
    for connector in _connectors(document):
        for stream in connector.get("streams", []):
            yield connector, stream


def _stream_indexes(document: SchemaBody, rows: Sequence[_Row]) -> list[Line]:
    """Name every stream: by connector, or all together where that would be too much."""
    each = [_stream_index(connector) for connector in _connectors(document)]
    if sum(_encoded_size(text) for text in each) <= SCHEMA_NAMES_TEXT:
        return [Line(text) for text in each]
    names = list(dict.fromkeys(_name_of(stream) for _, stream in rows))
    fitting = _fitting(names, SCHEMA_NAMES_TEXT)
    index = Line(f"stream_index stream_count={len(rows)} streams={'|'.join(names[:fitting])}")
    if fitting == len(names):
        return [index]
    return [index, Line(_more_names(len(names) - fitting, rows))]


def _encoded_size(text: str) -> int:
    # A text is a JSON string in the end, where quotes take two bytes.
    return size(text) + text.count('"') + text.count("\\")


def _fitting(names: Sequence[str], space: int) -> int:
    """Count the names that fit."""
    for position, one in enumerate(names):
        space -= _encoded_size(one) + 1
        if space < 0:
            return position
    return len(names)


def _more_names(left: int, rows: Sequence[_Row]) -> str:
    known = dict.fromkeys(_connections(connector, stream) for connector, stream in rows)
    shown = "|".join(list(known)[:_CONNECTIONS])
    return (
        f"more_names={left} do not fit; schema(connection_id) names the streams of one connection. "
        f"connections={shown}{'|more' if len(known) > _CONNECTIONS else ''}"
    )


def _stream_index(connector: ConnectorBody) -> str:
    streams = connector.get("streams", [])
    names = "|".join(dict.fromkeys(_name_of(stream) for stream in streams))
    return f"stream_index connector_key={_key(connector)} stream_count={len(streams)} streams={names}"


def _all_named(lines: list[Line], rows: Sequence[_Row]) -> list[Line]:
    # Few streams with long names can also be too much for their rows: then the names alone go in.
    if len(rows) <= _ROWS and sum(size(line.text) + 1 for line in lines) > SCHEMA_INDEX_TEXT:
        names = "|".join(dict.fromkeys(_name_of(stream) for _, stream in rows))
        return [lines[0], Line(f"stream_index streams={names}"), *lines[1:]]
    return lines


def _index_row(connector: ConnectorBody, stream: StreamBody, connections_bytes: int | None = None) -> str:
    facts = [f"stream name={json_text(stream.get('name'))}", f"connector_key={_key(connector)}"]
    label = connector.get("display_name") or stream.get("connector_display_name")
    facts += [f"display_name={json_text(cut(str(label), _NAME_CHARS))}"] if label else []
    count = stream.get("record_count")
    facts += [f"records={count}"] if isinstance(count, int) else []
    connections = (
        _connections(connector, stream)
        if connections_bytes is None
        else _all_connections(_granted(connector, stream), connections_bytes)
    )
    return " ".join([*facts, f"connections={connections}"])


def _name_of(stream: StreamBody) -> str:
    return name(str(stream.get("name")))


def _key(connector: ConnectorBody) -> str:
    return json_text(connector.get("connector_key"))


def _granted(connector: ConnectorBody, stream: StreamBody) -> Sequence[GrantedConnection]:
    granted = stream.get("granted_connections") or connector.get("granted_connections") or []
    return granted or ([cast("GrantedConnection", stream)] if stream.get("connection_id") else [])


def _connections(connector: ConnectorBody, stream: StreamBody) -> str:
    granted = _granted(connector, stream)
    entries = [_connection(connection) for connection in granted[:_CONNECTIONS]]
    more = [f"more:{len(granted) - _CONNECTIONS}"] if len(granted) > _CONNECTIONS else []
    return "|".join([*entries, *more]) or "none"


def _all_connections(granted: Sequence[GrantedConnection], limit_bytes: int) -> str:
    """Name all connections: with their labels while these fit, then by their ids, and count what does not fit."""
    full = [_connection(connection) for connection in granted]
    bare = [name(str(connection.get("connection_id"))) for connection in granted]
    spare = limit_bytes - sum(size(entry) + 1 for entry in bare)
    chosen: list[str] = []
    for entry, short in zip(full, bare, strict=True):
        spare -= size(entry) - size(short)
        chosen.append(entry if spare >= 0 else short)
    return _within(chosen, limit_bytes, "|") or "none"


def _connection(connection: GrantedConnection) -> str:
    label = connection.get("display_name")
    named = f",display_name:{json_text(cut(str(label), _NAME_CHARS))}" if label else ""
    return f"{{connection_id:{name(str(connection.get('connection_id')))}{named}}}"


def _fields(named: Mapping[str, str], space: int) -> str:
    full = [f"{name(path)}[{text}]" for path, text in named.items()]
    if sum(size(entry) + 1 for entry in full) <= space:
        return ";".join(full) or "none"
    # Names matter more than flags: if not all fields can have flags, the first ones have.
    bare = [name(path) for path in named]
    spare = space - sum(size(entry) + 1 for entry in bare)
    chosen: list[str] = []
    for entry, short in zip(full, bare, strict=True):
        spare -= size(entry) - size(short)
        chosen.append(entry if spare >= 0 else short)
    return _within(chosen, space)


def _within(entries: Sequence[str], space: int, joint: str = ";") -> str:
    fitting: list[str] = []
    for entry in entries:
        space -= size(entry) + 1
        if space < 0:
            break
        fitting.append(entry)
    more = [f"more:{len(entries) - len(fitting)}"] if len(fitting) < len(entries) else []
    return joint.join([*fitting, *more])


def _sort(stream: StreamBody) -> str:
    field = stream.get("cursor_field")
    return f"{name(str(field))}|-{name(str(field))}" if field else "none"


def _expand(stream: StreamBody) -> str:
    found = [
        f"{name(str(relation.get('name')))}({relation.get('default_limit', 10)}..{relation.get('max_limit', 50)})"
        for relation in stream.get("expand_capabilities") or []
        if relation.get("usable", True)
    ]
    return "|".join(found) or "none"


def _search(named: Mapping[str, str]) -> str:
    found = {search: None for line in named.values() for search in searches_of(line)}
    modes = [mode for mode in ("lexical", "semantic") if mode in found]
    return "|".join([*modes, "hybrid"] if len(modes) > 1 else modes) or "none"


def _aggregations(stream: StreamBody, named: Mapping[str, str], limit_bytes: int) -> str:
    by_kind: dict[str, list[str]] = {}
    for path, line in named.items():
        for kind in aggregations_of(line):
            by_kind.setdefault(kind, []).append(name(path))
    found = [f"{kind}={','.join(paths)}" for kind, paths in by_kind.items()]
    if sum(map(size, found)) > max(limit_bytes, _LEAST_LINE):
        # The flags of the fields say it too.
        found = [f"{kind}={len(paths)} fields with a={kind}" for kind, paths in by_kind.items()]
    return ";".join(["count", *found]) if _counts(stream, found) else ";".join(found) or "none"


def _counts(stream: StreamBody, found: Sequence[str]) -> bool:
    counts = stream.get("count")
    if isinstance(counts, bool):
        return counts
    query = (stream.get("query") or {}).get("aggregations")
    return bool(found) if query is None else bool(query.get("count"))


def _views(stream: StreamBody) -> str:
    views = stream.get("views") or []
    return "|".join(name(view if isinstance(view, str) else str(view["id"])) for view in views)
