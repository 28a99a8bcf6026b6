"""Vectors of one byte a component, and the exact scan over them.

A vector is scaled so that its largest component is 127, so its length is needed to compare it: `inverse_lengths`.
The products are sums of integers, which every machine computes alike.
"""

from __future__ import annotations

from typing import Any

from headgate.store.format.arrays import np

try:
    import simsimd
except ImportError:  # pragma: no cover - the extra brings it along; another model can be used without
    simsimd = None

Floats = Any
Bytes = Any

_LARGEST = 127


def quantised(vectors: Floats) -> Bytes:
    """Scale float vectors to one byte a component; a vector without direction stays zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    factors = np.divide(_LARGEST, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.rint(vectors * factors).astype(np.int8)


def inverse_lengths(vectors: Bytes) -> Floats:
    """Return one divided by the length of each vector; 0 for one without direction."""
    wide = vectors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def similarities(query: Bytes, vectors: Bytes, inverse: Floats) -> Floats:
    """Compare a query's vector with every other: the cosine of their angle, from -1 to 1."""
    if not len(vectors):
        return np.empty(0, np.float32)
    scale = inverse_lengths(query[None, :])[0]
    return products(query, vectors) * (inverse * scale)


def products(query: Bytes, vectors: Bytes) -> Floats:
    """Multiply a query's vector with every other, exactly."""
    if simsimd is None:
        return plain_products(query, vectors)
    sums: Any = simsimd.cdist(query[None, :], vectors, metric="dot", dtype="int8", out_dtype="f32")
    return np.asarray(sums).reshape(-1)


def plain_products(query: Bytes, vectors: Bytes) -> Floats:
    """Do the same with numpy alone: all sums stay below 2**24, so that floats hold them exactly."""
    return vectors.astype(np.float32) @ query.astype(np.float32)
