"""Models by choice: a folder, an address, and what is refused before anything is stored."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.errors import ConfigInvalid, ModelUnavailable
from headgate.store.models.choice import chosen_model
from headgate.store.models.folders import BertEmbedder

_VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "naive", "hello", ",", "東", "!")
_WIDTH = 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of one layer with random weights."""
    random = np.random.default_rng(5)
    layer = "encoder.layer.0"
    shapes = {
        "embeddings.word_embeddings.weight": (len(_VOCABULARY), _WIDTH),
        "embeddings.position_embeddings.weight": (256, _WIDTH),
        "embeddings.token_type_embeddings.weight": (2, _WIDTH),
        f"{layer}.intermediate.dense.weight": (16, _WIDTH),
        f"{layer}.intermediate.dense.bias": (16,),
        f"{layer}.output.dense.weight": (_WIDTH, 16),
        f"{layer}.output.dense.bias": (_WIDTH,),
    }
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        shapes |= {f"{name}.LayerNorm.weight": (_WIDTH,), f"{name}.LayerNorm.bias": (_WIDTH,)}
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        shapes |= {
            f"{layer}.attention.{name}.weight": (_WIDTH, _WIDTH),
            f"{layer}.attention.{name}.bias": (_WIDTH,),
        }
    directory: dict[str, Any] = {}
    content = b""
    for name, shape in shapes.items():
        values = random.normal(size=shape).astype("<f4").tobytes()
        places = [len(content), len(content) + len(values)]
        directory[name] = {"dtype": "F32", "shape": shape, "data_offsets": places}
        content += values
    head = json.dumps(directory).encode()
    (tmp_path / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + content)
    (tmp_path / "vocab.txt").write_text("\n".join(_VOCABULARY))
    config = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": _WIDTH, "model_type": "bert"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_words_are_cut_into_the_pieces_of_the_vocabulary(folder: Path):
    model = BertEmbedder(folder)
    found = [_VOCABULARY[number] for number in model.tokens("Hello, UNaffable naïve 東zzz!")]
    assert found == ["[CLS]", "hello", ",", "un", "##aff", "##able", "naive", "東", "[UNK]", "!", "[SEP]"]
    assert len(model.tokens("hello " * 1000)) == 256


def test_a_folder_gives_vectors_of_its_size_and_another_digest_for_other_weights(folder: Path):
    model = chosen_model(str(folder))
    assert model is not None
    first = model.embedder.identity
    assert first.dimensions == _WIDTH
    vectors = model.vectors(["hello", "hello", "naive"])
    assert (vectors[0] == vectors[1]).all()
    assert (vectors[0] != vectors[2]).any()
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x3f")
    assert BertEmbedder(folder).identity.digest != first.digest


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_folder_without_all_files_of_a_model_is_refused_at_once(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(ConfigInvalid):
        chosen_model(str(folder))


def test_a_file_that_is_no_model_is_refused_when_it_is_loaded(folder: Path):
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ConfigInvalid):
        BertEmbedder(folder)


def _static_folder(place: Path, kind: str = "WordPiece", **arrays: Any) -> Path:
    vocabulary = {piece: number for number, piece in enumerate(_VOCABULARY)}
    (place / "tokenizer.json").write_text(json.dumps({"model": {"type": kind, "vocab": vocabulary}}))
    directory: dict[str, Any] = {}
    content = b""
    for name, values in arrays.items():
        places = [len(content), len(content) + values.nbytes]
        dtype = {"f": "F32", "e": "F16", "q": "I64"}[values.dtype.char.replace("l", "q")]
        directory[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": places}
        content += values.tobytes()
    head = json.dumps(directory).encode()
    (place / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + content)
    return place


def test_a_model_of_fixed_vectors_gives_the_mean_of_the_known_pieces(tmp_path: Path):
    vectors = np.eye(len(_VOCABULARY), dtype=np.float32)
    folder = _static_folder(tmp_path, embeddings=vectors)
    model = chosen_model(str(folder))
    assert model is not None
    (found, unknown) = model.embedder.embed(["Hello, zzz UNaffable", "zzz"])
    held = {_VOCABULARY[place] for place in np.flatnonzero(found)}
    assert held == {"hello", ",", "un", "##aff", "##able"}
    assert not unknown.any()
    assert model.embedder.identity.dimensions == len(_VOCABULARY)


def test_pieces_of_fixed_vectors_can_share_them_and_count_more_or_less(tmp_path: Path):
    mapping = np.zeros(len(_VOCABULARY), np.int64)
    mapping[_VOCABULARY.index("hello")] = 1
    weights = np.ones(len(_VOCABULARY), np.float32)
    weights[_VOCABULARY.index("hello")] = 3
    folder = _static_folder(
        tmp_path, embeddings=np.eye(2, dtype=np.float16), mapping=mapping, weights=weights
    )
    model = chosen_model(str(folder))
    assert model is not None
    assert model.embedder.embed(["hello naive"]).tolist() == [[0.5, 1.5]]


@pytest.mark.parametrize(
    ("kind", "rows", "named"), [("Unigram", len(_VOCABULARY), "Unigram"), ("WordPiece", 3, "cannot be read")]
)
def test_a_model_of_fixed_vectors_in_another_form_is_refused(
    tmp_path: Path, kind: str, rows: int, named: str
):
    folder = _static_folder(tmp_path, kind, embeddings=np.ones((rows, 4), np.float32))
    model = chosen_model(str(folder))
    assert model is not None
    with pytest.raises(ConfigInvalid) as refused:
        _ = model.embedder
    assert named in refused.value.message


def test_a_folder_with_another_form_of_model_is_refused_with_the_forms_that_are_read(tmp_path: Path):
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(ConfigInvalid) as refused:
        chosen_model(str(tmp_path))
    assert "model2vec" in refused.value.hint
    assert "ONNX" in refused.value.hint


class _Server(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None, Any]]
    answer: Any = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).asked.append((self.path, self.headers["authorization"], body))
        count = len(body["input"])
        data = [{"index": number, "embedding": [1.0, float(number), 0.5]} for number in range(count)]
        content = json.dumps(type(self).answer or {"data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Server]]]:
    kind = type("Server", (_Server,), {"asked": []})
    listening = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/v1#small", kind
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_an_address_gets_texts_in_batches_with_the_key_of_the_file(
    server: tuple[str, type[_Server]], tmp_path: Path
):
    address, kind = server
    key = tmp_path / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    model = chosen_model(address, key)
    assert model is not None
    # Nothing is sent before the model is needed.
    assert kind.asked == []
    vectors = model.vectors([f"text {number}" for number in range(40)])
    assert vectors.shape == (40, 3)
    assert (vectors[1] == vectors[33]).all()
    assert {(path, bearer) for path, bearer, _ in kind.asked} == {("/v1/embeddings", "Bearer secret")}
    assert [len(body["input"]) for _, _, body in kind.asked] == [1, 32, 8]
    assert kind.asked[1][2]["model"] == "small"


def test_an_address_that_answers_otherwise_is_unavailable(server: tuple[str, type[_Server]]):
    address, kind = server
    model = chosen_model(address)
    assert model is not None
    assert model.embedder.identity.dimensions == 3
    for answer in ({"data": []}, {"other": 1}, {"data": [{"index": 0, "embedding": [1.0]}]}):
        kind.answer = answer
        with pytest.raises(ModelUnavailable):
            model.vectors(["text"])


def test_an_address_that_does_not_answer_is_unavailable():
    model = chosen_model("http://127.0.0.1:9/v1#small")
    assert model is not None
    with pytest.raises(ModelUnavailable):
        model.vectors(["text"])


@pytest.mark.parametrize("address", ["http://models.example/v1#small", "https://#small"])
def test_texts_are_not_sent_unencrypted(address: str):
    with pytest.raises(ConfigInvalid):
        chosen_model(address)
