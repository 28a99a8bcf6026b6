"""Keys for rows whose file gives them none: from what they hold, so that reading again doubles nothing."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from typing import Any

import msgspec

#: The key of rows that have none: a digest of their values.
MADE_KEY = "row_id"
_DIGEST_BYTES = 15
#: Rows that are remembered, to number those that are alike.
_MAX_REMEMBERED = 200_000


def digest_of(*parts: Any) -> str:
    """Make a short key from values: equal values have an equal key."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=_DIGEST_BYTES).hexdigest()


class RowKeys:
    """Keys for the rows of one file, in their order.

    The n-th of several identical rows has the same key in every file that holds as many of them: a statement that
    overlaps another one doubles nothing, and two payments that are truly alike both stay.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def key(self, *parts: Any) -> str:
        """Make the key of the next row with these values."""
        digest = digest_of(*parts)
        self._seen[digest] += 1
        count = self._seen[digest]
        return digest if count == 1 else f"{digest}-{count}"


class OrderedKeys:
    """The same for files of any length whose rows come in groups, such as days: only the latest groups are remembered."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Counter[str]] = OrderedDict()
        self._remembered = 0

    def key(self, group: str, *parts: Any) -> str:
        """Make the key of the next row with these values; the group is one of them."""
        digest = digest_of(group, *parts)
        seen = self._groups.setdefault(group, Counter())
        seen[digest] += 1
        self._remembered += 1
        while self._remembered > _MAX_REMEMBERED:
            _, forgotten = self._groups.popitem(last=False)
            self._remembered -= forgotten.total()
        count = seen[digest]
        return digest if count == 1 else f"{digest}-{count}"
