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

# Of several lengths, as requests are: the first call with each shape is slow.
SENTENCES = (
    "Good morning .",
    "The bank by the river lends money to people who need it , and boats to others .",
    "",
)

# Field numbers, by message.
_PREDICTION_LOG = {"predict_log": 6}
_PREDICT_LOG = {"request": 1}
_PREDICT_REQUEST = {"model_spec": 1, "inputs": 2}
_MODEL_SPEC = {"name": 1, "signature_name": 3}
_MAP_ENTRY = {"key": 1, "value": 2}


def write_warmup(
    folder: pathlib.Path, model_name: str, max_chars_per_token: int, states: dict[str, np.ndarray]
) -> None:
    """Writes `SENTENCES` as a request to each signature into the SavedModel in `folder`; `states` are for `stream`."""
    strings = np.array([sentence.encode() for sentence in SENTENCES])
    tokens, lengths = in_graph.split(tf.constant(strings))
    ids = in_graph.encode_tokens(tokens, lengths, max_chars_per_token)
    forms = {"strings": strings, "tokens": tokens.numpy(), "sequence_len": lengths.numpy(), "char_ids": ids.numpy()}
    num_lstm_layers = contract.num_lstm_layers(states)
    records = []
    for signature in contract.SIGNATURES:
        inputs = {name: (forms | states)[name] for name in contract.inputs(signature, num_lstm_layers)}
        records.append(wire.frame(_prediction_log(model_name, signature, inputs)))
    path = folder / contract.WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(records))


def _prediction_log(model_name: str, signature: str, inputs: dict[str, np.ndarray]) -> bytes:
    """Returns a serialized PredictionLog with one request to a signature."""
    spec = _message(_MODEL_SPEC, name=[model_name.encode()], signature_name=[signature.encode()])
    entries = [
        _message(_MAP_ENTRY, key=[name.encode()], value=[tf.make_tensor_proto(value).SerializeToString()])
        for name, value in sorted(inputs.items())
    ]
    request = _message(_PREDICT_REQUEST, model_spec=[spec], inputs=entries)
    return _message(_PREDICTION_LOG, predict_log=[_message(_PREDICT_LOG, request=[request])])


def _message(numbers: dict[str, int], **fields: list[bytes]) -> bytes:
    """Returns a message of string and message fields; each field is a list of its contents."""
    return b"".join(wire.field(numbers[name], content) for name, contents in fields.items() for content in contents)
