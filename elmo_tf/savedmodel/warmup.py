"""Warm-up requests: TensorFlow Serving sends them to every signature before it serves a model.

The file is a TFRecord of `tensorflow.serving.PredictionLog` messages (tensorflow_serving/apis/prediction_log.proto,
predict.proto and model.proto). They are encoded here, because their Python classes are in a package of their own.
"""

import pathlib

import tensorflow as tf

from elmo_tf.records import wire
from elmo_tf.savedmodel import contract, sample_vectors

# Their lengths differ, as those of requests do: the first call with each shape is slow.
SENTENCES = (
    b"Good morning .",
    b"The bank by the river lends money to people who need it , and boats to others .",
    b"",
)


def write_warmup(folder: pathlib.Path, model_name: str, max_chars_per_token: int) -> None:
    """Writes `SENTENCES` as a request to each signature into the SavedModel in `folder`."""
    inputs = sample_vectors.inputs(SENTENCES, max_chars_per_token)
    records = [
        wire.frame(_prediction_log(model_name, signature, inputs[signature])) for signature in contract.SIGNATURES
    ]
    path = folder / contract.WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(records))


def _prediction_log(model_name: str, signature: str, inputs: sample_vectors.Inputs) -> bytes:
    """Returns a serialized PredictionLog with a request to a signature; the numbers are those of the fields."""
    spec = wire.field(1, model_name.encode()) + wire.field(3, signature.encode())
    request = wire.field(1, spec)
    for name, value in sorted(inputs.items()):
        tensor = tf.make_tensor_proto(value.numpy()).SerializeToString()
        request += wire.field(2, wire.field(1, name.encode()) + wire.field(2, tensor))
    return wire.field(6, wire.field(1, request))
