"""What an authorization request must be, beyond what Authlib checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc6749.requests import OAuth2Payload
from authlib.oauth2.rfc7636 import CodeChallenge

from headgate.auth.oauth.clients import OAuthClient

#: Authlib refuses addresses that are not https; it looks at this one for nothing else, and ours may be loopback.
_ADDRESS = "https://headgate.invalid/"
_S256_CHARS = 43


class FormPayload(OAuth2Payload):
    """The parameters of a request, each with all its values."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    @property
    def data(self) -> dict[str, str]:
        """The first value of each parameter."""
        return {name: values[0] for name, values in self._values.items()}

    @property
    def datalist(self) -> Any:
        """Every value of each parameter."""
        return self._values

    def refuse_repeated(self) -> None:
        """Refuse a parameter that occurs twice; only ``resource`` may.

        Raises:
            InvalidRequestError: one does.
        """
        if any(len(values) > 1 for name, values in self._values.items() if name != "resource"):
            raise InvalidRequestError("A parameter was sent twice.")


class FormRequest(OAuth2Request):
    """A request in the form that Authlib reads."""

    def __init__(
        self, method: str, pairs: Sequence[tuple[str, str]], headers: Mapping[str, str] | None = None
    ) -> None:
        cast("Any", super()).__init__(method, _ADDRESS, headers=headers)
        self.payload: Any = FormPayload(pairs)

    @property
    def form(self) -> dict[str, str]:
        """The parameters, by the name that Authlib uses at the token endpoint."""
        return self.payload.data


def check_resource(payload: FormPayload, resources: frozenset[str]) -> None:
    """Accept every spelling of the one resource there is (RFC 8707); clients differ in the path and the slash.

    Raises:
        OAuth2Error: it is another server.
    """
    if any(one not in resources for one in payload.datalist.get("resource", ())):
        refuse("invalid_target", "This server issues tokens for its own address only.")


class RequestRules(CodeChallenge):
    """PKCE with S256 alone, and always; one resource; no silent consent."""

    def __init__(self, resources: frozenset[str]) -> None:
        super().__init__(required=True)
        self._resources = resources

    def validate_code_challenge(self, grant: Any, redirect_uri: str | None) -> None:
        """Check the request's parameters; Authlib calls it after client and redirect are known to be right."""
        del redirect_uri
        payload: FormPayload = grant.request.payload
        payload.refuse_repeated()
        data = payload.data
        if data.get("response_type") != "code":
            refuse("unsupported_response_type", "The response_type must be code.")
        if data.get("response_mode", "query") != "query":
            refuse("invalid_request", "The response_mode must be query.")
        if {"request", "request_uri"} & data.keys():
            refuse("request_not_supported", "Request objects are not supported.")
        if "none" in data.get("prompt", "").split():
            refuse("interaction_required", "The owner is asked every time.")
        if data.get("code_challenge_method") != "S256" or len(data.get("code_challenge", "")) != _S256_CHARS:
            refuse("invalid_request", "A code_challenge with the method S256 is required.")
        check_resource(payload, self._resources)
        cast("Any", super()).validate_code_challenge(grant, "")


def default_redirect(request: Any, client: OAuthClient) -> str:
    """Give the redirect address of a request.

    Raises:
        InvalidRequestError: it is not one of the client's.
    """
    uri = request.payload.redirect_uri or client.get_default_redirect_uri()
    if not client.check_redirect_uri(uri):
        # Authlib's text would quote the address, and fails on characters that an error must not hold.
        raise InvalidRequestError("The redirect_uri is not one of this client.")
    return uri


def refuse(error: str, description: str) -> NoReturn:
    """Refuse with an error that Authlib has no class for.

    Raises:
        OAuth2Error: always.
    """
    raise OAuth2Error(description=description, error=error)
