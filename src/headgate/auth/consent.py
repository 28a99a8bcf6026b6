"""Consent: what an owner could grant to a client that asks, what the owner chose of it, and what that comes to.

The owner may narrow what was asked for, never widen it. What is approved is exactly what was reviewed: the digest of
the terms that a page showed comes back with the approval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from headgate.auth.documents import stream_document
from headgate.auth.grants import DEFAULT_PURPOSE, Conditions
from headgate.auth.oauth.details import PreciseRequest
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest
from headgate.model.declaration import PEOPLE_FIELDS, TITLE_FIELDS, FieldKind, StreamDeclaration
from headgate.model.grant import AccessMode, StreamGrant
from headgate.model.ids import ClientId, ConnectionId, ConnectorKey, FieldName
from headgate.model.instants import DAY_US, instant
from headgate.policy.allowance import SourceCatalog
from headgate.policy.resolve import WILDCARD, SelectionRequest, StreamRequest, Terms, granted_fields, resolve

#: Time ranges that are offered, by the days they reach back.
TIME_CHOICES = (30, 90, 365)
DURATIONS = (1, 7, 30, 90, 365)
DEFAULT_DAYS = 30
ALL_TIME, SINCE_DAY = "all", "since"
PRESETS = ("headers", "no_bodies", "last_90_days")
MOST_RECORDS = 1_000_000_000
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class StreamOffer:
    """One stream of one connection, as far as it may be granted at most."""

    connection_id: ConnectionId
    connection_label: str
    declaration: StreamDeclaration
    source_name: str
    most: StreamGrant
    #: Whether it is chosen when the page is first shown.
    is_asked: bool

    @property
    def key(self) -> str:
        """The end of the names of its form fields."""
        return f"{self.connection_id}/{self.most.name}"

    @property
    def always(self) -> tuple[FieldName, ...]:
        """The fields that come along with any other."""
        return granted_fields(self.declaration, ())

    @property
    def has_times(self) -> bool:
        """Whether its records can be chosen by time."""
        return self.declaration.consent_time_field is not None


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """What the owner chose of one stream."""

    offer: StreamOffer
    is_picked: bool
    fields: tuple[FieldName, ...]
    #: ``all``, ``since``, or a number of days.
    time: str = ALL_TIME
    since_day: str = ""


@dataclass(frozen=True, slots=True)
class ConsentChoice:
    """Everything the owner chose."""

    streams: tuple[StreamChoice, ...]
    #: None is until the owner revokes.
    days: int | None = DEFAULT_DAYS
    access_mode: AccessMode = AccessMode.CONTINUOUS
    daily_records: int | None = None

    @property
    def picked(self) -> tuple[StreamChoice, ...]:
        """The streams that would be granted."""
        return tuple(stream for stream in self.streams if stream.is_picked)


def offers(catalog: SourceCatalog, precise: PreciseRequest | None) -> tuple[StreamOffer, ...]:
    """List what may be granted: everything for a client that lets the owner pick, else what was asked for."""
    requests = _everything(catalog) if precise is None else precise.selections
    offered = tuple(
        offer for request in requests for offer in _offers(request, catalog, is_asked=precise is not None)
    )
    if precise is not None and not offered:
        raise InvalidAuthorizationDetails("Nothing of what was asked for is connected here.")
    return offered


def _everything(catalog: SourceCatalog) -> Iterator[SelectionRequest]:
    for key, source in catalog.declarations.items():
        connections = catalog.connections_of(key)
        if connections:
            yield SelectionRequest(source.source_id, (StreamRequest(WILDCARD, connections),))


def _offers(request: SelectionRequest, catalog: SourceCatalog, *, is_asked: bool) -> Iterator[StreamOffer]:
    known_source = catalog.source(request.source_id)
    if known_source is None:
        raise InvalidAuthorizationDetails("The source is not connected here.", param="source")
    key, source = known_source
    connections = catalog.connections_of(key)
    for connection in connections:
        narrowed = _on(request, connection)
        if narrowed is None:
            continue
        for most in resolve(narrowed, catalog).streams:
            named = any(connection in (stream.connection_ids or ()) for stream in request.streams)
            yield StreamOffer(
                connection,
                catalog.connections[connection].label or connection,
                source.streams[most.name],
                source.display_name,
                replace(most, connection_ids=(connection,)),
                # Several connections and none named: the owner has to choose.
                is_asked=is_asked and (named or len(connections) == 1),
            )


def _on(request: SelectionRequest, connection: ConnectionId) -> SelectionRequest | None:
    if request.preset is not None:
        return request
    streams = [
        replace(stream, connection_ids=(connection,))
        for stream in request.streams
        if stream.connection_ids is None or connection in stream.connection_ids
    ]
    return replace(request, streams=tuple(streams)) if streams else None


def first_choice(offered: Iterable[StreamOffer], precise: PreciseRequest | None) -> ConsentChoice:
    """Choose what a page shows first: nothing for a picker, exactly what was asked for otherwise."""
    mode = AccessMode.CONTINUOUS if precise is None else precise.access_mode
    return ConsentChoice(
        tuple(StreamChoice(offer, offer.is_asked, offer.most.fields) for offer in offered), access_mode=mode
    )


def read_choice(
    offered: Iterable[StreamOffer], get: Callable[[str], str], get_all: Callable[[str], Sequence[str]]
) -> ConsentChoice:
    """Read the owner's choice from the fields of a form; what was not offered is not looked at."""
    days, daily, mode = get("days"), get("daily_records").strip(), get("access_mode")
    choice = ConsentChoice(
        tuple(_stream_choice(offer, get, get_all) for offer in offered),
        None if days == "revoked" else whole_number(days or str(DEFAULT_DAYS), MOST_DAYS, "days"),
        AccessMode.SINGLE_USE if mode == AccessMode.SINGLE_USE else AccessMode.CONTINUOUS,
        whole_number(daily, MOST_RECORDS, "daily_records") if daily else None,
    )
    return with_preset(choice, get("preset"))


def _stream_choice(
    offer: StreamOffer, get: Callable[[str], str], get_all: Callable[[str], Sequence[str]]
) -> StreamChoice:
    ticked = set(get_all(f"fields/{offer.key}"))
    fields = tuple(name for name in offer.most.fields if name in ticked or name in offer.always)
    # Before a stream is picked for the first time, its fields are not on the page: all are meant.
    is_open = get(f"open/{offer.key}") == "1"
    return StreamChoice(
        offer,
        get(f"pick/{offer.key}") == "1",
        fields if is_open else offer.most.fields,
        get(f"time/{offer.key}") or ALL_TIME,
        get(f"since/{offer.key}"),
    )


def with_preset(choice: ConsentChoice, preset: str) -> ConsentChoice:
    """Narrow the picked streams by a preset."""
    if preset not in PRESETS:
        return choice
    narrow = {"headers": _headers, "no_bodies": _no_bodies, "last_90_days": _last_90_days}[preset]
    return replace(
        choice, streams=tuple(narrow(stream) if stream.is_picked else stream for stream in choice.streams)
    )


def _headers(choice: StreamChoice) -> StreamChoice:
    declared = choice.offer.declaration.fields
    headers = {*TITLE_FIELDS, *PEOPLE_FIELDS}
    return _with_fields(choice, lambda name: name in headers or declared[name].kind.is_time)


def _no_bodies(choice: StreamChoice) -> StreamChoice:
    declaration = choice.offer.declaration
    searched, plain = declaration.query.lexical_fields, {*TITLE_FIELDS, *PEOPLE_FIELDS}
    bodies = {
        name
        for name in searched
        if name not in plain and declaration.fields[name].kind in {FieldKind.TEXT, FieldKind.JSON}
    }
    return _with_fields(choice, lambda name: name not in bodies)


def _last_90_days(choice: StreamChoice) -> StreamChoice:
    return replace(choice, time="90") if choice.offer.has_times else choice


def _with_fields(choice: StreamChoice, keeps: Callable[[FieldName], bool]) -> StreamChoice:
    always = choice.offer.always
    return replace(choice, fields=tuple(field for field in choice.fields if field in always or keeps(field)))


def terms_of(choice: ConsentChoice, catalog: SourceCatalog, now: int) -> tuple[Terms, ...]:
    """Make a choice concrete: one grant for each source, or several where its connections differ."""
    by_connection: dict[ConnectionId, list[StreamRequest]] = {}
    for stream_choice in choice.picked:
        by_connection.setdefault(stream_choice.offer.connection_id, []).append(
            stream_request(stream_choice, now)
        )
    if not by_connection:
        raise InvalidRequest("Nothing is chosen yet.", hint="Tick what this client may read.")
    alike: dict[tuple[ConnectorKey, tuple[StreamRequest, ...]], list[ConnectionId]] = {}
    for connection, streams in by_connection.items():
        key = catalog.connections[connection].connector_key
        alike.setdefault((key, tuple(streams)), []).append(connection)
    return tuple(
        resolve(
            SelectionRequest(
                catalog.declarations[key].source_id,
                tuple(replace(stream, connection_ids=tuple(connections)) for stream in streams),
            ),
            catalog,
        )
        for (key, streams), connections in alike.items()
    )


def stream_request(choice: StreamChoice, now: int) -> StreamRequest:
    """Ask for what was chosen of one stream, within what may be granted at most."""
    most = choice.offer.most
    since, until = (None, None) if most.time is None else (most.time.since, most.time.until)
    chosen = _since(choice, now) if choice.offer.has_times else None
    bounds = [at for at in (since, chosen) if at is not None]
    return StreamRequest(
        most.name,
        fields=choice.fields if choice.offer.declaration.selects_fields else None,
        since=max(bounds, default=None),
        until=until,
        resources=most.resources,
    )


def _since(choice: StreamChoice, now: int) -> int | None:
    """Return the first moment of a chosen range; ranges begin with a day, so that a review stays the same for a day."""
    if choice.time == ALL_TIME:
        return None
    if choice.time != SINCE_DAY:
        return (now // DAY_US - whole_number(choice.time, MOST_DAYS, "time")) * DAY_US
    at = instant(choice.since_day)
    if at is None:
        raise InvalidRequest("The day must be written like 2026-01-31.", param="since")
    return at


def whole_number(text: str, most: int, param: str) -> int:
    """Read a number of a form."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_number or not 1 <= int(text) <= most:
        raise InvalidRequest(f"'{param}' must be a whole number from 1 to {most}.", param=param)
    return int(text)


def conditions_of(choice: ConsentChoice, client_id: str, precise: PreciseRequest | None) -> Conditions:
    return Conditions(
        ClientId(client_id),
        DEFAULT_PURPOSE if precise is None else precise.purpose_code,
        choice.access_mode,
        choice.days,
        choice.daily_records,
    )


def review_of(terms: Sequence[Terms], conditions: Conditions, calls: Sequence[str]) -> str:
    """Name what a page shows: another value for any other terms, conditions, declaration or remote tools."""
    reviewed = [
        [term.connector_key, term.source.version, [stream_document(stream) for stream in term.streams]]
        for term in terms
    ]
    document = msgspec.json.encode([reviewed, msgspec.to_builtins(conditions), calls], order="deterministic")
    return hashlib.sha256(document).hexdigest()
