"""Write typed functions for operations: one async function for each, with typed arguments and result.

The text passes a strict type checker and runs as it is. Descriptions come from foreign servers; they are
written as escaped literals, so that none of them can become code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from headgate.operations.spec import OperationSpec, OutputKind
from headgate.operations.stub_types import TypeWriter, class_name, identifier

_CALLER = "caller"
_DESCRIPTION_CHARS = 4_096
_OURS = frozenset({"UNSET", "Caller", "Mapping", "UnsetType", "annotations", "call_with"})
_HEADER = '''"""Typed functions for operations. Made by 'headgate ops stubs'; make it anew, do not edit it.

Give each function a registry that holds the operations, or the env of a composing operation.
"""'''


def stub_module(specs: Iterable[OperationSpec]) -> str:
    """Write a module with a function for each operation, in the order of their ids."""
    names: dict[str, OperationSpec] = {}
    for spec in sorted(specs, key=lambda one: one.id):
        names[identifier(spec.local_name, {*names, *_OURS})] = spec
    writer = TypeWriter(reserved={*names, *_OURS})
    functions = [_function(spec, name, writer) for name, spec in names.items()]
    body = "\n\n\n".join([*writer.definitions, *functions])
    return f"{_HEADER}\n\nfrom __future__ import annotations\n\n{_imports(writer.used)}\n\n\n{body}\n"


def _imports(used: frozenset[str]) -> str:
    typing = sorted(used & {"Any", "Literal", "NotRequired", "TypedDict"})
    unset = {"UNSET", "UnsetType"} if "UnsetType" in used else set[str]()
    calling = sorted({"Caller", "call_with"} | unset)
    standard = [
        *(["from collections.abc import Mapping"] if "Mapping" in used else []),
        *([f"from typing import {', '.join(typing)}"] if typing else []),
    ]
    ours = [
        f"from headgate.operations.calling import {', '.join(calling)}",
        *(["from headgate.operations.content import ContentBlock"] if "ContentBlock" in used else []),
    ]
    return "\n".join([*standard, *([""] if standard else []), *ours])


def _function(spec: OperationSpec, name: str, writer: TypeWriter) -> str:
    parameters, arguments = _parameters(spec, class_name(spec.local_name), writer)
    result = _result(spec, f"{class_name(spec.local_name)}Result", writer)
    text = (spec.description or spec.title or spec.id)[:_DESCRIPTION_CHARS]
    signature = "".join(f"\n    {one}," for one in [f"{_CALLER}: Caller", *parameters])
    call = f"await call_with({_CALLER}, {spec.id!a}, {arguments})"
    return f"async def {name}({signature}\n) -> {result}:\n    {text!a}\n    return {call}"


def _parameters(spec: OperationSpec, name: str, writer: TypeWriter) -> tuple[list[str], str]:
    """Return the parameters and the expression that makes the operation's input of them."""
    schema = spec.input_schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict) or not _is_plain_object(schema):
        return [f"arguments: {writer.emitted('Mapping[str, Any]')}"], "arguments"
    fields = cast("dict[str, Any]", properties)
    required = set(map(str, schema.get("required", ())))
    names: dict[str, str] = {}
    for key in sorted(fields, key=lambda one: one not in required):
        names[key] = identifier(key, {_CALLER, *_OURS, *names.values()})
    types = writer.of_properties(schema, name)
    parameters = ["*"] if names else []
    for key, parameter in names.items():
        left_out = "" if key in required else f" | {writer.emitted('UnsetType')} = UNSET"
        parameters.append(f"{parameter}: {types[key]}{left_out}")
    return parameters, f"{{{', '.join(f'{key!a}: {parameter}' for key, parameter in names.items())}}}"


def _is_plain_object(schema: dict[str, Any]) -> bool:
    return (
        schema.get("type", "object") == "object" and not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
    )


def _result(spec: OperationSpec, name: str, writer: TypeWriter) -> str:
    if spec.output_kind is OutputKind.CONTENT_BLOCKS:
        return writer.emitted("list[ContentBlock]")
    return writer.of(spec.output_schema, name)
