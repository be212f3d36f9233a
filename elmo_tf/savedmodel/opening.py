"""Opens an exported SavedModel after comparing its files with their list and its graph with the contract."""

import os
import pathlib
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from elmo_tf.errors import InputError, is_about_memory, reason
from elmo_tf.savedmodel import assets, checksums, contract, finding


def open_savedmodel(savedmodel: str | os.PathLike, verify_checksums: bool = False) -> Any:
    """Returns what `tf.saved_model.load` does for an exported model, once the model is checked.

    Args:
        savedmodel: a version's folder, or a model's, of which the newest version is loaded.
        verify_checksums: whether to read all files and compare their SHA-256 first (1 s for 400 MB); otherwise only
            their presence and sizes are checked.

    Raises:
        InputError: if a file is missing or damaged, or the signatures are not those of the contract.
    """
    folder = check(savedmodel, verify_checksums)
    if assets.read_provenance(folder).tokenizer == "unicode":
        import tensorflow_text  # noqa: F401, PLC0415 - the graph has its operations
    try:
        return tf.saved_model.load(str(folder))
    except Exception as error:  # a damaged graph can raise anything
        if is_about_memory(error):
            raise
        raise InputError(str(folder), "an intact SavedModel", reason(error)) from None


def check(savedmodel: str | os.PathLike, verify_checksums: bool = False) -> pathlib.Path:
    """Checks a model as `open_savedmodel` does, without loading it; returns the version's folder."""
    folder = finding.find_version(savedmodel)
    if not (folder / contract.CHECKSUMS_FILE).exists():
        _signatures(folder)  # say more about another program's model than the missing list
    checksums.check(folder, verify_checksums)
    _check_signatures(folder)
    return folder


def _check_signatures(folder: pathlib.Path) -> None:
    """Raises `InputError` unless the signatures have the inputs and outputs of the contract for the model's sizes."""
    signatures, model = _signatures(folder), assets.read_config(folder)
    tokenizer = assets.read_provenance(folder).tokenizer
    num_layers, num_outputs = model.lstm.num_layers, 0
    while contract.lstm_outputs(num_outputs + 1) in signatures["default"].outputs:
        num_outputs += 1
    if num_layers != num_outputs:
        expected = f"{num_outputs} LSTM layers in {contract.CONFIG_FILE}, as in the graph"
        raise InputError(str(folder), expected, num_layers)
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
        name: f"{tensor.dtype} {tf.TensorShape([sizes.get(dimension) for dimension in tensor.shape])}"
        for name, tensor in tensors.items()
    }
    found = {
        name: f"{tf.as_dtype(info.dtype).name} {tf.TensorShape(info.tensor_shape)}" for name, info in infos.items()
    }
    if found != expected:
        wanted, there = (", ".join(f"{name} {one[name]}" for name in sorted(one)) for one in (expected, found))
        raise InputError(str(folder), f"{what} to be {wanted}", there or "none")


def _signatures(folder: pathlib.Path) -> dict:
    """Returns the graph's signature definitions by name; `InputError` if one of the contract is missing."""
    try:
        graph = saved_model_pb2.SavedModel.FromString((folder / contract.GRAPH_FILE).read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(str(folder), f"a readable {contract.GRAPH_FILE}", reason(error)) from None
    found = {name: one for part in graph.meta_graphs for name, one in part.signature_def.items()}
    found.pop("__saved_model_init_op", None)
    if any(name not in found for name in contract.SIGNATURES):
        expected = f"the signatures {', '.join(contract.SIGNATURES)} of elmo-tf export"
        raise InputError(str(folder), expected, sorted(found))
    return found
