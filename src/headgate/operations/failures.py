"""Which failure of a handler a caller gets to see. Pure.

A declared code passes with its details. What nobody declared becomes ``INTERNAL``, so that a caller never
depends on something that the operation does not promise, and nothing internal leaks.
"""

from __future__ import annotations

from headgate.errors import CallError
from headgate.operations.prepared import Prepared
from headgate.schema.value import copy_json

#: What an imported operation may answer undeclared; a composing one would pass on its children's as its own.
_LEAF_CODES = frozenset({"INVALID_INPUT", "INVALID_OUTPUT", "TIMEOUT"})


def not_found(operation_id: str) -> CallError:
    """Say that there is no such operation: missing and hidden ones alike, letter for letter."""
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
    """Say that a handler failed in a way it did not foresee, and no more than that."""
    return CallError("INTERNAL", "The operation failed.")
