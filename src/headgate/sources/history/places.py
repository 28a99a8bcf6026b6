"""Where a phone was: the location history of Google in its four shapes.

Records.json has positions; the monthly files have stays and trips; the Timeline of a newer phone has all three, and
that of an iPhone is the same with other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from headgate.model.declaration import WITH_OFFSETS
from headgate.model.instants import instant
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.json_values import json_rows, object_of, objects_of
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import (
    OrderedKeys,
    integer_of,
    iso_of,
    iso_us,
    local_iso_of,
    number_of,
    text_of,
    without_empty,
)
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_PATHS = frozenset({"locations.item", "timelineObjects.item", "semanticSegments.item", "item"})
_POINT = re.compile(r"(-?[0-9]{1,3}(?:\.[0-9]{1,20})?)°?\s*,\s*(-?[0-9]{1,3}(?:\.[0-9]{1,20})?)")
_MAX_POINTS = 10_000
_UNKNOWN = re.compile(r"(?:TYPE_)?UNKNOWN(?:_TYPE)?", re.IGNORECASE)
_MINUTE_US = 60_000_000
POSITIONS = StreamSpec(
    name="positions",
    label="Positions",
    detail="Where the phone was at one moment.",
    fields=fields("id at:time latitude:number longitude:number accuracy_metres:number origin"),
    time="at",
    times="UTC",
    groups=("origin",),
    views=(("times", "When there was a position, without where", ("id", "at")),),
    is_append_only=True,
)
PLACES = StreamSpec(
    name="places",
    label="Places",
    detail="A stay at one place, from when to when.",
    fields=fields(
        "id name address kind started_at:time ended_at:time latitude:number longitude:number place_id"
    ),
    time="started_at",
    times=WITH_OFFSETS,
    title="name",
    words=("name", "address"),
    groups=("name", "kind", "place_id"),
    views=(
        ("stays", "Names and times without coordinates", ("id", "name", "kind", "started_at", "ended_at")),
    ),
)
TRIPS = StreamSpec(
    name="trips",
    label="Trips",
    detail="A way from one place to another, and how it was travelled.",
    fields=fields(
        "id kind started_at:time ended_at:time metres:number start_latitude:number start_longitude:number "
        "end_latitude:number end_longitude:number name"
    ),
    time="started_at",
    times=WITH_OFFSETS,
    title="kind",
    words=("name",),
    groups=("kind",),
    views=(
        ("lengths", "How far and how, without where", ("id", "kind", "started_at", "ended_at", "metres")),
    ),
)

Point = tuple[float, float] | None


def _is_location(file: InputFile) -> bool:
    head = file.head
    if file.suffix != ".json":
        return False
    is_google = (b'"locations"' in head and b'"latitudeE7"' in head) or b'"timelineObjects"' in head
    is_phone = b'"semanticSegments"' in head
    is_iphone = head.lstrip().startswith(b"[") and b'"startTime"' in head and b'"geo:' in head
    return is_google or is_phone or is_iphone


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = OrderedKeys()
    return json_rows(file, content, _PATHS, lambda path, entry: _rows(keys, path, entry))


def _rows(keys: OrderedKeys, path: str, entry: dict[str, Any]) -> list[Row]:
    if path == "locations.item":
        return position(keys, iso_of(_moment(entry, "timestamp")), _e7(entry), entry)
    if path == "timelineObjects.item":
        return _older(keys, entry)
    return _segment(keys, entry)


def _older(keys: OrderedKeys, entry: dict[str, Any]) -> list[Row]:
    if "placeVisit" in entry:
        visit = object_of(entry["placeVisit"])
        place = object_of(visit.get("location"))
        span = _span(object_of(visit.get("duration")), "startTimestamp", "endTimestamp")
        return _stay(keys, span, _e7(place), place, _text(place, "semanticType"))
    segment = object_of(entry.get("activitySegment"))
    span = _span(object_of(segment.get("duration")), "startTimestamp", "endTimestamp")
    ends = _e7(object_of(segment.get("startLocation"))), _e7(object_of(segment.get("endLocation")))
    return trip(keys, span, _text(segment, "activityType"), ends, number_of(segment.get("distance")))


def _segment(keys: OrderedKeys, entry: dict[str, Any]) -> list[Row]:
    span = _span(entry, "startTime", "endTime")
    rows: list[Row] = []
    if "visit" in entry:
        place = object_of(object_of(entry["visit"]).get("topCandidate"))
        rows += _stay(keys, span, _point(place.get("placeLocation")), place, _text(place, "semanticType"))
    if "activity" in entry:
        activity = object_of(entry["activity"])
        kind = _text(object_of(activity.get("topCandidate")), "type")
        ends = _point(activity.get("start")), _point(activity.get("end"))
        rows += trip(keys, span, kind, ends, number_of(activity.get("distanceMeters")))
    for point in objects_of(entry.get("timelinePath"))[:_MAX_POINTS]:
        rows += position(keys, _path_time(point, span[0]), _point(point.get("point")), {"source": "timeline"})
    return rows


def _path_time(point: dict[str, Any], start: str | None) -> str | None:
    if at := iso_of(point.get("time")):
        return at
    minutes = number_of(point.get("durationMinutesOffsetFromStartTime"))
    begun = None if start is None else instant(start)
    return None if begun is None or minutes is None else iso_us(begun + round(minutes) * _MINUTE_US)


def position(keys: OrderedKeys, at: str | None, point: Point, entry: dict[str, Any]) -> list[Row]:
    if at is None or point is None:
        return []
    data = {
        "id": keys.key(at, "position", *point),
        "at": at,
        "latitude": point[0],
        "longitude": point[1],
        "accuracy_metres": number_of(entry.get("accuracy")),
        "origin": _text(entry, "source"),
    }
    return [Row("positions", without_empty(data))]


def _stay(
    keys: OrderedKeys,
    span: tuple[str | None, str | None],
    point: Point,
    place: dict[str, Any],
    kind: str | None,
) -> list[Row]:
    started_at, ended_at = span
    if started_at is None:
        return []
    place_id = _text(place, "placeId", "placeID")
    kind = None if kind is None or _UNKNOWN.fullmatch(kind) else kind
    data = {
        "id": keys.key(iso_of(started_at) or "", "place", iso_of(ended_at), place_id),
        "name": _text(place, "name") or kind or "Place",
        "address": _text(place, "address"),
        "kind": kind,
        "started_at": started_at,
        "ended_at": ended_at,
        "latitude": point[0] if point else None,
        "longitude": point[1] if point else None,
        "place_id": place_id,
    }
    return [Row("places", without_empty(data))]


def trip(
    keys: OrderedKeys,
    span: tuple[str | None, str | None],
    kind: str | None,
    ends: tuple[Point, Point],
    metres: float | None,
) -> list[Row]:
    started_at, ended_at = span
    if started_at is None:
        return []
    start, end = ends
    data = {
        "id": keys.key(iso_of(started_at) or "", "trip", iso_of(ended_at), kind),
        "kind": (kind or "unknown").lower().replace("_", " "),
        "started_at": started_at,
        "ended_at": ended_at,
        "metres": metres,
        "start_latitude": start[0] if start else None,
        "start_longitude": start[1] if start else None,
        "end_latitude": end[0] if end else None,
        "end_longitude": end[1] if end else None,
    }
    return [Row("trips", without_empty(data))]


def _span(entry: dict[str, Any], start: str, end: str) -> tuple[str | None, str | None]:
    return _moment(entry, start), _moment(entry, end)


def _moment(entry: dict[str, Any], name: str) -> str | None:
    """Read a time; older exports have it in milliseconds."""
    milliseconds = integer_of(entry.get(f"{name}Ms"))
    return local_iso_of(entry.get(name)) or (None if milliseconds is None else iso_us(milliseconds * 1000))


def _e7(entry: dict[str, Any]) -> Point:
    latitude, longitude = number_of(entry.get("latitudeE7")), number_of(entry.get("longitudeE7"))
    return None if latitude is None or longitude is None else on_earth(latitude / 1e7, longitude / 1e7)


def _point(value: Any) -> Point:
    text = value if isinstance(value, str) else text_of(object_of(value).get("latLng"))
    match = _POINT.search(text[:200]) if text else None
    return on_earth(float(match[1]), float(match[2])) if match else None


def on_earth(latitude: float, longitude: float) -> Point:
    return (latitude, longitude) if abs(latitude) <= 90 and abs(longitude) <= 180 else None  # noqa: PLR2004 - degrees


def _text(entry: dict[str, Any], *names: str) -> str | None:
    return next((text for name in names if (text := one_line(text_of(entry.get(name)), 2000))), None)


LOCATION = FileFormat(
    "Location history", _is_location, _read, "location", (POSITIONS, PLACES, TRIPS), log_of=lambda _: ""
)
