"""GPX: the tracks and places that watches, phones and maps write, read as they stream by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

from headgate.sources.file_source import FileFormat
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, iso_of, number_of, without_empty
from headgate.sources.formats.xml_events import XmlEnd, XmlRefused, XmlStart, xml_events
from headgate.sources.history.places import PLACES, POSITIONS, TRIPS, Point, on_earth, position, trip
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_POINTS = frozenset({"trkpt", "rtept", "wpt"})
_WAYS = frozenset({"trk", "rte"})
_TEXTS = frozenset({"name", "type", "time"})
_EARTH_METRES = 6_371_009


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    """Follow the points; a way is what was read of a track or route, a point what was read of the last one."""
    keys, point, way = OrderedKeys(), dict[str, Any](), dict[str, Any]()
    try:
        for event in xml_events(content):
            if isinstance(event, XmlStart):
                point = dict[str, Any](at=_place(event)) if event.name in _POINTS else point
                way = {} if event.name in _WAYS else way
            elif not isinstance(event, XmlEnd):
                continue
            elif event.name in _TEXTS:
                (point or way).setdefault(event.name, one_line(event.text, 2000))
            elif event.name in _POINTS:
                yield from _passed(keys, event.name, point, way)
                point = {}
            elif event.name in _WAYS:
                yield from _way(keys, way) or [Reject(file.name, "A track or route has no times.")]
    except XmlRefused as error:
        yield Reject(file.name, str(error))


def _place(event: XmlStart) -> Point:
    latitude, longitude = (number_of(event.attributes.get(name)) for name in ("lat", "lon"))
    return None if latitude is None or longitude is None else on_earth(latitude, longitude)


def _passed(keys: OrderedKeys, kind: str, point: dict[str, Any], way: dict[str, Any]) -> list[Row]:
    place, time = point.get("at"), iso_of(point.get("time"))
    if place is None:
        return []
    if kind == "wpt":
        about = {"name": point.get("name") or "Place", "kind": point.get("type"), "started_at": time}
        key = keys.key(time or "", "place", *place, about["name"])
        return [
            Row("places", without_empty({"id": key, **about, "latitude": place[0], "longitude": place[1]}))
        ]
    way["metres"] = way.get("metres", 0) + math.dist(_on_sphere(way.get("end") or place), _on_sphere(place))
    way.update(start=way.get("start") or place, end=place)
    way.update(started_at=way.get("started_at") or time, ended_at=time or way.get("ended_at"))
    return position(keys, time, place, {"source": way.get("name") or "track"})


def _way(keys: OrderedKeys, way: dict[str, Any]) -> list[Row]:
    span, ends = (way.get("started_at"), way.get("ended_at")), (way.get("start"), way.get("end"))
    rows = trip(keys, span, way.get("type") or "track", ends, round(way.get("metres", 0), 1))
    return [Row("trips", without_empty({**row.data, "name": way.get("name")})) for row in rows]


def _on_sphere(place: tuple[float, float]) -> tuple[float, float, float]:
    latitude, longitude = map(math.radians, place)
    across = _EARTH_METRES * math.cos(latitude)
    return across * math.cos(longitude), across * math.sin(longitude), _EARTH_METRES * math.sin(latitude)


def _is_gpx(file: InputFile) -> bool:
    return file.suffix == ".gpx" and b"<gpx" in file.head


GPX = FileFormat("Tracks", _is_gpx, _read, "gpx", (POSITIONS, PLACES, TRIPS))
