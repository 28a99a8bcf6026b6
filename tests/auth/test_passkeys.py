"""Passkey answers of every shape: whatever is sent, it is refused in one way or it is the owner's."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from headgate.auth.clock import LatestTime
from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.auth.passkeys import PasskeyParty, Passkeys
from headgate.errors import AuthenticationFailed
from headgate.home import open_home
from headgate.model.ledger import Passkey
from tests.console.passkeys import Authenticator

PARTY = PasskeyParty("data.example", "https://data.example")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
#: Base64 that can be read, so that what is inside is read too.
BYTES = st.binary(max_size=200).map(lambda content: base64.urlsafe_b64encode(content).decode())


class Stored:
    def __init__(self) -> None:
        self.found: list[Passkey] = []

    async def passkeys(self) -> list[Passkey]:
        return self.found

    async def put_passkey(self, passkey: Passkey, _challenge: object) -> bool:
        self.found = [passkey]
        return True


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Passkeys, Authenticator]:
    sealer = RingSealer(KeyRing(SealKey(bytes(KEY_BYTES))))
    clock: Any = lambda: 1_800_000_000_000_000  # noqa: E731 - one line
    store: Any = Stored()
    latest = LatestTime(open_home(tmp_path_factory.mktemp("passkeys") / "home"))
    passkeys = Passkeys(store, sealer=sealer, clock=clock, latest=latest, names=[PARTY])
    device = Authenticator(PARTY.origin, PARTY.id)
    answer = json.loads(device.make(asyncio.run(passkeys.options_to_add(PARTY, b"session"))["publicKey"]))
    asyncio.run(passkeys.add(PARTY, b"session", "Phone", answer))
    return passkeys, device


@settings(max_examples=100, deadline=None)
@given(
    change=st.fixed_dictionaries(
        {},
        optional={
            "clientDataJSON": JSON | BYTES,
            "authenticatorData": JSON | BYTES,
            "signature": JSON | BYTES,
            "rawId": JSON | BYTES,
            "response": JSON,
        },
    ).filter(bool)
)
def test_no_changed_answer_is_accepted_and_each_is_refused_in_the_same_way(
    change: dict[str, Any], made: tuple[Passkeys, Authenticator]
):
    passkeys, device = made
    answer = json.loads(device.sign(passkeys.options(PARTY, b"sign in")["publicKey"]))
    outer = {name: value for name, value in change.items() if name in {"rawId", "response"}}
    inner = {name: value for name, value in change.items() if name not in outer}
    changed = {**answer, "response": {**answer["response"], **inner}, **outer}
    with pytest.raises(AuthenticationFailed) as refused:
        asyncio.run(passkeys.check(PARTY, b"sign in", changed))
    assert refused.value.message == "The passkey was not accepted."
    assert asyncio.run(passkeys.check(PARTY, b"sign in", answer)).uses == device.uses
