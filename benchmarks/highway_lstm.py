"""The speed of `HighwayLSTM` compared with `keras.layers.LSTM` of the same size, forward and with gradients.

    python benchmarks/highway_lstm.py --units 300 --batch-size 80

Both layers get the same batch, padded on the right, and compute the gradients of their inputs and weights, as in
training with variational dropout. They and a plain product of large matrices with as many multiplications take turns,
so that other work affects all.

Prints a table and a line of JSON; times are those of one step. A HighwayLSTM multiplies by 11 square weight matrices
where an LSTM with an input of the same width multiplies by 8. `time_ratio` is the median over the rounds of its time
divided by the LSTM's, `cpu_ratio` the same in CPU time. The shares are the plain product's CPU time divided by a
layer's.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks.measuring import report, timed
from elmo_tf.tasks.layers.highway_lstm import HighwayLSTM

_DROPOUT_RATE = 0.1
# Blocks of weights, units x units, of the input's and the state's products.
BLOCKS = {"highway": 6 + 5, "lstm": 4 + 4}


def step_of(layer: keras.layers.Layer, inputs: tf.Tensor, mask: tf.Tensor) -> Callable[[], None]:
    """Returns a function that computes a layer's outputs and gradients."""
    layer.build(inputs.shape)

    @tf.function
    def compute():
        weights = [variable.value for variable in layer.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.square(layer(inputs, mask=mask, training=True)))
        return tape.gradient(loss, [inputs, *weights])

    return lambda: [one.numpy() for one in compute()]


def plain_of(rows: int, units: int, blocks: int) -> Callable[[], None]:
    """Returns a function that does as many multiplications as a layer with its gradients, in one product."""
    random = np.random.default_rng(0)
    left, right = (
        tf.constant(random.normal(size=shape), tf.float32) for shape in ((3 * rows, units), (units, blocks * units))
    )
    return lambda: tf.matmul(left, right).numpy()


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Returns the figures."""
    random = np.random.default_rng(0)
    size, steps, units = arguments.batch_size, arguments.time, arguments.units
    inputs = tf.constant(random.normal(size=(size, steps, units)), tf.float32)
    # As in batches of similar length.
    mask = tf.sequence_mask(random.integers(max(1, steps - 3), steps + 1, size), steps)
    ways = {
        "highway": step_of(HighwayLSTM(units, _DROPOUT_RATE), inputs, mask),
        "lstm": step_of(keras.layers.LSTM(units, return_sequences=True, dropout=_DROPOUT_RATE), inputs, mask),
    }
    ways |= {f"{name}_plain": plain_of(size * steps, units, blocks) for name, blocks in BLOCKS.items()}
    for run in ways.values():
        run()
    # By round, way, and wall time or CPU time.
    times = np.array([[timed(run) for run in ways.values()] for _ in range(arguments.rounds)])
    time_ratio, cpu_ratio = np.median(times[:, 0] / times[:, 1], 0)
    seconds = dict(zip(ways, np.median(times, 0).tolist(), strict=True))
    return {
        **{f"{name}_ms": 1e3 * seconds[name][0] for name in BLOCKS},
        **{f"{name}_cpu_ms": 1e3 * seconds[name][1] for name in BLOCKS},
        "time_ratio": float(time_ratio),
        "cpu_ratio": float(cpu_ratio),
        "ratio_of_multiplications": BLOCKS["highway"] / BLOCKS["lstm"],
        **{f"{name}_share_of_plain": seconds[f"{name}_plain"][1] / seconds[name][1] for name in BLOCKS},
        "plain_gflops_per_cpu": 6e-9 * size * steps * units**2 * BLOCKS["lstm"] / seconds["lstm_plain"][1],
    }


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--units", type=int, default=300, help="width of input and output (300)")
    parser.add_argument("--batch-size", type=int, default=80, help="sentences (80)")
    parser.add_argument("--time", type=int, default=25, help="tokens of the longest sentence (25)")
    parser.add_argument("--rounds", type=int, default=15, help="measurements, of which the median counts (15)")
    report(measure(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
