"""Say what may be read: an index of every stream, or all that one stream allows, in a line with a legend.

Works on the capability document, whether its fields are flag strings or full objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

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

LEGEND = {
    "t": "declared type",
    "role": "presentation role",
    "eq": "filter by value: {field: value}",
    "r": "filter by range: {field: {op: value}}",
    "lex": "found by search",
    "sem": "found by semantic search",
    "a": "aggregations of this field",
    "g=false": "not granted",
}
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
_AGGREGATIONS = ("count_distinct", "group_by", "group_by_time", "sum", "min", "max")
_SIMPLE = {"exact_filter": "eq", "lexical_search": "lex", "semantic_search": "sem"}

Json = Mapping[str, Any]


def index_text(document: Json) -> str:
    """Draw the index of everything granted: each stream, each connection, and how to go on."""
    rows = list(_rows(document))
    lines = [Line(_heading(document, rows))]
    if len(rows) > _ROWS:
        lines += _stream_indexes(document, rows)
    lines += [Line(_index_row(connector, stream), 2) for connector, stream in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(Line(f"more_streams={len(rows) - _ROWS} (see stream_index)", 1))
    lines.append(Line(_NEXT_INDEX, 1))
    return compose(_all_named(lines, rows), SCHEMA_INDEX_TEXT)


def stream_text(document: Json, *, connection_id: str | None) -> str:
    """Draw what one stream allows, a line for each source that has it."""
    rows = list(_rows(document))
    lines = [Line(_heading(document, rows)), Line(_LEGEND_LINE)]
    if connection_id is not None:
        lines.append(Line(f"schema_scope connection_id={json_text(connection_id)}"))
    room = SCHEMA_STREAM_TEXT // max(1, len(rows))
    lines += [Line(stream_line(connector, stream, room)) for connector, stream in rows]
    lines.append(
        Line(_NEXT_STREAM if rows else "No granted stream has that name; call schema() for the index.", 1)
    )
    return compose(lines, SCHEMA_STREAM_TEXT)


def flags(capability: Any) -> str:
    """Write one field's capabilities as flags; a flag string is already that."""
    if isinstance(capability, str):
        return capability
    facts = cast("Json", capability)
    found = [f"t={facts['type']}"] if facts.get("type") else []
    found += [f"role={facts['role']}"] if facts.get("role") else []
    if facts.get("granted") is False:
        return ",".join([*found, "g=false"])
    found += [flag for key, flag in _SIMPLE.items() if _usable(facts.get(key))]
    ranges = facts.get("range_filter")
    if _usable(ranges):
        found.append(f"r={'|'.join(cast('Json', ranges).get('operators', ()))}")
    aggregations = cast("Json", facts.get("aggregation") or {})
    usable = [kind for kind in _AGGREGATIONS if _usable(aggregations.get(kind))]
    found += [f"a={'|'.join(usable)}"] if usable else []
    return ",".join(found) or "declared"


def stream_line(connector: Json, stream: Json, limit_bytes: int) -> str:
    """Write everything one stream of one source allows in one line."""
    named = {path: flags(value) for path, value in _capabilities(stream).items()}
    head = _index_row(connector, stream)
    tail = " ".join(
        [
            "projection=fields",
            f"sort={_sort(stream)}",
            "count=none|estimated|exact",
            f"expand={_expand(stream)}",
            f"search={_search(named)}",
            f"aggregations={_aggregations(stream, named)}",
            *([f"views={views}"] if (views := _views(stream)) else []),
        ]
    )
    return f"{head} fields={_fields(named, limit_bytes - size(head) - size(tail))} {tail}"


def _heading(document: Json, rows: Sequence[Any]) -> str:
    return f"schema: connectors={len(_connectors(document))} streams={len(rows)}"


def _connectors(document: Json) -> Sequence[Json]:
    return cast("Sequence[Json]", document.get("connectors", ()))


def _rows(document: Json) -> Iterable[tuple[Json, Json]]:
    for connector in _connectors(document):
        for stream in cast("Sequence[Json]", connector.get("streams", ())):
            yield connector, stream


def _stream_indexes(document: Json, rows: Sequence[tuple[Json, Json]]) -> list[Line]:
    """Name every stream: by connector, or all together where that would be too much."""
    each = [_stream_index(connector) for connector in _connectors(document)]
    if sum(_travelling(text) for text in each) <= SCHEMA_NAMES_TEXT:
        return [Line(text) for text in each]
    names = list(dict.fromkeys(name(str(stream["name"])) for _, stream in rows))
    kept = _kept(names, SCHEMA_NAMES_TEXT)
    index = Line(f"stream_index stream_count={len(rows)} streams={'|'.join(names[:kept])}")
    if kept == len(names):
        return [index]
    return [index, Line(_more_names(len(names) - kept, rows))]


def _travelling(text: str) -> int:
    # A text is a JSON string in the end, where quotes take two bytes.
    return size(text) + text.count('"') + text.count("\\")


def _kept(names: Sequence[str], room: int) -> int:
    for position, one in enumerate(names):
        room -= _travelling(one) + 1
        if room < 0:
            return position
    return len(names)


def _more_names(left: int, rows: Sequence[tuple[Json, Json]]) -> str:
    known = dict.fromkeys(_connections(connector, stream) for connector, stream in rows)
    shown = "|".join(list(known)[:_CONNECTIONS])
    return (
        f"more_names={left} do not fit; schema(connection_id) names the streams of one connection. "
        f"connections={shown}{'|more' if len(known) > _CONNECTIONS else ''}"
    )


def _stream_index(connector: Json) -> str:
    streams = cast("Sequence[Json]", connector.get("streams", ()))
    names = "|".join(dict.fromkeys(name(str(stream["name"])) for stream in streams))
    return f"stream_index connector_key={_key(connector)} stream_count={len(streams)} streams={names}"


def _all_named(lines: list[Line], rows: Sequence[tuple[Json, Json]]) -> list[Line]:
    # Few streams with long names can be too much for their rows, too: then the names alone go in.
    if len(rows) <= _ROWS and sum(size(line.text) + 1 for line in lines) > SCHEMA_INDEX_TEXT:
        names = "|".join(dict.fromkeys(name(str(stream["name"])) for _, stream in rows))
        return [lines[0], Line(f"stream_index streams={names}"), *lines[1:]]
    return lines


def _index_row(connector: Json, stream: Json) -> str:
    facts = [f"stream name={json_text(stream['name'])}", f"connector_key={_key(connector)}"]
    label = connector.get("display_name") or stream.get("connector_display_name")
    facts += [f"display_name={json_text(cut(str(label), _NAME_CHARS))}"] if label else []
    if isinstance(stream.get("record_count"), int):
        facts.append(f"records={stream['record_count']}")
    return " ".join([*facts, f"connections={_connections(connector, stream)}"])


def _key(connector: Json) -> str:
    return json_text(connector.get("connector_key"))


def _connections(connector: Json, stream: Json) -> str:
    granted = cast(
        "Sequence[Json]", stream.get("granted_connections") or connector.get("granted_connections") or ()
    )
    if not granted and stream.get("connection_id"):
        granted = [stream]
    entries = [_connection(connection) for connection in granted[:_CONNECTIONS]]
    more = [f"more:{len(granted) - _CONNECTIONS}"] if len(granted) > _CONNECTIONS else []
    return "|".join([*entries, *more]) or "none"


def _connection(connection: Json) -> str:
    label = connection.get("display_name")
    named = f",display_name:{json_text(cut(str(label), _NAME_CHARS))}" if label else ""
    return f"{{connection_id:{name(str(connection['connection_id']))}{named}}}"


def _capabilities(stream: Json) -> Json:
    return cast("Json", stream.get("field_capabilities") or {})


def _usable(capability: Any) -> bool:
    return isinstance(capability, Mapping) and bool(cast("Json", capability).get("usable"))


def _fields(named: Mapping[str, str], room: int) -> str:
    full = [f"{name(path)}[{text}]" for path, text in named.items()]
    if sum(size(entry) + 1 for entry in full) <= room:
        return ";".join(full) or "none"
    # Names matter more than types: what cannot be said of all fields is said of the first ones.
    bare = [name(path) for path in named]
    spare = room - sum(size(entry) + 1 for entry in bare)
    chosen: list[str] = []
    for entry, short in zip(full, bare, strict=True):
        spare -= size(entry) - size(short)
        chosen.append(entry if spare >= 0 else short)
    return _within(chosen, room)


def _within(entries: Sequence[str], room: int) -> str:
    kept: list[str] = []
    for entry in entries:
        room -= size(entry) + 1
        if room < 0:
            break
        kept.append(entry)
    more = [f"more:{len(entries) - len(kept)}"] if len(kept) < len(entries) else []
    return ";".join([*kept, *more])


def _sort(stream: Json) -> str:
    field = stream.get("cursor_field")
    return f"{name(str(field))}|-{name(str(field))}" if field else "none"


def _expand(stream: Json) -> str:
    found = [
        f"{name(str(relation['name']))}({relation.get('default_limit', 10)}..{relation.get('max_limit', 50)})"
        for relation in cast("Sequence[Json]", stream.get("expand_capabilities") or ())
        if relation.get("usable", True)
    ]
    return "|".join(found) or "none"


def _search(named: Mapping[str, str]) -> str:
    modes = {flag for text in named.values() for flag in text.split(",") if flag in {"lex", "sem"}}
    words = {"lex": "lexical", "sem": "semantic"}
    found = [words[mode] for mode in ("lex", "sem") if mode in modes]
    return "|".join([*found, "hybrid"] if len(found) == len(words) else found) or "none"


def _aggregations(stream: Json, named: Mapping[str, str]) -> str:
    by_kind: dict[str, list[str]] = {}
    for path, text in named.items():
        for flag in text.split(","):
            if flag.startswith("a=") and not flag.startswith("a=unusable"):
                for kind in flag[2:].split("|"):
                    by_kind.setdefault(kind, []).append(name(path))
    found = [f"{kind}={','.join(paths)}" for kind, paths in by_kind.items()]
    return ";".join(["count", *found]) if _counts(stream, found) else ";".join(found) or "none"


def _counts(stream: Json, found: Sequence[str]) -> bool:
    if isinstance(stream.get("count"), bool):
        return bool(stream["count"])
    query = cast("Json", stream.get("query") or {}).get("aggregations")
    return bool(found) if query is None else bool(cast("Json", query).get("count"))


def _views(stream: Json) -> str:
    views = cast("Sequence[Json | str]", stream.get("views") or ())
    return "|".join(name(view if isinstance(view, str) else str(view["id"])) for view in views)
