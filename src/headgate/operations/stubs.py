"""Write typed functions for operations: one async function for each, with typed arguments and result.

The text passes a strict type checker and runs as it is. A type is exact where Python can express it, ``Any``
elsewhere. Names, values and descriptions come from foreign servers; nothing of them reaches the text except as an
identifier made here or as an escaped literal, so that none of them can become code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from headgate.operations.spec import OperationSpec, OutputKind
from headgate.schema.keywords import anchors_of, resolve

_CALLER = "caller"
_DESCRIPTION_CHARS = 4_096
_OURS = frozenset({"UNSET", "Caller", "Mapping", "UnsetType", "annotations", "call_with"})
_HEADER = '''"""Typed functions for operations. Made by 'headgate ops stubs'; make it anew, do not edit it.

Give each function a registry that holds the operations, or the env of a composing operation.
"""'''


def stub_module(specs: Iterable[OperationSpec]) -> str:
    """Write a module with a function for each operation, in the order of their ids."""
    names: dict[str, OperationSpec] = {}
    for spec in sorted(specs, key=lambda spec: spec.id):
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
    signature = "".join(f"\n    {parameter}," for parameter in [f"{_CALLER}: Caller", *parameters])
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
    for key in sorted(fields, key=lambda name: name not in required):
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


#: Names that type expressions use; no generated name may be one of them.
TYPE_NAMES = frozenset(
    {
        "Any",
        "ContentBlock",
        "Literal",
        "NotRequired",
        "TypedDict",
        "bool",
        "dict",
        "float",
        "int",
        "list",
        "str",
    }
)
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_MAX_DEPTH = 24
_MAX_LITERALS = 100


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """Make a Python name of any text that is not taken, a keyword, private, or the name of a type."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    name = f"n{name}" if name[0].isdigit() else name
    used = {*taken, *TYPE_NAMES, *keyword.kwlist, *keyword.softkwlist, "self"}
    candidates = (name, f"{name}_", *(f"{name}_{number}" for number in range(2, len(used) + 3)))
    return next(candidate for candidate in candidates if candidate not in used)


def class_name(*parts: str) -> str:
    """Make a class name of some words."""
    words = re.findall(r"[0-9A-Za-z]+", " ".join(parts)) or ["X"]
    name = "".join(word[0].upper() + word[1:] for word in words)
    return f"T{name}" if name[0].isdigit() else name


class TypeWriter:
    """Writes the types of one module: each object schema becomes a TypedDict."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.definitions: list[str] = []
        self._used: set[str] = set()
        self._taken: set[str] = set(reserved)

    def of(self, schema: Any, name: str) -> str:
        """Return the type of a schema; what has to be defined for it is added to the definitions."""
        return self.emitted(_Reader(self, schema).type(schema, name, depth=0))

    def of_properties(self, schema: dict[str, Any], name: str) -> dict[str, str]:
        """Return the type of each property of an object schema."""
        reader = _Reader(self, schema)
        return {
            key: self.emitted(reader.type(inner, f"{name}{class_name(key)}", depth=1))
            for key, inner in cast("dict[str, Any]", schema["properties"]).items()
        }

    def emitted(self, kind: str) -> str:
        """Record the names a type expression uses; quoted parts are literals."""
        self._used.update(re.findall(r"\w+", _QUOTED.sub("", kind)))
        return kind

    @property
    def used(self) -> frozenset[str]:
        """Every name that the types use."""
        return frozenset(self._used)

    def define(self, name: str, fields: Mapping[str, str]) -> None:
        """Add a TypedDict to the definitions."""
        self._used.add("TypedDict")
        for kind in fields.values():
            self.emitted(kind)
        self.definitions.append(_definition(name, fields))

    def reserve(self, name: str) -> str:
        """Take a free class name."""
        chosen = identifier(name, self._taken)
        self._taken.add(chosen)
        return chosen


class _Reader:
    """Reads one schema with the definitions inside it."""

    def __init__(self, writer: TypeWriter, root: Any) -> None:
        self.writer = writer
        self.root = root
        self.anchors = anchors_of(root)
        self.named: dict[str, str] = {}

    def type(self, schema: Any, name: str, *, depth: int) -> str:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return "Any"
        node = cast("dict[str, Any]", schema)
        if isinstance(node.get("$ref"), str):
            return self.reference(node["$ref"], depth=depth)
        if "const" in node or isinstance(node.get("enum"), list):
            return self.literal([node["const"]] if "const" in node else node["enum"])
        for combine in ("anyOf", "oneOf"):
            if isinstance(node.get(combine), list) and node[combine]:
                return self.union(node[combine], name, depth=depth)
        kinds = node.get("type")
        if isinstance(kinds, list):
            return self.union(
                [{**node, "type": kind} for kind in cast("list[Any]", kinds)], name, depth=depth
            )
        return self.of_kind(node, kinds, name, depth=depth)

    def of_kind(self, node: dict[str, Any], kind: Any, name: str, *, depth: int) -> str:
        match kind:
            case "array":
                items = node.get("items")
                inner = self.type(
                    items if "prefixItems" not in node else True, f"{name}Item", depth=depth + 1
                )
                return f"list[{inner}]"
            case "object" if isinstance(node.get("properties"), dict) and node["properties"]:
                return self.typed_dict(node, name, depth=depth)
            case "object":
                more = node.get("additionalProperties", True)
                return f"dict[str, {self.type(more, f'{name}Value', depth=depth + 1)}]"
            case str() if kind in _SCALARS:
                return _SCALARS[kind]
            case _:
                return "Any"

    def union(self, branches: list[Any], name: str, *, depth: int) -> str:
        types = [
            self.type(branch, f"{name}{number}", depth=depth + 1) for number, branch in enumerate(branches, 1)
        ]
        return "Any" if "Any" in types else " | ".join(dict.fromkeys(types))

    def literal(self, values: list[Any]) -> str:
        if not values or len(values) > _MAX_LITERALS or not all(_is_literal(value) for value in values):
            return "Any"
        return f"Literal[{', '.join(dict.fromkeys(map(ascii, values)))}]"

    def reference(self, reference: str, *, depth: int) -> str:
        target = resolve(self.root, reference, self.anchors)
        if target is None:
            return "Any"
        pointer, schema = target
        if pointer in self.named:
            return self.named[pointer]
        return self.type_at(pointer, schema, depth=depth)

    def type_at(self, pointer: str, schema: Any, *, depth: int) -> str:
        node: dict[str, Any] = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        name = class_name(pointer.rpartition("/")[2] or "Root")
        if node.get("type") == "object" and node.get("properties"):
            return self.typed_dict(node, name, depth=depth, pointer=pointer)
        # Only object types have a name to refer to, so a cycle of other types ends in Any.
        self.named[pointer] = "Any"
        self.named[pointer] = self.type(schema, name, depth=depth + 1)
        return self.named[pointer]

    def typed_dict(self, node: dict[str, Any], name: str, *, depth: int, pointer: str | None = None) -> str:
        chosen = self.writer.reserve(name)
        if pointer is not None:
            self.named[pointer] = chosen
        required = set(map(str, node.get("required", ())))
        fields: dict[str, str] = {}
        for key, inner in cast("dict[str, Any]", node["properties"]).items():
            inner_type = self.type(inner, f"{chosen}{class_name(key)}", depth=depth + 1)
            fields[key] = inner_type if key in required else f"NotRequired[{inner_type}]"
        self.writer.define(chosen, fields)
        return chosen


def _is_literal(value: object) -> bool:
    return value is None or isinstance(value, str | bool | int)


def _definition(name: str, fields: Mapping[str, str]) -> str:
    if all(_is_plain_key(key) for key in fields):
        return "\n".join(
            [f"class {name}(TypedDict):", *(f"    {key}: {kind}" for key, kind in fields.items())]
        )
    # Quoted, because this form is evaluated at once and a type may be defined further down.
    entries = ", ".join(f"{key!a}: {kind!a}" for key, kind in fields.items())
    return f"{name} = TypedDict({name!a}, {{{entries}}})"


def _is_plain_key(key: str) -> bool:
    """Return whether a key can be written as an attribute without changing the meaning of a type beside it."""
    is_name = key.isascii() and key.isidentifier() and not keyword.iskeyword(key)
    # A capital may be the name of one of our own classes.
    return is_name and key not in TYPE_NAMES and not key.startswith("__") and not key[0].isupper()
