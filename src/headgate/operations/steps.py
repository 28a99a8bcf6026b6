"""The checks of a call, in their order: visibility, access, input; then the output, or which failure is shown.

Each step takes values and returns a value or raises a ``CallError``. The dispatcher runs them before and after
the handler; nothing here awaits. A declared error code passes with its details. An undeclared one becomes
``INTERNAL``, so that callers do not depend on it and nothing internal leaks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from headgate.errors import CallError
from headgate.operations.access import Identity, refusal
from headgate.operations.envelope import LocalMeta, ResponseEnvelope
from headgate.operations.registration import OutputPolicy, Prepared
from headgate.operations.spec import OutputKind, Visibility
from headgate.schema.issue import Issue
from headgate.schema.normalise import fill_defaults, normalise
from headgate.schema.value import copy_json

#: Codes that an imported operation may raise undeclared; a composing one would pass on those of its children.
_LEAF_CODES = frozenset({"INVALID_INPUT", "INVALID_OUTPUT", "TIMEOUT"})


def not_found(operation_id: str) -> CallError:
    """Build the error for a missing operation and, with the same text, for a hidden one."""
    return CallError("NOT_FOUND", f"There is no operation {operation_id[:200]!a}.")


def shown_failure(prepared: Prepared, error: CallError) -> CallError:
    """Translate a call error that a handler raised."""
    if error.code not in prepared.errors:
        if prepared.registration.provenance.is_leaf and error.code in _LEAF_CODES:
            return error
        return CallError("INTERNAL", "The operation failed.", details={"code": error.code})
    schema = prepared.errors[error.code]
    if schema is not None:
        details, problem = copy_json(error.details)
        issues = (problem,) if problem else schema.issues(details)
        if issues:
            reported = [issue.to_dict() for issue in issues]
            return CallError(
                "INTERNAL", "The operation failed.", details={"code": error.code, "issues": reported}
            )
    return _with_declared_status(prepared, error)


def _with_declared_status(prepared: Prepared, error: CallError) -> CallError:
    statuses = {declared.code: declared.http_status for declared in prepared.spec.error_schemas}
    error.status = statuses[error.code] or error.status
    return error


def internal_failure() -> CallError:
    """Build the error for an exception that the handler did not declare, without its text."""
    return CallError("INTERNAL", "The operation failed.")


_log = logging.getLogger("headgate.operations")


def check_visible(prepared: Prepared | None, operation_id: str, *, internal: bool) -> Prepared:
    """Find the operation; one that this caller must not see counts as missing."""
    if prepared is None or not (internal or prepared.spec.visibility is Visibility.EXTERNAL):
        raise not_found(operation_id)
    return prepared


def check_access(prepared: Prepared, identity: Identity | None, value: Any) -> None:
    """Check access control; of the input only the resource id is read."""
    access = prepared.spec.access_control
    if access.is_open:
        return
    reason = refusal(access, identity, resource_id=_resource_id(prepared.spec.resource_id_path, value))
    if reason is not None:
        raise CallError("FORBIDDEN", reason, status=401 if identity is None else 403)


def check_input(prepared: Prepared, value: Any) -> Any:
    """Check the input; return a copy, with declared defaults unless a remote server applies them."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    plain, problem = copy_json({} if value is None else value)
    if problem is not None:
        raise _invalid_input((problem,))
    if prepared.input is None:
        return plain
    issues = prepared.input.issues(plain)
    if issues:
        raise _invalid_input(issues)
    registration = prepared.registration
    if registration.provenance.is_leaf or not registration.apply_input_defaults:
        return plain
    return fill_defaults(prepared.input, plain)


def wrap(prepared: Prepared, result: Any, *, request_id: str, now_ms: int) -> ResponseEnvelope:
    """Wrap a result in an envelope, normalise it and check it against the declared schema."""
    if isinstance(result, ResponseEnvelope):
        envelope = _checked(prepared, result, request_id)
    else:
        plain = result.model_dump(mode="json", by_alias=True) if isinstance(result, BaseModel) else result
        data, issues = _normalised(prepared, plain, prepared.spec.output_kind)
        meta = LocalMeta(prepared.spec.id, now_ms)
        envelope = ResponseEnvelope(data, meta, request_id=request_id, issues=issues, is_checked=True)
    return _judged(prepared, envelope) if envelope.issues else envelope


def _checked(prepared: Prepared, envelope: ResponseEnvelope, request_id: str) -> ResponseEnvelope:
    """Normalise and check an envelope that an adapter made; an error result is left unchanged."""
    if envelope.is_checked or envelope.is_error:
        return envelope if envelope.request_id == request_id else replace(envelope, request_id=request_id)
    kind = envelope.output_kind or prepared.spec.output_kind
    data, issues = _normalised(prepared, envelope.data, kind)
    return replace(envelope, data=data, issues=issues, request_id=request_id, is_checked=True)


def _normalised(prepared: Prepared, data: Any, kind: OutputKind | None) -> tuple[Any, tuple[Issue, ...]]:
    is_off = prepared.registration.output_policy is OutputPolicy.OFF
    if prepared.output is None or kind is not OutputKind.DECLARED or is_off:
        return data, ()
    return normalise(prepared.output, data)


def _judged(prepared: Prepared, envelope: ResponseEnvelope) -> ResponseEnvelope:
    """Apply the output policy to an envelope with issues."""
    if prepared.registration.output_policy is OutputPolicy.STRICT and envelope.error is not None:
        raise envelope.error
    places = ", ".join(f"{issue.path} ({issue.keyword})" for issue in envelope.issues[:5])
    _log.warning(
        "output of %s (request %s) breaks its schema at %s", prepared.spec.id, envelope.request_id, places
    )
    return envelope


def _resource_id(path: str | None, value: Any) -> str | None:
    """Read the resource id from the input; an input without one gives an id that no identity holds."""
    if path is None:
        return None
    for step in path.removeprefix("$").split(".")[1:]:
        value = cast("Mapping[str, Any]", value).get(step) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int) else ""


def _invalid_input(issues: tuple[Issue, ...]) -> CallError:
    places = ", ".join(f"{issue.path} {issue.message}" for issue in issues[:5])
    return CallError(
        "INVALID_INPUT", f"The input does not fit: {places}.", details=[issue.to_dict() for issue in issues]
    )
