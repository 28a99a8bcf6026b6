"""The registry: it holds operations by name and runs every call to them, alone or in batches.

The checks and their order are the same for every caller. The registry does not know where an operation comes
from, and adapters register nothing themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headgate.errors import CallError, NameCollision, RegistrationInvalid
from headgate.operations.dispatch import Dispatcher, Request, deadline_after, new_request_id
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.registration import HandlerRegistration, Prepared, prepare
from headgate.operations.spec import Identity, OperationKey, parse_operation_id

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


DEFAULT_TIMEOUT_SECONDS = 30.0
_BASE = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    prepared: Prepared
    layer: str

    def __str__(self) -> str:
        where = f" in overlay '{self.layer}'" if self.layer else ""
        return f"{self.prepared.spec.id} ({self.prepared.registration.provenance}{where})"


def _wall_clock_ms() -> int:
    # Applications use a registry without a home, so it reads the clock itself; tests pass another.
    return time.time_ns() // 1_000_000


class Registry:
    """Operations by name, and the calls to them."""

    def __init__(
        self, registrations: Iterable[HandlerRegistration] = (), *, now_ms: Callable[[], int] = _wall_clock_ms
    ) -> None:
        self._entries: dict[OperationKey, _Entry] = {}
        self._overlays: set[str] = set()
        self._dispatcher = Dispatcher(self._find, now_ms)
        self.register_all(registrations)

    def register(self, registration: HandlerRegistration, *, replace: bool = False) -> None:
        """Add one operation.

        Raises:
            NameCollision: its name is taken, and it is not to replace the other.
            SchemaParse: one of its schemas cannot be used.
        """
        self.register_all([registration], replace=replace)

    def register_all(self, registrations: Iterable[HandlerRegistration], *, replace: bool = False) -> None:
        """Add several operations atomically: all or none.

        Raises:
            NameCollision: a name is taken, or is there twice.
            SchemaParse: a schema cannot be used.
        """
        new = self._layered(registrations, _BASE)
        self._check_free(new, {key for key, entry in self._entries.items() if replace and not entry.layer})
        self._entries = {**self._entries, **new}

    def unregister(self, operation_id: str) -> bool:
        """Remove an operation; return whether it existed."""
        return self._entries.pop(parse_operation_id(operation_id), None) is not None

    def overlay(self, name: str) -> Overlay:
        """Open a set of operations that can be replaced and dropped as a whole.

        Raises:
            NameCollision: there is an overlay of that name.
        """
        if not name or name in self._overlays:
            raise NameCollision(f"There is an overlay '{name}' already, or it has no name.")
        self._overlays.add(name)
        return Overlay(name, partial(self._replace_layer, name), partial(self._drop_layer, name))

    def get(self, operation_id: str) -> HandlerRegistration | None:
        """Find an operation by any spelling of its id."""
        prepared = self._find(operation_id)
        return None if prepared is None else prepared.registration

    def __contains__(self, operation_id: str) -> bool:
        return self._find(operation_id) is not None

    def __iter__(self) -> Iterator[HandlerRegistration]:
        return (entry.prepared.registration for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The request ids of the running calls, oldest first."""
        return self._dispatcher.running.request_ids

    async def execute(
        self,
        operation_id: str,
        value: Any = None,
        *,
        identity: Identity | None = None,
        timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
        request_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ResponseEnvelope:
        """Run an operation for an outside caller and return its envelope, also for an error result.

        Raises:
            CallError: the call could not be made, or was not answered.
        """
        request = Request(
            operation_id,
            value,
            request_id or new_request_id(),
            identity=identity,
            caller=identity,
            deadline=deadline_after(timeout_seconds),
            metadata=metadata,
        )
        return await self._dispatcher.execute(request)

    async def call(
        self,
        operation_id: str,
        value: Any = None,
        *,
        identity: Identity | None = None,
        timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> Any:
        """Run an operation and return its data.

        Raises:
            CallError: the call failed, or the tool did, or its output breaks its schema.
        """
        envelope = await self.execute(operation_id, value, identity=identity, timeout_seconds=timeout_seconds)
        return envelope.unwrap()

    async def batch(
        self,
        entries: Sequence[BatchEntry],
        *,
        identity: Identity | None = None,
        timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
        concurrency: int = 1,
    ) -> tuple[BatchOutcome, ...]:
        """Run several operations under one deadline; one that fails does not stop the rest.

        Raises:
            CallError: there are too many entries.
        """
        if len(entries) > MAX_ENTRIES:
            raise CallError("INVALID_INPUT", f"A batch has at most {MAX_ENTRIES} entries.")
        deadline, slots = deadline_after(timeout_seconds), asyncio.Semaphore(max(1, concurrency))

        async def run(entry: BatchEntry) -> BatchOutcome:
            request = Request(
                entry.operation_id,
                entry.value,
                new_request_id(),
                identity=identity,
                caller=identity,
                deadline=deadline,
            )
            async with slots:
                try:
                    envelope = await self._dispatcher.execute(request)
                except CallError as error:
                    return BatchOutcome(request.request_id, None, error)
                return BatchOutcome(request.request_id, envelope, envelope.error)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(entry)) for entry in entries]
        return tuple(task.result() for task in tasks)

    def abort(self, request_id: str) -> tuple[str, ...]:
        """Abort a call and its children; return the aborted ids in order.

        An unknown id is not an error.
        """
        return self._dispatcher.running.abort(request_id)

    def _find(self, operation_id: str) -> Prepared | None:
        entry = self._entries.get(parse_operation_id(operation_id))
        return None if entry is None else entry.prepared

    @staticmethod
    def _layered(registrations: Iterable[HandlerRegistration], layer: str) -> dict[OperationKey, _Entry]:
        new: dict[OperationKey, _Entry] = {}
        for registration in registrations:
            entry = _Entry(prepare(registration), layer)
            if registration.spec.key in new:
                raise _collision(entry, new[registration.spec.key])
            new[registration.spec.key] = entry
        return new

    def _check_free(self, new: Mapping[OperationKey, _Entry], replaceable: set[OperationKey]) -> None:
        for key, entry in new.items():
            if key in self._entries and key not in replaceable:
                raise _collision(entry, self._entries[key])

    def _replace_layer(self, layer: str, registrations: Iterable[HandlerRegistration]) -> None:
        new = self._layered(registrations, layer)
        others = {key: entry for key, entry in self._entries.items() if entry.layer != layer}
        self._check_free(new, self._entries.keys() - others.keys())
        self._entries = {**others, **new}

    def _drop_layer(self, layer: str) -> None:
        self._replace_layer(layer, ())
        self._overlays.discard(layer)


class Overlay:
    """A set of operations that is replaced or removed as a whole; it cannot replace an operation outside it."""

    __slots__ = ("_drop", "_is_open", "_replace", "name")

    def __init__(
        self, name: str, replace: Callable[[Iterable[HandlerRegistration]], None], drop: Callable[[], None]
    ) -> None:
        self.name = name
        self._replace = replace
        self._drop = drop
        self._is_open = True

    def replace_all(self, registrations: Iterable[HandlerRegistration]) -> None:
        """Replace all operations of this overlay, or change nothing.

        Raises:
            NameCollision: a name is taken outside this overlay, or is there twice.
            RegistrationInvalid: the overlay is closed.
            SchemaParse: a schema cannot be used.
        """
        if not self._is_open:
            raise RegistrationInvalid(f"The overlay '{self.name}' is closed.")
        self._replace(registrations)

    def close(self) -> None:
        """Remove all operations of this overlay; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._drop()


def _collision(new: _Entry, old: _Entry) -> NameCollision:
    return NameCollision(f"{new} and {old} have the same name.", details={"id": new.prepared.spec.id})
