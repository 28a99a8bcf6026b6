"""Which failures of a handler its caller sees. Pure.

A declared code passes with its details. An undeclared one becomes ``INTERNAL``, so that callers do not depend on
it and nothing internal leaks.
"""

from __future__ import annotations

from headgate.errors import CallError
from headgate.operations.prepared import Prepared
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
    declared = {one.code: one.http_status for one in prepared.spec.error_schemas}
    error.status = declared[error.code] or error.status
    return error


def internal_failure() -> CallError:
    """Build the error for an exception that the handler did not declare, without its text."""
    return CallError("INTERNAL", "The operation failed.")
