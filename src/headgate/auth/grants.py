"""Issue grants: an owner's choice becomes grants, a package if they are several, and one token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headgate.auth.admission import Admission
from headgate.auth.keys import digest_of, fresh_id, mint
from headgate.errors import AuthenticationFailed, InvalidAuthorizationDetails, NotFound, PermissionRefused
from headgate.model.declaration import SourceDeclaration
from headgate.model.grant import OWNER, AccessMode, Grant, OwnerScope, TokenKind
from headgate.model.ids import ClientId, ConnectionId, FieldName, GrantId, PackageId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.policy.allowance import SourceCatalog
from headgate.policy.resolve import WILDCARD, SelectionRequest, StreamRequest, Terms, resolve
from headgate.store.ledger.ledger import Ledger

DEFAULT_PURPOSE = "https://pdpp.dev/purpose/agent_context"


@dataclass(frozen=True, slots=True)
class Choice:
    """What an owner chose to grant; an empty choice grants everything."""

    connection_ids: tuple[ConnectionId, ...] = ()
    streams: tuple[StreamName, ...] = ()
    #: Fields by stream.
    fields: tuple[tuple[StreamName, tuple[FieldName, ...]], ...] = ()
    #: Microseconds since 1970.
    since: int | None = None
    until: int | None = None

    @property
    def limits(self) -> bool:
        """Whether it leaves anything out."""
        return self != Choice()


@dataclass(frozen=True, slots=True)
class Conditions:
    """For whom a grant is, how long, and how much a day."""

    client_id: ClientId
    purpose_code: str = DEFAULT_PURPOSE
    access_mode: AccessMode = AccessMode.CONTINUOUS
    days: int | None = None
    daily_records: int | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """What was issued. The token's text is here and nowhere else."""

    access_token: str
    token_kind: TokenKind
    grants: tuple[Grant, ...]
    package_id: PackageId | None


def selections(choice: Choice, catalog: SourceCatalog) -> tuple[SelectionRequest, ...]:
    """Turn an owner's choice into one request for each source it touches.

    Several sources may have a stream of the same name: each is touched, with those of the chosen fields
    that it has. A source that has none of them is left out.
    """
    chosen = choice.connection_ids or tuple(catalog.connections)
    for name in chosen:
        if name not in catalog.connections:
            raise InvalidAuthorizationDetails(f"There is no connection '{name}'.", param="connection")
    touched: list[tuple[SourceDeclaration, tuple[ConnectionId, ...]]] = []
    for key, source in catalog.declarations.items():
        if connections := tuple(
            connection for connection in chosen if catalog.connections[connection].connector_key == key
        ):
            touched.append((source, connections))
    if not touched:
        raise InvalidAuthorizationDetails(
            "There is nothing to grant: nothing is connected.", param="connection"
        )
    _refuse_unknown(choice, [source for source, _ in touched])
    requests = (
        SelectionRequest(source.source_id, _streams(choice, source, connections))
        for source, connections in touched
    )
    return tuple(request for request in requests if request.streams)


def _refuse_unknown(choice: Choice, sources: Sequence[SourceDeclaration]) -> None:
    """Refuse a stream that no source has, and a field that the stream has in none."""
    for name in (*choice.streams, *dict(choice.fields)):
        if not any(name in source.streams for source in sources):
            raise InvalidAuthorizationDetails(f"There is no stream '{name}'.", param="stream")
    for name, fields in choice.fields:
        there = {
            field for source in sources if name in source.streams for field in source.streams[name].fields
        }
        for field in fields:
            if field not in there:
                raise InvalidAuthorizationDetails(f"'{name}' has no field '{field}'.", param="fields")


def _streams(
    choice: Choice, source: SourceDeclaration, connections: tuple[ConnectionId, ...]
) -> tuple[StreamRequest, ...]:
    if not (choice.streams or choice.fields):
        return (StreamRequest(WILDCARD, connections, since=choice.since, until=choice.until),)
    fields = dict(choice.fields)
    requests: list[StreamRequest] = []
    for name, stream in source.streams.items():
        chosen = tuple(field for field in fields.get(name, ()) if field in stream.fields) or None
        if chosen or (name in choice.streams and name not in fields):
            requests.append(StreamRequest(name, connections, chosen, since=choice.since, until=choice.until))
    return tuple(requests)


async def issue(
    ledger: Ledger, choice: Choice, conditions: Conditions, *, catalog: SourceCatalog, now: int
) -> Issued:
    """Make the grants of a choice, and the token that carries them."""
    return await issue_terms(ledger, chosen_terms(choice, catalog), conditions, now=now)


def chosen_terms(choice: Choice, catalog: SourceCatalog) -> list[Terms]:
    """Resolve a choice into concrete terms, one for each source.

    Raises:
        InvalidAuthorizationDetails: it names something that is not there.
    """
    return [resolve(request, catalog) for request in selections(choice, catalog)]


async def issue_terms(ledger: Ledger, terms: Sequence[Terms], conditions: Conditions, *, now: int) -> Issued:
    """Store the grants of concrete terms, and the token that carries them."""
    issued, kind, package_id = granted_terms(terms, conditions, now)
    token = mint()
    issued_token = IssuedToken(
        digest=digest_of(token),
        kind=kind,
        subject_id=OWNER,
        client_id=conditions.client_id,
        grant_id=None if package_id is not None else issued[0].grant.id,
        package_id=package_id,
        issued_at=now,
    )
    consumed_at = now if conditions.access_mode is AccessMode.SINGLE_USE else None
    await ledger.issue([replace(grant, consumed_at=consumed_at) for grant in issued], issued_token)
    return Issued(token, kind, tuple(grant.grant for grant in issued), package_id)


def granted_terms(
    terms: Sequence[Terms], conditions: Conditions, now: int
) -> tuple[list[IssuedGrant], TokenKind, PackageId | None]:
    """Make grants of concrete terms: one alone for a client, several as a package."""
    package_id = PackageId(fresh_id("pkg")) if len(terms) > 1 else None
    grants = [
        IssuedGrant(_grant(term, conditions, now), package_id, daily_records=conditions.daily_records)
        for term in terms
    ]
    return grants, TokenKind.CLIENT if package_id is None else TokenKind.MCP_PACKAGE, package_id


async def issue_owner_token(
    ledger: Ledger,
    *,
    now: int,
    name: str | None = None,
    scope: OwnerScope | None = None,
    days: int | None = None,
) -> str:
    """Make a token that speaks for the owner; with a scope, only for that."""
    token = mint()
    await ledger.add_token(
        IssuedToken(
            digest=digest_of(token),
            kind=TokenKind.OWNER,
            subject_id=OWNER,
            issued_at=now,
            expires_at=None if days is None else now + days * DAY_US,
            name=name,
            scope=scope,
        )
    )
    return token


def _grant(terms: Terms, conditions: Conditions, now: int) -> Grant:
    return Grant(
        id=GrantId(fresh_id("grt")),
        subject_id=OWNER,
        client_id=conditions.client_id,
        source_id=terms.source.source_id,
        source_kind=terms.source.source_kind,
        declaration_version=terms.source.version,
        purpose_code=conditions.purpose_code,
        access_mode=conditions.access_mode,
        streams=terms.streams,
        issued_at=now,
        expires_at=None if conditions.days is None else now + conditions.days * DAY_US,
    )


async def revoke_grant(
    ledger: Ledger, admission: Admission, token: str, grant_id: GrantId, *, clock: Callable[[], int]
) -> None:
    """End a grant for good, at once. A client may end a grant of its token, even one that is over."""
    holder = await admission.look_up(token)
    if holder is None:
        raise AuthenticationFailed
    issued = holder.token
    if issued.scope is not None:
        raise PermissionRefused(f"The owner limited this token to {issued.scope.value}.")
    if issued.kind is not TokenKind.OWNER:
        grant_ids = {grant.grant.id for grant in holder.grants}
        if grant_id not in grant_ids:
            raise PermissionRefused("This is not a grant of this token.")
    if not await ledger.revoke(grant_id, clock()):
        raise NotFound(param="grant_id")
