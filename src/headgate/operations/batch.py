"""Several calls in one: each has its own outcome, and the outcomes keep the order of the entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import CallError
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.request import Request

MAX_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One call of a batch."""

    operation_id: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of one entry: an envelope, or the error in its place."""

    request_id: str
    envelope: ResponseEnvelope | None
    error: CallError | None

    @property
    def ok(self) -> bool:
        """Whether there is data to use."""
        return self.error is None


async def run_batch(
    requests: Sequence[Request],
    execute: Callable[[Request], Awaitable[ResponseEnvelope]],
    *,
    concurrency: int,
) -> tuple[BatchOutcome, ...]:
    """Run requests with bounded concurrency.

    Raises:
        CallError: there are too many of them (``INVALID_INPUT``).
    """
    if len(requests) > MAX_ENTRIES:
        raise CallError("INVALID_INPUT", f"A batch has at most {MAX_ENTRIES} entries.")
    slots = asyncio.Semaphore(max(1, concurrency))

    async def run(request: Request) -> BatchOutcome:
        async with slots:
            try:
                envelope = await execute(request)
            except CallError as error:
                return BatchOutcome(request.request_id, None, error)
            return BatchOutcome(request.request_id, envelope, envelope.error)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(request)) for request in requests]
    return tuple(task.result() for task in tasks)
