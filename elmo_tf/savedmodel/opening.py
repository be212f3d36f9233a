"""Opens an exported SavedModel, once its files and its signatures are seen to be what an export writes."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import checksums

# The contract: each signature's inputs by name, with dtype and rank; the outputs that all have, with their ranks.
SIGNATURES = {
    "default": {"strings": (tf.string, 1)},
    "tokens": {"tokens": (tf.string, 2), "sequence_len": (tf.int32, 1)},
    "char_ids": {"char_ids": (tf.int32, 3)},
}
OUTPUTS = {
    "layers": (tf.float32, 4),
    "word_emb": (tf.float32, 3),
    "elmo": (tf.float32, 3),
    "default": (tf.float32, 2),
    "mask": (tf.bool, 2),
}


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """An exported model, loaded.

    Args:
        path: the version's folder.
        loaded: what `tf.saved_model.load` returned; its `signatures` are functions of tensors by name.
        config: of the network.
        provenance: `assets/provenance.json`.
    """

    path: pathlib.Path
    loaded: Any
    config: config_lib.Config
    provenance: dict[str, Any]

    @property
    def tokenizer(self) -> str:
        """How the signature `default` parts a sentence: `"whitespace"` or `"unicode"`."""
        return self.provenance.get("tokenizer", "whitespace")


def open_savedmodel(
    path: str | os.PathLike, argument: str = "--savedmodel", verify_checksums: bool = False
) -> SavedModel:
    """Loads an exported model, on whatever devices TensorFlow sees.

    Args:
        path: a version's folder, or a model's, of which the newest version is taken.
        argument: what an error calls `path`.
        verify_checksums: whether to read all files and compare their SHA-256 first (1 s for 400 MB); otherwise their
            presence and sizes are.

    Raises:
        InputError: if a file is missing or damaged, which is named, or the signatures are not the contract's.
    """
    folder = check(path, argument, verify_checksums)
    provenance = _read_json(folder, "assets/provenance.json", argument)
    config = config_lib.from_dict(_read_json(folder, "assets/config.json", argument))
    if provenance.get("tokenizer") == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415 - its operations are in the graph
    try:
        loaded = tf.saved_model.load(str(folder))
    except Exception as error:  # there is no telling what a damaged graph leads to
        raise InputError(f"{argument}: expected an intact SavedModel, found {error}: {folder}") from None
    return SavedModel(folder, loaded, config, provenance)


def check(path: str | os.PathLike, argument: str = "--savedmodel", verify_checksums: bool = False) -> pathlib.Path:
    """Returns the version's folder of a model that `open_savedmodel` can load, without loading it.

    Args, Raises:
        as for `open_savedmodel`.
    """
    folder = checksums.find_version(path, argument)
    if not (folder / checksums.FILE).exists():  # somebody else's model, perhaps: then its signatures tell more
        _check_signatures(folder, argument)
    checksums.check(folder, argument, verify_checksums)
    _check_signatures(folder, argument)
    return folder


def _check_signatures(folder: pathlib.Path, argument: str) -> None:
    """Raises `InputError` unless the signatures take and give what the contract says."""
    found = _signatures(folder, argument)
    missing = [name for name in SIGNATURES if name not in found]
    if missing:
        expected = f"the signatures {', '.join(SIGNATURES)} of `elmo-tf export`"
        raise InputError(f"{argument}: expected {expected}, found {sorted(found)}: {folder}")
    for name, inputs in SIGNATURES.items():
        _compare(f"{argument}: signature {name}: inputs", inputs, found[name].inputs, folder)
        outputs = {output: info for output, info in found[name].outputs.items() if output in OUTPUTS}
        _compare(f"{argument}: signature {name}: outputs", OUTPUTS, outputs, folder)


def _compare(what: str, expected: dict, infos: dict, folder: pathlib.Path) -> None:
    found = {name: (tf.as_dtype(info.dtype), _rank(info)) for name, info in infos.items()}
    if found != expected:
        raise InputError(f"{what}: expected {_described(expected)}, found {_described(found)}: {folder}")


def _rank(info) -> int | None:
    return None if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)


def _described(specs: dict[str, tuple[tf.DType, int | None]]) -> str:
    return ", ".join(f"{name} {dtype.name} of rank {rank}" for name, (dtype, rank) in sorted(specs.items())) or "none"


def _signatures(folder: pathlib.Path, argument: str) -> dict:
    """Returns the graph's signature definitions by name, read without building anything."""
    try:
        graph = saved_model_pb2.SavedModel.FromString((folder / checksums.GRAPH_FILE).read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(f"{argument}: expected a readable {checksums.GRAPH_FILE}, found {error}: {folder}") from None
    found = {name: one for part in graph.meta_graphs for name, one in part.signature_def.items()}
    found.pop("__saved_model_init_op", None)
    return found


def _read_json(folder: pathlib.Path, name: str, argument: str) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / name).read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{argument}: expected a JSON object in {name}, found {error}: {folder}") from None
