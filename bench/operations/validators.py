"""Why the validator in Rust: the same checks by both, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import referencing

from headgate.schema.check import compile_schema

_SMALL = {
    "type": "object",
    "properties": {
        "q": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["q"],
    "additionalProperties": False,
}
_UNION = {
    "type": "array",
    "items": {
        "anyOf": [
            {
                "type": "object",
                "properties": {"k": {"const": "a"}, "x": {"type": "integer"}},
                "required": ["k", "x"],
            },
            {
                "type": "object",
                "properties": {"k": {"const": "b"}, "y": {"type": "string"}},
                "required": ["k", "y"],
            },
        ]
    },
}
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "small object": (_SMALL, {"q": "hello", "limit": 5, "tags": ["a", "b"]}),
    "200 items of a union": (_UNION, [{"k": "a", "x": 1}, {"k": "b", "y": "s"}] * 100),
    "uniqueItems, 300 objects": ({"uniqueItems": True}, [{"a": n, "b": [n]} for n in range(300)]),
    "pattern ^(a+)+$, 20 letters": ({"pattern": "^(a+)+$"}, "a" * 19 + "!"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Processor time of one check, in microseconds."""

    case: str
    rust_us: float
    python_us: float


def _best(check: Callable[[], Any]) -> float:
    calls, results = 1, list[float]()
    while len(results) < 5:
        began = time.process_time()
        for _ in range(calls):
            check()
        took = time.process_time() - began
        if took < 0.02:
            calls *= 2
        else:
            results.append(took / calls * 1e6)
    return min(results)


def measure() -> list[Comparison]:
    """Measure each case with both validators."""
    found = []
    for case, (schema, value) in CASES.items():
        ours = compile_schema(schema)
        theirs = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
        assert ours.is_valid(value) == theirs.is_valid(value)
        found.append(
            Comparison(
                case,
                _best(lambda ours=ours, value=value: ours.is_valid(value)),
                _best(lambda theirs=theirs, value=value: theirs.is_valid(value)),
            )
        )
    return found
