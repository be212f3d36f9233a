"""Warm-up requests: TensorFlow Serving sends them to every signature before it serves a model.

The file is a TFRecord of `tensorflow.serving.PredictionLog` messages (tensorflow_serving/apis/prediction_log.proto,
predict.proto and model.proto). They are encoded here, because their Python classes are in a package of their own.
"""

import pathlib

import numpy as np
import tensorflow as tf

from elmo_tf.records import wire
from elmo_tf.savedmodel import contract
from elmo_tf.text import in_graph

# Their lengths differ, as those of requests do: the first call with each shape is slow.
SENTENCES = (
    "Good morning .",
    "The bank by the river lends money to people who need it , and boats to others .",
    "",
)


def write_warmup(
    folder: pathlib.Path, model_name: str, max_chars_per_token: int, states: dict[str, np.ndarray]
) -> None:
    """Writes `SENTENCES` as a request to each signature into the SavedModel in `folder`; `states` are for `stream`."""
    strings = np.array([sentence.encode() for sentence in SENTENCES])
    tokens, lengths = in_graph.split(tf.constant(strings))
    ids = in_graph.encode_tokens(tokens, lengths, max_chars_per_token)
    forms = {"strings": strings, "tokens": tokens.numpy(), "sequence_len": lengths.numpy(), "char_ids": ids.numpy()}
    records = []
    for signature, function in contract.SIGNATURES.items():
        inputs = {name: forms[name] for name in contract.FUNCTIONS[function]}
        inputs |= states if function == "stream" else {}
        records.append(wire.frame(_prediction_log(model_name, signature, inputs)))
    path = folder / contract.WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(records))


def _prediction_log(model_name: str, signature: str, inputs: dict[str, np.ndarray]) -> bytes:
    """Returns a serialized PredictionLog with one request to a signature; the numbers are those of the fields."""
    spec = wire.field(1, model_name.encode()) + wire.field(3, signature.encode())
    request = wire.field(1, spec)
    for name, value in sorted(inputs.items()):
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += wire.field(2, wire.field(1, name.encode()) + wire.field(2, tensor))
    return wire.field(6, wire.field(1, request))
