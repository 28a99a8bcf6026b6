"""A model behind an OpenAI-compatible address, which the owner has chosen: texts and queries are sent there."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid, ModelUnavailable
from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity

_SECONDS = 30.0
_ANSWER_BYTES_MOST = 64 * 1024 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OK = 200


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


class EndpointEmbedder:
    """A model of another server."""

    batch_size = 32
    least_similarity = 0.2
    weight = 1.0

    def __init__(self, choice: str, key: str | None) -> None:
        address, _, model = choice.rpartition("#")
        self._address = checked_address(address)
        self._model = model
        self._key = key
        # Asked once, so that vectors are stored under the size that the model has.
        size = self._ask(["size"]).shape[1]
        digest = hashlib.sha256(choice.encode()).hexdigest()
        self.identity = ModelIdentity(model, digest, size)

    def embed(self, texts: Sequence[str]) -> Floats:
        vectors = self._ask(texts)
        if vectors.shape[1] != self.identity.dimensions:
            raise ModelUnavailable
        return vectors

    def _ask(self, texts: Sequence[str]) -> Floats:
        body = msgspec.json.encode({"model": self._model, "input": list(texts)})
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            answer = _sent(self._address, body, headers)
            embeddings = msgspec.json.decode(answer, type=_Embeddings).data
        except (OSError, http.client.HTTPException, msgspec.MsgspecError) as error:
            raise ModelUnavailable from error
        vectors = {item.index: item.embedding for item in embeddings}
        if (
            sorted(vectors) != list(range(len(texts)))
            or len({len(vector) for vector in vectors.values()}) != 1
        ):
            raise ModelUnavailable
        return np.array([vectors[number] for number in range(len(texts))], np.float32)


def checked_address(address: str) -> SplitResult:
    """Refuse an address to which texts would go unencrypted."""
    parts = urlsplit(address)
    if not parts.hostname or not (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    ):
        raise ConfigInvalid(
            "The address of a model must begin with https://, or lead to this machine.",
            param="semantic_model",
        )
    return parts


def _sent(address: SplitResult, body: bytes, headers: dict[str, str]) -> bytes:
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=_SECONDS)
    try:
        connection.request("POST", f"{address.path.rstrip('/')}/embeddings", body, headers)
        response = connection.getresponse()
        content = response.read(_ANSWER_BYTES_MOST)
    finally:
        connection.close()
    if response.status != _OK:
        raise ModelUnavailable
    return content
