"""What it costs to run an operation through the registry instead of calling its handler.

A local operation that does nothing, with a declared input and output schema, passes every step of the pipeline:
look-up, access, input check, deadline, a separate task, output check, envelope.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from headgate.operations.registration import HandlerRegistration, OperationContext
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl, Identity, OperationSpec, OperationType, Visibility

LIMIT_US = 40.0
_CALLER = Identity("bench", frozenset({"use"}))
_VALUE = {"query": "words", "limit": 10}
_INPUT = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_OUTPUT = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}


@dataclass(frozen=True, slots=True)
class Overhead:
    """Processor and wall time of one call, in microseconds, best of all rounds."""

    handler_us: float
    execute_us: float
    handler_wall_us: float
    execute_wall_us: float

    @property
    def overhead_us(self) -> float:
        """What the registry adds, in processor time."""
        return self.execute_us - self.handler_us


async def _nothing(value: Any, _context: OperationContext) -> Any:
    return value


def build() -> Registry:
    """Make a registry with the one operation."""
    spec = OperationSpec(
        "nothing",
        "bench",
        op_type=OperationType.QUERY,
        visibility=Visibility.EXTERNAL,
        input_schema=_INPUT,
        output_schema=_OUTPUT,
        access_control=AccessControl(required_scopes=("use",)),
    )
    return Registry([HandlerRegistration(spec, _nothing)])


async def _best(call: Callable[[], Awaitable[Any]], *, rounds: int, calls: int) -> tuple[float, float]:
    processor, wall = [], []
    for _ in range(rounds):
        began, began_wall = time.process_time(), time.perf_counter()
        for _ in range(calls):
            await call()
        processor.append((time.process_time() - began) / calls * 1e6)
        wall.append((time.perf_counter() - began_wall) / calls * 1e6)
    return min(processor), min(wall)


def measure(*, rounds: int = 15, calls: int = 2_000) -> Overhead:
    """Measure both ways in the same run."""
    registry, context = build(), OperationContext("bench")

    async def run() -> Overhead:
        handler = await _best(lambda: _nothing(_VALUE, context), rounds=rounds, calls=calls)
        execute = await _best(
            lambda: registry.execute("bench/nothing", _VALUE, identity=_CALLER), rounds=rounds, calls=calls
        )
        return Overhead(handler[0], execute[0], handler[1], execute[1])

    return asyncio.run(run())
