"""Composition: under the composing operation's authority, with the child's own secrets, within the env."""

import pytest

from headgate.errors import CallError
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registration import CompositionAuthority, OperationContext, Provenance, ScopedEnv
from headgate.operations.spec import AccessControl, Identity, Visibility
from tests.operations.parts import composing, echo, leaf, operation, registry, token

pytestmark = pytest.mark.anyio

CALLER = Identity("caller", frozenset({"outer"}))
RESTRICTED = AccessControl(required_scopes=("inner",))
AUTHORITY = CompositionAuthority("kernel", frozenset({"inner"}))


async def pass_on(value, context):
    return await context.env.call("ns/leaf", value)


def keeping(seen, answer=None):
    async def handler(_value, context):
        seen.append(context)
        return answer

    return handler


async def code_of(awaitable):
    with pytest.raises(CallError) as raised:
        await awaitable
    error = raised.value
    return (error.details or {}).get("code", error.code) if error.code == "INTERNAL" else error.code


@pytest.mark.requirement("S0-B6")
async def test_a_structured_result_is_used_as_a_typed_value():
    async def remote(_value, _context):
        return mcp_envelope({"stars": [1, 2]}, structured_content={"stars": [1, 2]})

    async def total(_value, context):
        found = await context.env.call("ns/leaf", {})
        return {"total": sum(found["stars"])}

    assert await registry(leaf(remote), composing(total, "ns/leaf")).call("ns/outer") == {"total": 3}


@pytest.mark.requirement("S0-15")
async def test_an_internal_operation_is_reached_by_composing_and_only_so():
    assert leaf().access_control == AccessControl()
    held = registry(leaf(), composing(pass_on, "ns/leaf"))
    assert await held.call("ns/outer", {"a": 1}) == {"a": 1}
    assert await code_of(held.call("ns/leaf", {})) == "NOT_FOUND"


async def test_the_child_is_judged_by_the_authority_of_its_parent_and_not_by_the_caller():
    allowed = composing(pass_on, "ns/leaf", composition_authority=AUTHORITY)
    held = registry(leaf(access_control=RESTRICTED), allowed)
    assert await held.call("ns/outer", {"a": 1}, identity=CALLER) == {"a": 1}

    powerful = Identity("root", frozenset({"inner", "outer"}))
    weak = registry(leaf(access_control=RESTRICTED), composing(pass_on, "ns/leaf"))
    assert await code_of(weak.call("ns/outer", {}, identity=powerful)) == "FORBIDDEN"


async def test_an_operation_does_not_authorise_itself():
    itself = composing(echo, name="leaf", composition_authority=AUTHORITY, access_control=RESTRICTED)
    held = registry(itself, composing(pass_on, "ns/leaf"))
    assert await code_of(held.call("ns/outer", {})) == "FORBIDDEN"


@pytest.mark.requirement("S0-24")
async def test_each_operation_runs_with_its_own_secrets_and_no_others():
    seen = []

    async def outer(_value, context):
        seen.append(context)
        return await context.env.call("ns/leaf")

    held = registry(
        leaf(keeping(seen), capabilities=token("child")),
        composing(outer, "ns/leaf", capabilities=token("parent")),
    )
    await held.call("ns/outer")
    assert [context.capabilities.get("ns").expose() for context in seen] == ["parent", "child"]
    assert [len(context.capabilities) for context in seen] == [1, 1]


@pytest.mark.requirement("S0-16")
@pytest.mark.parametrize("provenance", [kind for kind in Provenance if kind.is_leaf])
async def test_a_leaf_has_no_env(provenance):
    seen = []
    held = registry(operation(keeping(seen), provenance=provenance))
    await held.call("ns/op")
    assert seen[0].env is None


async def test_what_is_not_in_the_env_looks_missing():
    held = registry(
        leaf(), operation(name="other"), composing(pass_on, "ns/other"), operation(pass_on, "bare")
    )
    assert await code_of(held.call("ns/outer")) == "NOT_FOUND"
    assert await code_of(held.call("ns/bare")) == "NOT_FOUND"


async def test_a_whole_namespace_can_be_allowed():
    held = registry(leaf(), operation(pass_on, scoped_env=ScopedEnv(allowed_namespaces=frozenset({"ns"}))))
    assert await held.call("ns/op", {"a": 1}) == {"a": 1}


async def test_attributes_are_short_for_calls():
    async def outer(_value, context):
        return [
            await context.env.ns.leaf({"a": 1}),
            await context.env.ns.leaf(),
            await context.env.call("ns.leaf", {"b": 1}),
        ]

    held = registry(leaf(), composing(outer, "ns/leaf"))
    assert await held.call("ns/outer") == [{"a": 1}, {}, {"b": 1}]


async def test_private_names_are_no_operations():
    async def outer(_value, context):
        for thing in (context.env, context.env.ns):
            with pytest.raises(AttributeError):
                _ = thing._secret
        return repr(context.env)

    assert await registry(composing(outer, "ns/leaf")).call("ns/outer") == "<env of ns/outer>"


async def test_an_error_cannot_be_read_as_data_by_accident():
    async def failed(_value, _context):
        return mcp_envelope([], is_error=True, content=[{"type": "text", "text": "no"}])

    async def look(_value, context):
        envelope = await context.env.execute("ns/leaf")
        return {"seen": envelope.is_error}

    held = registry(leaf(failed), composing(pass_on, "ns/leaf"), composing(look, "ns/leaf", name="look"))
    assert await code_of(held.call("ns/outer")) == "MCP_TOOL_ERROR"
    assert await held.call("ns/look") == {"seen": True}


async def test_a_child_context_is_fresh_but_remembers_where_it_comes_from():
    seen = []

    async def outer(_value, context):
        seen.append(context)
        return await context.env.call("ns/leaf")

    held = registry(leaf(keeping(seen)), composing(outer, "ns/leaf", composition_authority=AUTHORITY))
    await held.execute("ns/outer", identity=CALLER, metadata={"m": 1}, request_id="root")
    parent, child = seen
    assert (parent.request_id, parent.parent_request_id, parent.internal) == ("root", None, False)
    assert parent.metadata == {"m": 1}
    assert (parent.identity, parent.caller) == (CALLER, CALLER)
    assert child.parent_request_id == "root"
    assert child.request_id not in {"root", ""}
    assert child.internal
    assert child.metadata == {}
    assert child.identity == AUTHORITY.as_identity()
    assert child.caller == CALLER
    assert child.deadline == parent.deadline


async def test_a_handler_cannot_forge_an_internal_context():
    with pytest.raises(TypeError):
        OperationContext("1", internal=True)
    with pytest.raises(AttributeError):
        OperationContext("1").internal = True
    with pytest.raises(AttributeError):
        OperationContext("1").identity = CALLER


async def test_an_env_is_of_no_use_after_its_call():
    envs = []

    async def outer(_value, context):
        envs.append(context.env)

    held = registry(leaf(), composing(outer, "ns/leaf"))
    await held.call("ns/outer")
    assert await code_of(envs[0].call("ns/leaf")) == "ABORTED"


async def test_a_child_is_called_three_levels_deep():
    async def middle(value, context):
        return await context.env.ns.leaf({**value, "middle": context.internal})

    async def outer(value, context):
        return await context.env.ns.middle({**value, "outer": context.internal})

    held = registry(
        leaf(),
        composing(middle, "ns/leaf", name="middle", visibility=Visibility.INTERNAL),
        composing(outer, "ns/middle"),
    )
    assert await held.call("ns/outer") == {"outer": False, "middle": True}
    assert held.in_flight == ()
