"""Every failure Headgate can name, in one tree.

A class holds what is contract: a stable ``code``, an HTTP ``status`` and a ``hint`` that says what to do
next. Its docstring is its default message; message texts are not contract. Nothing here decides how a
failure is shown: each edge (REST, MCP, terminal) has one function that translates.

::

    HeadgateError
    ├─ InvalidRequest                 400  the request cannot be understood
    │  ├─ InvalidArgument, InvalidCursor, InvalidSort, InvalidExpand, InvalidFilter, UnknownField
    │  ├─ InvalidFieldPath, InvalidWindow, InvalidFieldWindowSelector
    │  ├─ InvalidResultId, ConflictingConnectionId, InvalidResourceUri, SealBroken
    │  ├─ InvalidRecord, InvalidRecordIdentity, InvalidDeclaration, UnsupportedVersion
    │  └─ InvalidClient, InvalidClientMetadata, InvalidAuthorizationDetails, InvalidGrant
    ├─ AuthenticationFailed           401  no valid token
    │  └─ ContextRejected
    ├─ PermissionRefused              403  the token does not allow it
    │  ├─ StreamNotAllowed, FieldNotGranted, InsufficientScope, TimeRangeExceeded
    │  ├─ OwnerCredentialRefused           an owner's credential where an agent reads
    │  └─ GrantExpired, GrantRevoked, GrantInvalid, GrantConsumed, PackageRevoked
    ├─ NotFound                       404  nothing that the token can see
    │  ├─ Unsupported                      a kind of search that this server does not offer
    │  └─ ConnectionNotFound, BlobNotFound, FieldNotFound, QueryNotFound, StreamNotDeclared
    ├─ MethodRefused                  405  the address does not take this method
    ├─ BodyCutShort                   408  the body stopped arriving
    ├─ Conflict                       409  the request fits more than one thing, or another request
    │  └─ AmbiguousConnection, AmbiguousSchemaDetail, IdempotencyConflict
    ├─ CursorExpired                  410  the bookmark is too old
    ├─ ResourceLimit                  413  too large
    ├─ MisdirectedRequest             421  not our host
    ├─ FieldNotText                   422  a window needs text
    ├─ RateLimited                    429  too often
    │  └─ SlowDown
    ├─ ServerFault                    500  our fault
    │  ├─ IntegrityBroken, LogUnverifiable, ToolHandlerFailed
    │  ├─ ResourceServerUnreachable   502  another resource server did not answer
    │  ├─ AnswerNotUnderstood         502  it answered in a form that is not the protocol's
    │  ├─ Overloaded                  503  too many requests are under way
    │  ├─ ModelUnavailable            503  the model that search by meaning needs does not answer
    │  └─ StorageUnusable             503  the store cannot be used now
    │     └─ StorageReadOnly, QueryTimeout, StorageFull (507)
    ├─ RemoteRefused                  502  another resource server refused; its code and status
    ├─ ConfigInvalid                  500  a setting or the home directory is wrong
    └─ OperationError                 500  typed operations
       ├─ CallError                        a call failed: see CALL_ERRORS
       │  └─ AdapterConfigInvalid
       ├─ RegistrationInvalid              an operation is described in a way that cannot work
       └─ AdapterError                502  an import failed
          └─ DiscoveryFailed, Unauthorized, SchemaParse, NameCollision, UpstreamTooLarge,
             UpstreamTimeout, UpstreamProtocolError, UpstreamUnreachable, UpstreamRefused,
             UpstreamAuthFailed, UpstreamRedirectRefused, UpstreamUnsupported, UpstreamBusy,
             UpstreamSuspended, AddressBlocked
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    410: "gone_error",
    413: "request_entity_too_large_error",
    429: "rate_limit_error",
}


class HeadgateError(Exception):
    """Something went wrong in Headgate."""

    code: str = "api_error"
    status: int = 500
    hint: str = ""
    #: The exit code of a command that fails with this error; see docs/reference/cli.md.
    exit_code: int = 1
    #: Names of the argument, field or setting at fault, when one is.
    param: str | None

    def __init__(
        self,
        message: str = "",
        *,
        hint: str = "",
        param: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message or default_message(type(self))
        self.hint = hint or type(self).hint
        self.param = param
        self.data: Mapping[str, Any] = dict(data or {})
        super().__init__(self.message)

    @property
    def type(self) -> str:
        """The wire's error type, which follows from the status."""
        return _TYPES.get(self.status, "api_error")


@functools.cache
def default_message(cls: type[HeadgateError]) -> str:
    """Return the first line of an error's docstring, the message of an error raised without one."""
    return (inspect.getdoc(cls) or cls.code).split("\n")[0]


def all_errors(root: type[HeadgateError] = HeadgateError) -> Iterator[type[HeadgateError]]:
    """Walk the tree from a class downwards, parents first."""
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)


# 400: the request cannot be understood


class InvalidRequest(HeadgateError):
    """The request is malformed, or combines things that exclude each other."""

    code, status = "invalid_request", 400
    hint = "Correct the named parameter and send the request again."


class InvalidArgument(InvalidRequest):
    """An argument contradicts another one."""

    code = "invalid_argument"
    hint = "Send the one connection_id that is meant."


class InvalidCursor(InvalidRequest):
    """The cursor is not one this server gave for this very query."""

    code = "invalid_cursor"
    hint = "Start again without a cursor and follow the cursors of the new answers unchanged."


class InvalidSort(InvalidRequest):
    """The stream cannot be sorted that way."""

    code = "invalid_sort"
    hint = "Sort by the stream's cursor field, as schema shows it, or leave sort out."


class InvalidExpand(InvalidRequest):
    """The relation cannot be expanded that way."""

    code = "invalid_expand"
    hint = "Call schema with the stream to see its relations; expand names them, expand_limit their children."


class InvalidFilter(InvalidRequest):
    """The filter is not an object of declared fields with a value or a range."""

    code = "invalid_filter"
    hint = 'Pass filter as a typed object such as {"field": "value"} or {"field": {"gte": "2026-01-01"}}.'


class UnknownField(InvalidRequest):
    """The stream has no such field."""

    code = "unknown_field"
    hint = "Call schema with the stream to see its fields."


class InvalidFieldPath(InvalidRequest):
    """The field path is not the name of a top-level field."""

    code = "invalid_field_path"
    hint = "Pass field_path exactly as schema shows the field's name."


class InvalidWindow(InvalidRequest):
    """The window's offset, limit or context is out of range."""

    code = "invalid_window"
    hint = "Use offset_chars >= 0, limit_chars 1 to 16384, and before_chars or after_chars 0 to 8192 with q."


class InvalidFieldWindowSelector(InvalidRequest):
    """The window was selected in two ways at once, or in none that is complete."""

    code = "invalid_field_window_selector"
    hint = "Pass id and field_path, and at most one of cursor, offset_chars or q."


class InvalidResultId(InvalidRequest):
    """The id is neither 'connection_id/stream:record_id' nor 'stream:record_id'."""

    code = "invalid_result_id"
    hint = (
        "Pass an id exactly as search or query_records printed it, or fetch_id of a row; the bare id of a record needs "
        "stream and connection_id."
    )


class ConflictingConnectionId(InvalidRequest):
    """The id names one connection and connection_id another."""

    code = "conflicting_connection_id"
    hint = "Pass the id alone, or make connection_id agree with it."


class InvalidResourceUri(InvalidRequest):
    """The URI is not one this server gave."""

    code = "invalid_resource_uri"
    hint = "Read a URI exactly as an earlier answer printed it."


class SealBroken(InvalidRequest):
    """The sealed token was not made here for this purpose, or is too old.

    The reason says which; each edge decides how much of it to show.
    """

    code = "invalid_seal"
    hint = "Use a token exactly as an earlier answer to the same question gave it."

    def __init__(self, reason: str) -> None:
        super().__init__(data={"reason": reason})
        self.reason = reason


class InvalidRecord(InvalidRequest):
    """The record cannot be stored."""

    code = "invalid_record"
    hint = "Correct the value at the given pointer and send that record again."


class InvalidRecordIdentity(InvalidRecord):
    """The record's key does not equal its primary-key fields."""

    code = "invalid_record_identity"
    hint = "Make key equal to the values of the primary-key fields, in order."


class InvalidDeclaration(InvalidRequest):
    """The source declaration breaks the rules for declarations."""

    code = "invalid_declaration"
    hint = "Correct every listed problem; each names its place and its rule."


class UnsupportedVersion(InvalidRequest):
    """This version is not supported."""

    code = "unsupported_version"
    hint = "Leave the version out, or send one the answer's headers name."


class InvalidClient(InvalidRequest):
    """The client is not registered here."""

    code = "invalid_client"
    hint = "Register the client, then start the authorization again."


class InvalidClientMetadata(InvalidRequest):
    """The client's registration is not acceptable."""

    code = "invalid_client_metadata"
    hint = "Register a public client with https or loopback redirect URIs."


class InvalidAuthorizationDetails(InvalidRequest):
    """The request for access cannot be understood."""

    code = "invalid_authorization_details"
    hint = "Ask for streams the source declares, with fields or a view, not both."


class InvalidGrant(InvalidRequest):
    """The code or refresh token is unknown, used or expired."""

    code = "invalid_grant"
    hint = "Start the authorization again."


# 401: no valid token


class AuthenticationFailed(HeadgateError):
    """No token was sent, or it is not valid here."""

    code, status = "authentication_error", 401
    hint = "Send a valid bearer token; the challenge header says where to get one."


class ContextRejected(AuthenticationFailed):
    """The token's introspection could not be trusted.

    The code ends in the reason, such as ``context.issuer_mismatch``.
    """

    code = "context.rejected"
    hint = "Ask for a new token; if it happens again, tell the operator of the server."

    def __init__(self, reason: str, message: str = "") -> None:
        self.code = f"context.{reason}"
        super().__init__(message)


# 403: the token does not allow it


class PermissionRefused(HeadgateError):
    """This kind of token may not be used here."""

    code, status = "permission_error", 403
    hint = "Use a token of the kind that this address accepts."


class StreamNotAllowed(PermissionRefused):
    """The stream is outside this grant."""

    code = "grant_stream_not_allowed"
    hint = "Call schema to see the streams of this grant."


class FieldNotGranted(PermissionRefused):
    """The field is outside this grant."""

    code = "field_not_granted"
    hint = "Call schema for the stream to see the fields of this grant."


class InsufficientScope(PermissionRefused):
    """The related stream is outside this grant."""

    code = "insufficient_scope"
    hint = "Expand only relations that schema marks as usable."


class TimeRangeExceeded(PermissionRefused):
    """The time range reaches outside this grant."""

    code = "grant_time_range_exceeded"
    hint = "Narrow filter to a time inside the grant."


class OwnerCredentialRefused(PermissionRefused):
    """An owner's credential was found where only a client's may be used."""

    code, exit_code = "owner_credential_refused", 77
    hint = "Take it away and use a token that the owner granted for this agent."


class GrantExpired(PermissionRefused):
    """The grant has expired."""

    code = "grant_expired"
    hint = "Ask the owner to approve the access again."


class GrantRevoked(PermissionRefused):
    """The owner has revoked the grant."""

    code = "grant_revoked"
    hint = "Stop using this token."


class GrantInvalid(PermissionRefused):
    """The grant cannot be enforced as it stands."""

    code = "grant_invalid"
    hint = "Ask the owner to approve the access again."


class GrantConsumed(PermissionRefused):
    """The grant was good for one use and has been used."""

    code = "grant_consumed"
    hint = "Ask the owner to approve the access again."


class PackageRevoked(PermissionRefused):
    """No grant of this package is active any more."""

    code = "package_revoked"
    hint = "Stop using this token."


# 404: nothing that the token can see


class NotFound(HeadgateError):
    """Nothing visible to this token is there."""

    code, status = "not_found", 404
    hint = "Use an id from an answer to this same token."


class Unsupported(NotFound):
    """This server does not offer that kind of search."""

    code = "unsupported"
    hint = "Use lexical search: leave mode out; over REST, send the request to /v1/search."


class ConnectionNotFound(NotFound):
    """No connection of this grant has that id."""

    code = "connection_not_found"
    hint = "Call schema to see the connections of this grant."


class BlobNotFound(NotFound):
    """No visible record refers to that file."""

    code = "blob_not_found"
    hint = "Use a blob_id from a record that this token can read."


class FieldNotFound(NotFound):
    """The record has no value in that field."""

    code = "field_not_found"
    hint = "Fetch the record to see the fields it holds."


class QueryNotFound(NotFound):
    """The text does not occur in the field."""

    code = "query_not_found"
    hint = "Read the field from offset_chars 0, or try a shorter q."


class StreamNotDeclared(NotFound):
    """No declared source has that stream."""

    code = "stream_not_declared"
    hint = "Register a declaration that has the stream."


class MethodRefused(HeadgateError):
    """This address does not take that method."""

    code, status = "method_not_allowed", 405
    hint = "Use a method that the Allow header names."


# 409: more than one thing fits


class Conflict(HeadgateError):
    """The request conflicts with what is there."""

    code, status = "conflict", 409
    hint = "Look at the present state and decide again."


class AmbiguousConnection(Conflict):
    """More than one connection fits; choose one."""

    code = "ambiguous_connection"
    hint = "Repeat the call with one connection_id of available_connections."


class AmbiguousSchemaDetail(Conflict):
    """More than one source has this stream; choose one."""

    code = "ambiguous_schema_detail"
    hint = "Repeat the call with stream, connection_id and detail full."


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used with another body."""

    code = "idempotency_conflict"
    hint = "Use a new key for a new body."


# 410 to 429: too old, too large, not ours, not text, too often


class CursorExpired(HeadgateError):
    """The cursor is too old, or what it pointed at has changed."""

    code, status = "cursor_expired", 410
    hint = "Start again from the beginning, without cursor."


class BodyCutShort(HeadgateError):
    """The body of the request stopped arriving, or arrived too slowly."""

    code, status = "body_cut_short", 408
    hint = "Send the whole body again; with the same Idempotency-Key, what is stored already is not stored twice."


class ResourceLimit(HeadgateError):
    """The request or answer is larger than this server allows."""

    code, status = "resource_limit", 413
    hint = "Ask for less with limit or fields, or send it in smaller parts."


class MisdirectedRequest(HeadgateError):
    """This server does not answer for that host name."""

    code, status = "misdirected_request", 421
    hint = "Use the server's own address, or add the host name to its settings."


class FieldNotText(HeadgateError):
    """The field holds no text, so it has no windows."""

    code, status = "field_not_text", 422
    hint = "Fetch the record with fields set to this field instead."


class RateLimited(HeadgateError):
    """Too many requests."""

    code, status = "rate_limit_exceeded", 429
    hint = "Wait for the seconds that retry_after_seconds, or the header Retry-After, gives."


class SlowDown(RateLimited):
    """The polling is too fast."""

    code = "slow_down"
    hint = "Add five seconds to the interval."


# 500 and above: our fault


class ServerFault(HeadgateError):
    """The server failed."""

    code, status = "api_error", 500
    hint = "Try again; if it happens again, tell the operator the request id."


class IntegrityBroken(ServerFault):
    """The stored data does not match its digest."""

    code = "integrity_error"
    hint = "Run 'headgate store fsck', then restore the damaged records from a backup."


class LogUnverifiable(ServerFault):
    """The log of disclosures cannot be checked here: its key or its noted end is missing or damaged."""

    code, exit_code = "log_unverifiable", 69
    hint = "Check it in the home it comes from, or restore a backup that has keys."


class ToolHandlerFailed(ServerFault):
    """The tool failed for a reason it did not foresee."""

    code = "tool_handler_error"


class ResourceServerUnreachable(ServerFault):
    """The resource server did not answer."""

    code, status = "resource_server_unreachable", 502
    hint = "Check that the provider's address is right and the server runs, then try again."


class Overloaded(ServerFault):
    """Too many requests are under way."""

    code, status = "overloaded", 503
    hint = "Try again in a moment."


class ModelUnavailable(ServerFault):
    """The model that search by meaning needs does not answer."""

    code, status = "model_unavailable", 503
    hint = "Try again later, or search by words: leave mode out."


class StorageUnusable(ServerFault):
    """The store cannot be used now."""

    code, status = "storage_unusable", 503
    hint = "Run 'headgate store fsck' to see what is wrong."


class StorageReadOnly(StorageUnusable):
    """The store can be read but not written."""

    code = "storage_read_only"
    hint = "Make the home directory writable for the server."


class QueryTimeout(StorageUnusable):
    """The query took longer than the server allows."""

    code = "query_timeout"
    hint = "Narrow it with filter or streams, or with fewer words in q."


class StorageFull(StorageUnusable):
    """The disk is full; nothing of the batch was stored."""

    code, status = "storage_full", 507
    hint = "Free some space and send the batch again."


class AnswerNotUnderstood(ServerFault):
    """The resource server's answer does not have the form that the protocol gives it."""

    code, status = "resource_server_answer_unknown", 502
    hint = "The call may be right; the operator of the resource server has to look at its version."


class RemoteRefused(HeadgateError):
    """Another resource server refused the read.

    Its code, status and type are passed on unchanged.
    """

    code, status = "remote_refused", 502
    hint = "Act on the code; it is the resource server's own."

    def __init__(self, status: int, facts: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(facts.get("code") or f"http_{status}")
        self._type = str(facts.get("type") or "rs_error")
        known = {"type", "code", "message", "param", "hint"}
        param = facts.get("param")
        super().__init__(
            str(facts.get("message") or ""),
            hint=str(facts.get("hint") or ""),
            param=param if isinstance(param, str) else None,
            data={key: value for key, value in facts.items() if key not in known},
        )

    @property
    def type(self) -> str:
        """The type that the other server gave."""
        return self._type

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {"type": self._type, "code": self.code, "message": self.message, "hint": self.hint}
        return (RemoteRefused, (self.status, {**self.data, **facts, "param": self.param}))


class ConfigInvalid(HeadgateError):
    """A setting or the home directory cannot be used."""

    code, exit_code = "config_invalid", 78
    hint = "Run 'headgate config show' to see each setting and where it came from."


# Errors of typed operations are defined in a second module and imported here to complete the tree.
from headgate.errors.operations import (  # noqa: E402 - they are made from the root of the tree
    CALL_ERRORS as CALL_ERRORS,
    AdapterConfigInvalid as AdapterConfigInvalid,
    AdapterError as AdapterError,
    AddressBlocked as AddressBlocked,
    CallError as CallError,
    CallFailure as CallFailure,
    DiscoveryFailed as DiscoveryFailed,
    NameCollision as NameCollision,
    OperationError as OperationError,
    RegistrationInvalid as RegistrationInvalid,
    SchemaParse as SchemaParse,
    Unauthorized as Unauthorized,
    UpstreamAuthFailed as UpstreamAuthFailed,
    UpstreamBusy as UpstreamBusy,
    UpstreamProtocolError as UpstreamProtocolError,
    UpstreamRedirectRefused as UpstreamRedirectRefused,
    UpstreamRefused as UpstreamRefused,
    UpstreamSuspended as UpstreamSuspended,
    UpstreamTimeout as UpstreamTimeout,
    UpstreamTooLarge as UpstreamTooLarge,
    UpstreamUnreachable as UpstreamUnreachable,
    UpstreamUnsupported as UpstreamUnsupported,
)
