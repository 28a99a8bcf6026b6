"""The ledger of a store: grants, tokens and the chain of disclosures.

It keeps and finds; who may do what with a grant is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol, TypeVar

import msgspec

from headgate.errors import Conflict, GrantConsumed, GrantInvalid
from headgate.model.grant import OWNER, Grant, OwnerScope, TokenKind
from headgate.model.ids import ClientId, GrantId, PackageId, SubjectId
from headgate.model.ledger import (
    AuditBlock,
    AuditEntry,
    ChainHead,
    Holder,
    IssuedGrant,
    IssuedToken,
    PrunedRange,
    SealedBlock,
    ShownRecords,
)
from headgate.store.ledger.owner import OwnerStore
from headgate.store.sql.database import Database

_NO_END = 2**62
_T = TypeVar("_T")

#: Makes the block after a head out of lines; None is the head of an empty chain.
SealLines = Callable[[ChainHead | None, bytes], SealedBlock]


class BudgetCounter(Protocol):
    """Counts records for daily limits, in one place for every process."""

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int:
        """Count as many of some records of a grant for a day as its limit leaves; a negative number is given back.

        Returns how many were left before.
        """
        ...


class LedgerConnections(Protocol):
    """How an engine runs the statements of a ledger."""

    async def version(self) -> int:
        """Return the version; it differs after every write that a look-up may depend on."""
        ...

    async def look_up(self, work: Callable[[Database], _T]) -> _T:
        """Run a short query."""
        ...

    async def scan(self, work: Callable[[Database], _T]) -> _T:
        """Read rows one by one, as many as are needed."""
        ...

    async def change(self, work: Callable[[Database], _T], *, is_small: bool = True) -> _T:
        """Do some work in one write transaction, after which the version is another one.

        What is small is done also where the disk has no room for more.
        """
        ...

    async def log(self, work: Callable[[Database], _T]) -> _T:
        """Do some work on the chain in one write transaction."""
        ...

    async def close(self) -> None: ...


class Ledger:
    """Grants, tokens, disclosures, over the connections of an engine, which may answer over a network."""

    def __init__(self, connections: LedgerConnections) -> None:
        self.connections = connections
        #: Returns the version; it differs after every write, so older look-ups are stale.
        self.version = connections.version

    @property
    def owner(self) -> OwnerStore:
        """What is stored about the owner's sign-in."""
        return OwnerStore(self.connections)

    async def holder(self, digest: bytes) -> Holder | None:
        """Look up a token, its grants and the version they have, as they are at this moment."""
        # Read first: what another process writes meanwhile then counts as newer than what is found.
        version = await self.connections.version()
        return await self.connections.look_up(lambda database: self.holder_in(database, digest, version))

    def holder_in(self, database: Database, digest: bytes, version: int) -> Holder | None:
        """Look up a token and its grants on a connection that is given."""
        row = database.one(database.sql["find_token"], (digest,))
        if row is None:
            return None
        token = _token(digest, row)
        return Holder(token, self._grants_of(database, token), version)

    def _grants_of(self, database: Database, token: IssuedToken) -> tuple[IssuedGrant, ...]:
        if token.package_id is not None:
            rows = database.all(database.sql["grants_of_package"], (token.package_id,))
        elif token.grant_id is not None:
            rows = database.all(database.sql["grant_by_id"], (token.grant_id,))
        else:
            rows = []
        return tuple(self._issued(row) for row in rows)

    async def grant(self, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up, as it is at this moment."""
        return await self.connections.look_up(lambda database: self.grant_in(database, grant_id))

    def grant_in(self, database: Database, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up on a connection that is given."""
        row = database.one(database.sql["grant_by_id"], (grant_id,))
        return None if row is None else self._issued(row)

    async def grants(self) -> tuple[IssuedGrant, ...]:
        """Return every grant, newest first."""
        return tuple(self._issued(row) for row in await self._all("all_grants"))

    async def spent(self, grant_id: GrantId, day: int) -> int:
        """Return how many records were shown under a grant on a day."""
        rows = await self._all("spent_records", (grant_id, day))
        return rows[0][0] if rows else 0

    async def shown_since(self, day: int) -> ShownRecords:
        """Return how many records were shown under each grant on each day from a day on."""
        rows = await self._all("shown_since", (day,))
        return {(GrantId(grant), at): records for grant, at, records in rows}

    async def owner_tokens(self) -> tuple[IssuedToken, ...]:
        """Return every token that speaks for the owner, newest first."""
        rows = await self._all("owner_tokens", (TokenKind.OWNER.value,))
        return tuple(_owner_token(*row) for row in rows)

    async def revoke_token(self, digest: bytes, at: int) -> bool:
        """End a token for good; returns whether it was there."""

        def work(database: Database) -> bool:
            database.run(database.sql["revoke_token"], (at, digest))
            return database.one(database.sql["token_exists"], (digest,)) is not None

        return await self.connections.change(work)

    async def issue(self, grants: Sequence[IssuedGrant], token: IssuedToken) -> None:
        """Keep grants and the token for them, all or nothing."""

        def work(database: Database) -> None:
            for grant in grants:
                if database.one(database.sql["grant_exists"], (grant.grant.id,)) is not None:
                    raise GrantConsumed
            put_grants(database, grants)
            put_token(database, token)

        await self.connections.change(work, is_small=False)

    async def add_token(self, token: IssuedToken) -> None:
        """Keep a token for what is there already."""
        await self.connections.change(lambda database: put_token(database, token), is_small=False)

    async def replace_grant(self, before: IssuedGrant, after: IssuedGrant) -> bool:
        """Keep a grant with other terms under the same id; returns whether it was there as it was before."""

        def work(database: Database) -> bool:
            row = database.one(database.sql["grant_by_id"], (before.grant.id,))
            if row is None or msgspec.json.decode(row[0], type=Grant) != before.grant:
                return False
            if (row[2], row[4]) != (before.revoked_at, before.daily_records):
                return False
            database.run(
                database.sql["replace_grant"],
                (msgspec.json.encode(after.grant), after.daily_records, after.grant.id),
            )
            return True

        return await self.connections.change(work)

    async def revoke(self, grant_id: GrantId, at: int) -> bool:
        """End a grant for good; returns whether it was there."""

        def work(database: Database) -> bool:
            database.run(database.sql["revoke_grant"], (at, grant_id))
            return database.one(database.sql["grant_exists"], (grant_id,)) is not None

        return await self.connections.change(work)

    async def append(self, journal: str, start: int, lines: bytes, seal: SealLines) -> ChainHead:
        """Add the lines of a journal to the chain as a block, each once, however often they are passed."""
        return await self.connections.log(lambda database: _append(database, journal, start, lines, seal))

    async def prune(self, line: AuditBlock) -> None:
        """Put the line that stands for the oldest blocks in their place."""
        await self.connections.log(lambda database: _prune(database, line))

    async def forget_journal(self, journal: str) -> None:
        """Forget how far a journal was taken over; it is gone."""
        await self.connections.log(lambda database: database.run(database.sql["delete_journal"], (journal,)))

    async def taken(self, journal: str) -> int:
        """Return how many bytes of a journal are in the chain."""
        rows = await self._all("journal_taken", (journal,))
        return rows[0][0] if rows else 0

    async def counted_entries(self) -> int:
        """Return how many entries were ever added to the chain; 0 if that is not known."""
        rows = await self._all("counted_entries")
        return rows[0][0] if rows else 0

    async def blocks(self, after: int, limit: int) -> tuple[AuditBlock, ...]:
        """Read the chain in order as it is sealed, a piece at a time; begins with what ends after a place."""

        def work(database: Database) -> tuple[AuditBlock, ...]:
            return tuple(_block(*row) for row in database.all(database.sql["chain_blocks"], (after, limit)))

        return await self.connections.scan(work)

    async def entries(self, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain in order, a piece at a time."""

        def work(database: Database) -> tuple[AuditEntry, ...]:
            blocks = _blocks(database, "chain_after", (after,))
            entries = (entry for block in blocks for entry in block.entries() if entry.seq > after)
            return tuple(islice(entries, limit))

        return await self.connections.scan(work)

    async def entries_with(self, text: str, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read those entries whose event holds a text."""
        looked_for = text.encode()

        def work(database: Database) -> tuple[AuditEntry, ...]:
            blocks = _blocks(database, "chain_with", (after, looked_for))
            entries = (entry for block in blocks for entry in block.entries() if entry.seq > after)
            return tuple(islice((entry for entry in entries if looked_for in entry.event), limit))

        return await self.connections.scan(work)

    @property
    def latest_time(self) -> int | None:
        """The latest time that a machine has seen, as far as this one knows; None: no others share the home."""
        return None

    async def raise_latest_time(self, at: int) -> None:
        """Let every machine know a time, from its next admission on."""

    async def newest(self, before: int | None, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain from its end, a piece at a time; the next one goes on before `first` of the last entry."""
        end = _NO_END if before is None else before

        def work(database: Database) -> tuple[AuditEntry, ...]:
            blocks = _blocks(database, "chain_backwards", (end - 1, _NO_END))
            # One statement reads one state of the chain. By the first event that an entry stands for: if what lies
            # before the end was pruned since the last piece, its line has a place after the end.
            entries = (entry for block in blocks for entry in reversed(block.entries()) if entry.first < end)
            return tuple(islice(entries, limit))

        return await self.connections.scan(work)

    async def close(self) -> None:
        """Close the connections."""
        await self.connections.close()

    async def _all(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return await self.connections.look_up(lambda database: database.all(database.sql[statement], values))

    def _issued(self, row: tuple[Any, ...]) -> IssuedGrant:
        document, package, revoked_at, consumed_at, daily_records = row
        return IssuedGrant(
            grant=_read_grant(document),
            package_id=package,
            revoked_at=revoked_at,
            consumed_at=consumed_at,
            daily_records=daily_records,
        )


# Grants never change, so what was read once need not be read again.
@lru_cache(maxsize=4096)
def _read_grant(document: bytes) -> Grant:
    try:
        return msgspec.json.decode(document, type=Grant)
    except msgspec.MsgspecError as error:
        raise GrantInvalid from error


def _token(digest: bytes, row: tuple[Any, ...]) -> IssuedToken:
    kind, subject, issued_at, client, grant, package, expires_at, revoked_at, name, scope = row
    return IssuedToken(
        digest=digest,
        kind=TokenKind(kind),
        subject_id=SubjectId(subject),
        issued_at=issued_at,
        client_id=None if client is None else ClientId(client),
        grant_id=None if grant is None else GrantId(grant),
        package_id=None if package is None else PackageId(package),
        expires_at=expires_at,
        revoked_at=revoked_at,
        name=name,
        scope=None if scope is None else OwnerScope(scope),
    )


def _blocks(database: Database, statement: str, values: tuple[Any, ...]) -> Iterator[AuditBlock]:
    """Read blocks one by one, as many as are asked for: each may hold thousands of entries."""
    return (_block(*row) for row in database.each(database.sql[statement], values))


def _append(database: Database, journal: str, start: int, lines: bytes, seal: SealLines) -> ChainHead:
    row = database.one(database.sql["journal_taken"], (journal,))
    known = 0 if row is None else max(row[0] - start, 0)
    head, new = _head(database), lines[known:]
    if not new:
        # Lines that were taken before are in the chain, so it has a head.
        assert head is not None
        return head
    sealed = seal(head, new)
    block = sealed.block
    database.run(database.sql["insert_audit"], (block.last, block.events, block.seal))
    database.run(database.sql["count_entries"], (block.last,))
    database.many(database.sql["add_spent"], [(*at, count) for at, count in sealed.shown.items() if count])
    database.run(database.sql["put_journal"], (journal, start + len(lines)))
    return ChainHead(block.last, block.seal)


def _prune(database: Database, line: AuditBlock) -> None:
    pruned, row = line.pruned, database.one(database.sql["last_pruned"])
    assert pruned is not None
    if pruned.first != (1 if row is None else row[0] + 1):
        raise Conflict("The log was pruned meanwhile.", hint="Run the command again, with another file.")
    values = (line.last, pruned.first, line.events, pruned.end_seal, line.seal)
    database.run(database.sql["insert_pruned"], values)
    database.run(database.sql["delete_pruned"], (line.last,))


def _block(last: int, events: bytes, seal: bytes, first: int | None, end_seal: bytes | None) -> AuditBlock:
    pruned = None if first is None or end_seal is None else PrunedRange(first, end_seal)
    return AuditBlock(last, events, seal, pruned)


def _head(database: Database) -> ChainHead | None:
    row = database.one(database.sql["chain_head"])
    return None if row is None else ChainHead(*row)


def put_grants(database: Database, grants: Sequence[IssuedGrant]) -> None:
    """Write grants inside a transaction."""
    database.many(database.sql["insert_grant"], [_grant_row(grant) for grant in grants])


def put_token(database: Database, token: IssuedToken) -> None:
    """Write a token inside a transaction."""
    database.run(database.sql["insert_token"], _token_row(token))


def _grant_row(issued: IssuedGrant) -> tuple[Any, ...]:
    grant = issued.grant
    document = msgspec.json.encode(grant)
    return grant.id, document, issued.package_id, grant.issued_at, issued.consumed_at, issued.daily_records


def _token_row(token: IssuedToken) -> tuple[Any, ...]:
    return (
        token.digest,
        token.kind.value,
        token.subject_id,
        token.client_id,
        token.grant_id,
        token.package_id,
        token.issued_at,
        token.expires_at,
        token.name,
        None if token.scope is None else token.scope.value,
    )


def _owner_token(
    digest: bytes, issued_at: int, expires_at: int | None, revoked_at: int | None, *more: Any
) -> IssuedToken:
    name, scope = more
    return IssuedToken(
        digest=digest,
        kind=TokenKind.OWNER,
        subject_id=OWNER,
        issued_at=issued_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
        name=name,
        scope=None if scope is None else OwnerScope(scope),
    )
