"""Discovery as operations: ``services/list`` and ``services/schema``, for callers that know nothing else.

They show of their registry what the caller may use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.operations.context import OperationContext
from headgate.operations.discovery import description, find_visible, summary, visible_specs
from headgate.operations.registration import HandlerRegistration
from headgate.operations.spec import ErrorDefinition, OperationSpec, OperationType, Visibility

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
