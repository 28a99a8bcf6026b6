"""Every code has a status, a hint and an honest word about retrying."""

import pytest

from headgate.errors import CALL_ERRORS, AdapterError, CallError, OperationError, RegistrationInvalid
from headgate.operations.spec import ErrorDefinition
from tests.operations.parts import operation, registry

STATUS = {
    "NOT_FOUND": 404,
    "FORBIDDEN": 403,
    "INVALID_INPUT": 422,
    "TIMEOUT": 504,
    "ABORTED": 499,
    "INTERNAL": 500,
    "INVALID_OUTPUT": 502,
    "RESOURCE_LIMIT": 413,
    "MCP_TOOL_ERROR": 502,
    "MCP_TRANSPORT_ERROR": 502,
    "MCP_UNAUTHORIZED": 502,
    "MCP_PROTOCOL_ERROR": 502,
    "MCP_OUTPUT_MISSING": 502,
    "tool_definition_changed": 409,
}


@pytest.mark.requirement("S0-B7")
@pytest.mark.parametrize("code", CALL_ERRORS)
def test_each_code_has_its_status_and_says_what_to_do(code):
    error = CallError(code)
    assert error.status == STATUS[code]
    assert error.retryable is (code == "TIMEOUT")
    assert error.hint


def test_every_status_of_the_table_is_a_code():
    assert STATUS.keys() == CALL_ERRORS.keys()


@pytest.mark.requirement("S0-B7")
def test_a_transport_failure_that_may_be_tried_again_is_unavailable():
    assert CallError("MCP_TRANSPORT_ERROR", retryable=True).status == 503
    assert CallError("MCP_TRANSPORT_ERROR", retryable=True, status=504).status == 504
    assert CallError("MCP_TOOL_ERROR", retryable=True).status == 502


def test_an_unknown_code_is_internal_and_not_retryable():
    error = CallError("SOMETHING_ELSE")
    assert (error.code, error.status, error.retryable) == ("SOMETHING_ELSE", 500, False)


def test_one_class_catches_calls_imports_and_registrations():
    assert all(issubclass(kind, OperationError) for kind in (CallError, AdapterError, RegistrationInvalid))
    assert issubclass(RegistrationInvalid, ValueError)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "raised",
    [
        ValueError("NOT_FOUND"),
        RuntimeError("TIMEOUT: it took too long"),
        CallError("UNDECLARED", "QUOTA: used up"),
        CallError("quota", "QUOTA"),
        KeyError("QUOTA"),
    ],
)
async def test_words_that_merely_hold_a_code_are_no_such_error(raised):
    async def fails(_value, _context):
        raise raised

    declared = (ErrorDefinition("QUOTA", "Used up."),)
    with pytest.raises(CallError) as caught:
        await registry(operation(fails, error_schemas=declared)).execute("ns/op")
    assert (caught.value.code, caught.value.status) == ("INTERNAL", 500)
    assert "QUOTA" not in caught.value.message
