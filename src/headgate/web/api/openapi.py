"""The OpenAPI document, drawn from the list of endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headgate import __version__
from headgate.errors import (
    AuthenticationFailed,
    Conflict,
    CursorExpired,
    FieldNotText,
    InvalidRequest,
    MethodRefused,
    MisdirectedRequest,
    NotFound,
    RateLimited,
    ResourceLimit,
    StorageFull,
    default_message,
)
from headgate.model.query import ExtractType
from headgate.model.record import MAX_KEYS
from headgate.schema.document import DeclarationDocument
from headgate.web.api.definitions import ENDPOINTS, KIB, MIB, PLACES, Endpoint, Param, RequestBody, Shape, Who

_PLACE = re.compile(r"\{(\w+)\}")
_ALWAYS = (400, 401, 403, 405, 413, 421, 429, 503)
#: What a refusal of each status means here.
_REFUSALS: dict[int, str] = {
    error.status: default_message(error)
    for error in (
        InvalidRequest,
        AuthenticationFailed,
        NotFound,
        MethodRefused,
        Conflict,
        CursorExpired,
        ResourceLimit,
        MisdirectedRequest,
        FieldNotText,
        RateLimited,
        StorageFull,
    )
} | {
    403: "The token is not of the right kind, or its grant has ended or does not reach this.",
    416: "The file has no such part.",
    503: "Too many requests are under way, or the store cannot be used now.",
}
#: The endpoints by who may call them; a group's description says who that is.
_GROUPS: dict[Who, dict[str, str]] = {
    Who.READER: {
        "name": "Reading",
        "description": "For a client's token, within its grant, and for the owner's, which sees everything.",
    },
    Who.OWNER: {"name": "Owner", "description": "For the owner's token alone."},
}
_ABOUT = (
    "One person's records, read by clients under grants of that person. Anything outside a token's grant is"
    " invisible to it. Parameters that are not listed are refused. Every answer has `Request-Id` and `PDPP-Version`."
)
_BEARER = (
    "The owner makes a client's token with `headgate grants create --client NAME --stream STREAM`, and an"
    " owner token with `headgate owner token`. Each is shown once."
)
_OBJECT: dict[str, Any] = {"type": "object"}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": required | optional, "required": sorted(required)}


_TEXT = {"type": "string"}
_TEXT_OR_NONE = {"type": ["string", "null"]}
_WHOLE = {"type": "integer"}
_LINE_ERRORS = {
    "type": "array",
    "items": _object({"index": _WHOLE, "code": _TEXT, "message": _TEXT, "pointer": _TEXT}),
}
_META = _object({"count": {}, "warnings": {"type": "array", "items": _OBJECT}})
_LINKS = _object({"self": _TEXT}, next={"type": ["string", "null"]})
#: One line of an ingest.
RECORD_LINE: dict[str, Any] = {
    "description": "A record, or the deletion of one.",
    "type": "object",
    "properties": {
        "data": {
            "description": "The record; it must fit the schema that its stream declares.",
            "type": "object",
            "maxProperties": MAX_KEYS,
        },
        "key": {
            "description": "The values of the primary-key fields, in order; alone if there is one. A deletion "
            "needs it; with data it may be left out, and must equal what data holds.",
            "type": ["string", "number", "boolean", "array"],
        },
        "stream": {
            "description": "The stream, if a line names it: that of the address.",
            "type": ["string", "null"],
        },
        "emitted_at": {
            "description": "When the source gave the record; the time of the request by default.",
            "type": ["string", "null"],
            "format": "date-time",
        },
        "op": {"enum": ["upsert", "delete"], "default": "upsert"},
    },
    "anyOf": [{"required": ["data"]}, {"properties": {"op": {"const": "delete"}}, "required": ["op", "key"]}],
}
SCHEMAS: dict[str, Any] = {
    "Object": _OBJECT,
    "Schema": _object(
        {"object": {"const": "schema"}, "bearer": _OBJECT, "connectors": {"type": "array", "items": _OBJECT}},
        links=_LINKS,
        meta=_META,
    ),
    "List": _object(
        {
            "object": {"const": "list"},
            "data": {"type": "array", "items": _OBJECT},
            "has_more": {"type": "boolean"},
            "url": _TEXT,
            "links": _LINKS,
            "meta": _META,
        },
        next_cursor=_TEXT,
        next_changes_since=_TEXT,
    ),
    "StreamMetadata": _object(
        {
            "object": {"const": "stream_metadata"},
            "name": _TEXT,
            "field_capabilities": _OBJECT,
            "granted_connections": {"type": "array", "items": _OBJECT},
        }
    ),
    "Record": _object(
        {
            "object": {"const": "record"},
            "id": _TEXT,
            "stream": _TEXT,
            "connection_id": _TEXT,
            "connector_key": _TEXT,
            "data": _OBJECT,
            "emitted_at": _TEXT,
            "links": _LINKS,
            "meta": _META,
        },
        display_name=_TEXT,
        expanded=_OBJECT,
    ),
    "FieldWindow": _object(
        {"object": {"const": "field_window"}, "field": _OBJECT, "window": _OBJECT, "connection_id": _TEXT}
    ),
    "Aggregation": _object(
        {"object": {"const": "aggregation"}, "metric": _TEXT, "filtered_record_count": _WHOLE},
        value={},
        groups={
            "type": "array",
            "items": _object(
                {"key": {}, "count": _WHOLE},
                value={},
                time=_TEXT_OR_NONE,
                missing_value_count=_WHOLE,
                unreadable_value_count=_WHOLE,
            ),
        },
        other_count=_WHOLE,
        value_count=_WHOLE,
        missing_value_count=_WHOLE,
        unreadable_value_count=_WHOLE,
    ),
    "Declaration": _object({"object": {"const": "declaration"}, "connector_key": _TEXT, "version": _TEXT}),
    "Connection": _object(
        {"object": {"const": "connection"}, "connection_id": _TEXT, "connector_key": _TEXT},
        display_name=_TEXT,
    ),
    "IngestReport": _object(
        {"stream": _TEXT, "records_accepted": _WHOLE, "records_rejected": _WHOLE},
        records_invalid=_WHOLE,
        errors=_LINE_ERRORS,
        errors_truncated={"type": "boolean"},
        invalid=_LINE_ERRORS,
        invalid_truncated={"type": "boolean"},
    ),
    "InvalidRecords": _object(
        {
            "object": {"const": "list"},
            "stream": _TEXT,
            "data": {
                "type": "array",
                "items": _object(
                    {
                        "id": _TEXT,
                        "problems": {"type": "array", "items": _object({"pointer": _TEXT, "message": _TEXT})},
                    }
                ),
            },
            "next_after": {"type": ["integer", "null"]},
        }
    ),
    "Blob": _object({"object": {"const": "blob"}, "blob_id": _TEXT, "sha256": _TEXT, "size_bytes": _WHOLE}),
    "Import": _object(
        {
            "object": {"enum": ["import", "import_preview"]},
            "import_id": _TEXT,
            "imports": {"type": "array", "items": {"type": "object"}},
            "unknown_files": {"type": "array", "items": _TEXT},
        }
    ),
    "ImportProgress": _object(
        {
            "object": {"const": "import_progress"},
            "import_id": _TEXT,
            "file_name": _TEXT,
            "status": {
                "enum": ["receiving", "reading", "importing", "done", "previewed", "failed", "interrupted"]
            },
            **dict.fromkeys(("received_bytes", "rows", "rejects", "done_bytes", "total_bytes"), _WHOLE),
            "error": {"type": ["object", "null"]},
            "imports": {"type": "array", "items": {"type": "object"}},
            "unknown_files": {"type": "array", "items": _TEXT},
        }
    ),
    "State": _object({"object": {"const": "state"}, "connection_id": _TEXT, "state": {}}),
    "Error": _object(
        {
            "error": _object(
                {"type": _TEXT, "code": _TEXT, "message": _TEXT, "request_id": _TEXT}, hint=_TEXT, param=_TEXT
            )
        }
    ),
}


def openapi_document() -> dict[str, Any]:
    """Write the OpenAPI document of ``/v1``."""
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headgate REST", "version": __version__, "description": _ABOUT},
        "tags": list(_GROUPS.values()),
        "paths": paths,
        "components": {
            "schemas": SCHEMAS | {"RecordLine": RECORD_LINE} | _declaration_schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _BEARER}},
        },
        "security": [{"bearer": []}],
    }


def _declaration_schemas() -> dict[str, Any]:
    """Return the schema of a declaration and those of its parts, from the models that read one."""
    whole = DeclarationDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    parts: dict[str, Any] = whole.pop("$defs")
    return {"SourceDeclaration": whole, **parts}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    places = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PLACES[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PLACE.findall(endpoint.path)
    ]
    operation: dict[str, Any] = {
        "operationId": endpoint.id,
        "tags": [_GROUPS[endpoint.who]["name"]],
        "summary": endpoint.about,
        "parameters": [*places, *(_param(param) for param in endpoint.params)],
        "responses": dict(_responses(endpoint)),
    }
    if endpoint.body is not None:
        operation["requestBody"] = _body(endpoint.body)
    return operation


def _body(body: RequestBody) -> dict[str, Any]:
    return {
        "required": not body.may_be_empty,
        "description": f"{body.about} At most {_size(body.most_bytes)}.",
        "content": {body.media_type: {"schema": body.schema}},
    }


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"


def _param(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    written: dict[str, Any] = {}
    if param.shape is Shape.INTEGER:
        schema = {"type": "integer"} | _bounds(param)
    elif param.shape is Shape.BOOLEAN:
        schema = {"type": "boolean"}
    elif param.shape in {Shape.LENIENT_INTEGER, Shape.LENIENT_LIMIT}:
        schema = {
            "anyOf": [
                {"type": "integer", "minimum": int(param.shape is Shape.LENIENT_INTEGER)},
                {"description": "The default."},
            ]
        }
    elif param.shape in {Shape.NAMES, Shape.REPEATED}:
        schema = {"type": "array", "items": {"type": "string"}}
        written = {"style": "form", "explode": param.shape is Shape.REPEATED}
    elif param.shape in {Shape.FILTER, Shape.LIMITS}:
        value = {"type": "integer"} if param.shape is Shape.LIMITS else {"type": "string"}
        schema = {"type": "object", "additionalProperties": value}
        written = {"style": "deepObject", "explode": True}
    elif param.shape is Shape.EXTRACT:
        schema = {
            "type": "object",
            "properties": {"after": {"type": "string"}, "type": {"enum": list(ExtractType)}},
            "required": ["after", "type"],
        }
        written = {"style": "deepObject", "explode": True}
    if param.default is not None:
        schema["default"] = param.default
    if param.choices:
        schema["enum"] = list(param.choices)
    elif param.shape is Shape.TEXT and param.is_name:
        schema["minLength"] = 1
    return {
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.about,
        "schema": schema,
    } | written


def _bounds(param: Param) -> dict[str, int]:
    named = {"minimum": param.least, "maximum": param.most}
    return {name: bound for name, bound in named.items() if bound is not None}


def _links(endpoint: Endpoint) -> dict[str, Any]:
    """Return how to go on with what the answer holds."""
    links = {
        name: {
            "operationId": name,
            "parameters": {param: f"$response.body#{at}" for param, at in taken.items()},
        }
        for name, taken in endpoint.leads_to.items()
    }
    return {"links": links} if links else {}


def _responses(endpoint: Endpoint) -> Iterator[tuple[str, Any]]:
    if endpoint.answer == "Nothing":
        yield str(endpoint.status), {"description": "Done."}
    elif endpoint.answer == "Bytes":
        content = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
        yield "200", {"description": "The file.", "content": content}
        yield "206", {"description": "A part of it.", "content": content}
    else:
        schema = {"$ref": f"#/components/schemas/{endpoint.answer}"}
        yield (
            str(endpoint.status),
            {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
            | _links(endpoint),
        )
    extra = (507,) if endpoint.body is not None else ()
    for status in sorted({*_ALWAYS, *endpoint.refusals, *extra}):
        error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        content = {} if status in {405, 416} else {"content": error}
        yield str(status), {"description": _REFUSALS[status]} | content
