"""Issues: places where a value breaks its schema, without the value.

An issue is safe to log, to send and to show: it names a place and a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Issue:
    """One place where a value breaks its schema."""

    #: Where, from the root ``$``: ``$.items[0].name``.
    path: str
    #: The rule that is broken: a JSON Schema keyword, or a code of the adapter.
    keyword: str
    message: str
    #: The same place as a JSON pointer from the root; of a missing property, where it would be.
    pointer: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, str]:
        """Return the wire form."""
        return {"path": self.path, "keyword": self.keyword, "message": self.message}

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> Issue:
        """Read the wire form."""
        return cls(str(wire["path"]), str(wire["keyword"]), str(wire["message"]))
