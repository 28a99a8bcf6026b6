"""Warnings of an answer; they change neither its status nor its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class WarningCode(StrEnum):
    """The closed set of warnings."""

    LIMIT_CLAMPED = "limit_clamped"
    DEPRECATED_ALIAS = "deprecated_alias_used"
    COMPATIBILITY_FALLBACK = "compatibility_fallback"


@dataclass(frozen=True, slots=True)
class ReadWarning:
    """One warning of an answer."""

    code: WarningCode
    message: str
    param: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        shown: dict[str, Any] = {"code": self.code.value, "message": self.message}
        if self.param is not None:
            shown["param"] = self.param
        if self.detail:
            shown["detail"] = dict(self.detail)
        return shown


def limit_clamped(param: str, requested: int, most: int) -> ReadWarning:
    """Build the warning for a limit that was reduced to the maximum."""
    return ReadWarning(
        WarningCode.LIMIT_CLAMPED,
        f"{param} was cut to {most}.",
        param=param,
        detail={"requested_limit": requested, "max_limit": most},
    )
