"""Models in ONNX form: read from a folder, computed by a package that is installed beside, refused where one is missing."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from headgate.errors import ConfigInvalid
from headgate.store.models.choice import chosen_model
from headgate.store.models.model import Embedder

_VOCABULARY = ("[UNK]", "[CLS]", "[SEP]", "hello", "naive", "un", "##able")
_INTEGERS, _FLOATS = 7, 1


def _field(number: int, content: int | bytes | str) -> bytes:
    """Write one field of a protocol buffer, the form of ONNX files."""
    if isinstance(content, int):
        return _varint(number << 3) + _varint(content)
    raw = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


def _value(name: str, kind: int) -> bytes:
    return _field(1, name) + _field(2, _field(1, _field(1, kind)))


def _model(table: NDArray[np.float64], reading: str = "input_ids") -> bytes:
    """A model that gives the row of a table for each token."""
    sizes = b"".join(_field(1, size) for size in table.shape)
    weights = sizes + _field(2, _FLOATS) + _field(8, "table") + _field(9, table.astype("<f4").tobytes())
    node = _field(1, "table") + _field(1, reading) + _field(2, "found") + _field(4, "Gather")
    graph = _field(1, node) + _field(2, "g") + _field(5, weights)
    graph += _field(11, _value(reading, _INTEGERS)) + _field(12, _value("found", _FLOATS))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(_VOCABULARY))
    (tmp_path / "model.onnx").write_bytes(_model(np.eye(len(_VOCABULARY))))
    return tmp_path


def _loaded(folder: Path) -> Embedder:
    model = chosen_model(str(folder))
    assert model is not None
    return model.embedder


def test_a_folder_with_an_onnx_model_gives_the_mean_of_its_tokens(folder: Path):
    embedder = _loaded(folder)
    (found,) = embedder.embed(["Hello unable zzz"])
    expected = dict.fromkeys(("[UNK]", "[CLS]", "[SEP]", "hello", "un", "##able"), 1 / 6)
    assert dict(zip(_VOCABULARY, found.tolist(), strict=True)) == pytest.approx({**expected, "naive": 0})
    assert embedder.identity.dimensions == len(_VOCABULARY)


def test_a_long_text_is_read_as_far_as_a_passage_goes(folder: Path):
    (found,) = _loaded(folder).embed(["hello " * 1000])
    assert found[_VOCABULARY.index("[SEP]")] == pytest.approx(1 / 256)


def test_other_weights_of_an_onnx_model_have_another_digest(folder: Path):
    before = _loaded(folder).identity.digest
    (folder / "model.onnx").write_bytes(_model(2 * np.eye(len(_VOCABULARY))))
    assert _loaded(folder).identity.digest != before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.onnx", b"\xff" * 100),
        ("model.onnx", _model(np.eye(3), reading="pixels")),
        ("model.onnx", _model(np.eye(2))),
        ("vocab.txt", b"hello"),
    ],
)
def test_an_onnx_folder_that_does_not_hold_a_model_of_texts_is_refused(
    folder: Path, name: str, content: bytes
):
    (folder / name).write_bytes(content)
    with pytest.raises(ConfigInvalid):
        _loaded(folder)


def test_an_onnx_folder_without_a_vocabulary_is_refused_at_once(folder: Path):
    (folder / "vocab.txt").unlink()
    with pytest.raises(ConfigInvalid) as refused:
        chosen_model(str(folder))
    assert "vocab.txt" in refused.value.message


def test_without_the_package_an_onnx_folder_is_refused_by_the_name_of_the_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def without_it(name: str) -> ModuleSpec | None:
        return None if name == "onnxruntime" else find_spec(name)

    monkeypatch.setattr("headgate.store.models.choice.find_spec", without_it)
    with pytest.raises(ConfigInvalid) as refused:
        chosen_model(str(folder))
    assert "onnxruntime" in refused.value.hint
