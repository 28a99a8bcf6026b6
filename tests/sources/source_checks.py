"""What every source of files must hold, whatever it reads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import msgspec
from hypothesis import strategies as st

from headgate.model.instants import instant
from headgate.schema.check import compile_schema
from headgate.schema.declare import read_declaration, refuse_unusable_schemas
from headgate.schema.guard import OWN
from headgate.sources import file_source
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Mark, Reject, Row
from headgate.store.format.lines import Incoming, read_line


@contextmanager
def _no_path():
    raise AssertionError("the source reads streams")
    yield


def tree_with(files: Mapping[str, bytes | str], label: str = "export") -> InputTree:
    """Make a tree of files that lie in memory."""
    return InputTree(label, [_file(name, content) for name, content in sorted(files.items())])


def _file(name: str, content: bytes | str) -> InputFile:
    raw = content.encode() if isinstance(content, str) else content
    return InputFile(name, len(raw), partial(io.BytesIO, raw), _no_path, modified_at=1_780_000_000_000_000)


def items_of(source, files, label="export"):
    """Read everything that a source finds in these files."""
    found = source.detect(tree_with(files, label))
    return [item for one in found for item in source.read(one, {})]


def rows_of(source, files) -> dict[str, list[dict]]:
    """Give the data of the rows by stream; nothing may be rejected."""
    items = items_of(source, files)
    assert [item for item in items if isinstance(item, Reject)] == []
    return by_stream(items)


def by_stream(items) -> dict[str, list[dict]]:
    rows: dict[str, list[dict]] = {}
    for item in items:
        if isinstance(item, Row):
            rows.setdefault(item.stream, []).append(dict(item.data))
    return rows


def rejects_of(source, files) -> list[Reject]:
    return [item for item in items_of(source, files) if isinstance(item, Reject)]


def check_all(source, files) -> None:
    """Check that every row can be stored, that reading again and reading from any mark give the same rows."""
    for found in source.detect(tree_with(files)):
        document = source.declare(found)
        declared = read_declaration(document)
        refuse_unusable_schemas(declared)
        items = list(source.read(found, {}))
        _check_storable(declared, [item for item in items if isinstance(item, Row)])
        assert items == list(source.read(found, {}))
        with patch.object(file_source, "_STEP", 2):
            _check_resume(source, found, list(source.read(found, {})))


@st.composite
def hostile(draw, content: bytes) -> bytes:
    """Make a broken variant of a file: cut, overwritten, repeated, or in another encoding."""
    first = draw(st.integers(0, len(content)))
    last = draw(st.integers(first, min(len(content), first + 200)))
    cut, middle, rest = content[:first], content[first:last], content[last:]
    return draw(
        st.one_of(
            st.just(cut),
            st.just(cut + rest),
            st.just(cut + middle * 50 + rest),
            st.binary(max_size=50).map(lambda noise: cut + noise + rest),
            st.text(max_size=50).map(lambda noise: cut + noise.encode("utf-8", "surrogatepass") + rest),
            st.sampled_from(["utf-16", "latin-1", "cp1252"]).map(
                lambda name: content.decode().encode(name, "replace")
            ),
            st.sampled_from([b"\0", b"\xff", b"\r", b"[" * 500, b'{"a":' * 500, b"9" * 400]).map(
                lambda noise: cut + noise + rest
            ),
        )
    )


def _check_storable(declared, rows) -> None:
    compiled = {name: compile_schema(stream.schema, OWN) for name, stream in declared.streams.items()}
    for row in rows:
        stream = declared.streams[row.stream]
        line = msgspec.json.encode({"data": row.data})
        incoming = read_line(0, line, stream, received_at=0)
        assert isinstance(incoming, Incoming), incoming
        assert compiled[row.stream].issues(incoming.values) == (), row
        assert _bad_times(stream, row.data) == []
        assert set(row.attachments) <= set(stream.fields)


def _bad_times(stream, data) -> list[str]:
    times = [name for name, field in stream.fields.items() if field.kind.is_time]
    return [name for name in times if data.get(name) is not None and instant(data[name]) is None]


def _check_resume(source, found, items) -> None:
    state: dict = {}
    marks = [number for number, item in enumerate(items) if isinstance(item, Mark)]
    tried = {*marks[:3], *marks[-3:], *marks[:: len(marks) // 4 + 1]}
    for number in marks:
        state[items[number].file] = items[number].resume
        if number in tried:
            rest = [one for one in source.read(found, dict(state)) if not isinstance(one, Mark)]
            assert rest == [one for one in items[number + 1 :] if not isinstance(one, Mark)]
    assert all(state.get(file.name, 0) is None for file in found.files), "a file is not marked as done"
