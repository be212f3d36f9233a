"""Calls of a SavedModel's signatures that are kept in its folder.

`elmo-tf verify` repeats the samples on any machine. TensorFlow Serving sends the warm-up requests to every signature
before it serves a model. The file of samples has the arrays `tolerance` and `tokenizer`, and `SIGNATURE/inputs/NAME`
and `SIGNATURE/outputs/NAME` for every input and output of every signature.
"""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from elmo_tf.records import wire
from elmo_tf.savedmodel import contract
from elmo_tf.text import in_graph

SENTENCES = (b"A bank of the river .", b"The bank lends money .", b"", "naïve 日 本".encode())
# Largest difference, relative to the largest value: another processor may add float32 numbers in another order.
TOLERANCE = 1e-5

# Their lengths differ, as those of requests do: the first call with each shape is slow.
WARMUP_SENTENCES = (
    b"Good morning .",
    b"The bank by the river lends money to people who need it , and boats to others .",
    b"",
)

Inputs = dict[str, tf.Tensor]


def inputs_of(sentences: tuple[bytes, ...], max_chars_per_token: int) -> dict[str, Inputs]:
    """Returns the sentences, split at white space, as inputs of every signature of an exported biLM."""
    strings = tf.constant(sentences)
    tokens, lengths = in_graph.split(strings)
    ids = in_graph.encode_tokens(tokens, lengths, max_chars_per_token)
    forms = {"strings": strings, "tokens": tokens, "sequence_len": lengths, "char_ids": ids}
    functions = {**contract.SIGNATURES, contract.SCORE: "default"}
    return {
        signature: {name: forms[name] for name in contract.FUNCTIONS[function]}
        for signature, function in functions.items()
    }


def write(
    folder: pathlib.Path,
    signatures: Mapping[str, Callable[..., Mapping[str, tf.Tensor]]],
    inputs: Mapping[str, Inputs],
    tokenizer: str = "whitespace",
) -> None:
    """Calls each signature with its inputs, and writes inputs and outputs into the SavedModel in `folder`.

    Args:
        folder: the version's folder.
        signatures: the functions before they were saved, by signature.
        inputs: each signature's inputs.
        tokenizer: of the model; with "unicode", loading the model needs tensorflow-text.
    """
    arrays: dict[str, Any] = {"tolerance": np.array(TOLERANCE), "tokenizer": np.array(tokenizer)}
    for signature, function in signatures.items():
        with tf.device("CPU:0"):  # a GPU may use TF32, too coarse to verify
            outputs = function(**inputs[signature])
        for kind, tensors in (("inputs", inputs[signature]), ("outputs", outputs)):
            for name, tensor in tensors.items():
                value = tensor.numpy()
                # An array of Python objects would be pickled.
                arrays[f"{signature}/{kind}/{name}"] = value.astype("S") if value.dtype == object else value
    path = folder / contract.SAMPLE_VECTORS_FILE
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **arrays)


def write_warmup(folder: pathlib.Path, model_name: str, max_chars_per_token: int) -> None:
    """Writes a TFRecord of `WARMUP_SENTENCES` as a request to each signature into the SavedModel in `folder`."""
    calls = inputs_of(WARMUP_SENTENCES, max_chars_per_token)
    records = [
        wire.frame(_prediction_log(model_name, signature, calls[signature])) for signature in contract.SIGNATURES
    ]
    path = folder / contract.WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(records))


def _prediction_log(model_name: str, signature: str, inputs: Inputs) -> bytes:
    """Returns a serialized PredictionLog with a request to a signature; the numbers are those of the fields.

    The messages are those of tensorflow_serving/apis/prediction_log.proto, predict.proto and model.proto. They are
    encoded here because their Python classes are in a separate package.
    """
    spec = wire.field(1, model_name.encode()) + wire.field(3, signature.encode())
    request = wire.field(1, spec)
    for name, value in sorted(inputs.items()):
        tensor = tf.make_tensor_proto(value.numpy()).SerializeToString()
        request += wire.field(2, wire.field(1, name.encode()) + wire.field(2, tensor))
    return wire.field(6, wire.field(1, request))
