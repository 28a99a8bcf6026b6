"""An operation in one line, as a model reads it: ``github/create_file(repo, path, message?) — Create a file``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from headgate.operations.spec import OperationSpec

_MOST_PARAMETERS = 12
_PARAMETER_CHARS = 40
_SENTENCE_CHARS = 110
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


def signature(spec: OperationSpec) -> str:
    """Return the id with the names of the parameters: required ones first, ``?`` marks the others."""
    return f"{spec.id}({parameters(spec)})"


def parameters(spec: OperationSpec) -> str:
    """Return the names of the parameters."""
    schema: Mapping[str, Any] = spec.input_schema if isinstance(spec.input_schema, Mapping) else {}
    names = parameter_names(spec)
    listed: Any = schema.get("required")
    required = set(cast("list[str]", listed)) if isinstance(listed, list) else set[str]()
    ordered = [
        *(name for name in names if name in required),
        *(name for name in names if name not in required),
    ]
    shown = [
        f"{name[:_PARAMETER_CHARS]}{'' if name in required else '?'}" for name in ordered[:_MOST_PARAMETERS]
    ]
    return ", ".join([*shown, *(["…"] if len(ordered) > _MOST_PARAMETERS else [])])


def parameter_names(spec: OperationSpec) -> list[str]:
    """Return the names of the parameters in the order of the schema."""
    schema: Any = spec.input_schema
    properties: Any = (
        cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    )
    return list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []


def first_sentence(spec: OperationSpec) -> str:
    """Return the first sentence of the description on one line, or else the title; cut where it is long."""
    text = spec.description.strip() or spec.title or ""
    sentence = " ".join(_SENTENCE_END.split(text, maxsplit=1)[0].split())
    return sentence if len(sentence) <= _SENTENCE_CHARS else f"{sentence[: _SENTENCE_CHARS - 1].rstrip()}…"
