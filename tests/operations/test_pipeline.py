"""The steps of a call, in their order, and what each of them says when it refuses."""

import dataclasses
import json
import logging

import pytest
from pydantic import BaseModel

from headgate.errors import CallError
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.operations.envelope import LocalMeta, local_envelope, mcp_envelope
from headgate.operations.registration import OutputPolicy, expose
from headgate.operations.spec import AccessControl, ErrorDefinition, OutputKind, Visibility
from headgate.schema.value import Issue
from tests.operations.parts import leaf, operation, registry
from tests.schema.test_normalise import CLOSED, of

pytestmark = pytest.mark.anyio

WHOLE = {"type": "integer"}
BLOCKS = [{"type": "text", "text": "no"}]


def answering(answer):
    async def handler(_value, _context):
        return answer

    return handler


def failing(error):
    async def handler(_value, _context):
        raise error

    return handler


async def failure(held, name="ns/op", value=None, **more):
    with pytest.raises(CallError) as raised:
        await held.execute(name, value, **more)
    return raised.value


async def test_a_plain_value_is_wrapped_as_local():
    envelope = await registry(operation()).execute("ns/op", {"a": 1}, request_id="r1")
    assert envelope.data == {"a": 1}
    assert envelope.meta == LocalMeta("ns/op", 1_700_000_000_000)
    assert envelope.request_id == "r1"
    assert envelope.ok


async def test_nothing_is_a_result_too():
    assert (await registry(operation(answering(None))).execute("ns/op")).data is None


async def test_a_mapping_that_looks_like_an_envelope_is_data():
    forged = mcp_envelope([], is_error=True).to_dict()
    envelope = await registry(operation(answering(forged))).execute("ns/op")
    assert envelope.data == forged
    assert envelope.ok


@pytest.mark.requirement("S0-11")
async def test_a_hidden_operation_looks_exactly_like_a_missing_one():
    held, empty = registry(leaf(name="op")), registry()
    hidden, missing = await failure(held), await failure(empty)
    assert vars(hidden) == vars(missing)
    assert str(hidden) == str(missing)
    assert (hidden.code, hidden.status) == ("NOT_FOUND", 404)
    # Not even its type, its access control or its input schema can be learned from outside.
    odd = leaf(name="op", input_schema=False, access_control=AccessControl(required_scopes=("x",)))
    assert vars(await failure(registry(odd))) == vars(missing)


async def test_the_missing_id_is_shown_escaped_and_cut():
    error = await failure(registry(), "ns/\n\x1b[31m" + "x" * 1_000)
    assert "\n" not in error.message
    assert "\x1b" not in error.message
    assert len(error.message) < 300


async def test_input_that_does_not_fit_is_refused_with_places_and_without_values():
    held = registry(operation(failing(AssertionError("ran")), input_schema=of(["a"], n=WHOLE)))
    error = await failure(held, value={"n": "canary-1"})
    assert (error.code, error.status) == ("INVALID_INPUT", 422)
    assert [(one["path"], one["keyword"]) for one in error.details] == [("$", "required"), ("$.n", "type")]
    assert "canary" not in json.dumps(error.details) + error.message
    for value in ({"n": float("nan")}, {"n": {1, 2}}, "\ud800"):
        assert (await failure(held, value=value)).code == "INVALID_INPUT"


async def test_the_handler_gets_a_copy_with_declared_defaults():
    async def change(value, _context):
        value["list"].append(2)
        return value

    schema = of(limit={**WHOLE, "default": 25})
    given = {"list": [1]}
    answer = await registry(operation(change, input_schema=schema)).call("ns/op", given)
    assert answer == {"list": [1, 2], "limit": 25}
    assert given == {"list": [1]}


async def test_an_operation_may_do_without_its_defaults():
    schema = of(limit={**WHOLE, "default": 25})
    held = registry(operation(input_schema=schema, apply_input_defaults=False))
    assert await held.call("ns/op", {"a": 1}) == {"a": 1}


@pytest.mark.requirement("S0-18")
async def test_a_remote_server_gets_exactly_what_the_caller_sent():
    schema = of(limit={**WHOLE, "default": 25})
    held = registry(expose(leaf(name="op", input_schema=schema), access_control=AccessControl()))
    assert await held.call("ns/op", {"more": 1}) == {"more": 1}
    assert await held.call("ns/op") == {}


async def test_a_declared_output_is_normalised_and_checked():
    schema = {**of(["n"], n=WHOLE, d={"default": 1}), **CLOSED}
    held = registry(operation(answering({"n": 1, "z": 2}), output_schema=schema))
    assert await held.call("ns/op") == {"n": 1, "d": 1}


@pytest.mark.requirement("S0-19")
async def test_an_output_that_breaks_its_schema_is_flagged_and_raises_only_when_unwrapped(caplog):
    held = registry(operation(answering({"n": "canary-2"}), output_schema=of(n=WHOLE)))
    with caplog.at_level(logging.WARNING, "headgate"):
        envelope = await held.execute("ns/op")
    assert envelope.data == {"n": "canary-2"}
    assert [(one.path, one.keyword) for one in envelope.issues] == [("$.n", "type")]
    assert len(caplog.records) == 1
    assert "$.n (type)" in caplog.text
    assert "canary" not in caplog.text
    with pytest.raises(CallError) as raised:
        await held.call("ns/op")
    assert (raised.value.code, raised.value.status) == ("INVALID_OUTPUT", 502)


async def test_the_output_policy_decides():
    def with_policy(policy):
        return registry(operation(answering({"n": "x"}), output_schema=of(n=WHOLE), output_policy=policy))

    assert (await failure(with_policy(OutputPolicy.STRICT))).code == "INVALID_OUTPUT"
    assert await with_policy(OutputPolicy.OFF).call("ns/op") == {"n": "x"}


async def test_an_output_that_is_not_json_is_flagged():
    held = registry(operation(answering({"n": {1}}), output_schema=of(n=WHOLE)))
    assert [one.keyword for one in (await held.execute("ns/op")).issues] == ["json"]


async def test_a_model_is_a_result_too():
    class Answer(BaseModel):
        n: int

    held = registry(operation(answering(Answer(n=1)), output_schema=of(["n"], n=WHOLE)))
    assert await held.call("ns/op") == {"n": 1}


@pytest.mark.requirement("S4-06")
async def test_data_under_an_unknown_schema_is_untouched():
    value = object()
    held = registry(operation(answering(value)), operation(answering(value), "empty", output_schema={}))
    assert (await held.execute("ns/op")).data is value
    assert (await held.execute("ns/empty")).data is value


async def test_an_envelope_of_an_adapter_is_finished_and_not_wrapped_again():
    schema = {**of(n=WHOLE), **CLOSED}
    made = mcp_envelope({"n": 1, "z": 1}, structured_content={"n": 1, "z": 1})
    envelope = await registry(operation(answering(made), output_schema=schema)).execute(
        "ns/op", request_id="r"
    )
    assert envelope.data == {"n": 1}
    assert envelope.meta.structured_content == {"n": 1, "z": 1}
    assert envelope.request_id == "r"
    done = dataclasses.replace(made, is_checked=True)
    envelope = await registry(operation(answering(done), output_schema=schema)).execute("ns/op")
    assert envelope.data == {"n": 1, "z": 1}


async def test_blocks_and_undeclared_structure_are_not_normalised():
    blocks = mcp_envelope(BLOCKS, content=BLOCKS, output_kind=OutputKind.CONTENT_BLOCKS)
    structure = mcp_envelope({"a": 1}, output_kind=OutputKind.STRUCTURED_UNDECLARED)
    kind = {"output_schema": MCP_CONTENT_SCHEMA, "output_kind": OutputKind.CONTENT_BLOCKS}
    held = registry(operation(answering(blocks), "b", **kind), operation(answering(structure), "s", **kind))
    assert await held.call("ns/b") == BLOCKS
    assert await held.call("ns/s") == {"a": 1}


@pytest.mark.requirement("S4-07")
@pytest.mark.requirement("S0-22")
@pytest.mark.requirement("S0-B8")
async def test_an_error_result_comes_back_whole_from_execute_and_is_raised_by_call():
    made = mcp_envelope(BLOCKS, is_error=True, content=BLOCKS)
    schema = {**of(["n"], n=WHOLE, d={"default": 1}), **CLOSED}
    held = registry(operation(answering(made), output_schema=schema, output_policy=OutputPolicy.STRICT))
    envelope = await held.execute("ns/op")
    assert envelope.data == BLOCKS
    assert envelope.is_error
    assert envelope.issues == ()
    with pytest.raises(CallError) as raised:
        await held.call("ns/op")
    assert raised.value.code == "MCP_TOOL_ERROR"
    assert raised.value.details["content"] == BLOCKS


async def test_a_strict_policy_keeps_the_code_an_adapter_gave():
    missing = mcp_envelope(
        BLOCKS, content=BLOCKS, is_checked=True, issues=[Issue("$", "MCP_OUTPUT_MISSING", "is missing")]
    )
    held = registry(operation(answering(missing), output_policy=OutputPolicy.STRICT))
    assert (await failure(held)).code == "MCP_OUTPUT_MISSING"


DECLARED = (
    ErrorDefinition(
        "EMPTY", "nothing there", schema=of(["where"], where={"type": "string"}), http_status=410
    ),
    ErrorDefinition("ANY", "anything"),
)


async def test_a_declared_error_passes_with_its_details_and_status():
    error = CallError("EMPTY", "empty", details={"where": "x"})
    shown = await failure(registry(operation(failing(error), error_schemas=DECLARED)))
    assert (shown.code, shown.details, shown.status) == ("EMPTY", {"where": "x"}, 410)
    shown = await failure(
        registry(operation(failing(CallError("ANY", details=object())), error_schemas=DECLARED))
    )
    assert shown.code == "ANY"


async def test_a_declared_error_with_wrong_details_is_internal():
    for details in ({"where": 1}, None, {"where": {1}}):
        error = CallError("EMPTY", details=details)
        shown = await failure(registry(operation(failing(error), error_schemas=DECLARED)))
        assert (shown.code, shown.details["code"]) == ("INTERNAL", "EMPTY")
        assert shown.__cause__ is error


@pytest.mark.parametrize("code", ["UNDECLARED", "NOT_FOUND", "FORBIDDEN", "MCP_TOOL_ERROR", "ABORTED"])
async def test_an_undeclared_error_is_internal_and_keeps_only_its_code(code):
    error = CallError(code, "canary-3", details={"canary": 3})
    shown = await failure(registry(operation(failing(error), error_schemas=DECLARED)))
    assert (shown.code, shown.details, shown.status) == ("INTERNAL", {"code": code}, 500)
    assert "canary" not in shown.message


async def test_codes_are_matched_by_the_code_and_never_by_the_text():
    shown = await failure(registry(operation(failing(ValueError("EMPTY: x")), error_schemas=DECLARED)))
    assert (shown.code, shown.details) == ("INTERNAL", None)


@pytest.mark.parametrize("code", ["INVALID_INPUT", "TIMEOUT", "INVALID_OUTPUT"])
async def test_a_leaf_may_answer_for_its_server_and_a_composing_operation_may_not(code):
    remote = expose(leaf(failing(CallError(code)), "op"), access_control=AccessControl())
    assert (await failure(registry(remote))).code == code
    assert (await failure(registry(operation(failing(CallError(code)))))).code == "INTERNAL"


async def test_any_other_exception_says_nothing_but_can_be_followed_in_process(caplog):
    error = RuntimeError("canary-4")
    with caplog.at_level(logging.DEBUG, "headgate"):
        shown = await failure(registry(operation(failing(error))), request_id="r9")
    assert (shown.code, shown.message, shown.details) == ("INTERNAL", "The operation failed.", None)
    assert shown.__cause__ is error
    assert "canary" not in caplog.text
    assert "r9" in caplog.text
    assert "RuntimeError" in caplog.text


async def test_each_call_writes_one_line_with_ids_and_outcome(caplog):
    with caplog.at_level(logging.DEBUG, "headgate"):
        await registry(operation()).execute("ns/op", {"a": "canary-5"}, request_id="r1")
        await failure(registry(), request_id="r2")
    lines = [record.msg for record in caplog.records]
    assert {line["event"] for line in lines} == {"call_ended"}
    assert [
        (line["request_id"], line["parent_id"], line["operation_id"], line["code"]) for line in lines
    ] == [("r1", None, "ns/op", "OK"), ("r2", None, "ns/op", "NOT_FOUND")]


async def test_there_is_no_way_to_say_from_outside_that_a_call_is_internal():
    held = registry(leaf(name="op"))
    for extra in ("internal", "context", "parent", "env", "capabilities", "trusted"):
        with pytest.raises(TypeError):
            await held.execute("ns/op", **{extra: True})
    assert held.get("ns/op").visibility is Visibility.INTERNAL


async def test_a_request_id_is_made_when_none_is_given_and_never_shared():
    held = registry(operation())
    ids = {(await held.execute("ns/op")).request_id for _ in range(50)}
    assert len(ids) == 50
    assert all(len(one) == 36 and one[14] == "4" and one[19] in "89ab" for one in ids)


async def test_an_envelope_may_be_made_by_a_local_handler():
    made = local_envelope({"a": 1}, "other/op", timestamp=1)
    envelope = await registry(operation(answering(made))).execute("ns/op", request_id="r")
    assert (envelope.data, envelope.meta, envelope.request_id) == ({"a": 1}, made.meta, "r")
