"""The speed of the frozen Keras layer in `model.predict`, compared with the signature of its SavedModel.

    python benchmarks/layer.py --preset tiny --batch-size 32
    python benchmarks/layer.py --model savedmodels/NAME/1 --input FILE --batch-size 1

With `--preset`, a model with random weights is exported first. Without `--input`, the text is generated, with words as
frequent as in real text. The Keras model is the layer and a mean over tokens; the signature is `tokens`, which also
returns every layer. Both get the same batches in turns, so that other work affects both.

Prints a table and a line of JSON. `time_ratio` is the median over the rounds of the layer's time divided by the
signature's, `cpu_ratio` the same in CPU time. Memory is measured in one process for each: `memory_over_weights` is the
difference of the peaks, divided by the size of the weights in float32.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import embed
from benchmarks.measuring import report, timed

Batches = list[tuple[tf.Tensor, tf.Tensor]]


def padded(batches: list[list[bytes]]) -> Batches:
    """Returns tokens, string `(batch, max_length)`, and lengths, int32 `(batch,)`, of batches of sentences."""
    split = [tf.strings.split(tf.constant(batch)) for batch in batches]
    return [(tokens.to_tensor(""), tf.cast(tokens.row_lengths(), tf.int32)) for tokens in split]


def of_signature(savedmodel: str, batches: Batches):
    """Returns a function that embeds all batches by the signature."""
    signature = tf.saved_model.load(savedmodel).signatures["tokens"]

    def run() -> list[np.ndarray]:
        return [signature(tokens=tokens, sequence_len=lengths)["default"].numpy() for tokens, lengths in batches]

    return run


def of_layer(savedmodel: str, batches: Batches):
    """Returns a function that embeds all batches by the layer in a Keras model."""
    inputs = keras.Input((None,), dtype="string")
    model = keras.Model(inputs, elmo_tf.SequencePooling(["mean"])(elmo_tf.ELMo(savedmodel)(inputs)))
    data = tf.data.Dataset.from_generator(
        lambda: (tokens for tokens, _ in batches), output_signature=tf.TensorSpec((None, None), tf.string)
    ).apply(tf.data.experimental.assert_cardinality(len(batches)))
    return lambda: model.predict(data, verbose=0)


WAYS = {"signature": of_signature, "layer": of_layer}


def peak_mb(way: str, savedmodel: str, arguments: argparse.Namespace) -> float:
    """Returns the peak memory of a process that embeds the batches in one way, in units of 2^20 bytes."""
    command = [sys.executable, __file__, "--model", savedmodel, "--only", way, "--rounds", "1"]
    command += ["--batch-size", str(arguments.batch_size), "--sentences", str(arguments.sentences)]
    command += ["--input", arguments.input] if arguments.input else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["peak_rss_mb"]


def measure(savedmodel: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Returns the figures of both ways."""
    batches = padded(embed.read_batches(arguments))
    runs = {way: make(savedmodel, batches) for way, make in WAYS.items()}
    found = [np.concatenate(list(run())) if way == "signature" else run() for way, run in runs.items()]
    if not np.allclose(*found, atol=1e-4):
        raise RuntimeError("the layer and the signature give different vectors")
    times = np.array([[timed(run) for run in runs.values()] for _ in range(arguments.rounds)])
    weights = sum(variable.shape.num_elements() for variable in elmo_tf.ELMo(savedmodel).bilm.weights)
    weights_mb = 4 * weights / 2**20
    peaks = {way: peak_mb(way, savedmodel, arguments) for way in WAYS}
    num_tokens = sum(int(tf.reduce_sum(lengths)) for _, lengths in batches)
    seconds = np.median(times[:, :, 0], 0)
    return {
        "signature_tokens_per_second": num_tokens / seconds[0],
        "layer_tokens_per_second": num_tokens / seconds[1],
        "time_ratio": float(np.median(times[:, 1, 0] / times[:, 0, 0])),
        "cpu_ratio": float(np.median(times[:, 1, 1] / times[:, 0, 1])),
        "weights_mb": weights_mb,
        **{f"{way}_peak_rss_mb": peak for way, peak in peaks.items()},
        "memory_over_weights": (peaks["layer"] - peaks["signature"]) / weights_mb,
    }


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    embed.add_model_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5, help="measurements, of which the median counts (5)")
    parser.add_argument("--only", choices=WAYS, help="run one of the two and print its peak memory")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        savedmodel = embed.savedmodel_of(arguments, folder)
        if arguments.only:
            WAYS[arguments.only](savedmodel, padded(embed.read_batches(arguments)))()
            figures = {"peak_rss_mb": embed.memory_mb("VmHWM")}
        else:
            figures = measure(savedmodel, arguments)
    report(figures, table=not arguments.only)


if __name__ == "__main__":
    main()
