from __future__ import annotations

import pickle
import re
from collections import Counter

import pytest

from headgate import errors
from headgate.errors import CALL_ERRORS, CallError, ContextRejected, HeadgateError, OperationError, all_errors

#: A module may refine an error for itself, but defines no error class.
ALL = [error for error in all_errors() if error.__module__.startswith(errors.__name__)]


def test_every_error_is_drawn_in_the_tree_and_nothing_else_is():
    drawn = set(re.findall(r"\b[A-Z][a-z]+[A-Za-z]*\b", (errors.__doc__ or "").partition("::")[2]))
    assert drawn == {error.__name__ for error in ALL}


def test_a_code_means_one_thing():
    shared = {"api_error": 2, "INTERNAL": 3}
    counts = Counter(error.code for error in ALL)
    assert {code: count for code, count in counts.items() if count > 1} == shared


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_says_what_happened_and_what_to_do(error: type[HeadgateError]):
    assert errors.default_message(error).endswith(".")
    assert len(errors.default_message(error)) < 100
    assert (
        error is HeadgateError
        or error.hint.endswith((".", "'"))
        or error.__init__ is not HeadgateError.__init__
    )
    assert 400 <= error.status < 600


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "api_error"),
        (410, "gone_error"),
        (413, "request_entity_too_large_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
    ],
)
def test_the_type_on_the_wire_follows_from_the_status(status: int, expected: str):
    error = HeadgateError()
    error.status = status
    assert error.type == expected


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("invalid_request", 400),
        ("invalid_argument", 400),
        ("invalid_cursor", 400),
        ("invalid_sort", 400),
        ("invalid_expand", 400),
        ("unknown_field", 400),
        ("invalid_field_path", 400),
        ("invalid_window", 400),
        ("unsupported_version", 400),
        ("invalid_record", 400),
        ("invalid_record_identity", 400),
        ("invalid_client", 400),
        ("invalid_client_metadata", 400),
        ("invalid_authorization_details", 400),
        ("invalid_grant", 400),
        ("authentication_error", 401),
        ("permission_error", 403),
        ("grant_stream_not_allowed", 403),
        ("field_not_granted", 403),
        ("insufficient_scope", 403),
        ("grant_time_range_exceeded", 403),
        ("grant_expired", 403),
        ("grant_revoked", 403),
        ("grant_invalid", 403),
        ("grant_consumed", 403),
        ("package_revoked", 403),
        ("not_found", 404),
        ("connection_not_found", 404),
        ("blob_not_found", 404),
        ("field_not_found", 404),
        ("query_not_found", 404),
        ("stream_not_declared", 404),
        ("ambiguous_connection", 409),
        ("ambiguous_schema_detail", 409),
        ("cursor_expired", 410),
        ("resource_limit", 413),
        ("misdirected_request", 421),
        ("field_not_text", 422),
        ("rate_limit_exceeded", 429),
        ("slow_down", 429),
        ("api_error", 500),
        ("invalid_filter", 400),
        ("conflicting_connection_id", 400),
        ("invalid_field_window_selector", 400),
        ("tool_handler_error", 500),
        ("invalid_result_id", 400),
        ("invalid_resource_uri", 400),
        ("storage_full", 507),
        ("storage_read_only", 503),
        ("query_timeout", 503),
        ("integrity_error", 500),
        ("idempotency_conflict", 409),
    ],
)
def test_a_code_of_the_wire_has_its_status(code: str, status: int):
    assert status in {error.status for error in ALL if error.code == code}


@pytest.mark.parametrize(
    ("code", "status", "retryable"),
    [
        ("NOT_FOUND", 404, False),
        ("FORBIDDEN", 403, False),
        ("INVALID_INPUT", 422, False),
        ("TIMEOUT", 504, True),
        ("ABORTED", 499, False),
        ("INTERNAL", 500, False),
        ("INVALID_OUTPUT", 502, False),
    ],
)
def test_a_call_error_knows_its_code(code: str, status: int, retryable: bool):  # noqa: FBT001 - a table
    error = CallError(code, "x", details={"a": 1})
    assert (error.code, error.status, error.retryable) == (code, status, retryable)
    assert error.details == {"a": 1}
    assert error.hint == CALL_ERRORS[code].hint


def test_an_unknown_call_code_is_taken_as_internal_and_not_retried():
    error = CallError("MADE_UP")
    assert (error.code, error.status, error.retryable) == ("MADE_UP", 500, False)


def test_one_except_catches_calls_and_imports():
    for error in (CallError("TIMEOUT"), errors.DiscoveryFailed("x"), errors.AdapterConfigInvalid("x")):
        assert isinstance(error, OperationError)


def test_a_rejected_context_carries_its_reason_in_its_code():
    assert ContextRejected("issuer_mismatch").code == "context.issuer_mismatch"


def test_an_error_keeps_its_parts():
    error = errors.AmbiguousConnection("Two.", param="connection_id", data={"retry_with": "connection_id"})
    assert (str(error), error.param, error.data) == ("Two.", "connection_id", {"retry_with": "connection_id"})
    assert errors.NotFound().message == "Nothing visible to this token is there."


def test_a_plain_error_survives_a_trip_between_processes():
    assert str(pickle.loads(pickle.dumps(errors.NotFound("x")))) == "x"
