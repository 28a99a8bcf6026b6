"""What was recognised in the question of a search: days, a sender, the newest first, and what is asked for."""

from __future__ import annotations

from datetime import date

import msgspec


class Days(msgspec.Struct, frozen=True):
    """The days from one to another, the last one left out; None for an open end."""

    since: date | None = None
    until: date | None = None


class Phrase(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some words of a question that say more than that a record holds them."""

    text: str
    #: Only records of any of these days.
    days: tuple[Days, ...] = ()
    #: Only records whose sender holds this word.
    sender: str | None = None
    #: The newest records first.
    is_latest: bool = False
    #: What is asked for: person, time or amount.
    asks: str | None = None

    @property
    def narrows(self) -> bool:
        """Whether it leaves records out."""
        return bool(self.days) or self.sender is not None


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question as it was taken: the words that are looked for, and what else was recognised."""

    q: str
    phrases: tuple[Phrase, ...] = ()
    #: What was recognised as well, and not used because nothing would be left.
    dropped: tuple[Phrase, ...] = ()

    @property
    def days(self) -> tuple[Days, ...]:
        return next((phrase.days for phrase in self.phrases if phrase.days), ())

    @property
    def sender(self) -> str | None:
        return next((phrase.sender for phrase in self.phrases if phrase.sender is not None), None)

    @property
    def is_latest(self) -> bool:
        return any(phrase.is_latest for phrase in self.phrases)
