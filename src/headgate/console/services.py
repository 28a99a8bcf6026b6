"""The parts of the program that the console's pages are drawn from."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import IO

from headgate.audit.activity import Activity
from headgate.auth.admission import Admission
from headgate.auth.clients import Clients
from headgate.auth.gateway import GatewayCallers
from headgate.auth.sessions import OwnerSessions
from headgate.errors import HeadgateError, RateLimited
from headgate.mcp.gateway.hosted import HostedGateway
from headgate.model.disclosure import Disclosure
from headgate.model.grant import TokenKind
from headgate.model.ids import RequestId
from headgate.reading.local import LocalResourceServer, ReadContext
from headgate.reading.preview import StreamSpans
from headgate.reading.services import ReadServices
from headgate.sources.intake import Intake
from headgate.sources.uploads import Uploads
from headgate.tasks import Supervisor
from headgate.web.context import RequestContext


@dataclass(frozen=True, slots=True)
class ConsoleFacts:
    """What the settings page tells about the program."""

    version: str
    home: str
    #: The address that agents connect to.
    mcp_url: str
    #: Empty when the owner has set none.
    public_url: str
    #: Whether there is search by meaning, and what leaves this machine for it.
    meaning: str
    #: Whether the words that agents search for are logged.
    logs_queries: bool = False


@dataclass(frozen=True, slots=True)
class ConsoleServices:
    """Everything a handler of the console may use."""

    sessions: OwnerSessions
    clients: Clients
    activity: Activity
    reads: ReadServices
    spans: StreamSpans
    admission: Admission
    #: Moves what was just read into the log that pages show.
    flush_log: Callable[[], Awaitable[None]]
    clock: Callable[[], int]
    facts: ConsoleFacts
    intake: Intake
    uploads: Uploads
    supervisor: Supervisor
    #: None when no servers are named.
    gateway: HostedGateway | None
    gateway_callers: GatewayCallers
    #: When each key of the home was made, in microseconds since 1970, by its file.
    key_ages: Callable[[], Mapping[str, int]]
    #: An alarm is raised when a client reads more than so many times its usual.
    alarm_factor: int
    #: Makes a backup that a passphrase opens, as an open file that is gone when it is closed.
    make_backup: Callable[[str], IO[bytes]]

    def note_refusal(self, context: RequestContext, error: HeadgateError) -> None:
        """Log that a password or a passkey was not accepted. What is not looked at any more, is not logged."""
        if not isinstance(error, RateLimited):
            self.note(context, error.code)

    def note(self, context: RequestContext, outcome: str) -> None:
        """Log what the owner did that shows no records by itself."""
        self.reads.discloser.write(
            Disclosure(
                at=self.clock(),
                request_id=context.request_id,
                token_kind=TokenKind.OWNER.value,
                client_id=None,
                grant_ids=(),
                package_id=None,
                via=context.route,
                outcome=outcome,
            )
        )

    async def own_records(self) -> LocalResourceServer:
        """Read as the owner; it is logged as the owner's look."""
        request_id = RequestId(f"req_{secrets.token_hex(8)}")
        access = await self.admission.owner_access()
        return LocalResourceServer(self.reads, ReadContext(access, request_id, "console"))
