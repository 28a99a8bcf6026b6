"""What a message says, whichever parser read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Correspondent:
    """A sender or receiver; the name may be empty."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name and self.name != self.address else self.address


@dataclass(frozen=True, slots=True)
class AttachedPart:
    """A part of a message that is not its text."""

    name: str
    mime_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message taken apart; texts are Unicode and hold no NUL."""

    #: All values by the name in lower case.
    headers: Mapping[str, Sequence[str]]
    #: By ``from``, ``to``, ``cc``, ``bcc``.
    people: Mapping[str, Sequence[Correspondent]]
    date: datetime | None
    plain: Sequence[str]
    html: Sequence[str]
    attached: Sequence[AttachedPart]

    def header(self, name: str) -> str:
        """Return the first value of a header, or an empty text."""
        values = self.headers.get(name)
        return values[0].strip() if values else ""
