"""What an authorization request must be, beyond what Authlib checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidRequestError
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6749.util import extract_basic_authorization
from authlib.oauth2.rfc7636 import CodeChallenge

from headgate.errors import HeadgateError

Pairs = Sequence[tuple[str, str]]
#: The parameter of a precise request (RFC 9396).
DETAILS = "authorization_details"
#: Authlib refuses addresses that are not https; it looks at this one for nothing else, and ours may be loopback.
_ADDRESS = "https://headgate.invalid/"
_S256_CHARS = 43


class FormPayload(BasicOAuth2Payload):
    """The parameters of a request: the first value of each, and in ``datalist`` all of them."""

    def __init__(self, pairs: Pairs) -> None:
        cast("Any", super()).__init__(dict(reversed(pairs)))
        self._datalist: Any = {name: [value for key, value in pairs if key == name] for name, _ in pairs}

    def refuse_repeated(self) -> None:
        """Refuse a parameter that occurs twice; only ``resource`` may."""
        if any(len(values) > 1 for name, values in self._datalist.items() if name != "resource"):
            raise InvalidRequestError("A parameter was sent twice.")


class FormRequest(OAuth2Request):
    """A request in the form that Authlib reads."""

    def __init__(self, method: str, pairs: Pairs, headers: Mapping[str, str] | None = None) -> None:
        cast("Any", super()).__init__(method, _ADDRESS, headers=headers)
        self.payload: Any = FormPayload(pairs)

    @property
    def form(self) -> dict[str, str]:
        """The parameters, by the name that Authlib uses at the token endpoint."""
        return self.payload.data


def posted(pairs: Pairs, authorization: str | None) -> FormRequest:
    """Read a form that a client sent."""
    request = FormRequest("POST", pairs, {} if authorization is None else {"Authorization": authorization})
    request.payload.refuse_repeated()
    if authorization is not None:
        try:
            name = cast("Any", extract_basic_authorization)(request.headers)[0]
        except ValueError:
            name = None
        if name is None:
            raise InvalidClientError(description="The Authorization header must be Basic and readable.")
        if request.form.get("client_secret"):
            raise InvalidRequestError("The client authenticates in two ways.")
    return request


def check_resource(request: Any, server: Any) -> None:
    """Accept every spelling of the one resource there is (RFC 8707); clients differ in the path and the slash."""
    if not server.place.resources.issuperset(request.payload.datalist.get("resource", ())):
        refuse("invalid_target", "This server issues tokens for its own address only.")


class RequestRules(CodeChallenge):
    """PKCE with S256 alone, and always; one resource; no silent consent; precise requests for what is there."""

    def validate_code_challenge(self, grant: Any, redirect_uri: str | None) -> None:
        """Check the request's parameters; Authlib calls it after client and redirect are known to be right."""
        del redirect_uri
        grant.request.payload.refuse_repeated()
        data: dict[str, str] = grant.request.form
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
        check_resource(grant.request, grant.server)
        cast("Any", super()).validate_code_challenge(grant, "")
        try:
            if data.get(DETAILS):
                grant.server.check_details(data[DETAILS])
        except HeadgateError:
            refuse("invalid_authorization_details", "They ask for something that is not here.")


def refuse(error: str, description: str) -> NoReturn:
    """Refuse with an error that Authlib has no class for."""
    raise OAuth2Error(description=description, error=error)
