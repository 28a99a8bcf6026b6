"""Read the files of a model from a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid
from headgate.store.semantic.vectors import Floats

WEIGHTS = "model.safetensors"
_KINDS = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I8": np.dtype("i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}


def read_files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read some files.

    Raises:
        ConfigInvalid: one of them cannot be read.
    """
    return {name: _read(folder, name, names) for name in names}


def digest_of_files(content: Mapping[str, bytes]) -> str:
    """Give the digest of the files that a model was read from, in their order."""
    digest = hashlib.sha256()
    for part in content.values():
        digest.update(part)
    return digest.hexdigest()


def unreadable(folder: Path) -> ConfigInvalid:
    """Make the error for files that do not hold what they should."""
    return ConfigInvalid(f"The model in {folder} cannot be read.", param="semantic_model")


def tensors(content: bytes) -> Iterator[tuple[str, Floats]]:
    """Read the arrays of a safetensors file: the length of its directory, the directory as JSON, and the values."""
    length = int.from_bytes(content[:8], "little")
    directory: dict[str, Any] = msgspec.json.decode(content[8 : 8 + length])
    for name, entry in directory.items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[8 + length + first : 8 + length + last], _KINDS[entry["dtype"]])
            kind = np.int64 if entry["dtype"] in {"I32", "I64"} else np.float32
            yield name.removeprefix("bert."), values.reshape(entry["shape"]).astype(kind)


def _read(folder: Path, name: str, names: Sequence[str]) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise ConfigInvalid(
            f"{folder} has no {name} that can be read.",
            hint=f"A folder with a model has {', '.join(names)}.",
            param="semantic_model",
        ) from error
