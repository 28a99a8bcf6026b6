"""A registration is one bundle that says what its spec says, and refuses what could not work."""

import dataclasses
import functools
import inspect

import pytest

from headgate.errors import RegistrationInvalid
from headgate.operations.registration import (
    CompositionAuthority,
    HandlerRegistration,
    OperationAdapter,
    Provenance,
    ScopedEnv,
    expose,
)
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl, Visibility
from tests.operations.parts import echo, leaf, operation, spec


async def stream(value, _context):
    yield value


class StreamObject:
    async def __call__(self, value, _context):
        yield value


@pytest.mark.requirement("S4-09")
def test_a_registration_says_everything_its_spec_says_and_has_the_handler():
    registration = operation(title="T", tags=("a",))
    for field in dataclasses.fields(registration.spec):
        assert getattr(registration, field.name) == getattr(registration.spec, field.name)
    for derived in ("id", "key", "local_name"):
        assert getattr(registration, derived) == getattr(registration.spec, derived)
    assert registration.handler is echo


@pytest.mark.requirement("S4-09")
def test_a_list_of_registrations_can_be_registered():
    held = Registry()
    held.register_all([operation(name="a"), leaf(name="b")])
    assert [one.id for one in held] == ["ns/a", "ns/b"]


@pytest.mark.parametrize("handler", [stream, functools.partial(stream), StreamObject()])
def test_an_async_generator_is_no_handler(handler):
    with pytest.raises(RegistrationInvalid, match="one result"):
        operation(handler)


@pytest.mark.requirement("S0-16")
@pytest.mark.parametrize("provenance", [kind for kind in Provenance if kind.is_leaf])
def test_an_imported_operation_has_neither_authority_nor_env(provenance):
    imported = leaf(provenance=provenance)
    assert imported.composition_authority is None
    assert imported.scoped_env is None
    for more in ({"composition_authority": CompositionAuthority("x")}, {"scoped_env": ScopedEnv()}):
        with pytest.raises(RegistrationInvalid, match="composes nothing"):
            leaf(provenance=provenance, **more)


def test_only_code_of_this_process_composes():
    assert {kind for kind in Provenance if not kind.is_leaf} == {Provenance.LOCAL}


def test_exposing_demands_an_access_control_and_changes_nothing_else():
    imported = leaf()
    access = AccessControl(required_scopes=("use",))
    exposed = expose(imported, access_control=access)
    assert (exposed.visibility, exposed.access_control) == (Visibility.EXTERNAL, access)
    assert imported.visibility is Visibility.INTERNAL
    assert (exposed.handler, exposed.provenance) == (imported.handler, imported.provenance)
    with pytest.raises(TypeError):
        expose(imported)


def test_a_registration_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        operation().handler = echo


@pytest.mark.requirement("S0-02")
@pytest.mark.requirement("S0-B3")
def test_an_adapter_is_anything_with_one_async_method_that_takes_nothing():
    class Adapter:
        async def import_operations(self):
            return [HandlerRegistration(spec(), echo)]

    assert isinstance(Adapter(), OperationAdapter)
    assert not isinstance(object(), OperationAdapter)
    assert list(inspect.signature(OperationAdapter.import_operations).parameters) == ["self"]


def test_a_scoped_env_reads_any_spelling():
    env = ScopedEnv(frozenset({"/a/b", "c.d"}), frozenset({"e"}))
    assert env.allowed_ops == {"a/b", "c/d"}
    assert hash(env) == hash(ScopedEnv({"a/b", "c/d"}, {"e"}))
    assert [env.allows(key) for key in (("a", "b"), ("c", "d"), ("e", "any"), ("a", "d"))] == [
        True,
        True,
        True,
        False,
    ]
