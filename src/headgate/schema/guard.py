"""Check a foreign schema statically before it is compiled: bounded work, and no fetching.

A foreign schema is untrusted code. This pass refuses schemas that are too large, refer outside themselves, or
whose evaluation could grow exponentially. It looks at the schema only, never at a value.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from typing import Any, NoReturn, cast

import jsonschema_rs
import msgspec

from headgate.errors import SchemaParse
from headgate.schema.keywords import (
    DEFINITIONS,
    REFERENCES,
    Subschema,
    anchors_of,
    is_schema,
    resolve,
    subschemas,
)
from headgate.schema.value import is_deeper_than

# The compiled size of one pattern is bounded too: ``(a{1000}){1000}`` is short to write.
_SIZE = 1 << 19
#: Of a foreign one: compiling a pattern of this size takes about a millisecond.
_FOREIGN_SIZE = 1 << 17


class Engine(Enum):
    """What runs patterns."""

    LINEAR = "linear"
    BACKTRACKING = "backtracking"

    @property
    def options(self) -> jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions:
        """The options of the validator for this engine."""
        return _LINEAR if self is Engine.LINEAR else _BACKTRACKING


_LINEAR = jsonschema_rs.RegexOptions(size_limit=_FOREIGN_SIZE, dfa_size_limit=_FOREIGN_SIZE)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=100_000, size_limit=_SIZE, dfa_size_limit=_SIZE
)


def is_linear(pattern: str) -> bool:
    """Return whether the linear engine can run a pattern."""
    return _matcher(pattern, Engine.LINEAR) is not None


def matches(pattern: str, text: str, engine: Engine = Engine.LINEAR) -> bool:
    """Search a text for a pattern; one that the engine cannot run is in no text."""
    matcher = _matcher(pattern, engine)
    return matcher is not None and matcher.is_valid(text)


# Few, because a hostile one may be as large as is allowed.
@lru_cache(maxsize=64)
def _matcher(pattern: str, engine: Engine) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=engine.options, offline=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return None


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """The largest schema that is accepted."""

    size_bytes: int = 64 * 1024
    #: Of subschemas inside subschemas.
    depth: int = 32
    subschemas: int = 2048
    #: Of one allOf, anyOf or oneOf; a list of countries is a oneOf of some 250 constants.
    branches: int = 256
    #: Subschemas that one value may have to pass, when every reference is written out.
    expansion: int = 10_000
    #: References behind references.
    chain: int = 256
    patterns: Engine = Engine.LINEAR


FOREIGN = SchemaLimits()
#: For schemas that the developer of the application wrote.
OWN = SchemaLimits(
    size_bytes=4 * 1024 * 1024,
    depth=64,
    subschemas=100_000,
    expansion=1_000_000,
    patterns=Engine.BACKTRACKING,
)

# Of plain JSON nesting: keywords and names take up to three levels for each subschema.
_NESTING = 3
_MAX_PATTERNS = 16
#: The dialects that the validator has built in; no other is looked up anywhere.
_DIALECT = re.compile(
    r"https?://json-schema\.org/(draft-0[467]/schema|draft/20(19-09|20-12)/schema|schema)#?"
)
#: Of one pattern, and of all patterns of a schema, which are compiled in one step.
_MAX_PATTERN_CHARS, _MAX_PATTERNS_CHARS = 500, 2000
#: Comparing the items of a list with each other takes about as long as so many subschemas that judge each.
_UNIQUE_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Guarded:
    """A schema that may be compiled, and what had to be left out of it."""

    schema: Any
    notes: tuple[str, ...] = ()
    #: At most so many subschemas judge one and the same value.
    width: int = 1


@dataclass(slots=True)
class _Graph:
    """Every subschema by its pointer, and what each leads to."""

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    edges: dict[str, list[tuple[str, bool]]] = field(default_factory=dict[str, list[tuple[str, bool]]])


@dataclass(slots=True)
class PatternBudget:
    """How many patterns of many schemas are still compiled, because compiling is what costs."""

    left: int

    def take(self, wanted: int) -> int:
        """Return how many of so many patterns may be compiled."""
        taken = min(wanted, self.left)
        self.left -= taken
        return taken


def guard_schema(schema: Any, limits: SchemaLimits = FOREIGN, budget: PatternBudget | None = None) -> Guarded:
    """Accept a schema for compiling."""
    if not is_schema(schema):
        _refuse("schema", "", "A schema is an object or a boolean.")
    if isinstance(schema, bool):
        return Guarded(schema)
    root = cast("dict[str, Any]", schema)
    _check_size(root, limits)
    graph = _read_graph(root, limits)
    _check_cycles(graph)
    _check_expansion(graph, limits)
    width = _width(graph)
    if limits.patterns is not Engine.LINEAR:
        return Guarded(root, width=width)
    loosened = _without_hard_patterns(root, graph, budget or PatternBudget(_MAX_PATTERNS))
    return replace(loosened, width=width)


def _refuse(rule: str, pointer: str, message: str) -> NoReturn:
    raise SchemaParse(message, details={"rule": rule, "pointer": pointer[:200]})


def _check_size(root: dict[str, Any], limits: SchemaLimits) -> None:
    if is_deeper_than(root, limits.depth * _NESTING):
        _refuse("depth", "", "The schema is nested too deeply.")
    try:
        size = len(msgspec.json.encode(root))
    except (TypeError, ValueError):
        _refuse("json", "", "The schema is not JSON.")
    if size > limits.size_bytes:
        _refuse("size", "", f"The schema has {size} bytes; {limits.size_bytes} are allowed.")


def _read_graph(root: dict[str, Any], limits: SchemaLimits) -> _Graph:
    graph, anchors = _Graph(), anchors_of(root)
    nested: deque[tuple[str, Any, int]] = deque([("", root, 0)])
    referred: deque[tuple[str, Any, int]] = deque()
    # What is nested comes first, so that the depth of a place is its own and not that of a reference to it.
    while nested or referred:
        pointer, schema, depth = nested.popleft() if nested else referred.popleft()
        if pointer in graph.edges:
            continue
        edges = graph.edges[pointer] = []
        if not isinstance(schema, dict):
            continue
        node = graph.nodes[pointer] = cast("dict[str, Any]", schema)
        _check_node(node, pointer, depth, count=len(graph.nodes), limits=limits)
        for sub in subschemas(node, pointer):
            nested.append((sub.pointer, sub.schema, depth + 1))
            if sub.keyword not in DEFINITIONS:
                edges.append((sub.pointer, sub.in_place))
        for target in _targets(root, node, pointer, anchors=anchors):
            referred.append((target.pointer, target.schema, 0))
            edges.append((target.pointer, True))
    return graph


def _check_node(node: dict[str, Any], pointer: str, depth: int, *, count: int, limits: SchemaLimits) -> None:
    if depth > limits.depth:
        _refuse("depth", pointer, "The schema is nested too deeply.")
    if count > limits.subschemas:
        _refuse("subschemas", pointer, f"The schema has more than {limits.subschemas} subschemas.")
    if pointer and isinstance(node.get("$id"), str):
        _refuse("id", pointer, "Only the root of a schema may have an $id.")
    dialect = node.get("$schema", "http://json-schema.org/schema")
    if not isinstance(dialect, str) or not _DIALECT.fullmatch(dialect):
        _refuse("dialect", f"{pointer}/$schema", "The schema is of a dialect that is not known here.")
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(node.get(keyword), list) and len(node[keyword]) > limits.branches:
            _refuse("branches", pointer, f"'{keyword}' has more than {limits.branches} branches.")


def _targets(
    root: dict[str, Any], node: dict[str, Any], pointer: str, *, anchors: Mapping[str, str]
) -> Iterator[Subschema]:
    for keyword in REFERENCES & node.keys():
        reference = node[keyword]
        if not isinstance(reference, str) or not reference.startswith("#"):
            _refuse("reference", pointer, "A reference leads outside the schema.")
        target = resolve(root, reference, anchors)
        if target is None:
            _refuse("reference", pointer, "A reference leads nowhere.")
        yield Subschema(keyword, target[0], target[1], in_place=True)


def _check_cycles(graph: _Graph) -> None:
    """Refuse a schema that comes back to itself without having used up any input."""
    in_place = {pointer: [target for target, same in edges if same] for pointer, edges in graph.edges.items()}
    for pointer, repeats in _postorder(in_place):
        if repeats:
            _refuse("cycle", pointer, "The schema refers to itself in a circle.")


def _check_expansion(graph: _Graph, limits: SchemaLimits) -> None:
    every = {pointer: [target for target, _ in edges] for pointer, edges in graph.edges.items()}
    cost: dict[str, int] = {}
    chain: dict[str, int] = {}
    for pointer, _ in _postorder(every):
        # A target without a figure is one we are inside of: recursion, which only input can drive.
        cost[pointer] = 1 + sum(cost.get(target, 1) for target in every[pointer])
        chain[pointer] = 1 + max((chain.get(target, 0) for target in every[pointer]), default=0)
        if cost[pointer] > limits.expansion:
            _refuse("expansion", pointer, "The schema's references multiply too often.")
        if chain[pointer] > limits.chain:
            _refuse("chain", pointer, "The schema's references are chained too long.")


def _width(graph: _Graph) -> int:
    """Bound how many subschemas judge one value; properties judge different ones, other parts may share theirs."""
    every = {pointer: [target for target, _ in edges] for pointer, edges in graph.edges.items()}
    same: dict[str, int] = {}
    parts: dict[str, int] = {}
    for pointer, _ in _postorder(every):
        in_place = [target for target, is_same in graph.edges[pointer] if is_same]
        own = _UNIQUE_WIDTH if graph.nodes.get(pointer, {}).get("uniqueItems") else 1
        same[pointer] = own + sum(same.get(target, 1) for target in in_place)
        named, others = 0, 0
        for target, is_same in graph.edges[pointer]:
            width = max(same.get(target, 1), parts.get(target, 0))
            if target.startswith(f"{pointer}/properties/"):
                named = max(named, width)
            elif not is_same:
                others += width
        parts[pointer] = named + others + sum(parts.get(target, 0) for target in in_place)
    return max((*same.values(), *parts.values()), default=1)


def _postorder(edges: Mapping[str, list[str]]) -> Iterator[tuple[str, bool]]:
    """Walk a graph, children first; say of each node whether a child of it is still open above it.

    Written without recursion: the graph is foreign, and so is its depth.
    """
    done: set[str] = set()
    for start in edges:
        path: list[tuple[str, Iterator[str]]] = [(start, iter(edges[start]))] if start not in done else []
        open_nodes, circular = {start}, set[str]()
        while path:
            node, children = path[-1]
            child = next((target for target in children if target not in done), None)
            if child is None:
                path.pop()
                open_nodes.discard(node)
                done.add(node)
                yield node, node in circular
            elif child in open_nodes:
                circular.add(node)
            else:
                open_nodes.add(child)
                path.append((child, iter(edges[child])))


def _without_hard_patterns(root: dict[str, Any], graph: _Graph, budget: PatternBudget) -> Guarded:
    """Leave out the patterns that no linear engine can run; the server that made them still applies them."""
    patterns = {pattern: None for node in graph.nodes.values() for pattern in _patterns(node)}
    lengths = accumulate(map(len, patterns))
    short = [p for p, end in zip(patterns, lengths, strict=True) if end <= _MAX_PATTERNS_CHARS]
    tried = short[: budget.take(min(len(short), _MAX_PATTERNS))]
    runs = frozenset(p for p in tried if len(p) <= _MAX_PATTERN_CHARS and is_linear(p))
    hard = [pointer for pointer, node in graph.nodes.items() if not runs.issuperset(_patterns(node))]
    if not hard:
        return Guarded(root)
    loosened: dict[str, Any] = copy.deepcopy(root)
    for pointer in hard:
        target = resolve(loosened, "#" + pointer, {})
        assert target is not None
        _loosen(target[1], runs)
    return Guarded(loosened, tuple(f"A pattern at '#{pointer}' is not checked." for pointer in hard))


def _patterns(node: Mapping[str, Any]) -> list[str]:
    single = node.get("pattern")
    named = node.get("patternProperties")
    keys = list(cast("dict[str, Any]", named)) if isinstance(named, dict) else []
    return [*([single] if isinstance(single, str) else []), *keys]


def _loosen(node: dict[str, Any], runs: frozenset[str]) -> None:
    pattern = node.get("pattern")
    if isinstance(pattern, str) and pattern not in runs:
        del node["pattern"]
    named = node.get("patternProperties")
    if isinstance(named, dict) and not runs.issuperset(cast("dict[str, Any]", named)):
        # Without its patterns a node cannot tell which properties are additional.
        for keyword in ("patternProperties", "additionalProperties", "unevaluatedProperties"):
            node.pop(keyword, None)
