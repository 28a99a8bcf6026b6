"""Discovery for outside callers: the operations a caller may use, and nothing about any other.

``visible_specs`` is the only source of list, schema and search (see ``finding``), so none of them can show what another hides.
``services/list`` and ``services/schema`` are the same as operations, for callers that know nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headgate.operations.dispatch import not_found
from headgate.operations.registration import HandlerRegistration, OperationContext
from headgate.operations.spec import (
    ErrorDefinition,
    Identity,
    OperationSpec,
    OperationType,
    Visibility,
    parse_operation_id,
    refusal,
)


def visible_specs(
    registrations: Iterable[HandlerRegistration], identity: Identity | None
) -> Iterator[OperationSpec]:
    """Walk the operations that this caller can reach."""
    for registration in registrations:
        spec = registration.spec
        if spec.visibility is Visibility.EXTERNAL and refusal(spec.access_control, identity) is None:
            yield spec


def find_visible(
    registrations: Iterable[HandlerRegistration], identity: Identity | None, operation_id: str
) -> OperationSpec:
    """Find one operation that this caller can reach.

    Raises:
        CallError: it does not exist or is not for this caller (``NOT_FOUND`` for both).
    """
    key = parse_operation_id(operation_id)
    for spec in visible_specs(registrations, identity):
        if spec.key == key:
            return spec
    raise not_found(operation_id)


def summary(spec: OperationSpec) -> dict[str, Any]:
    """Return the short description that a list shows."""
    wire = {
        "id": spec.id,
        "namespace": spec.namespace,
        "name": spec.local_name,
        "op_type": str(spec.op_type),
        "description": spec.description,
    }
    return wire if spec.title is None else {**wire, "title": spec.title}


def description(spec: OperationSpec) -> dict[str, Any]:
    """Return the full description for outsiders: how to call it, without access control and provenance."""
    whole = spec.to_dict()
    members = ("version", "tags", "input_schema", "output_schema", "error_schemas")
    return {**summary(spec), **{name: whole[name] for name in members}}


_NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}},
    "required": ["name"],
    "additionalProperties": False,
}


def service_operations(registrations: Iterable[HandlerRegistration]) -> tuple[HandlerRegistration, ...]:
    """Make the two operations for a registry, or for another iterable of registrations."""

    async def list_all(_value: Any, context: OperationContext) -> Any:
        return {"operations": [summary(spec) for spec in visible_specs(registrations, context.identity)]}

    async def describe(value: Any, context: OperationContext) -> Any:
        return {"operation": description(find_visible(registrations, context.identity, value["name"]))}

    return (
        HandlerRegistration(_spec("list", "List the operations you may use."), list_all),
        HandlerRegistration(
            _spec(
                "schema",
                "Say how an operation is called.",
                input_schema=_NAME,
                # Declared, because here it is an expected result.
                error_schemas=(ErrorDefinition("NOT_FOUND", "There is no such operation for you."),),
            ),
            describe,
        ),
    )


def _spec(name: str, text: str, **more: Any) -> OperationSpec:
    return OperationSpec(
        name,
        "services",
        op_type=OperationType.QUERY,
        visibility=Visibility.EXTERNAL,
        description=text,
        output_schema={"type": "object"},
        **more,
    )
