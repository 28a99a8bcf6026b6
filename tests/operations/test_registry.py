"""The registry takes all of a batch or nothing, and never lets one name stand for two operations."""

import pytest

from headgate.errors import CallError, NameCollision, RegistrationInvalid, SchemaParse
from headgate.operations.registry import Registry
from tests.operations.parts import leaf, operation, registry

BAD = {"type": "nonsense"}


def ids(held):
    return [one.id for one in held]


def test_operations_are_found_counted_and_listed():
    one, two = operation(name="a"), operation(name="b", namespace="other")
    held = registry(one, two)
    assert held.get("ns/a") is one
    assert held.get("ns/none") is None
    assert "other.b" in held
    assert "other.c" not in held
    assert len(held) == 2
    assert ids(held) == ["ns/a", "other/b"]


def test_a_collision_names_both_operations():
    held = registry(operation(name="a"))
    with pytest.raises(NameCollision) as refused:
        held.register(leaf(name="a"))
    assert "(from_mcp)" in refused.value.message
    assert "(local)" in refused.value.message
    assert refused.value.details == {"id": "ns/a"}


def test_a_prefix_in_the_name_does_not_make_another_name():
    held = registry(operation(name="a"))
    with pytest.raises(NameCollision):
        held.register(operation(name="ns/a"))


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (operation(name="taken"), NameCollision),
        (operation(name="new"), NameCollision),
        (operation(name="bad", input_schema=BAD), SchemaParse),
        (operation(name="bad", output_schema=BAD), SchemaParse),
    ],
)
def test_a_batch_is_registered_whole_or_not_at_all(last, error):
    held = registry(operation(name="taken"))
    with pytest.raises(error):
        held.register_all([operation(name="new"), last])
    assert ids(held) == ["ns/taken"]


def test_an_operation_is_replaced_only_on_purpose():
    old, new = operation(name="a"), operation(name="a", title="new")
    held = registry(old)
    held.register(new, replace=True)
    assert held.get("ns/a") is new


def test_a_schema_that_cannot_be_used_names_its_operation():
    with pytest.raises(SchemaParse, match="ns/op"):
        registry(operation(output_schema=BAD))


def test_foreign_schemas_are_guarded_more_strictly_than_our_own():
    large = {"properties": {f"p{n}": {} for n in range(3_000)}}
    assert registry(operation(input_schema=large))
    with pytest.raises(SchemaParse):
        registry(leaf(input_schema=large))


def test_an_operation_can_be_taken_out():
    held = registry(operation())
    assert held.unregister("ns.op")
    assert not held.unregister("ns.op")
    assert len(held) == 0


def test_an_overlay_is_replaced_and_dropped_as_a_whole():
    held = registry(operation(name="base"))
    overlay = held.overlay("github")
    overlay.replace_all([leaf(name="a"), leaf(name="b")])
    assert ids(held) == ["ns/base", "ns/a", "ns/b"]
    overlay.replace_all([leaf(name="b"), leaf(name="c")])
    assert ids(held) == ["ns/base", "ns/b", "ns/c"]
    overlay.close()
    overlay.close()
    assert ids(held) == ["ns/base"]
    with pytest.raises(RegistrationInvalid):
        overlay.replace_all([leaf()])
    assert held.overlay("github").name == "github"


def test_an_overlay_shadows_nothing_and_a_failed_replacement_changes_nothing():
    held = registry(operation(name="base"))
    first, second = held.overlay("one"), held.overlay("two")
    first.replace_all([leaf(name="a")])
    for taken in ("base", "a"):
        with pytest.raises(NameCollision):
            second.replace_all([leaf(name="free"), leaf(name=taken)])
    with pytest.raises(NameCollision):
        first.replace_all([leaf(name="x"), leaf(name="x")])
    with pytest.raises(NameCollision) as refused:
        held.register(operation(name="a"), replace=True)
    assert "in overlay 'one'" in refused.value.message
    assert ids(held) == ["ns/base", "ns/a"]


def test_overlays_have_names_of_their_own():
    held = Registry()
    held.overlay("one")
    for name in ("one", ""):
        with pytest.raises(NameCollision):
            held.overlay(name)


@pytest.mark.anyio
async def test_a_dropped_operation_is_missing_at_once():
    held = registry()
    overlay = held.overlay("one")
    overlay.replace_all([operation()])
    assert await held.call("ns/op", {"a": 1}) == {"a": 1}
    overlay.close()
    with pytest.raises(CallError) as missing:
        await held.call("ns/op")
    assert missing.value.code == "NOT_FOUND"
