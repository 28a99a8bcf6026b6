"""Compile a schema once, then check values against it and list where they do not fit.

Built on a validator in Rust, measured at 170 times the speed of the pure Python one on a small value. It
fetches nothing, runs patterns in linear time, and never quotes a value in a message.
"""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from headgate.errors import SchemaParse
from headgate.schema.explain import explain
from headgate.schema.guard import FOREIGN, Engine, Guarded, PatternBudget, SchemaLimits, guard_schema
from headgate.schema.keywords import REFERENCES, anchors_of, nodes_of
from headgate.schema.value import Issue, copy_json, is_larger_than

_ROOT = "urn:headgate:schema"
_LIGHT_NODES = 64
#: Values times the foreign subschemas that judge each: the validator lets nothing else run meanwhile.
_MAX_CHECKS = 2_000_000


class CompiledSchema:
    """A guarded schema with its validators; it accepts values from ``copy_json``.

    A validator is compiled on first use: a server may list a thousand tools with costly schemas, of which few
    are ever called.
    """

    __slots__ = (
        "_parts",
        "_registry",
        "_whole",
        "anchors",
        "engine",
        "has_defaults",
        "is_light",
        "notes",
        "schema",
        "shapes",
        "source",
        "width",
    )

    def __init__(self, guarded: Guarded, engine: Engine, source: Any) -> None:
        #: The schema as it was given.
        self.source = source
        #: What is checked: the schema without the patterns that its engine does not run.
        self.schema = schema = guarded.schema
        self.notes = guarded.notes
        self.width = guarded.width
        self.engine = engine
        self.anchors = anchors_of(schema)
        self.has_defaults = any("default" in node for node in nodes_of(schema))
        #: Whether normalising can change anything at all.
        self.shapes = self.has_defaults or any(
            node.get("additionalProperties") is False for node in nodes_of(schema)
        )
        #: Whether checking a small value takes so little that it needs no thread.
        self.is_light = _is_light(schema)
        self._whole: jsonschema_rs.Validator | None = None
        self._parts: dict[str, jsonschema_rs.Validator] = {}
        self._registry: jsonschema_rs.Registry | None = None

    def is_valid(self, value: Any) -> bool:
        """Return whether a value fits."""
        if self._whole is None:
            self._whole = _validator(self.schema, self.engine)
        return self._whole.is_valid(value)

    def issues(self, value: Any) -> tuple[Issue, ...]:
        """Return where a value does not fit; nothing when it does."""
        if self.engine is Engine.LINEAR and is_larger_than(value, _MAX_CHECKS // self.width):
            return (Issue("$", "schema", "is too large to be checked against this schema"),)
        return () if self.is_valid(value) else explain(self, value)

    def is_valid_at(self, pointer: str, value: Any) -> bool:
        """Return whether a value fits the subschema at a JSON pointer."""
        if not pointer:
            return self.is_valid(value)
        part = self._parts.get(pointer)
        if part is None:
            part = self._parts[pointer] = self._compile_part(pointer)
        return part.is_valid(value)

    def _compile_part(self, pointer: str) -> jsonschema_rs.Validator:
        if self._registry is None:
            self._registry = jsonschema_rs.Registry([(_ROOT, self.schema)])
        part: dict[str, Any] = {"$ref": f"{_ROOT}#{quote(pointer, safe='/~')}"}
        if "$schema" in self.schema:
            part["$schema"] = self.schema["$schema"]
        return jsonschema_rs.validator_for(
            part, registry=self._registry, offline=True, pattern_options=self.engine.options
        )


def _validator(schema: Any, engine: Engine) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=engine.options)


def _is_light(schema: Any) -> bool:
    nodes = list(islice(nodes_of(schema), _LIGHT_NODES + 1))
    heavy = REFERENCES | {"pattern", "patternProperties"}
    return len(nodes) <= _LIGHT_NODES and all(heavy.isdisjoint(node) for node in nodes)


def compile_schema(
    schema: Any, limits: SchemaLimits = FOREIGN, budget: PatternBudget | None = None
) -> CompiledSchema:
    """Guard a schema and check that it compiles.

    Raises:
        SchemaParse: it is not a schema, or not one that may be run here.
    """
    guarded = guard_schema(schema, limits, budget)
    try:
        _validator(guarded.schema, limits.patterns)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        # Nothing of the library's text is kept: it quotes the schema, and the schema is foreign.
        pointer = "/".join(str(step) for step in getattr(error, "instance_path", ()))
        raise SchemaParse(
            "This is not a valid JSON Schema.", details={"rule": "schema", "pointer": f"/{pointer}"[:200]}
        ) from None
    return CompiledSchema(guarded, limits.patterns, schema)


def check(schema: Any, value: object) -> tuple[Issue, ...]:
    """Check one value against one schema; to check many values, compile the schema."""
    compiled = compile_schema(schema)
    plain, problem = copy_json(value)
    return compiled.issues(plain) if problem is None else (problem,)
