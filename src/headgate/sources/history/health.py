"""Apple Health: measurements and workouts of ``export.xml``, read as it streams by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.model.declaration import WITH_OFFSETS
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, iso_of, local_iso_of, number_of, without_empty
from headgate.sources.formats.xml_events import XmlEnd, XmlRefused, XmlStart, xml_events
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Covered, FileItem, Reject, Row

_PREFIX = re.compile(
    r"^HK(?:QuantityTypeIdentifier|CategoryTypeIdentifier|DataType|WorkoutActivityType|CategoryValue)"
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_STATISTICS = 100
_DAY_CHARS = 10
_MEASUREMENTS = StreamSpec(
    name="measurements",
    label="Measurements",
    detail="One value that a watch, a phone or a person recorded: steps, heart rate, weight, sleep.",
    fields=fields("id kind value:number state unit started_at:time ended_at:time origin"),
    time="started_at",
    times=WITH_OFFSETS,
    title="kind",
    words=("kind", "state"),
    groups=("kind", "state", "unit", "origin"),
    is_append_only=True,
)
_WORKOUTS = StreamSpec(
    name="workouts",
    label="Workouts",
    detail="One workout: what, when, how long and how far.",
    fields=fields(
        "id kind started_at:time ended_at:time minutes:number distance:number distance_unit energy:number "
        "energy_unit origin"
    ),
    time="started_at",
    times=WITH_OFFSETS,
    title="kind",
    words=("kind",),
    groups=("kind", "origin"),
)
_MINUTES = {"min": 1.0, "s": 1 / 60, "sec": 1 / 60, "hr": 60.0, "h": 60.0}


def _is_health(file: InputFile) -> bool:
    return file.suffix == ".xml" and (b"<HealthData" in file.head or b"<!DOCTYPE HealthData" in file.head)


def _read(file: InputFile, content: IO[bytes]) -> Iterator[FileItem]:
    reader = _HealthReader()
    try:
        for event in xml_events(content, doctype="HealthData"):
            item = reader.start(event) if isinstance(event, XmlStart) else None
            if isinstance(event, XmlEnd):
                item = reader.end(event.name)
            if isinstance(item, str):
                yield Reject(f"{file.name}, entry {reader.entries}", item)
            elif item is not None:
                yield item
    except XmlRefused as error:
        yield Reject(file.name, str(error))
    else:
        # An export has everything up to when it was made.
        if reader.exported_at is not None:
            yield from (
                Covered(stream.name, end=reader.exported_at[:_DAY_CHARS])
                for stream in (_MEASUREMENTS, _WORKOUTS)
            )


class _HealthReader:
    def __init__(self) -> None:
        self.entries = 0
        self.exported_at: str | None = None
        self._keys = OrderedKeys()
        self._correlations = 0
        self._workout: Mapping[str, str] | None = None
        self._statistics: dict[str, Mapping[str, str]] = {}

    def start(self, event: XmlStart) -> Row | str | None:
        if event.name == "Correlation":
            self._correlations += 1
        elif event.name == "ExportDate":
            self.exported_at = local_iso_of(event.attributes.get("value"))
        elif event.name == "Workout":
            self._workout, self._statistics = event.attributes, {}
        elif event.name == "WorkoutStatistics" and len(self._statistics) < _MAX_STATISTICS:
            self._statistics[event.attributes.get("type", "")] = event.attributes
        elif event.name == "Record" and not self._correlations:
            # The records of a correlation also stand by themselves.
            self.entries += 1
            return self._measurement(event.attributes)
        return None

    def end(self, name: str) -> Row | str | None:
        if name == "Correlation":
            self._correlations -= 1
        elif name == "Workout" and self._workout is not None:
            workout, self._workout = self._workout, None
            self.entries += 1
            return self._finished(workout)
        return None

    def _measurement(self, record: Mapping[str, str]) -> Row | str:
        started_at, kind = iso_of(record.get("startDate")), _kind(record.get("type"))
        if started_at is None or kind is None:
            return "It has no time or no type."
        ended_at, text = iso_of(record.get("endDate")), record.get("value", "")
        number = number_of(text)
        origin = one_line(record.get("sourceName"), 300)
        data: dict[str, Any] = {
            "id": self._keys.key(started_at, kind, ended_at, text[:1000], origin),
            "kind": kind,
            "value": number,
            "state": _kind(text) if number is None else None,
            "unit": one_line(record.get("unit"), 100),
            "started_at": local_iso_of(record.get("startDate")),
            "ended_at": local_iso_of(record.get("endDate")),
            "origin": origin,
        }
        return Row("measurements", without_empty(data))

    def _finished(self, workout: Mapping[str, str]) -> Row | str:
        started_at, kind = iso_of(workout.get("startDate")), _kind(workout.get("workoutActivityType"))
        if started_at is None or kind is None:
            return "It has no time or no type."
        minutes = number_of(workout.get("duration"))
        distance, distance_unit = self._sum("Distance", workout, "totalDistance")
        energy, energy_unit = self._sum("ActiveEnergyBurned", workout, "totalEnergyBurned")
        ended_at, origin = iso_of(workout.get("endDate")), one_line(workout.get("sourceName"), 300)
        data: dict[str, Any] = {
            "id": self._keys.key(started_at, "workout", kind, ended_at, origin),
            "kind": kind,
            "started_at": local_iso_of(workout.get("startDate")),
            "ended_at": local_iso_of(workout.get("endDate")),
            "minutes": None
            if minutes is None
            else minutes * _MINUTES.get(workout.get("durationUnit", "min"), 1.0),
            "distance": distance,
            "distance_unit": distance_unit,
            "energy": energy,
            "energy_unit": energy_unit,
            "origin": origin,
        }
        return Row("workouts", without_empty(data))

    def _sum(self, kind: str, workout: Mapping[str, str], older: str) -> tuple[float | None, str | None]:
        """Look for a sum where newer exports have it, then where older ones do."""
        for name, statistics in self._statistics.items():
            if kind in name:
                return number_of(statistics.get("sum")), one_line(statistics.get("unit"), 100)
        return number_of(workout.get(older)), one_line(workout.get(f"{older}Unit"), 100)


def _kind(name: str | None) -> str | None:
    """Write ``HKQuantityTypeIdentifierHeartRate`` as people do: heart rate."""
    plain = _WORDS.sub(" ", _PREFIX.sub("", (name or "")[:300])).lower()
    return one_line(plain)


HEALTH = FileFormat("Apple Health", _is_health, _read, "health", (_MEASUREMENTS, _WORKOUTS))
