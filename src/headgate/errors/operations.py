"""Failures of typed operations and of the servers they are imported from; drawn in the tree of `headgate.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from headgate.errors import HeadgateError


class OperationError(HeadgateError):
    """A typed operation, or the import of one, failed."""

    code = "INTERNAL"
    hint = "Look at the log for the request id."
    retryable: bool = False

    def __init__(
        self,
        message: str = "",
        *,
        details: Any = None,
        retryable: bool | None = None,
        hint: str = "",
        param: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, param=param)
        self.details = details
        if retryable is not None:
            self.retryable = retryable


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The status and hint of a call error's code, and whether a retry may help."""

    status: int
    retryable: bool
    hint: str
    #: The status of an error that is raised as retryable although its code usually is not.
    retry_status: int | None = None


CALL_ERRORS: Mapping[str, CallFailure] = {
    "NOT_FOUND": CallFailure(404, False, "List the operations to see their ids."),
    "FORBIDDEN": CallFailure(403, False, "Call with an identity that holds the required scope."),
    "INVALID_INPUT": CallFailure(
        422, False, "Read the operation's input schema and correct the named places."
    ),
    "TIMEOUT": CallFailure(504, True, "Try again, or allow more time."),
    "ABORTED": CallFailure(499, False, "The call was ended from this side."),
    "INTERNAL": CallFailure(500, False, "Look at the log for the request id."),
    "INVALID_OUTPUT": CallFailure(
        502, False, "Read the envelope's issues, or unwrap with allow_issues=True."
    ),
    "RESOURCE_LIMIT": CallFailure(413, False, "Ask the operation for less."),
    "MCP_TOOL_ERROR": CallFailure(
        502, False, "Read the content in the details; the tool says what was wrong."
    ),
    "MCP_TRANSPORT_ERROR": CallFailure(
        502, False, "Look at details.maybe_executed before trying again.", 503
    ),
    # Never 401: it is this side's credential that failed, not the caller's.
    "MCP_UNAUTHORIZED": CallFailure(502, False, "Give a valid token for this server."),
    "MCP_PROTOCOL_ERROR": CallFailure(502, False, "Tell the operator of that server."),
    "MCP_OUTPUT_MISSING": CallFailure(
        502, False, "Read the content blocks, or unwrap with allow_issues=True."
    ),
    "tool_definition_changed": CallFailure(409, False, "Look at the difference and approve the tool again."),
}


class CallError(OperationError):
    """A call failed."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        details: Any = None,
        retryable: bool | None = None,
        status: int | None = None,
    ) -> None:
        known = CALL_ERRORS.get(code, CALL_ERRORS["INTERNAL"])
        retry = known.retryable if retryable is None else retryable
        self.code = code
        self.status = status or (retry and known.retry_status) or known.status
        super().__init__(message, details=details, retryable=retry, hint=known.hint)

    def __str__(self) -> str:
        """Return the code, the tool where one is named, and the reason."""
        details: Any = self.details
        tool = cast("Mapping[str, Any]", details).get("tool") if isinstance(details, Mapping) else None
        return f"{self.code} ({tool}): {self.message}" if tool else f"{self.code}: {self.message}"


class AdapterConfigInvalid(CallError):
    """The import is configured with an address, name or option that cannot work."""

    def __init__(self, message: str = "", *, details: Any = None) -> None:
        super().__init__("ADAPTER_CONFIG", message, details=details, status=400)
        self.hint = "Correct the endpoint, namespace or option that the message names."


class RegistrationInvalid(OperationError, ValueError):
    """The operation is described in a way that cannot work."""

    code = "REGISTRATION_INVALID"
    hint = "Correct the part of the description that the message names."


class AdapterError(OperationError):
    """Operations could not be imported."""

    code, status = "ADAPTER_ERROR", 502
    hint = "Check the server's address and whether it answers."


class DiscoveryFailed(AdapterError):
    """The server could not be reached or did not list its tools."""

    code = "DISCOVERY_FAILED"


class Unauthorized(AdapterError):
    """The server refused the token."""

    code = "UNAUTHORIZED"
    hint = "Give a valid token for this server."


class SchemaParse(AdapterError):
    """A tool's schema cannot be used."""

    code = "SCHEMA_PARSE"
    hint = "Import with on_bad_tool='skip' to leave the tool out."


class NameCollision(AdapterError):
    """Two operations have the same name."""

    code, status = "NAME_COLLISION", 409
    hint = "Use another namespace, or replace the operation on purpose."


class UpstreamTooLarge(AdapterError):
    """The server's answer is larger than allowed."""

    code = "upstream_too_large"
    hint = "Ask the tool for less, or raise the byte limit for this server."


class UpstreamTimeout(AdapterError):
    """The server did not finish its answer in time."""

    code, status, retryable = "upstream_timeout", 504, True
    hint = "Try again, or allow more time."


class UpstreamProtocolError(AdapterError):
    """The server's answer breaks the protocol."""

    code = "upstream_protocol_error"
    hint = "Tell the operator of that server."


class UpstreamUnreachable(AdapterError):
    """The server cannot be reached, or the connection to it was lost."""

    code, status, retryable = "upstream_unreachable", 503, True
    hint = "Check the server's address and whether it runs, then try again."


class UpstreamRefused(AdapterError):
    """The server answered with an error status."""

    code = "upstream_refused"
    hint = "Look at the status; the server, not the tool, refused the request."


class UpstreamAuthFailed(AdapterError):
    """The server refused the token."""

    code = "upstream_auth_failed"
    hint = "Give a valid token for this server."


class UpstreamRedirectRefused(AdapterError):
    """The server wants to send us elsewhere; redirects are never followed."""

    code = "upstream_redirect_refused"
    hint = "If the new address is the right one, configure it as the endpoint."


class UpstreamUnsupported(AdapterError):
    """The server asks for something that this client does not offer."""

    code = "upstream_unsupported"
    hint = (
        "Use a tool that needs no sampling or roots; give from_mcp an answer= callback if it asks for input."
    )


class UpstreamBusy(AdapterError):
    """Too many calls to this server are waiting."""

    code, status, retryable = "upstream_busy", 503, True
    hint = "Send fewer calls at once, or raise the limits for this server."


class UpstreamSuspended(AdapterError):
    """The server failed several times in a row; it is left alone for a while."""

    code, status, retryable = "upstream_suspended", 503, True
    hint = "Wait for the time that retry_after gives."


class AddressBlocked(AdapterError):
    """The server's name leads to an address that must not be called."""

    code = "address_blocked"
    hint = "If this is a server of your own network, allow its host by name."
