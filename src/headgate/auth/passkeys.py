"""Passkeys (WebAuthn): made and checked for one configured server name, always with the user verified.

The signatures, formats and flags are checked by the ``fido2`` library. Ours is what it leaves to its users: which
names there are (from the settings, never from a header), which challenge was given for what, and that it is answered
once. A challenge is a sealed token, so that giving one writes nothing: strangers can ask for as many as they like.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlsplit

from headgate.auth.clock import LatestTime
from headgate.errors import AuthenticationFailed, InvalidRequest, NotFound, SealBroken
from headgate.model.ledger import Passkey, SpentChallenge
from headgate.model.sealed import Kind, Sealer
from headgate.store.ledger.owner import OwnerStore

_SECOND_US = 1_000_000
_CHALLENGE_SECONDS = 600
_CHALLENGE_BYTES = 16
_MARK_CHARS = 12
_MOST_NAME_CHARS = 60
_MOST_PASSKEYS = 20
_REQUIRED = "required"
_LOCAL = "localhost"
#: What the library raises on bytes that no authenticator made.
_BAD = (
    *(ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError),
    *(NotImplementedError, RecursionError, struct.error),
)


@dataclass(frozen=True, slots=True)
class PasskeyParty:
    """A name of this server that passkeys can be made for, and the one origin whose pages may use them."""

    id: str
    origin: str


def passkey_names(public_url: str, host: str, port: int) -> tuple[PasskeyParty, ...]:
    """Work out the names from the settings: browsers make passkeys for names, over https or on ``localhost``."""
    parts = urlsplit(public_url)
    is_public = parts.scheme == "https" and parts.hostname is not None and not _is_address(parts.hostname)
    public = [PasskeyParty(cast("str", parts.hostname), public_url)] if is_public else []
    is_local = host == _LOCAL or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    return (*public, *([PasskeyParty(_LOCAL, f"http://{_LOCAL}:{port}")] if is_local else []))


class Passkeys:
    """Makes and checks the owner's passkeys."""

    __slots__ = ("_clock", "_latest", "_parties", "_sealer", "_store")

    def __init__(
        self,
        store: OwnerStore,
        *,
        sealer: Sealer,
        clock: Callable[[], int],
        latest: LatestTime,
        names: Sequence[PasskeyParty],
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._latest = latest
        self._parties = {name.id: name for name in names}

    def party(self, name: str) -> PasskeyParty | None:
        """Find the configured name by which a browser calls; None if passkeys cannot be made for it."""
        return self._parties.get(name)

    def local(self) -> PasskeyParty | None:
        """Return the name by which a browser on this machine can use passkeys: an address such as 127.0.0.1 is none."""
        return self._parties.get(_LOCAL)

    async def all(self) -> Sequence[Passkey]:
        return await self._store.passkeys()

    async def usable(self, party: PasskeyParty | None) -> bool:
        """Return whether there is a passkey for a name."""
        return party is not None and any(passkey.party == party.id for passkey in await self.all())

    async def options_to_add(self, party: PasskeyParty, session: bytes) -> dict[str, Any]:
        """Write what a browser needs to make a passkey, as WebAuthn's JSON."""
        challenge = self._challenge(party, b"add" + session)
        options, _ = _server(party).register_begin(
            {"id": b"owner", "name": "owner", "displayName": "Headgate owner"},
            credentials=[_attested(passkey) for passkey in await self.all() if passkey.party == party.id],
            resident_key_requirement=_REQUIRED,
            user_verification=_REQUIRED,
            challenge=challenge,
        )
        return _document(options)

    async def add(self, party: PasskeyParty, session: bytes, name: str, answer: Mapping[str, Any]) -> Passkey:
        """Store the passkey that a browser made."""
        if len(await self.all()) >= _MOST_PASSKEYS:
            raise InvalidRequest("There are too many passkeys.", hint="Remove one that you no longer use.")
        try:
            challenge, spent = self._opened(party, b"add" + session, answer)
            registration = _server(party).register_complete(_state(challenge), answer)
            credential = registration.credential_data
            assert credential is not None
            _check_algorithm(credential)
        except _BAD:
            raise _refused() from None
        passkey = Passkey(
            bytes(credential.credential_id), party.id, _plain(name), bytes(credential), registration.counter,
            self._now(),
        )  # fmt: skip
        known = any(other.id == passkey.id for other in await self.all())
        if known or not await self._store.put_passkey(passkey, spent):
            raise _refused()
        return passkey

    def options(self, party: PasskeyParty, purpose: bytes) -> dict[str, Any]:
        """Write what a browser needs to use a passkey; none is named, so that strangers learn of none."""
        challenge = self._challenge(party, purpose)
        options, _ = _server(party).authenticate_begin(user_verification=_REQUIRED, challenge=challenge)
        return _document(options)

    async def check(self, party: PasskeyParty, purpose: bytes, answer: Mapping[str, Any]) -> Passkey:
        """Check what a browser signed with a passkey; its challenge is used up by that."""
        known = [candidate for candidate in await self.all() if candidate.party == party.id]
        try:
            challenge, spent = self._opened(party, purpose, answer)
            credentials = [_attested(candidate) for candidate in known]
            credential = _server(party).authenticate_complete(_state(challenge), credentials, answer)
            uses = _counter(answer)
        except _BAD:
            raise _refused() from None
        passkey = next(candidate for candidate in known if candidate.id == bytes(credential.credential_id))
        # A counter that does not grow means a cloned authenticator.
        if (uses or passkey.uses) and uses <= passkey.uses:
            raise _refused()
        used = replace(passkey, uses=uses, used_at=self._now())
        if not await self._store.put_passkey(used, spent):
            raise _refused()
        return used

    async def remove(self, mark: str) -> None:
        passkey = next((candidate for candidate in await self.all() if passkey_mark(candidate) == mark), None)
        if passkey is None or not await self._store.remove_passkey(passkey.id):
            raise NotFound("There is no such passkey.")

    def _challenge(self, party: PasskeyParty, purpose: bytes) -> bytes:
        ends_at = self._now() // _SECOND_US + _CHALLENGE_SECONDS
        sealed = self._sealer.seal(
            Kind.CHALLENGE,
            secrets.token_bytes(_CHALLENGE_BYTES),
            binding=_binding(party, purpose),
            expires_at=ends_at,
        )
        return sealed.encode()

    def _opened(
        self, party: PasskeyParty, purpose: bytes, answer: Mapping[str, Any]
    ) -> tuple[bytes, SpentChallenge]:
        """Find the challenge that an answer was signed for, if it was given for this purpose and has not ended."""
        challenge, now = _signed_challenge(answer), self._now()
        try:
            self._sealer.open(
                Kind.CHALLENGE, challenge.decode(), binding=_binding(party, purpose), now=now // _SECOND_US
            )
        except SealBroken:
            raise ValueError("the challenge was given for something else") from None
        ends_at = now + (_CHALLENGE_SECONDS + 1) * _SECOND_US
        return challenge, SpentChallenge(hashlib.sha256(challenge).digest(), ends_at)

    def _now(self) -> int:
        return self._latest.raise_to(self._clock())


def passkey_mark(passkey: Passkey) -> str:
    """Name a passkey shortly, where its id would be too long."""
    return hashlib.sha256(passkey.id).hexdigest()[:_MARK_CHARS]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _server(party: PasskeyParty) -> Any:
    # Slow to import, and used seldom.
    from fido2.server import Fido2Server  # noqa: PLC0415
    from fido2.webauthn import PublicKeyCredentialRpEntity  # noqa: PLC0415

    entity = PublicKeyCredentialRpEntity(id=party.id, name="Headgate")
    return Fido2Server(entity, verify_origin=lambda origin: origin == party.origin)


def _attested(passkey: Passkey) -> Any:
    from fido2.webauthn import AttestedCredentialData  # noqa: PLC0415 - slow to import

    return AttestedCredentialData(passkey.public_key)


def _check_algorithm(credential: Any) -> None:
    from fido2.cose import CoseKey  # noqa: PLC0415 - slow to import

    if credential.public_key.get(3) not in CoseKey.supported_algorithms():
        raise ValueError("signatures of this key cannot be checked")


def _signed_challenge(answer: Mapping[str, Any]) -> bytes:
    from fido2.utils import websafe_decode  # noqa: PLC0415 - slow to import
    from fido2.webauthn import CollectedClientData  # noqa: PLC0415

    return CollectedClientData(websafe_decode(answer["response"]["clientDataJSON"])).challenge


def _counter(answer: Mapping[str, Any]) -> int:
    from fido2.webauthn import AuthenticationResponse  # noqa: PLC0415 - slow to import

    return AuthenticationResponse.from_dict(answer).response.authenticator_data.counter


def _state(challenge: bytes) -> dict[str, str]:
    from fido2.utils import websafe_encode  # noqa: PLC0415 - slow to import

    return {"challenge": websafe_encode(challenge), "user_verification": _REQUIRED}


def _document(options: Any) -> dict[str, Any]:
    return dict(options)


def _binding(party: PasskeyParty, purpose: bytes) -> bytes:
    return party.id.encode() + b"\0" + purpose


def _plain(name: str) -> str:
    plain = " ".join("".join(character if character.isprintable() else " " for character in name).split())
    return plain[:_MOST_NAME_CHARS] or "Passkey"


def _refused() -> AuthenticationFailed:
    return AuthenticationFailed(
        "The passkey was not accepted.", hint="Try again, with the device's PIN, fingerprint or face."
    )
