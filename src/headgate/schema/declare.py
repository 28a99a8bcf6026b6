"""Read a source declaration from outside: its shape, its schemas, and how its parts fit together.

Everything that is wrong is reported at once, each problem with its place, so that an author mends a
declaration in one round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from pydantic import ValidationError

from headgate.errors import InvalidDeclaration, InvalidRequest, SchemaParse
from headgate.model.declaration import (
    DEFAULT_CHILDREN,
    MAX_CHILDREN,
    PEOPLE_FIELDS,
    Aggregations,
    Cardinality,
    Expansion,
    Field,
    FieldKind,
    PresetStream,
    QueryCapabilities,
    RangeOperator,
    Relationship,
    SelectionPreset,
    Semantics,
    SourceDeclaration,
    StreamDeclaration,
    View,
)
from headgate.model.ids import FieldName, StreamName, is_path_like, source_id, stream_name
from headgate.model.pointers import escape
from headgate.schema.check import compile_schema
from headgate.schema.document import (
    DIALECT,
    DeclarationDocument,
    LineDocument,
    PresetDocument,
    QueryDocument,
    StreamDocument,
    children,
    read_fields,
    references,
)
from headgate.schema.guard import OWN
from headgate.schema.line import is_clock, read_line, read_times

MAX_DEPTH = 64
#: What separates names in ``fields=a,b`` and ``filter[a][gte]``.
_LISTED = frozenset(",[]")
_CODE = "source.declaration."


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: its stable code, the JSON pointer of the place, and a sentence."""

    code: str
    pointer: str
    message: str


Fields = Mapping[FieldName, Field]


def read_declaration(document: Mapping[str, Any]) -> SourceDeclaration:
    """Check a document and give what it declares.

    Raises:
        InvalidDeclaration: rules are broken; ``data["problems"]`` lists all that were found.
    """
    parsed = _parse(document)
    _refuse(_schema_problems(parsed))
    fields = {stream.name: read_fields(stream.json_schema) for stream in parsed.streams}
    _refuse(_problems(parsed, fields))
    return SourceDeclaration(
        source_id=source_id(parsed.source.id),
        source_kind=parsed.source.kind,
        version=parsed.declaration_version,
        publisher_id=parsed.publisher.id,
        display_name=parsed.display.name,
        streams={StreamName(stream.name): _stream(stream, fields[stream.name]) for stream in parsed.streams},
        presets=tuple(_preset(preset) for preset in parsed.selection_presets),
        extensions=parsed.extensions,
    )


def refuse_unusable_schemas(source: SourceDeclaration) -> None:
    """Refuse a declaration with a schema that records could not be checked against.

    Only for a new declaration: one that is stored already stays readable, whatever its schemas hold.
    """
    streams = list(source.streams.values())
    _refuse([*_unusable(streams), *_unusable_names(streams)])


def _unusable(streams: Sequence[StreamDeclaration]) -> Iterator[Problem]:
    for index, stream in enumerate(streams):
        if any("\0" in name for name in stream.fields):
            # No record can have such a member: SQL and C libraries end a text there.
            place = f"/streams/{index}/schema/properties"
            yield Problem("invalid_schema", place, "A field's name holds NUL.")
        try:
            compile_schema(stream.schema, OWN)
        except SchemaParse as error:
            place = str(error.details.get("pointer", ""))
            yield Problem("invalid_schema", f"/streams/{index}/schema{place}".rstrip("/"), error.message)


def _unusable_names(streams: Sequence[StreamDeclaration]) -> Iterator[Problem]:
    for index, stream in enumerate(streams):
        place = f"/streams/{index}"
        if is_path_like(stream.name):
            message = "A stream's name has no '/', '\\' or '..' in it, and is not '.'."
            yield Problem("invalid_shape", f"{place}/name", message)
        relations = [relation.name for relation in stream.relationships]
        for kind, names in (("schema/properties", [*stream.fields]), ("relationships", relations)):
            for name in names:
                if not _LISTED.isdisjoint(name):
                    message = f"'{name}' has ',', '[' or ']' in it, which separate names in requests."
                    yield Problem("invalid_shape", f"{place}/{kind}/{escape(name)}", message)


# Shape


def _parse(document: Mapping[str, Any]) -> DeclarationDocument:
    if _depth(document, MAX_DEPTH) > MAX_DEPTH:
        raise _invalid([Problem("invalid_shape", "", f"The document nests deeper than {MAX_DEPTH} levels.")])
    try:
        return DeclarationDocument.model_validate(dict(document))
    except ValidationError as error:
        raise _invalid([_shape_problem(detail["loc"], detail["msg"]) for detail in error.errors()]) from None


def _shape_problem(place: Sequence[str | int], message: str) -> Problem:
    pointer = "".join(f"/{escape(str(part))}" for part in place)
    return Problem("invalid_shape", pointer, f"{message}.")


def _depth(value: object, left: int) -> int:
    inner = children(value) if left >= 0 else []
    return 1 + max((_depth(child, left - 1) for _, child in inner), default=0)


# Embedded schemas


def _schema_problems(document: DeclarationDocument) -> Iterator[Problem]:
    for index, stream in enumerate(document.streams):
        place = f"/streams/{index}/schema"
        if stream.json_schema.get("$schema", DIALECT) == DIALECT:
            yield from _meta_problems(stream.json_schema, place)
        else:
            # Not passed to the library, which would fetch the dialect from that address.
            yield Problem("invalid_schema", f"{place}/$schema", f"The schema's dialect must be {DIALECT}.")
        for pointer, reference in references(stream.json_schema, place):
            if not isinstance(reference, str) or not reference.startswith("#"):
                yield Problem("nonlocal_schema_reference", pointer, "References must stay inside the schema.")


def _meta_problems(schema: Mapping[str, Any], place: str) -> Iterator[Problem]:
    try:
        jsonschema_rs.meta.validate(dict(schema))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        path: list[str | int] = list(getattr(error, "instance_path", ()))
        pointer = place + "".join(f"/{escape(str(part))}" for part in path)
        yield Problem("invalid_schema", pointer, "This is not a valid JSON Schema.")


# How the parts fit together


def _problems(document: DeclarationDocument, fields: Mapping[str, Fields]) -> Iterator[Problem]:
    yield from _name_problems(document)
    yield from _twins("duplicate_stream_name", "/streams", [stream.name for stream in document.streams])
    yield from _twins("duplicate_preset_id", "/selection_presets", [p.id for p in document.selection_presets])
    for index, stream in enumerate(document.streams):
        yield from _stream_problems(stream, fields, f"/streams/{index}")
        yield from _repeat_problems(stream, document, f"/streams/{index}/repeats")
    for index, preset in enumerate(document.selection_presets):
        yield from _preset_problems(preset, document, fields, f"/selection_presets/{index}")


def _name_problems(document: DeclarationDocument) -> Iterator[Problem]:
    checks = [(source_id, document.source.id, "/source/id")]
    names = [(stream_name, stream.name, f"/streams/{at}/name") for at, stream in enumerate(document.streams)]
    for read, text, pointer in [*checks, *names]:
        try:
            read(text)
        except InvalidRequest as error:
            yield Problem("invalid_shape", pointer, error.message)


def _stream_problems(stream: StreamDocument, fields: Mapping[str, Fields], place: str) -> Iterator[Problem]:
    own = fields[stream.name]
    yield from _twins("duplicate_view_id", f"{place}/views", [view.id for view in stream.views])
    yield from _twins(
        "duplicate_relationship_name",
        f"{place}/relationships",
        [relation.name for relation in stream.relationships],
    )
    yield from _twins("invalid_shape", f"{place}/primary_key", stream.primary_key)
    yield from _field_problems(own, stream.primary_key, f"{place}/primary_key", _SCALAR)
    for member, name, allowed in (
        ("cursor_field", stream.cursor_field, _SCALAR),
        ("consent_time_field", stream.consent_time_field, _TIME),
    ):
        if name is not None:
            yield from _field_problems(own, [name], f"{place}/{member}", allowed, in_list=False)
    for index, view in enumerate(stream.views):
        yield from _field_problems(own, view.fields, f"{place}/views/{index}/fields")
    for index, relation in enumerate(stream.relationships):
        here, child = f"{place}/relationships/{index}", fields.get(relation.stream)
        if child is None:
            yield Problem("unknown_stream", f"{here}/stream", f"There is no stream '{relation.stream}'.")
        else:
            yield from _field_problems(child, [relation.foreign_key], f"{here}/foreign_key", in_list=False)
    for member, names, allowed in _line_fields(stream.line):
        in_list = member == "who"
        yield from _field_problems(own, names, f"{place}/line/{member}", allowed, in_list=in_list)
    if stream.times is not None and not is_clock(stream.times):
        yield Problem(
            "invalid_times", f"{place}/times", "Times are of UTC, of a zone by its IANA name, or as written."
        )
    yield from _query_problems(stream.query, own, stream, f"{place}/query")


def _repeat_problems(stream: StreamDocument, document: DeclarationDocument, place: str) -> Iterator[Problem]:
    """Refuse a stream that repeats none, or one that repeats another: two that repeat each other would not be searched."""
    if stream.repeats is None:
        return
    repeated = next((other for other in document.streams if other.name == stream.repeats), None)
    if repeated is None:
        yield Problem("unknown_stream", place, f"There is no stream '{stream.repeats}'.")
    elif repeated.repeats is not None:
        yield Problem("invalid_repeats", place, f"'{stream.repeats}' repeats a stream itself.")


def _query_problems(
    query: QueryDocument, own: Fields, stream: StreamDocument, place: str
) -> Iterator[Problem]:
    yield from _twins("duplicate_expand_name", f"{place}/expand", [expand.name for expand in query.expand])
    relations = {relation.name for relation in stream.relationships}
    for index, expand in enumerate(query.expand):
        here = f"{place}/expand/{index}"
        if expand.name not in relations:
            yield Problem(
                "unknown_relationship", f"{here}/name", f"There is no relationship '{expand.name}'."
            )
        limits = _limits(expand.default_limit, expand.max_limit)
        if not 1 <= limits[0] <= limits[1]:
            yield Problem("invalid_expand_limits", here, "Limits need 1 <= default_limit <= max_limit.")
    for member, names, allowed in _query_fields(query):
        in_list = member != "range_filters"
        yield from _field_problems(own, names, f"{place}/{member}", allowed, in_list=in_list)


_SCALAR = frozenset(kind for kind in FieldKind if kind.is_scalar)
_TIME = frozenset(kind for kind in FieldKind if kind.is_time)
_ORDERED = frozenset(kind for kind in FieldKind if kind.is_ordered)
_NUMBER = frozenset(kind for kind in FieldKind if kind.is_number)
_TEXT = frozenset({FieldKind.TEXT})
_NAMING = frozenset({FieldKind.TEXT, FieldKind.JSON})


def _line_fields(line: LineDocument) -> Iterator[tuple[str, list[str], frozenset[FieldKind]]]:
    named = (
        ("time", line.time, _TIME),
        ("where", line.where, _TEXT),
        ("amount", line.amount, _NUMBER),
        ("unit", line.unit, _TEXT),
        ("title", line.title, _TEXT),
        ("text", line.text, _TEXT),
        ("quoted", line.quoted, _TEXT),
    )
    yield "who", line.who, _NAMING
    yield from ((member, [name], allowed) for member, name, allowed in named if name is not None)


def _query_fields(query: QueryDocument) -> Iterator[tuple[str, list[str], frozenset[FieldKind]]]:
    yield "range_filters", list(query.range_filters), _ORDERED
    yield "search/lexical_fields", query.search.lexical_fields, _TEXT
    yield "search/semantic_fields", query.search.semantic_fields, _TEXT
    aggregations = query.aggregations
    if aggregations is not None:
        yield "aggregations/sum", aggregations.sum, _NUMBER
        yield "aggregations/min", aggregations.min, _ORDERED
        yield "aggregations/max", aggregations.max, _ORDERED
        yield "aggregations/count_distinct", aggregations.count_distinct, _SCALAR
        yield "aggregations/group_by", aggregations.group_by, _SCALAR
        yield "aggregations/group_by_time", aggregations.group_by_time, _TIME


def _preset_problems(
    preset: PresetDocument, document: DeclarationDocument, fields: Mapping[str, Fields], place: str
) -> Iterator[Problem]:
    names = [stream.name for stream in preset.streams]
    yield from _twins("duplicate_preset_stream_name", f"{place}/streams", names)
    views = {stream.name: {view.id for view in stream.views} for stream in document.streams}
    for index, stream in enumerate(preset.streams):
        here = f"{place}/streams/{index}"
        if stream.name not in fields:
            yield Problem("unknown_stream", f"{here}/name", f"There is no stream '{stream.name}'.")
            continue
        if stream.view is not None and stream.fields is not None:
            yield Problem("invalid_shape", here, "A stream is narrowed by view or by fields, not both.")
        if stream.view is not None and stream.view not in views[stream.name]:
            yield Problem("unknown_view", f"{here}/view", f"There is no view '{stream.view}'.")
        yield from _field_problems(fields[stream.name], stream.fields or [], f"{here}/fields")


def _twins(code: str, place: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem(code, place, f"'{name}' stands there {times} times.")


_ANY = frozenset(FieldKind)


def _field_problems(
    own: Fields,
    names: Iterable[str],
    place: str,
    allowed: frozenset[FieldKind] = _ANY,
    *,
    in_list: bool = True,
) -> Iterator[Problem]:
    """Report the names that are no fields, and the fields of a kind that cannot be used there."""
    for index, name in enumerate(names):
        pointer = f"{place}/{index}" if in_list else place
        field = own.get(FieldName(name))
        if field is None:
            yield Problem("unknown_schema_field", pointer, f"The schema has no field '{name}'.")
        elif field.kind not in allowed:
            message = f"'{name}' is {field.kind.value}; this needs one of {', '.join(sorted(allowed))}."
            yield Problem("invalid_query_field_type", pointer, message)


# From document to values


def _stream(stream: StreamDocument, fields: Fields) -> StreamDeclaration:
    line = read_line(stream, fields)
    return StreamDeclaration(
        name=StreamName(stream.name),
        semantics=Semantics(stream.semantics),
        schema=stream.json_schema,
        fields=fields,
        primary_key=_names(stream.primary_key),
        cursor_field=None if stream.cursor_field is None else FieldName(stream.cursor_field),
        consent_time_field=None
        if stream.consent_time_field is None
        else FieldName(stream.consent_time_field),
        selects_fields=stream.selection.fields,
        selects_resources=stream.selection.resources,
        description=stream.description,
        label=stream.display.label,
        detail=stream.display.detail,
        views=tuple(View(view.id, view.label, _names(view.fields)) for view in stream.views),
        relationships=tuple(
            Relationship(
                relation.name,
                StreamName(relation.stream),
                FieldName(relation.foreign_key),
                Cardinality(relation.cardinality),
            )
            for relation in stream.relationships
        ),
        query=_query(stream.query, fields),
        line=line,
        times=read_times(stream, line, fields),
        repeats=None if stream.repeats is None else StreamName(stream.repeats),
    )


def _query(query: QueryDocument, fields: Fields) -> QueryCapabilities:
    aggregations = query.aggregations
    return QueryCapabilities(
        range_filters={
            FieldName(name): tuple(RangeOperator(operator) for operator in operators)
            for name, operators in query.range_filters.items()
        },
        expand=tuple(
            Expansion(expand.name, *_limits(expand.default_limit, expand.max_limit))
            for expand in query.expand
        ),
        lexical_fields=_with_people(_names(query.search.lexical_fields), fields),
        semantic_fields=_names(query.search.semantic_fields),
        aggregations=None
        if aggregations is None
        else Aggregations(
            count=aggregations.count is True,
            sum=_names(aggregations.sum),
            min=_names(aggregations.min),
            max=_names(aggregations.max),
            count_distinct=_names(aggregations.count_distinct),
            group_by=_names(aggregations.group_by),
            group_by_time=_names(aggregations.group_by_time),
        ),
    )


def _with_people(searched: tuple[FieldName, ...], fields: Fields) -> tuple[FieldName, ...]:
    """Add the fields that name people: where anything is searched, a sender's name should be found as well."""
    named = (
        field.name
        for field in fields.values()
        if field.name in PEOPLE_FIELDS and field.kind in _NAMING and field.name not in searched
    )
    return (*searched, *named) if searched else ()


def _limits(default: int | None, most: int | None) -> tuple[int, int]:
    most = MAX_CHILDREN if most is None else most
    return (min(DEFAULT_CHILDREN, most) if default is None else default), most


def _preset(preset: PresetDocument) -> SelectionPreset:
    streams = tuple(
        PresetStream(
            StreamName(stream.name), stream.view, None if stream.fields is None else _names(stream.fields)
        )
        for stream in preset.streams
    )
    return SelectionPreset(preset.id, preset.label, streams)


def _names(names: Iterable[str]) -> tuple[FieldName, ...]:
    return tuple(FieldName(name) for name in names)


def _refuse(problems: Iterable[Problem]) -> None:
    listed = list(problems)
    if listed:
        raise _invalid(listed)


def _invalid(problems: Sequence[Problem]) -> InvalidDeclaration:
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidDeclaration(
        f"{first.pointer or '/'}: {first.message}{more}",
        data={
            "problems": [
                {"code": _CODE + problem.code, "pointer": problem.pointer, "message": problem.message}
                for problem in problems
            ]
        },
    )
