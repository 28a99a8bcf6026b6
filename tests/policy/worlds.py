"""A small world to decide in: one mail source with two accounts, one shop, and grants over them."""

from __future__ import annotations

import copy
import functools
from typing import Any

from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.model.grant import Access, AccessMode, Grant, StreamGrant, TokenKind
from headgate.model.ids import ClientId, ConnectionId, ConnectorKey, FieldName, GrantId, StreamName, SubjectId
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    ListQuery,
    Query,
    RecordQuery,
    SchemaQuery,
    SearchQuery,
    WindowQuery,
)
from headgate.model.record import Connection
from headgate.policy.allowance import Allowance, SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.policy.cursors import Seals
from headgate.policy.decide import (
    Decision,
    decide_aggregate,
    decide_blob,
    decide_changes,
    decide_list,
    decide_record,
    decide_schema,
    decide_search,
    decide_window,
)
from headgate.schema.declare import read_declaration
from tests.schema.declarations import declaration

NOW = 1_800_000_000
HOME, WORK, SHOP = (ConnectionId(name) for name in ("cin_home", "cin_work", "cin_shop"))
MAIL = ConnectorKey("mail")


def shop_document() -> dict[str, Any]:
    document = copy.deepcopy(declaration())
    document["source"]["id"] = "https://registry.example/connectors/shop"
    document["selection_presets"] = []
    document["streams"] = [
        {
            "name": "orders",
            "semantics": "append_only",
            "schema": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "total": {"type": "number"}},
                "required": ["id"],
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": False},
        },
        document["streams"][0] | {"relationships": [], "query": {"search": {"lexical_fields": ["subject"]}}},
    ]
    return document


@functools.cache
def catalog() -> SourceCatalog:
    connections = [
        Connection(HOME, MAIL, "Home", 1),
        Connection(WORK, MAIL, "default_account", 2),
        Connection(SHOP, ConnectorKey("shop"), "Shop", 3),
    ]
    return SourceCatalog(
        declarations={
            MAIL: read_declaration(declaration()),
            ConnectorKey("shop"): read_declaration(shop_document()),
        },
        connections={one.id: one for one in connections},
    )


def seals(now: int = NOW) -> Seals:
    return Seals(RingSealer(KeyRing(SealKey(bytes(range(KEY_BYTES))))), now)


def grant(*streams: StreamGrant, id_: str = "grt_1", source: str = "mail") -> Grant:
    return Grant(
        id=GrantId(id_),
        subject_id=SubjectId("owner"),
        client_id=ClientId("agent"),
        source_id=catalog().declarations[ConnectorKey(source)].source_id,
        source_kind="connector",
        declaration_version="2026-08-11",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode=AccessMode.CONTINUOUS,
        streams=streams,
        issued_at=0,
    )


def stream_grant(
    name: str, *fields: str, connections: tuple[ConnectionId, ...] = (HOME, WORK), **more: Any
) -> StreamGrant:
    return StreamGrant(StreamName(name), connections, tuple(map(FieldName, fields)), **more)


def client(*grants: Grant) -> Access:
    kind = TokenKind.CLIENT if len(grants) == 1 else TokenKind.MCP_PACKAGE
    return Access(kind, SubjectId("owner"), ClientId("agent"), grants)


def owner() -> Access:
    return Access(TokenKind.OWNER, SubjectId("owner"), None, ())


def allowed(access: Access, *, strict_core: bool = False) -> Allowance:
    return allow(access, catalog(), Rules(strict_core=strict_core))


def decide(  # noqa: PLR0911 - one case for each kind of query
    allowance: Allowance, query: Query, seals: Seals, *, preview_chars: int | None = None
) -> Decision[Any]:
    """Decide on any query."""
    match query:
        case ListQuery():
            return decide_list(allowance, query, seals, preview_chars=preview_chars)
        case ChangesQuery():
            return decide_changes(allowance, query, seals, preview_chars=preview_chars)
        case RecordQuery():
            return decide_record(allowance, query, preview_chars=preview_chars)
        case WindowQuery():
            return decide_window(allowance, query, seals)
        case AggregateQuery():
            return decide_aggregate(allowance, query)
        case SearchQuery():
            return decide_search(allowance, query, seals, line_chars=preview_chars)
        case BlobQuery():
            return decide_blob(allowance, query)
        case SchemaQuery():
            return Decision(None, decide_schema(allowance, query))
