"""An authenticator without a device: makes passkeys and signs with them, rightly or as a test wants it wrong."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

FLAG = AuthenticatorData.FLAG
VERIFIED = FLAG.UP | FLAG.UV
_OPTIONS = re.compile(r'data-passkey="([^"]*)"')


def options_in(page: str) -> dict[str, Any] | None:
    """Read what a page offers to a browser's script."""
    found = _OPTIONS.search(page)
    return json.loads(unescape(found[1])) if found else None


@dataclass
class Authenticator:
    """One passkey; the fields are what the next answer claims."""

    origin: str
    party: str
    flags: int = VERIFIED
    uses: int = 0
    id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, options: dict[str, Any]) -> str:
        """Answer options to make a passkey."""
        public = ES256.from_cryptography_key(self.key.public_key())
        data = AttestedCredentialData.create(b"\0" * 16, self.id, public)
        stated = AuthenticatorData.create(self._party_hash, self.flags | FLAG.AT, self.uses, data)
        attested = AttestationObject.create("none", stated, {})
        return self._answer("webauthn.create", options, attestationObject=websafe_encode(attested))

    def sign(self, options: dict[str, Any], kind: str = "webauthn.get") -> str:
        """Answer options to use the passkey."""
        self.uses += 1
        stated = AuthenticatorData.create(self._party_hash, self.flags, self.uses)
        signed = stated + self._client_data(kind, options).hash
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(
            kind, options, authenticatorData=websafe_encode(stated), signature=websafe_encode(signature)
        )

    @property
    def _party_hash(self) -> bytes:
        return hashlib.sha256(self.party.encode()).digest()

    def _client_data(self, kind: str, options: dict[str, Any]) -> CollectedClientData:
        return CollectedClientData.create(kind, options["challenge"], self.origin)

    def _answer(self, kind: str, options: dict[str, Any], **response: str) -> str:
        name = websafe_encode(self.id)
        own = {"clientDataJSON": websafe_encode(self._client_data(kind, options)), **response}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": own})
