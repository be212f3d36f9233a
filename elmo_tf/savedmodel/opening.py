"""Opens an exported SavedModel after comparing its files with their list and its graph with the contract."""

import dataclasses
import os
import pathlib
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from elmo_tf import config as config_lib
from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.savedmodel import assets, checksums, contract, finding


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """An exported model, loaded.

    Args:
        path: the version's folder.
        loaded: what `tf.saved_model.load` returned; its `signatures` are functions of tensors by name.
        config: the configuration of the network.
        provenance: the contents of `assets/provenance.json`.
    """

    path: pathlib.Path
    loaded: Any
    config: config_lib.ModelConfig
    provenance: dict[str, Any]

    @property
    def tokenizer(self) -> str:
        """How the signature `default` splits a sentence, one of `contract.TOKENIZERS`."""
        return self.provenance["tokenizer"]


def open_savedmodel(savedmodel: str | os.PathLike, verify_checksums: bool = False) -> SavedModel:
    """Loads an exported model, on whatever devices TensorFlow sees.

    Args:
        savedmodel: a version's folder, or a model's, of which the newest version is loaded.
        verify_checksums: whether to read all files and compare their SHA-256 first (1 s for 400 MB); otherwise only
            their presence and sizes are checked.

    Raises:
        InputError: if a file is missing or damaged, or the signatures are not those of the contract.
    """
    folder = check(savedmodel, verify_checksums)
    provenance = assets.read_provenance(folder)
    if provenance["tokenizer"] == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415 - the graph has its operations
    return SavedModel(folder, _load(folder), assets.read_config(folder), provenance)


def check(savedmodel: str | os.PathLike, verify_checksums: bool = False) -> pathlib.Path:
    """Returns the version's folder of a model that `open_savedmodel` can load, without loading it.

    Args, Raises:
        as for `open_savedmodel`.
    """
    folder = finding.find_version(savedmodel)
    # A model without the list may be another program's: then its signatures say more.
    if not (folder / contract.CHECKSUMS_FILE).exists():
        _signatures(folder)
    checksums.check(folder, verify_checksums)
    _check_signatures(folder)
    return folder


def _load(folder: pathlib.Path) -> Any:
    try:
        return tf.saved_model.load(str(folder))
    # A damaged graph can raise anything.
    except Exception as error:
        if is_about_memory(error):
            raise
        raise InputError("savedmodel", "an intact SavedModel", f"{reason(error)}: {folder}") from None


def _check_signatures(folder: pathlib.Path) -> None:
    """Raises `InputError` unless the signatures have the inputs and outputs of the contract for the model's sizes."""
    signatures, model = _signatures(folder), assets.read_config(folder)
    tokenizer = assets.read_provenance(folder)["tokenizer"]
    num_layers, num_outputs = model.lstm.num_layers, 0
    while contract.lstm_outputs(num_outputs + 1) in signatures["default"].outputs:
        num_outputs += 1
    if num_layers != num_outputs:
        expected = f"{num_outputs} LSTM layers in {contract.CONFIG_FILE}, as in the graph"
        raise InputError("savedmodel", expected, f"{num_layers}: {folder}")
    sizes = contract.sizes(num_layers, model.lstm.units, model.lstm.projection_dim, model.char_cnn.max_chars_per_token)
    for name in contract.SIGNATURES:
        inputs, outputs = contract.inputs(name, num_layers), contract.outputs(name, num_layers, tokenizer)
        # A later version's exports may have more outputs.
        known = {output: info for output, info in signatures[name].outputs.items() if output in outputs}
        _compare(f"inputs of the signature {name}", inputs, signatures[name].inputs, sizes, folder)
        _compare(f"outputs of the signature {name}", outputs, known, sizes, folder)


def _compare(what: str, tensors: dict[str, contract.Tensor], infos: dict, sizes: dict, folder: pathlib.Path) -> None:
    """Raises `InputError` unless TensorInfos have the names, dtypes and shapes of the contract."""
    expected = {
        name: (tensor.dtype, [sizes.get(dimension) for dimension in tensor.shape]) for name, tensor in tensors.items()
    }
    found = {name: (tf.as_dtype(info.dtype).name, _shape(info)) for name, info in infos.items()}
    if found != expected:
        raise InputError("savedmodel", f"{what} to be {_described(expected)}", f"{_described(found)}: {folder}")


def _shape(info: Any) -> list[int | None] | None:
    if info.tensor_shape.unknown_rank:
        return None
    return [None if one.size < 0 else one.size for one in info.tensor_shape.dim]


def _described(tensors: dict[str, tuple[str, list[int | None] | None]]) -> str:
    return ", ".join(f"{name} {dtype} {shape}" for name, (dtype, shape) in sorted(tensors.items())) or "none"


def _signatures(folder: pathlib.Path) -> dict:
    """Returns the graph's signature definitions by name, read without building anything.

    Raises:
        InputError: if the graph cannot be read, or lacks a signature of the contract.
    """
    try:
        graph = saved_model_pb2.SavedModel.FromString((folder / contract.GRAPH_FILE).read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError("savedmodel", f"a readable {contract.GRAPH_FILE}", f"{reason(error)}: {folder}") from None
    found = {name: one for part in graph.meta_graphs for name, one in part.signature_def.items()}
    found.pop("__saved_model_init_op", None)
    if any(name not in found for name in contract.SIGNATURES):
        expected = f"the signatures {', '.join(contract.SIGNATURES)} of `elmo-tf export`"
        raise InputError("savedmodel", expected, f"{sorted(found)}: {folder}")
    return found
