"""Stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference."""

    path: str

    def to_dict(self) -> dict[str, Any]:
        """Give the wire form."""
        return {"path": self.path}


def compare_tools(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, tuple[Difference, ...]]:
    """Compare."""
    same = all(old.get(k) == new.get(k) for k in ("inputSchema", "outputSchema"))
    return ("wording" if same else "breaking"), ()
