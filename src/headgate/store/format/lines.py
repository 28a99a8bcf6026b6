"""Incoming lines: one line of NDJSON becomes a record that can be stored, or an error that says why not.

Pure, and the same for every engine. What passes here can be stored, compared and shown without surprises:
no NUL, no half of a surrogate pair, no number that a reader would round or overflow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from headgate.errors import HeadgateError, InvalidRecord, InvalidRecordIdentity, ResourceLimit
from headgate.model.declaration import StreamDeclaration
from headgate.model.ids import RecordId, canonical_key, record_id
from headgate.model.instants import instant
from headgate.model.pointers import escape
from headgate.model.record import MAX_KEYS, Op
from headgate.model.rows import LineError, RecordProblem
from headgate.store.format.columns import MAX_INTEGER

#: A longer line is reported as a bad line, however it came in.
MAX_LINE_BYTES = 32 * 1024 * 1024
#: Levels of objects and lists, the data itself being the first: every reader can follow that many.
MAX_DEPTH = 64
_DEPTH_HINT = f"The record nests deeper than {MAX_DEPTH} levels."
_KEYS_HINT = f"The object has more than {MAX_KEYS} members."


@dataclass(frozen=True, slots=True)
class Incoming:
    """One good line."""

    id: RecordId
    op: Op
    emitted_at: int
    #: The record's JSON text as it came, and what it says; both empty for a deletion.
    body: bytes
    values: Mapping[str, Any]
    #: Whether any of the values is an object, which may refer to a file.
    has_objects: bool = False
    #: Where a record that is stored all the same breaks its schema.
    problems: tuple[RecordProblem, ...] = ()
    #: Whether a rule of the owner hides it from every client.
    is_hidden: bool = False


class _LineEnvelope(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"")
    key: Any = None
    stream: str | None = None
    emitted_at: str | None = None
    op: Op = Op.UPSERT


_ENVELOPE = msgspec.json.Decoder(_LineEnvelope)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


class _BadValue(Exception):
    """A value that cannot be stored, and where it is."""

    def __init__(self, pointer: str, message: str) -> None:
        self.pointer = pointer
        self.message = message


def read_line(
    index: int, line: bytes, stream: StreamDeclaration, *, received_at: int
) -> Incoming | LineError:
    try:
        return _read(line, stream, received_at)
    except _BadValue as problem:
        return LineError(index, InvalidRecord.code, problem.message, problem.pointer)
    except HeadgateError as error:
        code = error.code if isinstance(error, InvalidRecord | ResourceLimit) else InvalidRecord.code
        return LineError(index, code, error.message)
    except RecursionError:
        return LineError(index, InvalidRecord.code, _DEPTH_HINT)


def _read(line: bytes, stream: StreamDeclaration, received_at: int) -> Incoming:
    if len(line) > MAX_LINE_BYTES:
        raise ResourceLimit(f"A line may have at most {MAX_LINE_BYTES} bytes.")
    envelope = _envelope(line)
    if envelope.stream is not None and envelope.stream != stream.name:
        raise _BadValue("/stream", "The line is for another stream.")
    emitted_at = received_at if envelope.emitted_at is None else instant(envelope.emitted_at)
    if emitted_at is None:
        raise _BadValue("/emitted_at", "This is not a time.")
    if envelope.op is Op.DELETE:
        return Incoming(_key(envelope.key), Op.DELETE, emitted_at, b"", {})
    if not bytes(envelope.data):
        raise _BadValue("/data", "A record needs data.")
    body = bytes(envelope.data)
    values = _values(body)
    has_objects = _check_all(values)
    return Incoming(_identity(envelope.key, values, stream), Op.UPSERT, emitted_at, body, values, has_objects)


def _envelope(line: bytes) -> _LineEnvelope:
    try:
        return _ENVELOPE.decode(line)
    except UnicodeDecodeError:
        raise InvalidRecord("The line is not UTF-8.") from None
    except msgspec.ValidationError as error:
        raise InvalidRecord(f"The line has the wrong shape: {error}.") from None
    except msgspec.DecodeError:
        raise _broken(line, "") from None


def _values(body: bytes) -> dict[str, Any]:
    try:
        return _OBJECT.decode(body)
    except UnicodeDecodeError:
        raise _BadValue("/data", "The text is not UTF-8.") from None
    except msgspec.ValidationError:
        raise _BadValue("/data", "The data must be an object of values that JSON can hold.") from None
    except msgspec.DecodeError:
        raise _broken(body, "/data") from None


def _check_all(values: dict[str, Any]) -> bool:
    """Check every value, and say whether any is an object. It runs for every record: no calls for plain values."""
    has_objects = False
    if len(values) > MAX_KEYS:
        raise _BadValue("/data", _KEYS_HINT)
    for name, value in values.items():
        kind = cast("type[object]", type(value))
        if kind is str:
            if "\0" in value:
                raise _BadValue(_below("/data", name), "The text holds NUL.")
        elif kind is not bool and value is not None and kind is not float:
            has_objects = has_objects or kind is dict
            _check(_below("/data", name), value, 1)
        if "\0" in name:
            raise _BadValue("/data", "A field's name holds NUL.")
    return has_objects


def _check(pointer: str, value: Any, depth: int) -> None:
    kind = cast("type[object]", type(value))
    if kind is str:
        if "\0" in value:
            raise _BadValue(pointer, "The text holds NUL.")
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise _BadValue(pointer, "The integer does not fit into 64 bits.")
    elif kind is dict or kind is list:
        if depth == MAX_DEPTH:
            raise _BadValue(pointer, _DEPTH_HINT)
        if kind is dict and len(value) > MAX_KEYS:
            raise _BadValue(pointer, _KEYS_HINT)
        for key, child in _members(value):
            if "\0" in key:
                raise _BadValue(pointer, "A name holds NUL.")
            _check(_below(pointer, key), child, depth + 1)


def _members(value: dict[str, Any] | list[Any]) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ((str(at), child) for at, child in enumerate(value))


def _below(pointer: str, name: str) -> str:
    return f"{pointer}/{escape(name)}"


def _broken(text: bytes, place: str) -> Exception:
    """Return what is wrong with text that is not good JSON; half a surrogate pair is reported with its place."""
    try:
        loose: object = json.loads(text)
    except (ValueError, RecursionError):
        return InvalidRecord("The line is not JSON.")
    pointer = _surrogate(loose, place)
    return (
        InvalidRecord("The line is not JSON.")
        if pointer is None
        else _BadValue(pointer, "The text is broken Unicode.")
    )


def _surrogate(value: object, pointer: str) -> str | None:
    if isinstance(value, str):
        return pointer if any("\ud800" <= character <= "\udfff" for character in value) else None
    if not isinstance(value, dict | list):
        return None
    for key, child in _members(cast("dict[str, Any] | list[Any]", value)):
        place = _surrogate(child, _below(pointer, key)) or _surrogate(key, pointer)
        if place is not None:
            return place
    return None


def _identity(key: Any, values: Mapping[str, Any], stream: StreamDeclaration) -> RecordId:
    missing = [name for name in stream.primary_key if values.get(name) is None]
    if missing:
        raise InvalidRecordIdentity(f"The data has no value for the key field '{missing[0]}'.")
    own = canonical_key([values[name] for name in stream.primary_key])
    if key is not None and _key(key) != own:
        raise InvalidRecordIdentity
    return own


def _key(key: Any) -> RecordId:
    if isinstance(key, list):
        return canonical_key(cast("list[object]", key))
    if isinstance(key, str):
        return record_id(key)
    if key is None:
        raise _BadValue("/key", "A deletion needs a key.")
    return canonical_key([key])
