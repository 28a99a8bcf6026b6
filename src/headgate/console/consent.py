"""The pages on which an owner lets a client in: the request of a client, what it would see, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

from headgate.auth.consent import (
    DURATIONS,
    PRESETS,
    TIME_CHOICES,
    ConsentChoice,
    StreamChoice,
    conditions_of,
    first_choice,
    offers,
    read_choice,
    review_of,
    terms_of,
)
from headgate.auth.grants import Conditions
from headgate.auth.oauth.clients import host_of, is_document_url, is_loopback
from headgate.auth.oauth.details import PreciseRequest, read_details
from headgate.auth.oauth.entries import PendingRequest
from headgate.auth.oauth.service import Refused
from headgate.console.formatting import counted
from headgate.console.pages import (
    CONFIRM,
    OPEN_FORM_HEADERS,
    Frame,
    OwnerRequest,
    View,
    cookies_of,
    page,
    see_other,
    signed_in,
)
from headgate.console.samples import sample_table
from headgate.errors import HeadgateError, InvalidClient, InvalidRequest, NotFound
from headgate.model.grant import AccessMode
from headgate.reading.preview import GrantPreview, preview
from headgate.web.admission import Callers
from headgate.web.api.oauth import place_of, read_pairs
from headgate.web.front import Address
from headgate.web.replies import HttpReply, WebRequest
from headgate.wiring import Services

DEVICE_PAGE = "/oauth/device"
_VIA = "GET /oauth/consent/{request}"
_MAX_QUERY_BYTES = 48 * 1024
_PRESET_LABELS: Mapping[str, str] = dict[str, str](
    zip(PRESETS, ("Headers only", "No bodies", "Last 90 days"), strict=True)
)


@dataclass(frozen=True, slots=True)
class ConsentView:
    """What the page shows."""

    request_id: str
    pending: PendingRequest
    precise: PreciseRequest | None
    choice: ConsentChoice
    previews: Mapping[str, GrantPreview]
    #: Names what is shown; empty while nothing is chosen.
    review: str
    #: The remote tools that it could call under the grant, in words.
    calls: tuple[str, ...]
    problem: str = ""
    durations: tuple[int, ...] = DURATIONS
    time_choices: tuple[int, ...] = TIME_CHOICES

    @property
    def presets(self) -> Mapping[str, str]:
        """The presets and what they are called."""
        return _PRESET_LABELS

    @property
    def summary(self) -> str:
        """What an approval would mean, in one sentence."""
        seen = self.previews.values()
        what = f"{counted(sum(stream.count for stream in seen), 'record')} of {counted(len(seen), 'stream')}"
        chosen = self.choice
        until = "until you revoke it" if chosen.days is None else f"for {counted(chosen.days, 'day')}"
        use = "once" if chosen.access_mode is AccessMode.SINGLE_USE else "again and again"
        limit = chosen.daily_records
        most = "without a daily limit" if limit is None else f"at most {counted(limit, 'record')} a day"
        return f"{self.pending.client.name} may read {what} as they are now, and new ones that fit, {until}, {use}, {most}."

    @property
    def redirect_host(self) -> str:
        """Where the answer goes."""
        return host_of(self.pending.redirect_uri)

    @property
    def is_loopback(self) -> bool:
        """Whether any program of the owner's machine could receive the answer."""
        return is_loopback(self.pending.redirect_uri)

    @property
    def connections(self) -> list[tuple[str, str, list[StreamChoice]]]:
        """The streams by connection: its name, its source, and what was chosen of each stream."""
        by_connection: dict[str, tuple[str, str, list[StreamChoice]]] = {}
        for stream in self.choice.streams:
            offer = stream.offer
            by_connection.setdefault(offer.connection_id, (offer.connection_label, offer.source_name, []))[
                2
            ].append(stream)
        return sorted(by_connection.values(), key=lambda stream: stream[0].casefold())

    def samples(self, seen: GrantPreview) -> View:
        """Lay out the samples of a stream."""
        return sample_table(seen)


async def authorize(consent: Services, request: WebRequest) -> HttpReply:
    """Begin an authorization: check the request, have the owner sign in, then show the page of consent."""
    query: bytes = request.scope["query_string"]
    if len(query) > _MAX_QUERY_BYTES:
        return _refusal_page(InvalidRequest("The request is too long."))
    consent.authorization.limits.check_request(request.context.client_address)
    pairs = read_pairs(query)
    session = await consent.sessions.session(cookies_of(request))
    client_id = dict(pairs).get("client_id", "")
    client = await consent.authorization.client(client_id, may_fetch=session is not None)
    if client is None:
        if session is None and is_document_url(client_id):
            return _sign_in_first(request)
        return _refusal_page(_unknown(client_id))
    catalog = await consent.reads.catalog()
    begun = await consent.authorization.begin(
        pairs,
        client,
        place_of(request),
        session=None if session is None else session.stored.digest,
        check_details=lambda text: offers(catalog, read_details(text)),
    )
    if isinstance(begun, Refused):
        if begun.location is not None:
            return see_other(begun.location)
        return _refusal_page(InvalidRequest(begun.description))
    return _sign_in_first(request) if begun is None else see_other(f"/oauth/consent/{begun}")


def _unknown(client_id: str) -> InvalidClient:
    """Return why a client is not known: the owner can do something about a document that cannot be fetched."""
    if not is_document_url(client_id):
        return InvalidClient()
    host = urlsplit(client_id).hostname
    return InvalidClient(
        f"The document at {host} that says which program asks could not be fetched, or is not acceptable.",
        hint=f"Let this machine reach {host}, or sign in again from the program (if it keeps what it chose, sign out "
        "there first): for an hour it is asked to register instead. 'headgate connect' gives it a token without signing in.",
    )


async def show(consent: Services, request: OwnerRequest) -> HttpReply:
    """Show what a client asks for."""
    request_id = request.places["request"]
    pending = await consent.authorization.pending(request_id, request.session.stored.digest)
    may_call = bool(await consent.gateway_callers.described(pending.client.id))
    if pending.needs_proof(is_fresh=request.session.is_fresh, may_call=may_call):
        return see_other(f"{CONFIRM}?next={quote(request.here, safe='')}")
    precise = read_details(pending.details) if pending.details else None
    choice = first_choice(offers(await consent.reads.catalog(), precise), precise)
    return await _page(consent, request, pending, choice)


async def decide(consent: Services, request: OwnerRequest) -> HttpReply:
    """Take the owner's decision, or show again what would be granted after a change."""
    form = await request.form()
    request_id, session = request.places["request"], request.session.stored.digest
    pending, place = await consent.authorization.pending(request_id, session), place_of(request.web)
    if form.get("decision") == "deny":
        return _back(await consent.authorization.deny(pending, place), "You denied the request.")
    precise = read_details(pending.details) if pending.details else None
    catalog = await consent.reads.catalog()
    choice = read_choice(offers(catalog, precise), form.get, form.all)
    if form.get("decision") != "approve":
        return await _page(consent, request, pending, choice)
    calls = await consent.gateway_callers.described(pending.client.id)
    if pending.needs_proof(is_fresh=request.session.is_fresh, may_call=bool(calls)):
        back = f"/oauth/consent/{request_id}"
        return see_other(f"{CONFIRM}?next={quote(back, safe='')}")
    conditions = conditions_of(choice, pending.client.id, precise)
    try:
        terms = terms_of(choice, catalog, consent.reads.clock())
    except HeadgateError as error:
        return await _page(consent, request, pending, choice, problem=f"{error.message} {error.hint}")
    if review_of(terms, conditions, calls) != form.get("review"):
        problem = "This differs from what you last saw. Review it again, then approve."
        return await _page(consent, request, pending, choice, problem=problem)
    return _back(await consent.authorization.approve(pending, place, terms, conditions), "You approved.")


async def show_device(_consent: Services, request: OwnerRequest) -> HttpReply:
    """Ask for the code that a device shows."""
    return page(
        "device.html",
        Frame("Connect a device", request),
        View(user_code=request.query.get("user_code"), problem=""),
    )


async def find_device(consent: Services, request: OwnerRequest) -> HttpReply:
    """Find the device by its code, and show what it asks for."""
    code = (await request.form()).get("user_code")
    request_id = await consent.authorization.begin_device(_device_code(code), request.session.stored.digest)
    if request_id is None:
        view = View(user_code=code, problem="No device is waiting with this code. The code may have expired.")
        return page("device.html", Frame("Connect a device", request), view, status=NotFound.status)
    return see_other(f"/oauth/consent/{request_id}")


def _device_code(typed: str) -> str:
    """Write a code as it is shown, whatever case and marks were typed between its letters, as RFC 8628 advises."""
    letters = "".join(character for character in typed.upper() if character.isalnum())
    return f"{letters[:4]}-{letters[4:]}"


async def _page(
    consent: Services,
    request: OwnerRequest,
    pending: PendingRequest,
    choice: ConsentChoice,
    *,
    problem: str = "",
) -> HttpReply:
    precise = read_details(pending.details) if pending.details else None
    review, previews = "", dict[str, GrantPreview]()
    calls = await consent.gateway_callers.described(pending.client.id)
    try:
        review, previews = await _reviewed(
            consent, request, choice, conditions_of(choice, pending.client.id, precise), calls
        )
    except HeadgateError as error:
        problem = problem or f"{error.message} {error.hint}"
    parts = pending, precise, choice, previews, review, calls
    view = ConsentView(request.places["request"], *parts, problem if choice.picked else "")
    # The answer of the form is a redirect to the client, which a policy on form targets would block.
    frame = Frame(f"Access for {pending.client.name}", request, headers=OPEN_FORM_HEADERS, is_decision=True)
    return page("consent.html", frame, view)


async def _reviewed(
    consent: Services,
    request: OwnerRequest,
    choice: ConsentChoice,
    conditions: Conditions,
    calls: tuple[str, ...],
) -> tuple[str, dict[str, GrantPreview]]:
    if not choice.picked:
        return "", {}
    catalog, now = await consent.reads.catalog(), consent.reads.clock()
    each = [terms for stream in choice.picked for terms in terms_of(ConsentChoice((stream,)), catalog, now)]
    stream_previews = await preview(consent.reads, each, request.web.context.request_id, _VIA)
    previews = {
        f"{stream.stream.connection_ids[0]}/{stream.stream.name}": stream for stream in stream_previews
    }
    return review_of(terms_of(choice, catalog, now), conditions, calls), previews


def _back(location: str, done: str) -> HttpReply:
    if location:
        return see_other(location)
    return page("decided.html", Frame("Done"), done)


def _sign_in_first(request: WebRequest) -> HttpReply:
    query = request.scope["query_string"].decode("latin-1")
    return see_other(f"/console/sign-in?next={quote(f'/oauth/authorize?{query}', safe='')}")


def _refusal_page(error: HeadgateError) -> HttpReply:
    """Show a refusal where the browser must not be sent on: whose address that is, is not known."""
    return page("error.html", Frame("This request cannot be answered"), error, status=error.status)


def consent_addresses(consent: Services) -> tuple[Address, ...]:
    """Make the rows of the table; a session is checked by `signed_in`, and by `authorize` itself."""
    own = (
        ("GET", "/oauth/consent/{request}", show),
        ("POST", "/oauth/consent/{request}", decide),
        ("GET", DEVICE_PAGE, show_device),
        ("POST", DEVICE_PAGE, find_device),
    )
    return (
        Address("GET", "/oauth/authorize", Callers.ANYONE, partial(authorize, consent)),
        Address("GET", "/authorize", Callers.ANYONE, partial(authorize, consent)),
        *(
            Address(method, path, Callers.ANYONE, signed_in(consent.sessions, partial(handler, consent)))
            for method, path, handler in own
        ),
    )
