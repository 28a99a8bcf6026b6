"""A bound registration is a function from input to model."""

import datetime as dt

import pytest
from pydantic import BaseModel

from headgate.errors import CallError, RegistrationInvalid
from headgate.operations.calling import input_schema_of, output_schema_of
from headgate.operations.envelope import mcp_envelope
from headgate.operations.spec import AccessControl, Identity
from tests.operations.parts import composing, echo, leaf, operation, registry, token

pytestmark = pytest.mark.anyio


class Issue(BaseModel):
    number: int
    opened: dt.date


class Query(BaseModel):
    state: str = "open"
    page: int = 1


async def test_the_result_is_a_model():
    async def remote(_value, _context):
        return mcp_envelope({"number": 7, "opened": "2026-01-02"})

    issue = await leaf(remote).bind(Issue)({"id": 7})
    assert issue == Issue(number=7, opened=dt.date(2026, 1, 2))


async def test_any_type_that_pydantic_knows_will_do():
    async def remote(_value, _context):
        return [{"number": 1, "opened": "2026-01-02"}]

    issues = await leaf(remote).bind(list[Issue])()
    assert [type(one) for one in issues] == [Issue]


async def test_a_result_that_does_not_fit_the_model_is_named_and_not_quoted():
    async def remote(_value, _context):
        return {"number": "canary", "opened": "2026-01-02"}

    with pytest.raises(CallError) as raised:
        await leaf(remote).bind(Issue)()
    assert raised.value.code == "INVALID_OUTPUT"
    assert raised.value.details["issues"][0]["path"] == "$.number"
    assert "canary" not in str(raised.value.details)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


async def test_a_model_may_be_the_input_and_only_what_was_set_is_sent():
    bound = leaf().bind(dict)
    assert await bound(Query(page=2)) == {"page": 2}


async def test_the_call_is_made_as_through_a_registry():
    async def remote(value, context):
        return {
            "token": context.capabilities.get("ns").expose(),
            "left": context.remaining_seconds() <= 5,
            **value,
        }

    closed = leaf(
        remote,
        capabilities=token("t"),
        input_schema=input_schema_of(Query),
        access_control=AccessControl(required_scopes=("x",)),
    )
    bound = closed.bind(dict)
    known = Identity("a", frozenset({"x"}))
    assert await bound({}, identity=known, timeout_seconds=5) == {"token": "t", "left": True}
    for value, identity, code in (({}, None, "FORBIDDEN"), ({"page": "x"}, known, "INVALID_INPUT")):
        with pytest.raises(CallError) as raised:
            await bound(value, identity=identity)
        assert raised.value.code == code


async def test_a_tool_error_is_raised():
    async def remote(_value, _context):
        return mcp_envelope([], is_error=True)

    with pytest.raises(CallError) as raised:
        await leaf(remote).bind(Issue)()
    assert raised.value.code == "MCP_TOOL_ERROR"


def test_an_operation_that_composes_needs_its_registry():
    with pytest.raises(RegistrationInvalid, match="registry"):
        composing(echo, "ns/leaf").bind(Issue)


async def test_models_give_the_schemas_of_a_local_operation():
    async def find(value, _context):
        return Issue(number=value["page"], opened=dt.date(2026, 1, 2))

    held = registry(
        operation(find, input_schema=input_schema_of(Query), output_schema=output_schema_of(Issue))
    )
    assert await held.call("ns/op", {"page": 3}) == {"number": 3, "opened": "2026-01-02"}
    with pytest.raises(CallError):
        await held.call("ns/op", {"page": "three"})
