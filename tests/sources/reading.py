"""Read sources in tests: files from memory, and every row checked as the store would check it."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from headgate.model.instants import instant
from headgate.schema.check import compile_schema
from headgate.schema.declare import read_declaration, refuse_unusable_schemas
from headgate.schema.guard import OWN
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Covered, Mark, Recognised, Reject, Row, Source
from headgate.store.format.lines import Incoming, read_line

#: 2026-03-01T08:00:00Z
MODIFIED_AT = instant("2026-03-01T08:00:00Z")


def input_file(name: str, content: bytes) -> InputFile:
    @contextmanager
    def on_disk():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(content)
            yield path

    return InputFile(name, len(content), lambda: io.BytesIO(content), on_disk, MODIFIED_AT)


def tree_from(files: Mapping[str, bytes], label: str = "export") -> InputTree:
    return InputTree(label, [input_file(name, files[name]) for name in sorted(files)])


def only(source: Source, files: Mapping[str, bytes]) -> Recognised:
    (found,) = source.detect(tree_from(files))
    return found


def read_all(source: Source, found: Recognised, resume: Mapping[str, Any] | None = None) -> list[Any]:
    """Read everything, and check that each row could be stored."""
    items = list(source.read(found, resume or {}))
    check_rows(source.declare(found), [item for item in items if isinstance(item, Row)])
    assert {type(item) for item in items} <= {Row, Reject, Mark, Covered}
    return items


def rows_of(items: list[Any], stream: str | None = None) -> list[dict[str, Any]]:
    return [dict(item.data) for item in items if isinstance(item, Row) and stream in {None, item.stream}]


def rejects_of(items: list[Any]) -> list[Reject]:
    return [item for item in items if isinstance(item, Reject)]


def stored(*readings: list[Any]) -> dict[tuple[str, Any], dict[str, Any]]:
    """What a store holds after these readings: the last row of a key."""
    return {
        (item.stream, item.data["id"]): dict(item.data)
        for items in readings
        for item in items
        if isinstance(item, Row)
    }


def check_rows(document: Mapping[str, Any], rows: list[Row]) -> None:
    declared = read_declaration(document)
    refuse_unusable_schemas(declared)
    schemas = {name: compile_schema(stream.schema, OWN) for name, stream in declared.streams.items()}
    for row in rows:
        stream = declared.streams[row.stream]
        line = read_line(0, msgspec.json.encode({"data": row.data}), stream, received_at=0)
        assert isinstance(line, Incoming), (line, row)
        assert schemas[row.stream].issues(line.values) == (), row
        assert set(row.data) <= set(stream.fields), row
        for field in stream.fields.values():
            if field.kind.is_time and row.data.get(field.name) is not None:
                assert instant(row.data[field.name]) is not None, row
        assert set(row.attachments) <= set(stream.fields)


def check_resume(source: Source, found: Recognised) -> None:
    """Reading twice gives the same, and from every mark on it gives what is left."""
    whole = read_all(source, found)
    assert read_all(source, found) == whole
    state: dict[str, Any] = {}
    for at, item in enumerate(whole):
        if isinstance(item, Mark):
            state = {**state, item.file: item.resume}
            assert read_all(source, found, state) == whole[at + 1 :]
