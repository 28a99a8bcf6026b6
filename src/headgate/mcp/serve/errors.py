"""Failures as results that a model can act on, and as data of a protocol error."""

from __future__ import annotations

from typing import Any

from headgate.errors import HeadgateError
from headgate.mcp.serve.outcome import Outcome
from headgate.text.quote import json_text

_MESSAGE_CHARS = 1000


def refused(error: HeadgateError) -> Outcome:
    """Answer that the arguments cannot be used; no read was made."""
    return _outcome({"error": {"type": "adapter_error", **_facts(error)}})


def failed(error: HeadgateError, provider_url: str, request_id: str | None = None) -> Outcome:
    """Answer with the failure of the resource server, its code and data unchanged."""
    return _outcome(failure(error, provider_url, request_id))


def failure(error: HeadgateError, provider_url: str, request_id: str | None = None) -> dict[str, Any]:
    """Write a failure of the resource server as a structure."""
    request_id = error.data.get("request_id", request_id)
    return {
        "error": {"type": error.type, **_facts(error)},
        "provider_url": provider_url,
        "http_status": error.status,
        "request_id": request_id if isinstance(request_id, str) else None,
    }


def _facts(error: HeadgateError) -> dict[str, Any]:
    facts: dict[str, Any] = {"code": error.code, "message": error.message[:_MESSAGE_CHARS]}
    if error.param is not None:
        facts["param"] = error.param
    if error.hint:
        facts["hint"] = error.hint
    return {**facts, **{key: value for key, value in error.data.items() if key not in facts}}


def _outcome(structured: dict[str, Any]) -> Outcome:
    return Outcome(structured, json_text(structured), is_error=True)
