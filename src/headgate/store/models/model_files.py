"""Read the files of a model from a folder."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid
from headgate.store.format.vectors import Floats

WEIGHTS = "model.safetensors"
_KINDS = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I8": np.dtype("i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}


def read_files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read some files."""
    return {name: _read(folder, name, names) for name in names}


def digest_of_files(content: Mapping[str, bytes]) -> str:
    """Return the digest of the files that a model was read from, in their order."""
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


_WORD_CHARS_MOST = 100
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
UNKNOWN = "[UNK]"


def pieces(text: str, vocabulary: Mapping[str, int], most: int) -> list[int]:
    """Return the numbers of a text's pieces, so many at most."""
    found: list[int] = []
    for word in _words(text):
        found += _pieces_of(word, vocabulary)
        if len(found) >= most:
            break
    return found[:most]


def _pieces_of(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Cut a word into the longest beginnings that the vocabulary has; a word that has none is unknown."""
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None or len(word) > _WORD_CHARS_MOST:
            return [vocabulary[UNKNOWN]]
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found


def _words(text: str) -> Iterator[str]:
    """Cut a text as the uncased models do: lower case, no accents, marks and Chinese characters by themselves."""
    folded = unicodedata.normalize("NFD", text.lower())
    plain = "".join(character for character in folded if unicodedata.category(character) != "Mn")
    for run in _CJK.sub(r" \1 ", plain).split():
        word = ""
        for character in run:
            if unicodedata.category(character)[0] in "PS":
                yield from (part for part in (word, character) if part)
                word = ""
            else:
                word += character
        if word:
            yield word
