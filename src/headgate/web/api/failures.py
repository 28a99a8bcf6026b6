"""How a failure is told over HTTP. This is the one place where that is decided."""

from __future__ import annotations

from typing import Any

import msgspec

from headgate.errors import AuthenticationFailed, HeadgateError, Overloaded, RateLimited, StorageUnusable
from headgate.web.api.replies import JSON, PRIVATE, Reply

METADATA_PATH = "/.well-known/oauth-protected-resource"
_DEFAULT_WAIT = 1
_NEXT_STEP = (
    "Fetch resource_metadata, ask the owner for a grant through its authorization server, send the token."
)


def failure_reply(error: HeadgateError, *, request_id: str, origin: str) -> Reply:
    """Turn a failure into its status, headers and body."""
    body: dict[str, Any] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "request_id": request_id,
        "hint": error.hint,
    }
    if error.param is not None:
        body["param"] = error.param
    body |= error.data
    headers = [JSON, PRIVATE]
    if isinstance(error, AuthenticationFailed):
        metadata = origin + METADATA_PATH
        body |= {"resource_metadata": metadata, "next_step": _NEXT_STEP}
        headers.append((b"www-authenticate", f'Bearer resource_metadata="{metadata}"'.encode("latin-1")))
    if isinstance(error, Overloaded | RateLimited | StorageUnusable):
        wait = body.pop("retry_after_seconds", _DEFAULT_WAIT)
        headers.append((b"retry-after", str(wait).encode("ascii")))
    return Reply(msgspec.json.encode({"error": body}), error.status, tuple(headers))
