"""Registrations with compiled schemas, made once at registration.

Imported schemas are foreign and pass the strict guard; those of this process only have to be schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.errors import SchemaParse
from headgate.operations.registration import HandlerRegistration
from headgate.operations.spec import JsonSchema, OperationSpec
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.guard import FOREIGN, OWN, SchemaLimits


@dataclass(frozen=True, slots=True)
class Prepared:
    """An operation ready to be called; None stands for an empty schema."""

    registration: HandlerRegistration
    input: CompiledSchema | None
    output: CompiledSchema | None
    errors: Mapping[str, CompiledSchema | None]

    @property
    def spec(self) -> OperationSpec:
        """What the operation is."""
        return self.registration.spec


def prepare(registration: HandlerRegistration) -> Prepared:
    """Compile the schemas of a registration.

    Raises:
        SchemaParse: one of them cannot be used; the message names the operation.
    """
    spec = registration.spec
    limits, known = FOREIGN if registration.provenance.is_leaf else OWN, registration.compiled
    errors: Mapping[str, CompiledSchema] = {} if known is None else known.errors
    try:
        return Prepared(
            registration,
            _compile(spec.input_schema, limits, known and known.input),
            _compile(spec.output_schema, limits, known and known.output),
            {
                error.code: _compile(error.schema, limits, errors.get(error.code))
                for error in spec.error_schemas
            },
        )
    except SchemaParse as error:
        raise SchemaParse(f"{spec.id}: {error.message}", details=error.details) from None


def _compile(schema: JsonSchema, limits: SchemaLimits, known: CompiledSchema | None) -> CompiledSchema | None:
    if schema is True or schema == {}:
        return None
    return known if known is not None and known.source == schema else compile_schema(schema, limits)
