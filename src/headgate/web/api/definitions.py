"""Every endpoint of ``/v1`` in one list: what it takes, who may call it, what it answers.

Requests are parsed by this list, the OpenAPI document and the reference page are drawn from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headgate.model.query import (
    DEFAULT_GROUPS,
    DEFAULT_PAGE,
    DEFAULT_WINDOW_CHARS,
    MAX_PAGE,
    MAX_WINDOW_CHARS,
)
from headgate.model.reads import (
    AggregateRead,
    Argument,
    FetchRead,
    Read,
    RecordsRead,
    SchemaRead,
    SearchRead,
    WindowRead,
    arguments_of,
)
from headgate.model.rows import OnInvalid

KIB = 1024
_BINARY = {"type": "string", "format": "binary"}
MIB = 1024 * KIB


class Shape(StrEnum):
    """How a parameter is written."""

    TEXT = "text"
    INTEGER = "integer"
    #: ``true`` or ``false``.
    BOOLEAN = "boolean"
    #: A whole number, or else the default: what lists do with a limit they cannot read.
    LENIENT_INTEGER = "lenient_integer"
    #: The same, where 0 is a limit too.
    LENIENT_LIMIT = "lenient_limit"
    #: Names with commas between them; may be repeated.
    NAMES = "names"
    #: May be repeated, also as ``name[]``.
    REPEATED = "repeated"
    #: ``filter[field]=value`` or ``filter[field][operator]=value``.
    FILTER = "filter"
    #: ``expand_limit[relation]=n``.
    LIMITS = "limits"
    #: ``extract[after]=phrase&extract[type]=number``.
    EXTRACT = "extract"


class Who(StrEnum):
    """Which tokens an endpoint takes."""

    READER = "reader"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Param:
    """One query parameter."""

    name: str
    about: str
    shape: Shape = Shape.TEXT
    required: bool = False
    choices: tuple[str, ...] = ()
    #: What a number is when it is left out, and what it must lie between; what is cut instead has no most.
    default: int | None = None
    least: int | None = None
    most: int | None = None

    @property
    def is_name(self) -> bool:
        """Whether it names something, so that it cannot be empty."""
        return self.required or self.name in {"connection_id", "connector_instance_id"}


@dataclass(frozen=True, slots=True)
class RequestBody:
    """What an endpoint takes as its body, and how much of it at most."""

    media_type: str
    about: str
    most_bytes: int
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    #: Whether a body without a single byte is one: a file may be empty, a document may not.
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    id: str
    #: Its method and path; also its name in the log.
    route: str
    about: str
    who: Who = Who.READER
    params: tuple[Param, ...] = ()
    status: int = 200
    #: The name of the answer's schema in the OpenAPI document.
    answer: str = "Object"
    #: Refusals beside those every endpoint has.
    refusals: tuple[int, ...] = (403, 404)
    #: Endpoints to go on with, and where in this answer each of their parameters stands.
    leads_to: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    body: RequestBody | None = None
    #: The parameters it cannot do without.
    requires: tuple[Param, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requires", tuple(param for param in self.params if param.required))

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]


#: What stands at each place of a path.
PLACES: Mapping[str, str] = {
    "stream": "The stream's name.",
    "id": "The record's id; what is special in an address is percent-encoded, also a slash.",
    "blob_id": "The file's id, as a record or the answer to its upload gives it.",
    "connection_id": "The connection.",
    "connector_key": "The connector's key.",
    "import_id": "The id that the import was sent with.",
}

CONNECTION = Param("connection_id", "One connection; all that are visible when left out.")
CONNECTOR_ALIAS = Param("connector_id", "Deprecated name of `connector_key`.")
ALIAS = Param("connector_instance_id", "Deprecated name of `connection_id`.")
NEEDED_CONNECTION = Param("connection_id", "The connection.", required=True)
LIMIT = Param(
    "limit",
    f"How many rows. Above {MAX_PAGE} it is {MAX_PAGE}, below 1 or unreadable the default, with a warning.",
    Shape.LENIENT_INTEGER,
    default=DEFAULT_PAGE,
)
_HITS = Param(
    "limit",
    f"How many hits; 0 only counts them. Above {MAX_PAGE} it is {MAX_PAGE}, below 0 or unreadable the default, "
    "with a warning.",
    Shape.LENIENT_LIMIT,
    default=DEFAULT_PAGE,
)
_CUT = Param(
    "limit_chars",
    f"How long it is: {DEFAULT_WINDOW_CHARS} by default, {MAX_WINDOW_CHARS} at most; more is cut, with a warning.",
    Shape.INTEGER,
    least=1,
)


def _params(read: type[Read], *own: Param, required: Collection[str] = ()) -> tuple[Param, ...]:
    """Derive the parameters of a read; its own take the place of those of the same name, or come last."""
    others = {param.name: param for param in own}
    derived = [
        others.pop(argument.name, None) or _param(argument, is_required=argument.name in required)
        for argument in arguments_of(read)
        if not argument.at
    ]
    return (*derived, *others.values())


def _param(argument: Argument, *, is_required: bool) -> Param:
    schema = argument.schema
    shapes = {
        "integer": Shape.INTEGER,
        "boolean": Shape.BOOLEAN,
        "array": Shape.REPEATED,
        "object": Shape.FILTER,
        "string": Shape.TEXT,
    }
    named = {"fields": Shape.NAMES, "in": Shape.NAMES, "expand_limit": Shape.LIMITS, "extract": Shape.EXTRACT}
    return Param(
        argument.name,
        argument.rest_about,
        named.get(argument.name) or shapes[schema["type"]],
        required=is_required or argument.is_required,
        choices=tuple(schema.get("enum", ())),
        default=DEFAULT_GROUPS if argument.name == "limit" else None,
        least=schema.get("minimum"),
        most=schema.get("maximum"),
    )


_RANKED_PARAMS = _params(SearchRead, LIMIT, ALIAS, required=("q",))
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "schema",
        "GET /v1/schema",
        "What this token may read, and what it may ask.",
        params=_params(
            SchemaRead,
            Param("view", "`compact` for one line a field; anything else is full."),
            Param("detail", "`full` for everything about one stream of one connection.", choices=("full",)),
            CONNECTOR_ALIAS,
            ALIAS,
        ),
        answer="Schema",
        refusals=(403, 409),
    ),
    Endpoint("connectors", "GET /v1/connectors", "The connectors this token reaches.", answer="List"),
    Endpoint(
        "streams",
        "GET /v1/streams",
        "The streams this token reaches, one row for each connection.",
        params=(CONNECTION, ALIAS),
        answer="List",
    ),
    Endpoint(
        "stream",
        "GET /v1/streams/{stream}",
        "One stream, as far as the grant shows it.",
        params=(CONNECTION, ALIAS),
        answer="StreamMetadata",
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "records",
        "GET /v1/streams/{stream}/records",
        "A page of records, merged over connections, or with `changes_since` what changed.",
        params=_params(
            RecordsRead,
            LIMIT,
            Param(
                "window",
                "`exact` adds how many records there are and their times.",
                choices=("none", "exact"),
            ),
            CONNECTOR_ALIAS,
            ALIAS,
        ),
        answer="List",
        leads_to={
            name: {"stream": "/data/0/stream", "id": "/data/0/id", "connection_id": "/data/0/connection_id"}
            for name in ("record", "window")
        },
        refusals=(403, 404, 409, 410),
    ),
    Endpoint(
        "record",
        "GET /v1/streams/{stream}/records/{id}",
        "One record.",
        params=_params(FetchRead, ALIAS),
        answer="Record",
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "window",
        "GET /v1/streams/{stream}/records/{id}/field-window",
        "A part of one text field.",
        params=_params(
            WindowRead,
            _CUT,
            Param("field", "The field.", required=True),
            Param("as", "`json` reads an object or a list as its JSON text.", choices=("json",)),
            ALIAS,
        ),
        answer="FieldWindow",
        refusals=(403, 404, 409, 410, 422),
    ),
    Endpoint(
        "aggregate",
        "GET /v1/streams/{stream}/aggregate",
        "A number over all visible records, or one for each group.",
        params=_params(AggregateRead, CONNECTOR_ALIAS, ALIAS),
        answer="Aggregation",
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "search",
        "GET /v1/search",
        "Records that hold all the words, each in any visible searched field; then those that hold most of them.",
        params=_params(SearchRead, _HITS, ALIAS, required=("q",)),
        answer="List",
        refusals=(403, 404, 410),
    ),
    Endpoint(
        "semantic_search",
        "GET /v1/search/semantic",
        "Records with a text of similar meaning, the most similar first; 404 `unsupported` where there is no model.",
        params=_RANKED_PARAMS,
        answer="List",
        refusals=(403, 404, 410, 503),
    ),
    Endpoint(
        "hybrid_search",
        "GET /v1/search/hybrid",
        "The best by words and by meaning in one order; 404 `unsupported` where there is no model.",
        params=_RANKED_PARAMS,
        answer="List",
        refusals=(403, 404, 410, 503),
    ),
    Endpoint(
        "blob",
        "GET /v1/blobs/{blob_id}",
        "A file that a visible record refers to; takes `Range`.",
        params=(CONNECTION, ALIAS),
        answer="Bytes",
        refusals=(403, 404, 409, 416),
    ),
    Endpoint(
        "declare",
        "PUT /v1/declarations/{connector_key}",
        "Register a source declaration.",
        who=Who.OWNER,
        body=RequestBody(
            "application/json",
            "A source declaration.",
            4 * MIB,
            {"$ref": "#/components/schemas/SourceDeclaration"},
        ),
        answer="Declaration",
        refusals=(403,),
    ),
    Endpoint(
        "connect",
        "POST /v1/connections",
        "Add a connection of a declared connector.",
        who=Who.OWNER,
        status=201,
        body=RequestBody(
            "application/json",
            "The connector's key, and what the owner calls the connection.",
            64 * KIB,
            {
                "type": "object",
                "properties": {"connector_key": {"type": "string"}, "display_name": {"type": "string"}},
                "required": ["connector_key"],
                "additionalProperties": False,
            },
        ),
        answer="Connection",
        leads_to={
            name: {"connection_id": "/connection_id"}
            for name in ("connection", "rename", "disconnect", "ingest", "state", "put_state")
        },
    ),
    Endpoint(
        "connection",
        "GET /v1/connections/{connection_id}",
        "One connection.",
        who=Who.OWNER,
        answer="Connection",
    ),
    Endpoint(
        "rename",
        "PATCH /v1/connections/{connection_id}",
        "Give a connection another name.",
        who=Who.OWNER,
        body=RequestBody(
            "application/json",
            "The new name.",
            64 * KIB,
            {
                "type": "object",
                "properties": {"display_name": {"type": "string"}},
                "required": ["display_name"],
                "additionalProperties": False,
            },
        ),
        answer="Connection",
    ),
    Endpoint(
        "disconnect",
        "DELETE /v1/connections/{connection_id}",
        "Remove a connection with all its records.",
        who=Who.OWNER,
        status=204,
        answer="Nothing",
    ),
    Endpoint(
        "ingest",
        "POST /v1/ingest/{stream}",
        "Ingest NDJSON. Valid lines are stored even if others are rejected.",
        who=Who.OWNER,
        params=(
            NEEDED_CONNECTION,
            Param(
                "on_invalid",
                "What becomes of a record that breaks the stream's schema: it is rejected (the default), or "
                "kept with a mark that `GET /v1/ingest/{stream}/invalid` lists.",
                choices=tuple(OnInvalid),
            ),
        ),
        # No schema: a line that is no record is listed in the report and does not refuse the others.
        body=RequestBody(
            "application/x-ndjson", "Records, each line a RecordLine.", 64 * MIB, may_be_empty=True
        ),
        answer="IngestReport",
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "invalid_records",
        "GET /v1/ingest/{stream}/invalid",
        "Records that were stored although they break the stream's schema, each with the places that do.",
        who=Who.OWNER,
        params=(
            NEEDED_CONNECTION,
            Param("after", "`next_after` of the page before.", Shape.INTEGER, default=0, least=0, most=2**27),
            Param("limit", "How many records.", Shape.INTEGER, default=100, least=1, most=1000),
        ),
        answer="InvalidRecords",
    ),
    Endpoint(
        "remove",
        "DELETE /v1/streams/{stream}/records/{id}",
        "Remove a record; clients that had read it see its removal among the changes.",
        who=Who.OWNER,
        params=(NEEDED_CONNECTION,),
        status=204,
        answer="Nothing",
    ),
    Endpoint(
        "keep_blob",
        "POST /v1/blobs",
        "Store a file for records to refer to.",
        who=Who.OWNER,
        status=201,
        body=RequestBody("application/octet-stream", "The file.", 256 * MIB, _BINARY, may_be_empty=True),
        answer="Blob",
        leads_to={"blob": {"blob_id": "/blob_id"}},
        refusals=(403,),
    ),
    Endpoint(
        "import_file",
        "POST /v1/imports",
        "Import an export file: what `headgate import` reads, with the same preview and the same report.",
        who=Who.OWNER,
        params=(
            Param("file_name", "The name of the file, which helps to recognise it.", required=True),
            Param("source", "Read it as this source; without it the surest one is chosen."),
            Param("display_name", "The connection's name; the same name is the same connection."),
            Param("dry_run", "Show what would be imported, and store nothing.", choices=("true", "false")),
            Param("import_id", "An id of 8 to 64 letters, digits, - or _, to read its progress by."),
        ),
        body=RequestBody(
            "application/octet-stream", "The file or archive.", 16 * 1024 * MIB, _BINARY, may_be_empty=True
        ),
        answer="Import",
        refusals=(403, 413),
        leads_to={"import_progress": {"import_id": "/import_id"}},
    ),
    Endpoint(
        "import_progress",
        "GET /v1/imports/{import_id}",
        "How far an import is: receiving, reading, importing, then done, previewed, failed or interrupted; for a day.",
        who=Who.OWNER,
        answer="ImportProgress",
    ),
    Endpoint(
        "state",
        "GET /v1/state/{connection_id}",
        "The state that a collector stored.",
        who=Who.OWNER,
        answer="State",
    ),
    Endpoint(
        "put_state",
        "PUT /v1/state/{connection_id}",
        "Store the state of a collector.",
        who=Who.OWNER,
        body=RequestBody("application/json", "Any JSON.", 1 * MIB),
        answer="State",
    ),
)
