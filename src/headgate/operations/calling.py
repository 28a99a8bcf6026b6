"""Operations from typed code: pydantic models at their border, and what generated stubs import."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET, UnsetType
from pydantic import TypeAdapter

from headgate.errors import RegistrationInvalid
from headgate.operations.dispatch import Dispatcher, Request, deadline_after, new_request_id
from headgate.operations.registration import HandlerRegistration, expose, prepare
from headgate.operations.spec import Identity
from headgate.operations.typed import as_model

__all__ = ["UNSET", "Caller", "UnsetType", "call_with"]


class Caller(Protocol):
    """A registry, or the env of a composing operation."""

    def call(self, operation_id: str, value: Any = None, /) -> Coroutine[Any, Any, Any]:
        """Run an operation and return its data, or raise its error."""
        ...


async def call_with(caller: Caller, operation_id: str, arguments: Mapping[str, Any]) -> Any:
    """Call an operation with the arguments that were given."""
    return await caller.call(
        operation_id, {name: value for name, value in arguments.items() if value is not UNSET}
    )


_T = TypeVar("_T")


def input_schema_of(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of what a model, or any type pydantic knows, accepts."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    return adapter.json_schema(mode="validation")


def output_schema_of(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of what a model, or any type pydantic knows, is written as."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    return adapter.json_schema(mode="serialization")


class Bound(Generic[_T]):
    """One operation whose results are models."""

    __slots__ = ("_adapter", "_dispatcher", "registration")

    def __init__(self, registration: HandlerRegistration, model: type[_T]) -> None:
        if registration.scoped_env is not None:
            raise RegistrationInvalid(
                f"{registration.spec.id} composes others; call it through its registry."
            )
        self.registration = registration
        self._adapter = TypeAdapter(model)
        # A caller that holds the registration may run it, so visibility is not checked.
        prepared = prepare(expose(registration, access_control=registration.access_control))
        self._dispatcher = Dispatcher(lambda _: prepared, lambda: 0)

    async def __call__(
        self, value: Any = None, *, identity: Identity | None = None, timeout_seconds: float = 30.0
    ) -> _T:
        """Run the operation."""
        envelope = await self._dispatcher.execute(
            Request(
                self.registration.spec.id,
                value,
                new_request_id(),
                identity=identity,
                caller=identity,
                deadline=deadline_after(timeout_seconds),
            )
        )
        return as_model(self._adapter, envelope.unwrap())
