"""What every engine's ledger does: grants, tokens, the owner's sign-in and the documents of the authorization server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest

from headgate.audit import journal as journals
from headgate.audit.chain import seal_block
from headgate.errors import GrantConsumed
from headgate.model.grant import OWNER, OwnerScope, TokenKind
from headgate.model.ids import ClientId, GrantId, PackageId
from headgate.model.instants import DAY_US
from headgate.model.ledger import (
    BrowserKind,
    BrowserSecret,
    IssuedGrant,
    IssuedToken,
    Passkey,
    SetupLink,
    SpentChallenge,
)
from headgate.store.ledger.ledger import Ledger
from headgate.store.ledger.oauth import OAuthRows
from tests.audit.chains import KEY, disclosure
from tests.policy.worlds import grant, stream_grant
from tests.store.ledgers import LedgerHome, OpenLedger

pytestmark = pytest.mark.anyio
ONE = IssuedGrant(grant(stream_grant("messages", "id"), id_="grt_1"), daily_records=40)
PACKAGE = PackageId("pkg_1")
MEMBERS = tuple(
    IssuedGrant(grant(stream_grant("messages", "id"), id_=f"grt_{letter}"), PACKAGE) for letter in "cab"
)


@pytest.fixture
async def opened(ledgers: LedgerHome) -> AsyncIterator[OpenLedger]:
    async with ledgers.opened() as made:
        yield made


@pytest.fixture
def ledger(opened: OpenLedger) -> Ledger:
    return opened.ledger


def token(letter: str, **more) -> IssuedToken:
    kind = TokenKind.CLIENT if more.keys() & {"grant_id", "package_id"} else TokenKind.OWNER
    return IssuedToken(letter.encode() * 32, kind, OWNER, issued_at=7, **more)


OF_ONE = token("1", grant_id=ONE.grant.id, client_id=ClientId("agent"), expires_at=9)
OF_PACKAGE = token("p", package_id=PACKAGE, client_id=ClientId("agent"))


async def test_a_holder_is_the_token_with_its_grants_as_they_are_at_the_version_they_come_with(
    ledger: Ledger,
):
    assert await ledger.holder(OF_ONE.digest) is None
    await ledger.issue([ONE], OF_ONE)
    found = await ledger.holder(OF_ONE.digest)
    assert found is not None
    assert (found.token, found.grants, found.version) == (OF_ONE, (ONE,), await ledger.version())


async def test_a_holder_of_a_package_has_all_its_grants_in_the_order_of_their_ids(ledger: Ledger):
    await ledger.issue([ONE], OF_ONE)
    await ledger.issue(MEMBERS, OF_PACKAGE)
    found = await ledger.holder(OF_PACKAGE.digest)
    assert found is not None
    assert [one.grant.id for one in found.grants] == ["grt_a", "grt_b", "grt_c"]
    assert {one.package_id for one in found.grants} == {PACKAGE}


async def test_an_owners_token_is_held_without_grants(ledger: Ledger):
    owner = token("o", name="mine", scope=OwnerScope.INGEST, expires_at=DAY_US)
    await ledger.add_token(owner)
    found = await ledger.holder(owner.digest)
    assert found is not None
    assert (found.token, found.grants) == (owner, ())
    assert await ledger.owner_tokens() == (owner,)


@pytest.mark.parametrize("change", ["revoke", "narrow", "revoke_token", "new token", "new grant", "log"])
async def test_the_version_is_another_one_after_every_change(ledger: Ledger, change: str):
    await ledger.issue([ONE], OF_ONE)
    before = await ledger.version()
    assert await ledger.version() == before
    match change:
        case "revoke":
            await ledger.revoke(ONE.grant.id, 8)
        case "narrow":
            await ledger.replace_grant(ONE, replace(ONE, daily_records=1))
        case "revoke_token":
            await ledger.revoke_token(OF_ONE.digest, 8)
        case "new token":
            await ledger.add_token(token("o"))
        case "new grant":
            await ledger.issue(MEMBERS, OF_PACKAGE)
        case _:
            await ledger.append("j", 0, _line(1), partial(seal_block, KEY))
    assert await ledger.version() != before


async def test_a_change_of_another_process_is_seen_by_the_next_look_up(ledgers: LedgerHome, ledger: Ledger):
    await ledger.issue([ONE], OF_ONE)
    before = await ledger.version()
    async with ledgers.opened() as other:
        assert await other.ledger.revoke(ONE.grant.id, 8)
    found = await ledger.holder(OF_ONE.digest)
    assert found is not None
    assert found.version != before
    assert found.version == await ledger.version()
    assert found.grants == (replace(ONE, revoked_at=8),)


async def test_a_revocation_keeps_the_first_time_and_says_whether_there_was_anything(ledger: Ledger):
    await ledger.issue([ONE], OF_ONE)
    assert [await ledger.revoke(ONE.grant.id, at) for at in (8, 9)] == [True, True]
    assert not await ledger.revoke(GrantId("grt_none"), 8)
    assert await ledger.grant(ONE.grant.id) == replace(ONE, revoked_at=8)
    assert [await ledger.revoke_token(OF_ONE.digest, at) for at in (8, 9)] == [True, True]
    assert not await ledger.revoke_token(b"?" * 32, 8)
    found = await ledger.holder(OF_ONE.digest)
    assert found is not None
    assert found.token.revoked_at == 8


async def test_grants_and_their_token_are_issued_all_or_not_at_all(ledger: Ledger):
    await ledger.issue([ONE], OF_ONE)
    with pytest.raises(GrantConsumed):
        await ledger.issue([*MEMBERS, ONE], OF_PACKAGE)
    assert await ledger.holder(OF_PACKAGE.digest) is None
    assert await ledger.grants() == (ONE,)


async def test_a_grant_is_replaced_only_if_it_is_what_it_was(ledger: Ledger):
    await ledger.issue([ONE], OF_ONE)
    narrowed = replace(ONE, daily_records=1)
    assert await ledger.replace_grant(ONE, narrowed)
    assert not await ledger.replace_grant(ONE, replace(ONE, daily_records=2))
    assert await ledger.grant(ONE.grant.id) == narrowed


async def test_what_was_shown_is_counted_with_the_lines_that_show_it(ledger: Ledger):
    await ledger.append("j", 0, _line(1) + _line(2) + _line(DAY_US), partial(seal_block, KEY))
    grant_id = GrantId("g")
    assert [await ledger.spent(grant_id, day) for day in (0, 1, 2)] == [2, 1, 0]
    assert await ledger.shown_since(0) == {(grant_id, 0): 2, (grant_id, 1): 1}
    assert await ledger.shown_since(1) == {(grant_id, 1): 1}


async def test_how_far_a_journal_was_taken_is_known_until_it_is_forgotten(ledger: Ledger):
    line = _line(1)
    assert await ledger.taken("j") == 0
    await ledger.append("j", 0, line, partial(seal_block, KEY))
    assert await ledger.taken("j") == len(line)
    await ledger.forget_journal("j")
    assert await ledger.taken("j") == 0


def _line(at: int) -> bytes:
    return journals._encode(disclosure(at)) + b"\n"


# The owner's sign-in


async def test_a_link_sets_one_password_and_is_gone(ledger: Ledger):
    owner, link = ledger.owner, SetupLink(b"l" * 32, 9)
    assert (await owner.password(), await owner.link()) == (None, None)
    await owner.put_link(link)
    assert await owner.link() == link
    assert not await owner.set_password("wrong", SetupLink(b"m" * 32, 9))
    assert await owner.set_password("hash", link)
    assert not await owner.set_password("again", link)
    assert (await owner.password(), await owner.link()) == ("hash", None)


async def test_a_browser_holds_one_secret_of_a_kind_until_it_is_removed(ledger: Ledger):
    owner = ledger.owner
    first, second, known = (
        BrowserSecret(letter * 32, kind, 1, 1, 1)
        for letter, kind in (
            (b"1", BrowserKind.SESSION),
            (b"2", BrowserKind.SESSION),
            (b"3", BrowserKind.KNOWN),
        )
    )
    await owner.put_browser(first)
    await owner.put_browser(known)
    assert await owner.browser(first.digest, BrowserKind.KNOWN) is None
    await owner.put_browser(second, replaces=first.digest)
    assert await owner.browser(first.digest, BrowserKind.SESSION) is None
    used = replace(second, used_at=5, proved_at=4)
    await owner.note_use(used)
    await owner.note_use(first)
    assert await owner.browser(second.digest, BrowserKind.SESSION) == used
    assert await owner.browser(first.digest, BrowserKind.SESSION) is None
    await owner.put_browser(first)
    await owner.end_sessions(but=first.digest)
    assert await owner.browser(second.digest, BrowserKind.SESSION) is None
    assert await owner.browser(first.digest, BrowserKind.SESSION) == first
    assert await owner.browser(known.digest, BrowserKind.KNOWN) == known
    await owner.remove_browser(first.digest)
    assert await owner.browser(first.digest, BrowserKind.SESSION) is None


async def test_a_passkey_is_stored_with_a_challenge_that_was_not_answered_before(ledger: Ledger):
    owner, key = ledger.owner, Passkey(b"id", "localhost", "Phone", b"public", 0, 5)
    challenge = SpentChallenge(b"c" * 32, 100)
    assert await owner.put_passkey(key, challenge)
    used = replace(key, uses=1, used_at=6)
    assert not await owner.put_passkey(used, challenge)
    assert await owner.put_passkey(used, SpentChallenge(b"d" * 32, 100))
    older = replace(key, id=b"older", made_at=4)
    assert await owner.put_passkey(older, SpentChallenge(b"e" * 32, 100))
    assert list(await owner.passkeys()) == [older, used]
    assert [await owner.remove_passkey(b"older") for _ in range(2)] == [True, False]


async def test_a_reset_leaves_a_link_and_nothing_else(ledger: Ledger):
    owner, secret = ledger.owner, BrowserSecret(b"1" * 32, BrowserKind.SESSION, 1, 1, 1)
    await owner.set_password("hash", None)
    await owner.put_browser(secret)
    await owner.put_passkey(
        Passkey(b"id", "localhost", "Phone", b"public", 0, 5), SpentChallenge(b"c" * 32, 9)
    )
    await owner.reset(SetupLink(b"l" * 32, 9))
    assert (await owner.password(), await owner.link()) == (None, SetupLink(b"l" * 32, 9))
    assert await owner.browser(secret.digest, BrowserKind.SESSION) is None
    assert not await owner.passkeys()


# The authorization server


async def test_documents_are_found_by_kind_and_key_until_they_end(opened: OpenLedger):
    def work(rows: OAuthRows) -> None:
        rows.put("client", b"b", b"second", expires_at=None)
        rows.put("client", b"a", b"first", expires_at=5)
        rows.put("code", b"a", b"other", expires_at=6)

    await opened.oauth.change(work)
    assert await opened.oauth.get("client", b"a") == b"first"
    assert await opened.oauth.get("code", b"b") is None
    assert list(await opened.oauth.all("client")) == [b"first", b"second"]
    await opened.oauth.change(lambda rows: rows.remove_ended(5))
    assert list(await opened.oauth.all("client")) == [b"second"]
    assert await opened.oauth.get("code", b"a") == b"other"


async def test_a_change_that_fails_writes_nothing(opened: OpenLedger):
    def work(rows: OAuthRows) -> None:
        rows.put("client", b"a", b"first", expires_at=None)
        rows.put_grants([ONE])
        assert rows.get("client", b"a") == b"first"
        raise GrantConsumed

    with pytest.raises(GrantConsumed):
        await opened.oauth.change(work)
    assert await opened.oauth.get("client", b"a") is None
    assert await opened.ledger.grants() == ()


async def test_the_tokens_of_a_family_end_together_and_its_grants_with_them(opened: OpenLedger):
    ledger, other = opened.ledger, token("2", grant_id=ONE.grant.id)

    def issue(rows: OAuthRows) -> None:
        rows.put_grants([ONE])
        rows.consume([ONE.grant.id], 3)
        rows.put_token(OF_ONE, "fam_1")
        rows.put_token(other, "fam_2")

    await opened.oauth.change(issue)
    assert await opened.oauth.change(lambda rows: rows.family_of(OF_ONE.digest)) == "fam_1"
    assert await opened.oauth.change(lambda rows: [*rows.grants([ONE.grant.id, GrantId("grt_x")])]) == [
        replace(ONE, consumed_at=3)
    ]

    def end(rows: OAuthRows) -> None:
        rows.revoke_family("fam_1", 4)
        rows.revoke_grants([ONE.grant.id], 5)

    await opened.oauth.change(end)
    ended, left = await ledger.holder(OF_ONE.digest), await ledger.holder(other.digest)
    assert ended is not None
    assert left is not None
    assert (ended.token.revoked_at, left.token.revoked_at) == (4, None)
    assert ended.grants == left.grants == (replace(ONE, consumed_at=3, revoked_at=5),)
