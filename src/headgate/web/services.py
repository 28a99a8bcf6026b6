"""The parts of the program that the web's handlers answer from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from headgate.auth.admission import Admission
from headgate.auth.gateway import GatewayCallers
from headgate.mcp.gateway.hosted import HostedGateway
from headgate.mcp.serve.hosted import HostedMcp
from headgate.model.ids import GrantId
from headgate.reading.services import ReadServices
from headgate.sources.intake import Intake
from headgate.sources.uploads import Uploads
from headgate.tasks import Supervisor
from headgate.web.guard import Metrics


@dataclass(frozen=True, slots=True)
class WebServices:
    """Everything a handler may use."""

    version: str
    reads: ReadServices
    admission: Admission
    intake: Intake
    uploads: Uploads
    #: Ends a grant on behalf of the holder of a token.
    revoke_grant: Callable[[str, GrantId], Awaitable[None]]
    mcp: HostedMcp
    supervisor: Supervisor
    gateway: HostedGateway | None = None
    gateway_callers: GatewayCallers | None = None
    #: The address the owner set for this server; empty when it is whatever the caller used.
    public_url: str = ""
    #: The home as commands have to name it; empty if they take it by themselves.
    home_path: str = ""
    #: Tells the cookies of this home from those of others on the same machine.
    home_mark: str = ""
    metrics: Metrics = field(default_factory=Metrics)
