"""Admission at the edge: the same steps for every address that takes a token.

Parse the bearer, refuse a token that asks too often, look the token up, slow down who sends tokens that do not exist,
check the token's kind, and write a refusal of a known token to the disclosure log. One that does not exist leaves no
entry there.
"""

from __future__ import annotations

from enum import StrEnum

from headgate.auth.admission import Admission
from headgate.auth.documents import is_resource_server
from headgate.auth.gateway import GatewayCallers
from headgate.auth.limits import RequestLimits
from headgate.errors import AuthenticationFailed, ContextRejected, HeadgateError, PermissionRefused
from headgate.model.grant import Access, TokenKind
from headgate.web.context import RequestContext


class Callers(StrEnum):
    """Who may call an address."""

    #: No token is looked at.
    ANYONE = "anyone"
    #: An owner's token, or a client's or a package's within its grants.
    READERS = "readers"
    OWNER = "owner"
    #: A client's or a package's token; never an owner's.
    AGENTS = "agents"
    #: Any token that is valid by itself, even one whose grant has ended.
    HOLDERS = "holders"
    #: Everyone; an invalid token is treated as anonymous.
    GATEWAY_CLIENTS = "gateway_clients"
    #: A resource server that knows the introspection password.
    RESOURCE_SERVERS = "resource_servers"


class EdgeAdmission:
    """Admits requests, and puts what their token stands for into their context."""

    __slots__ = ("_admission", "_gateway_callers", "_limits", "_password", "_strict_core")

    def __init__(
        self,
        admission: Admission,
        limits: RequestLimits,
        introspection_password: str,
        *,
        strict_core: bool = False,
        gateway_callers: GatewayCallers | None = None,
    ) -> None:
        self._admission = admission
        self._limits = limits
        self._password = introspection_password
        self._gateway_callers = gateway_callers
        #: The core protocol has one grant for each token, so it refuses packages at REST addresses.
        self._strict_core = strict_core

    async def admit(self, context: RequestContext, callers: Callers) -> None:
        """Admit a request.

        Raises:
            AuthenticationFailed: there is no token or password, or it is not valid.
        """
        match callers:
            case Callers.ANYONE:
                return
            case Callers.RESOURCE_SERVERS:
                self._admit_resource_server(context)
            case Callers.GATEWAY_CLIENTS:
                await self._admit_gateway_client(context)
            case _:
                await self._admit_token(context, callers)

    async def _admit_token(self, context: RequestContext, callers: Callers) -> None:
        token = context.headers.bearer
        if token is None:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.check_rate(token)
        try:
            if callers is Callers.HOLDERS:
                await self._check_token_exists(token)
            else:
                # An agent's client shows its model what a tool answers, and not what HTTP does.
                checks_budget = callers is not Callers.AGENTS
                access = await self._admission.admit(token, context.route, checks_budget=checks_budget)
                _check_kind(access, callers)
                if self._strict_core and callers is Callers.READERS:
                    _refuse_package(access)
                context.access = access
        except AuthenticationFailed:
            self._limits.count_failed_token(context.client_address, token)
            raise
        except HeadgateError as error:
            await self._admission.note_refusal(
                token, error.code, context.route, request_id=context.request_id
            )
            raise

    async def _check_token_exists(self, token: str) -> None:
        if await self._admission.look_up(token) is None:
            raise AuthenticationFailed

    async def _admit_gateway_client(self, context: RequestContext) -> None:
        token = context.headers.bearer
        if token is None:
            return
        self._limits.check_rate(token)
        callers = self._gateway_callers
        context.gateway_caller = None if callers is None else await callers.holder(token)
        if context.gateway_caller is not None:
            return
        try:
            context.access = await self._admission.admit(token, context.route)
        except AuthenticationFailed:
            self._limits.count_failed_token(context.client_address, token)
        except HeadgateError as error:
            await self._admission.note_refusal(
                token, error.code, context.route, request_id=context.request_id
            )

    def _admit_resource_server(self, context: RequestContext) -> None:
        authorization = context.headers.values.get(b"authorization")
        if authorization is None or not is_resource_server(authorization.decode("latin-1"), self._password):
            if authorization is not None:
                self._limits.count_failed_token(context.client_address)
            raise ContextRejected("authentication_failed")


def _check_kind(access: Access, callers: Callers) -> None:
    kind = access.token_kind
    if callers is Callers.OWNER and kind is not TokenKind.OWNER:
        raise PermissionRefused("This needs an owner's token.")
    if callers is Callers.AGENTS and kind is TokenKind.OWNER:
        raise PermissionRefused(
            "An owner's token is not accepted here.",
            hint="Use a client's token, or a package's, that the owner granted for agents.",
        )


def _refuse_package(access: Access) -> None:
    if access.token_kind is TokenKind.MCP_PACKAGE:
        raise PermissionRefused("Package tokens are for /mcp only.")
