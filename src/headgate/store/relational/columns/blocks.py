"""Column blocks: the stored form of 16 384 rows of one column, and the numbers that stand for texts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from headgate.store.relational.columns.specs import Array

BLOCK_ROWS = 16_384


class TextNumbers:
    """Numbers for the texts of one column; 0 is no text.

    Numbers are given in the order in which texts are first met, so they differ between processes: a block
    stores its texts with it.
    """

    __slots__ = ("numbers", "texts")

    def __init__(self) -> None:
        self.numbers: dict[str | None, int] = {None: 0}
        self.texts: list[str | None] = [None]

    def encode(self, values: Iterable[str | None]) -> Array:
        """Replace texts by their numbers; new texts get new numbers."""
        numbers, texts = self.numbers, self.texts
        out: list[int] = []
        for value in values:
            number = numbers.get(value)
            if number is None:
                number = numbers[value] = len(texts)
                texts.append(value)
            out.append(number)
        return np.array(out, np.uint32)


def pack(array: Array) -> bytes:
    """Write a block of numbers."""
    return msgspec.msgpack.encode((array.dtype.name, None, array.tobytes()))


def pack_texts(array: Array, known: TextNumbers) -> bytes:
    """Write a block of texts, with those texts that occur in it."""
    used, places = np.unique(array, return_inverse=True)
    numbers: list[int] = used.tolist()
    texts = [known.texts[number] for number in numbers]
    return msgspec.msgpack.encode(("uint32", texts, places.astype(np.uint32).tobytes()))


def unpack(block: bytes, known: TextNumbers) -> Array:
    """Read a block of either form; texts get the numbers that they have in this process.

    Raises:
        ValueError: or MsgspecError or IndexError; the block is damaged.
    """
    dtype, texts, raw = msgspec.msgpack.decode(block, type=tuple[str, list[str | None] | None, bytes])
    values: Array = np.frombuffer(raw, np.dtype(dtype))
    return values if texts is None else known.encode(texts)[values]
