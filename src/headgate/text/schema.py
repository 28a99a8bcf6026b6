"""The text of a schema: an index of every stream, or all that one stream allows, in a line with a legend.

It is made from a schema document, whether that holds flag lines or full objects for its fields. What does not fit is
counted, with the call that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from headgate.model.declaration import ZONE_UNKNOWN
from headgate.model.wire import (
    ConnectorBody,
    FieldFlags,
    GrantedConnection,
    SchemaBody,
    StreamBody,
    aggregations_of,
    flag_line,
    searches_of,
    usable_only,
)
from headgate.text.line import coverage_fact
from headgate.text.writing import SCHEMA_STREAM_TEXT, cut, fitting, json_text, name, size

_CURSOR = re.compile(r"(streams|sources|(?:connections|fields):(\d{1,5})):(\d{1,6})")
_List = Literal["streams", "sources", "connections", "fields"]


class SchemaPlace(NamedTuple):
    """A place in one of the lists of a schema."""

    list: _List
    first: int
    #: The source that the connections or the fields are of.
    source: int = 0

    def write(self) -> str:
        """Write it as a cursor."""
        where = f"{self.list}:{self.source}" if self.list in {"connections", "fields"} else self.list
        return f"{where}:{self.first}"

    def call(self, arguments: Mapping[str, str]) -> str:
        """Write the call that goes on here, with the arguments of the call that began."""
        return f"schema args={json_text({**arguments, 'cursor': self.write()})}"


def read_schema_place(cursor: str) -> SchemaPlace | None:
    """Read a cursor; None if it is none of these."""
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        return None
    return SchemaPlace(cast("_List", parts[1].partition(":")[0]), int(parts[3]), int(parts[2] or 0))


_LEGEND_LINE = (
    "field_capability_legend field[flags] t=type eq=exact_filter r=range_filter_ops lex=lexical_search "
    "sem=semantic_search a=aggregations g=false=not_granted; "
    "sort=field ascending or -field descending; expand=relation(default..max)"
)
_NEXT_STREAM = (
    "next: query_records, aggregate or search with these names; add connection_id to choose a source"
)
_NO_STREAM = "No granted stream has that name; call schema() for the index."
_RAW_SCHEMA = (
    "raw JSON Schema: in structuredContent at data.connectors[].streams[].schema, not in this text; "
    "the fields below have the same types and flags."
)
_SPAN_ENDS = 2
#: How aggregations are listed whose fields do not fit, and the flags and types that a list of them makes needless.
_BY_FLAG = " fields with a="
_AGGREGATED = re.compile(r",a=[^,]*|\|null\b")
_VALUES_BYTES = 800
_NAME_CHARS = 60
_LEAST_LINE = 120
#: The least space of a source that does not fit whole.
_LEAST_SOURCE = 1_500
_UNLIMITED = 1 << 30
#: The members that make two streams allow the same.
_SHAPE = ("name", "cursor_field", "field_capabilities", "expand_capabilities", "views", "count", "query")
NOTHING: Mapping[str, str] = {}


SchemaRow = tuple[ConnectorBody, StreamBody]


class _Fitted(NamedTuple):
    """Entries joined as far as they fit, and the first one that is not shown whole."""

    text: str
    stop: int


def add_records(first: StreamBody, other: StreamBody) -> None:
    counts = first.get("record_count"), other.get("record_count")
    if isinstance(counts[0], int) and isinstance(counts[1], int):
        first["record_count"] = counts[0] + counts[1]


def span_of(stream: StreamBody) -> list[str]:
    """Return the first and the last day of a stream's records; another server can send anything."""
    span: Any = stream.get("span")
    if not isinstance(span, list):
        return []
    days = [cut(day, _NAME_CHARS) for day in cast("list[Any]", span) if isinstance(day, str)]
    return days if len(days) == _SPAN_ENDS else []


def record_facts(stream: StreamBody) -> list[str]:
    """Write how many records there are, from when to when, and which fields say when, who, how much and what."""
    count = stream.get("record_count")
    facts = [f"records={count}"] if isinstance(count, int) else []
    span = span_of(stream)
    facts += [f"span={name(span[0])}..{name(span[1])}"] if span else []
    line: Any = stream.get("line")
    parts: Mapping[str, Any] = cast("Mapping[str, Any]", line) if isinstance(line, dict) else {}
    for part in ("time", "title", "who", "amount"):
        named: Any = parts.get(part)
        fields = cast("list[Any]", named) if isinstance(named, list) else [named]
        texts = [name(cut(field, _NAME_CHARS)) for field in fields if isinstance(field, str)]
        facts += [f"{part}={','.join(texts)}"] if texts else []
    facts += coverage_fact(stream)
    times = stream.get("times")
    is_stated = isinstance(times, str) and times != ZONE_UNKNOWN
    return [*facts, f"times={json_text(cut(str(times), _NAME_CHARS))}"] if is_stated else facts


def stream_text(
    document: SchemaBody,
    arguments: Mapping[str, str] = NOTHING,
    *,
    is_full: bool = False,
    place: SchemaPlace | None = None,
    limit_bytes: int = SCHEMA_STREAM_TEXT,
) -> str | None:
    """Write what one stream allows: a line for each source that has it, with all its connections.

    Sources that allow the same have their fields printed once. ``asked`` are the arguments of the call, and ``place``
    is where it goes on; None is returned if nothing is there.
    """
    rows = _merged(rows_of(document))
    lines = [heading(document, list(rows_of(document))), _LEGEND_LINE]
    if "connection_id" in arguments:
        lines.append(f"schema_scope connection_id={json_text(arguments['connection_id'])}")
    if is_full:
        lines.append(_RAW_SCHEMA)
    ending = _NEXT_STREAM if rows else _NO_STREAM
    space = limit_bytes - sum(size(line) + 1 for line in lines) - size(ending)
    if place is None or place.list == "sources":
        body = _sources(rows, arguments, space, 0 if place is None else place.first)
    else:
        body = _part(rows, arguments, space, place)
    return "\n".join([*lines, *body, ending]) if body or place is None else None


def _sources(rows: Sequence[SchemaRow], arguments: Mapping[str, str], space: int, first: int) -> list[str]:
    """Describe the sources from one on, as many as fit."""
    more = "more_sources={} do not fit: {}"
    left = rows[first:]
    space -= size(more.format(len(rows), SchemaPlace("sources", len(rows)).call(arguments))) + 1
    same = _same(left)
    needs = [size(_source(row, first + at, arguments, None, same[at])) + 1 for at, row in enumerate(left)]
    lines: list[str] = []
    for at, share in enumerate(_shares(needs, space)):
        text = _source(left[at], first + at, arguments, share - 1 if share < needs[at] else None, same[at])
        space -= size(text) + 1
        if space < 0 and lines:
            break
        lines.append(text)
    if len(lines) < len(left):
        following = SchemaPlace("sources", first + len(lines)).call(arguments)
        lines.append(more.format(len(left) - len(lines), following))
    return lines


def _shares(needs: Sequence[int], space: int) -> list[int]:
    """Share the space among the first sources: each has what it needs, or at least enough to be useful."""
    taken: list[int] = []
    for need in needs:
        least = min(need, _LEAST_SOURCE)
        if taken and sum(taken) + least > space:
            break
        taken.append(least)
    shares = dict.fromkeys(range(len(taken)), 0)
    for done, at in enumerate(sorted(shares, key=needs.__getitem__)):
        shares[at] = min(needs[at], space // (len(taken) - done))
        space -= shares[at]
    return list(shares.values())


def _same(rows: Sequence[SchemaRow]) -> list[str | None]:
    """Find for each source a connection of an earlier one that allows the same."""
    first: dict[str, str] = {}
    earlier: list[str | None] = []
    for connector, stream in rows:
        shape = _shape(stream)
        earlier.append(first.get(shape))
        granted = granted_of(connector, stream)
        if granted and shape not in first:
            first[shape] = name(str(granted[0].get("connection_id")))
    return earlier


def _part(
    rows: Sequence[SchemaRow], arguments: Mapping[str, str], space: int, place: SchemaPlace
) -> list[str]:
    """List the connections or the fields of one source, from one on."""
    if place.source >= len(rows):
        return []
    connector, stream = rows[place.source]
    entries = (
        [connection_text(connection) for connection in granted_of(connector, stream)]
        if place.list == "connections"
        else _flagged(_flags(stream))
    )
    if place.first >= len(entries):
        return []
    head = f"stream name={json_text(stream.get('name'))} connector_key={key_of(connector)}"
    head += f" {place.list} from {place.first + 1} of {len(entries)}: "
    space -= size(head) + size(_more(place._replace(first=len(entries)), arguments)) + 2
    joint = "|" if place.list == "connections" else ";"
    fitted = _within(entries[place.first :], space, joint)
    stop = place.first + max(1, fitted.stop)
    lines = [head + (fitted.text if fitted.stop else entries[place.first])]
    return [*lines, _more(place._replace(first=stop), arguments)] if stop < len(entries) else lines


def _more(place: SchemaPlace, arguments: Mapping[str, str]) -> str:
    whole = "names of" if place.list == "connections" else "flags of"
    return f"more {place.list} and {whole} those that have none here: {place.call(arguments)}"


def _merged(rows: Iterable[SchemaRow]) -> list[SchemaRow]:
    """Join the sources of one connector whose streams allow the same."""
    merged: dict[str, SchemaRow] = {}
    for connector, stream in rows:
        key = json_text([connector.get("connector_key"), _shape(stream)])
        if key not in merged:
            merged[key] = connector, {**stream, "granted_connections": list(granted_of(connector, stream))}
            continue
        first = merged[key][1]
        known = {connection.get("connection_id") for connection in first.get("granted_connections", [])}
        first.setdefault("granted_connections", []).extend(
            connection
            for connection in granted_of(connector, stream)
            if connection.get("connection_id") not in known
        )
        add_records(first, stream)
    return list(merged.values())


def _shape(stream: StreamBody) -> str:
    return json_text({member: stream.get(member) for member in _SHAPE})


def _line_of(capability: str | FieldFlags) -> str:
    """Write the flags of a field; a compact schema holds them as a line already."""
    return capability if isinstance(capability, str) else flag_line(usable_only(capability))


def _flags(stream: StreamBody) -> dict[str, str]:
    return {
        path: _line_of(capability) for path, capability in (stream.get("field_capabilities") or {}).items()
    }


def _flagged(flags: Mapping[str, str]) -> list[str]:
    return [f"{name(path)}[{text}]" for path, text in flags.items()]


def _source(
    row: SchemaRow, number: int, arguments: Mapping[str, str], limit_bytes: int | None, same: str | None
) -> str:
    """Write everything one source allows in one line, and lines with the calls that show what does not fit."""
    connector, stream = row
    flags = _flags(stream)
    limit = _UNLIMITED if limit_bytes is None else limit_bytes
    granted = granted_of(connector, stream)
    calls = [SchemaPlace("connections", len(granted), number), SchemaPlace("fields", len(flags), number)]
    if limit_bytes is not None:
        limit -= sum(size(_more(call, arguments)) + 1 for call in calls)
    head = _source_head(connector, stream)
    tail = "" if same is not None else _uses(stream, flags, limit // 8)
    if _BY_FLAG not in tail:
        # Each capability is printed once.
        flags = {path: _AGGREGATED.sub("", line) for path, line in flags.items()}
    space = limit - size(head) - size(tail) - len(" fields= ")
    needed = 0 if same is not None else min(space // 2, size(_fields(flags, _UNLIMITED).text))
    connections = _all_connections(granted, space - needed)
    if same is not None:
        fields = _Fitted(f"as connection_id:{same}", len(flags))
    else:
        fields = _fields(flags, space - size(connections.text))
    places = [
        place._replace(first=fitted.stop)
        for place, fitted in zip(calls, (connections, fields), strict=True)
        if fitted.stop < place.first
    ]
    line = f"{head}{connections.text} fields={fields.text}{tail}"
    return "\n".join([line, *(_more(place, arguments) for place in places)])


def _uses(stream: StreamBody, flags: Mapping[str, str], limit_bytes: int) -> str:
    """Write what can be asked of a stream, beside its fields."""
    views = _views(stream, limit_bytes)
    facts = [
        "projection=fields",
        f"sort={_sort(stream)}",
        "count=none|estimated|exact",
        f"expand={_expand(stream, limit_bytes)}",
        f"search={_search(flags)}",
        f"aggregations={_aggregations(stream, flags, limit_bytes)}",
        *([f"views={views}"] if views else []),
        *_values(stream),
    ]
    return "".join(f" {fact}" for fact in facts)


def heading(document: SchemaBody, rows: Sequence[Any]) -> str:
    return f"schema: connectors={len(connectors_of(document))} streams={len(rows)}"


def connectors_of(document: SchemaBody) -> Sequence[ConnectorBody]:
    return document.get("connectors", [])


def rows_of(document: SchemaBody) -> Iterable[SchemaRow]:
    for connector in connectors_of(document):
        for stream in connector.get("streams", []):
            yield connector, stream


def _source_head(connector: ConnectorBody, stream: StreamBody) -> str:
    facts = [
        f"stream name={json_text(stream.get('name'))} connector_key={key_of(connector)}{label_of(connector)}"
    ]
    return " ".join([*facts, *record_facts(stream), "connections="])


def label_of(connector: ConnectorBody) -> str:
    label = connector.get("display_name")
    return f" display_name={json_text(cut(str(label), _NAME_CHARS))}" if label else ""


def name_of(stream: StreamBody) -> str:
    return name(str(stream.get("name")))


def key_of(connector: ConnectorBody) -> str:
    return json_text(connector.get("connector_key"))


def granted_of(connector: ConnectorBody, stream: StreamBody) -> Sequence[GrantedConnection]:
    granted = stream.get("granted_connections") or connector.get("granted_connections") or []
    return granted or ([cast("GrantedConnection", stream)] if stream.get("connection_id") else [])


def _all_connections(granted: Sequence[GrantedConnection], limit_bytes: int) -> _Fitted:
    """Name all connections: with their labels while these fit, then by their ids, as many as fit."""
    full = [connection_text(connection) for connection in granted]
    bare = [name(str(connection.get("connection_id"))) for connection in granted]
    return _Fitted("none", 0) if not granted else _preferred(full, bare, limit_bytes, "|")


def connection_text(connection: GrantedConnection) -> str:
    label = connection.get("display_name")
    named = f",display_name:{json_text(cut(str(label), _NAME_CHARS))}" if label else ""
    return f"{{connection_id:{name(str(connection.get('connection_id')))}{named}}}"


def _fields(flags: Mapping[str, str], space: int) -> _Fitted:
    # Names matter more than flags: if not all fields can have flags, the first ones have.
    return (
        _preferred(_flagged(flags), [name(path) for path in flags], space, ";")
        if flags
        else _Fitted("none", 0)
    )


def _preferred(full: Sequence[str], bare: Sequence[str], space: int, joint: str) -> _Fitted:
    """Write as many entries as fit: the first ones in full, if the others can at least be named."""
    spare = space - sum(size(entry) + 1 for entry in bare)
    chosen: list[str] = []
    stop = len(full)
    for at, (entry, short) in enumerate(zip(full, bare, strict=True)):
        spare -= size(entry) - size(short)
        if spare < 0:
            stop = min(stop, at)
        chosen.append(entry if stop > at else short)
    fitted = _within(chosen, space, joint)
    return _Fitted(fitted.text, min(stop, fitted.stop))


def _within(entries: Sequence[str], space: int, joint: str) -> _Fitted:
    if sum(size(entry) + 1 for entry in entries) > space:
        space -= len("more:99999") + 1
    chosen = fitting(entries, space)
    more = [f"more:{len(entries) - len(chosen)}"] if len(chosen) < len(entries) else []
    return _Fitted(joint.join([*chosen, *more]), len(chosen))


def _sort(stream: StreamBody) -> str:
    field = stream.get("cursor_field")
    return f"{name(str(field))}|-{name(str(field))}" if field else "none"


def _expand(stream: StreamBody, limit_bytes: int) -> str:
    relations = [
        f"{name(str(relation.get('name')))}({relation.get('default_limit', 10)}..{relation.get('max_limit', 50)})"
        for relation in stream.get("expand_capabilities") or []
        if relation.get("usable", True)
    ]
    return _within(relations, max(limit_bytes, _LEAST_LINE), "|").text or "none"


def _search(named: Mapping[str, str]) -> str:
    searches = {search: None for line in named.values() for search in searches_of(line)}
    modes = [mode for mode in ("lexical", "semantic") if mode in searches]
    return "|".join([*modes, "hybrid"] if len(modes) > 1 else modes) or "none"


def _aggregations(stream: StreamBody, named: Mapping[str, str], limit_bytes: int) -> str:
    by_kind: dict[str, list[str]] = {}
    for path, line in named.items():
        for kind in aggregations_of(line):
            by_kind.setdefault(kind, []).append(name(path))
    by_fields: dict[str, list[str]] = {}
    for kind, paths in by_kind.items():
        by_fields.setdefault(",".join(paths), []).append(kind)
    kinds = [f"{'|'.join(alike)}={paths}" for paths, alike in by_fields.items()]
    if sum(map(size, kinds)) > max(limit_bytes, _LEAST_LINE):
        # The flags of the fields say it too.
        kinds = [f"{kind}={len(paths)}{_BY_FLAG}{kind}" for kind, paths in by_kind.items()]
    return ";".join(["count", *kinds]) if _counts(stream, kinds) else ";".join(kinds) or "none"


def _counts(stream: StreamBody, kinds: Sequence[str]) -> bool:
    counts = stream.get("count")
    if isinstance(counts, bool):
        return counts
    query = (stream.get("query") or {}).get("aggregations")
    return bool(kinds) if query is None else bool(query.get("count"))


def _values(stream: StreamBody) -> list[str]:
    """Write frequent values of fields that have few."""
    values: Any = stream.get("values")
    if not isinstance(values, dict) or not values:
        return []
    known = cast("Mapping[str, Any]", values)
    entries = [f"{name(cut(field, _NAME_CHARS))}:{json_text(texts)}" for field, texts in known.items()]
    return [f"values={_within(entries, _VALUES_BYTES, ';').text}"]


def _views(stream: StreamBody, limit_bytes: int) -> str:
    views = [name(view if isinstance(view, str) else str(view["id"])) for view in stream.get("views") or []]
    return _within(views, max(limit_bytes, _LEAST_LINE), "|").text
