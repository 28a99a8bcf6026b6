"""Results as models: pydantic at the border of typed code."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from headgate.errors import CallError
from headgate.schema.value import Issue, child_path

_T = TypeVar("_T")


def as_model(adapter: TypeAdapter[_T], data: Any) -> _T:
    """Return data as what an adapter makes of it.

    Raises:
        CallError: the data does not fit (``INVALID_OUTPUT``).
    """
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        issues = [_issue(entry["loc"], entry["type"]) for entry in error.errors(include_input=False)]
    raise CallError(
        "INVALID_OUTPUT",
        "The result does not fit the model.",
        details={"issues": [issue.to_dict() for issue in issues]},
    )


def _issue(location: tuple[str | int, ...], kind: str) -> Issue:
    path = "$"
    for step in location:
        path = child_path(path, step)
    return Issue(path, kind, f"breaks '{kind}'")
