"""The ledger in the store's file: grants, tokens and the chain of disclosures.

Look-ups run on the event loop's own connection, like every short read; changes wait for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import apsw
import msgspec

from headgate.errors import GrantConsumed, GrantInvalid, StorageFull
from headgate.home import Home, revocation_reserve
from headgate.model.grant import OWNER, Grant, OwnerScope, TokenKind
from headgate.model.ids import ClientId, GrantId, PackageId, SubjectId
from headgate.model.ledger import AuditBlock, AuditEntry, ChainHead, IssuedGrant, IssuedToken, ShownRecords
from headgate.store.ledger import SealLines
from headgate.store.sqlite.database import Database, open_reader, translate_errors
from headgate.store.sqlite.owner import SqliteOwnerStore
from headgate.store.sqlite.paths import FILE
from headgate.store.sqlite.readonly import NoWriter, start_writer

_REMEMBERED = 4096
_T = TypeVar("_T")


_GRANT = "SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued"
_FIND = (
    "SELECT kind, subject_id, issued_at, client_id, grant_id, package_id, expires_at, revoked_at, name, scope"
    " FROM token WHERE digest=?"
)
_BLOCK = "SELECT seq, events, seal FROM audit"
#: Every block that holds something before a place, newest first: the last of them may reach beyond it.
_BACKWARDS = f"{_BLOCK} WHERE seq <= ifnull((SELECT min(seq) FROM audit WHERE seq >= ?), ?) ORDER BY seq DESC"
_NO_END = 2**62
_PUT_GRANT = (
    "INSERT INTO grant_issued(id, document, package_id, issued_at, consumed_at, daily_records)"
    " VALUES(?, ?, ?, ?, ?, ?)"
)
_KEEP = (
    "INSERT INTO token(digest, kind, subject_id, client_id, grant_id, package_id, issued_at, expires_at, name, scope)"
    " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PUT_SPENT = (
    "INSERT INTO spent VALUES(?, ?, ?)"
    " ON CONFLICT(grant_id, day) DO UPDATE SET records = records + excluded.records"
)
_PUT_JOURNAL = "INSERT INTO audit_journal VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET taken = excluded.taken"


class SqliteLedger:
    """The ledger of a home whose store has been opened; implements headgate.store.ledger.Ledger."""

    def __init__(self, home: Home) -> None:
        self._path = home.path / FILE
        self._reader = open_reader(self._path)
        self._writer = start_writer(self._path)
        self._reserve = revocation_reserve(home.path)
        #: Grants never change, so what was read once need not be read again.
        self._documents: dict[bytes, Grant] = {}

    @property
    def owner(self) -> SqliteOwnerStore:
        """What is stored about the owner's sign-in."""
        return SqliteOwnerStore(self._reader, lambda: self._writer)

    def version(self) -> int:
        """Give a number that is another one after anything was written: what was looked up before may be old."""
        try:
            return self._reader.version()
        except apsw.Error:
            # Asked for at every request, so nothing is prepared for a failure before there is one.
            with translate_errors():
                raise

    def token(self, digest: bytes) -> IssuedToken | None:
        """Look a token up, as it is at this moment."""
        row = self._one(_FIND, (digest,))
        if row is None:
            return None
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

    def grant(self, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up, as it is at this moment."""
        with translate_errors():
            return self.grant_in(self._reader, grant_id)

    def grant_in(self, database: Database, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up on a connection that is given."""
        row = database.one(f"{_GRANT} WHERE id=?", (grant_id,))
        return None if row is None else self._issued(row)

    def members(self, package_id: PackageId) -> tuple[IssuedGrant, ...]:
        """Look up the grants of a package, as they are at this moment."""
        rows = self._all(f"{_GRANT} WHERE package_id=? ORDER BY id", (package_id,))
        return tuple(self._issued(row) for row in rows)

    def grants(self) -> tuple[IssuedGrant, ...]:
        """Give every grant, newest first."""
        return tuple(self._issued(row) for row in self._all(f"{_GRANT} ORDER BY issued_at DESC, id"))

    def spent(self, grant_id: GrantId, day: int) -> int:
        """Say how many records were shown under a grant on a day."""
        row = self._one("SELECT records FROM spent WHERE grant_id=? AND day=?", (grant_id, day))
        return 0 if row is None else row[0]

    def shown_since(self, day: int) -> ShownRecords:
        """Return how many records were shown under each grant on each day from a day on."""
        rows = self._all("SELECT grant_id, day, records FROM spent WHERE day >= ?", (day,))
        return {(GrantId(grant), at): records for grant, at, records in rows}

    def owner_tokens(self) -> tuple[IssuedToken, ...]:
        """Return every token that speaks for the owner, newest first."""
        rows = self._all(
            "SELECT digest, issued_at, expires_at, revoked_at, name, scope FROM token WHERE kind=?"
            " ORDER BY issued_at DESC, digest",
            (TokenKind.OWNER.value,),
        )
        return tuple(_owner_token(*row) for row in rows)

    async def revoke_token(self, digest: bytes, at: int) -> bool:
        """End a token for good. Says whether it was there."""

        def work(database: Database) -> bool:
            database.run("UPDATE token SET revoked_at=ifnull(revoked_at, ?) WHERE digest=?", (at, digest))
            return database.one("SELECT 1 FROM token WHERE digest=?", (digest,)) is not None

        return await self._writer.run(work, is_small=True)

    async def issue(self, grants: Sequence[IssuedGrant], token: IssuedToken) -> None:
        """Keep grants and the token for them, all or nothing."""

        def work(database: Database) -> None:
            for one in grants:
                if database.one("SELECT 1 FROM grant_issued WHERE id=?", (one.grant.id,)) is not None:
                    raise GrantConsumed
            put_grants(database, grants)
            put_token(database, token)

        await self._writer.run(work)

    async def add_token(self, token: IssuedToken) -> None:
        """Keep a token for what is there already."""
        await self._writer.run(lambda database: database.all(_KEEP, _token_row(token)))

    async def replace_grant(self, before: IssuedGrant, after: IssuedGrant) -> bool:
        """Keep a grant with other terms under the same id. Says whether it was there as it was before."""

        def work(database: Database) -> bool:
            row = database.one(f"{_GRANT} WHERE id=?", (before.grant.id,))
            if row is None or msgspec.json.decode(row[0], type=Grant) != before.grant:
                return False
            if (row[2], row[4]) != (before.revoked_at, before.daily_records):
                return False
            database.run(
                "UPDATE grant_issued SET document=?, daily_records=? WHERE id=?",
                (msgspec.json.encode(after.grant), after.daily_records, after.grant.id),
            )
            return True

        return await self._writer.run(work, is_small=True)

    async def revoke(self, grant_id: GrantId, at: int) -> bool:
        """End a grant for good. Says whether it was there."""

        def work(database: Database) -> bool:
            database.run(
                "UPDATE grant_issued SET revoked_at=? WHERE id=? AND revoked_at IS NULL", (at, grant_id)
            )
            return database.one("SELECT 1 FROM grant_issued WHERE id=?", (grant_id,)) is not None

        try:
            return await self._writer.run(work, is_small=True)
        except StorageFull:
            if not self._reserve.release():
                raise
        try:
            if isinstance(self._writer, NoWriter):
                self._writer = start_writer(self._path)
            return await self._writer.run(work, is_small=True)
        finally:
            self._reserve.make_what_fits()

    async def append(self, journal: str, start: int, lines: bytes, seal: SealLines) -> ChainHead:
        """Add the lines of a journal to the chain as a block, each once, however often they are passed."""
        return await self._writer.run(
            lambda database: _append(database, journal, start, lines, seal), is_small=True
        )

    async def forget_journal(self, journal: str) -> None:
        """Forget how far a journal was taken over; it is gone."""
        await self._writer.run(
            lambda database: database.run("DELETE FROM audit_journal WHERE name=?", (journal,)), is_small=True
        )

    def taken(self, journal: str) -> int:
        """Say how many bytes of a journal are in the chain."""
        row = self._one("SELECT taken FROM audit_journal WHERE name=?", (journal,))
        return 0 if row is None else row[0]

    def blocks(self, after: int, limit: int) -> tuple[AuditBlock, ...]:
        """Read the chain in order as it is sealed, a piece at a time; begins with what ends after a place."""
        rows = self._all(f"{_BLOCK} WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
        return tuple(AuditBlock(*row) for row in rows)

    def entries(self, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain in order, a piece at a time."""
        blocks = self._blocks(f"{_BLOCK} WHERE seq > ? ORDER BY seq", (after,))
        entries = (entry for block in blocks for entry in block.entries() if entry.seq > after)
        return tuple(islice(entries, limit))

    def entries_with(self, text: str, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read those entries whose event holds a text."""
        looked_for = text.encode()
        sql = f"{_BLOCK} WHERE seq > ? AND instr(events, ?) > 0 ORDER BY seq"
        blocks = self._blocks(sql, (after, looked_for))
        entries = (entry for block in blocks for entry in block.entries() if entry.seq > after)
        return tuple(islice((entry for entry in entries if looked_for in entry.event), limit))

    def newest(self, before: int | None, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain from its end, a piece at a time."""
        end = _NO_END if before is None else before
        blocks = self._blocks(_BACKWARDS, (end - 1, _NO_END))
        entries = (entry for block in blocks for entry in reversed(block.entries()) if entry.seq < end)
        return tuple(islice(entries, limit))

    def look_up(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run a short query on the event loop's connection."""
        return self._all(sql, values)

    async def change(self, work: Callable[[Database], _T]) -> _T:
        """Do some work in one write transaction."""
        return await self._writer.run(work, is_small=True)

    async def close(self) -> None:
        """Let go of the file."""
        self._reader.db.close()
        await self._writer.close()

    def _one(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with translate_errors():
            return self._reader.one(sql, values)

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with translate_errors():
            return self._reader.all(sql, values)

    def _blocks(self, sql: str, values: tuple[Any, ...]) -> Iterator[AuditBlock]:
        """Read blocks one by one, as many as are asked for: each may hold thousands of entries."""
        with translate_errors():
            for row in self._reader.db.execute(sql, values):
                yield AuditBlock(*row)

    def _issued(self, row: tuple[Any, ...]) -> IssuedGrant:
        document, package, revoked_at, consumed_at, daily_records = row
        return IssuedGrant(
            grant=self._document(document),
            package_id=package,
            revoked_at=revoked_at,
            consumed_at=consumed_at,
            daily_records=daily_records,
        )

    def _document(self, document: bytes) -> Grant:
        known = self._documents.get(document)
        if known is None:
            try:
                known = msgspec.json.decode(document, type=Grant)
            except msgspec.MsgspecError as error:
                raise GrantInvalid from error
            if len(self._documents) >= _REMEMBERED:
                self._documents.clear()
            self._documents[document] = known
        return known


def _append(database: Database, journal: str, start: int, lines: bytes, seal: SealLines) -> ChainHead:
    row = database.one("SELECT taken FROM audit_journal WHERE name=?", (journal,))
    known = 0 if row is None else max(row[0] - start, 0)
    head, new = _head(database), lines[known:]
    if not new:
        # Lines that were taken before are in the chain, so it has a head.
        assert head is not None
        return head
    sealed = seal(head, new)
    block = sealed.block
    database.run("INSERT INTO audit VALUES(?, ?, ?)", (block.last, block.events, block.seal))
    database.many(_PUT_SPENT, [(*at, count) for at, count in sealed.shown.items() if count])
    database.run(_PUT_JOURNAL, (journal, start + len(lines)))
    return ChainHead(block.last, block.seal)


def _head(database: Database) -> ChainHead | None:
    row = database.one("SELECT seq, seal FROM audit ORDER BY seq DESC LIMIT 1")
    return None if row is None else ChainHead(*row)


def put_grants(database: Database, grants: Sequence[IssuedGrant]) -> None:
    """Write grants inside a transaction."""
    database.many(_PUT_GRANT, [_grant_row(one) for one in grants])


def put_token(database: Database, token: IssuedToken) -> None:
    """Write a token inside a transaction."""
    database.run(_KEEP, _token_row(token))


def _grant_row(one: IssuedGrant) -> tuple[Any, ...]:
    grant = one.grant
    document = msgspec.json.encode(grant)
    return grant.id, document, one.package_id, grant.issued_at, one.consumed_at, one.daily_records


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
