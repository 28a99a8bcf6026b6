"""Rules on what no client ever sees, whatever it was granted. The owner sees everything."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec

from headgate.model.ids import FieldName, StreamName

RuleId = NewType("RuleId", str)
#: How long the text of a rule may be.
MAX_RULE_CHARS = 500
#: How many rules there may be: every record that comes in is compared with all of them.
MAX_RULES = 100


class RuleKind(StrEnum):
    """How a rule finds records."""

    #: A field has a value; ``*`` in it stands for any characters.
    VALUE = "value"
    #: Some text holds these words in a row.
    WORDS = "words"
    #: Some text matches a regular expression.
    PATTERN = "pattern"
    #: Some text is of a kind that the program recognises.
    SET = "set"


class ReadySet(StrEnum):
    """What the program recognises by itself."""

    ONE_TIME_CODES = "one-time-codes"
    PASSWORD_RESETS = "password-resets"  # noqa: S105 - the name of a set


class HidingRule(msgspec.Struct, frozen=True):
    id: RuleId
    kind: RuleKind
    #: The value, the words, the regular expression, or the name of the set.
    text: str
    #: The only field that is looked at; None: all.
    field: FieldName | None = None
    #: The only stream that it applies to; None: all.
    stream: StreamName | None = None
    #: Microseconds since 1970.
    created_at: int = 0


class RuleCount(msgspec.Struct, frozen=True):
    """How many records a rule finds, by stream; streams where it finds none are left out."""

    by_stream: dict[StreamName, int]
    #: Of these, how many other rules hide already.
    hidden_before: int = 0

    @property
    def total(self) -> int:
        return sum(self.by_stream.values())
