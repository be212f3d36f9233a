"""How long the paper's training would take on GPUs, calculated from the arithmetic and not measured.

    .venv/bin/python benchmarks/training_time.py [--preset original] [--batch-size 128] [--share 0.1]

Counts the necessary multiplications of training on 1 Billion Word (`arithmetic.py`), and divides by the GPU maker's
figures for matrix products in TF32, TensorFlow's default for float32 on these GPUs, and in bfloat16. Also calculates
the time to read the recurrent weights at every time step, forward and backward. The larger of both is a lower bound.
The last column assumes a share of the stated speed: the released model's training, two weeks on three GTX 1080
according to its authors, reached 0.13. Nothing here was run on these GPUs.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import arithmetic
from elmo_tf import config as config_lib

# 1 Billion Word's training part, as its makers count it; each sentence has one boundary to predict.
WORDS, SENTENCES = 768_648_884, 30_301_028
# Of the tokens of a step; `benchmarks/zipf_text.py` has the same share as a novel.
DISTINCT = 0.35
CHARACTERS = 8  # of a distinct token, marks included


class Gpu(NamedTuple):
    """What the maker states: dense products, without sparsity."""

    tf32: float  # 10**12 operations per second
    bfloat16: float
    bandwidth: float  # 10**9 bytes per second
    memory: int  # GB


GPUS = {
    "A100 80 GB": Gpu(156, 312, 2039, 80),
    "H100 SXM": Gpu(495, 989, 3350, 80),
    "H200": Gpu(495, 989, 4800, 141),
    "L4": Gpu(60, 121, 300, 24),
}


def operations_per_token(config: config_lib.Config) -> float:
    """Returns the operations for a token of text, in both directions, forward and backward."""
    model = config.model
    per_token = arithmetic.per_token(model) + (config.train.num_sampled + 1) * model.lstm.projection_dim
    # Of the convolutions' gradients (to filters, to characters) only the maxima count.
    convolved = 2 * arithmetic.per_window(model) * (CHARACTERS + 1 + 2)
    encoder = DISTINCT * (convolved + 6 * arithmetic.per_distinct_token(model))
    return 2 * (6 * per_token) + encoder


def recurrent_bytes_per_step(config: config_lib.Config) -> float:
    """Returns the bytes of recurrent weights that a step reads in float32, forward and backward."""
    lstm = config.model.lstm
    return 4.0 * arithmetic.recurrent_weights(config.model) * 2 * lstm.num_layers * 2 * config.train.unroll_steps


def hours(config: config_lib.Config, gpu: Gpu, count: int, precision: str) -> tuple[float, float]:
    """Returns the hours of the arithmetic at the stated speed, and those of reading the recurrent weights."""
    tokens = config.train.epochs * (WORDS + SENTENCES)
    speed = (gpu.bfloat16 if precision == "bfloat16" else gpu.tf32) * 1e12
    computing = tokens * operations_per_token(config) / speed / count
    steps = tokens / (count * config.train.batch_size * config.train.unroll_steps)
    size = 0.5 if precision == "bfloat16" else 1.0
    return computing / 3600, steps * recurrent_bytes_per_step(config) * size / (gpu.bandwidth * 1e9) / 3600


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="original", choices=config_lib.PRESETS)
    parser.add_argument("--batch-size", type=int, help="streams per GPU (the preset's)")
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 3, 8], help="numbers of GPUs (1 3 8)")
    parser.add_argument("--share", type=float, default=0.1, help="of the stated speed that is reached (0.1)")
    arguments = parser.parse_args(argv)
    config = config_lib.preset(arguments.preset)
    if arguments.batch_size:
        train = dataclasses.replace(config.train, batch_size=arguments.batch_size)
        config = dataclasses.replace(config, train=train)
    tokens = config.train.epochs * (WORDS + SENTENCES)
    print(f"{operations_per_token(config) / 1e6:,.0f} million operations per token, {tokens:,} tokens")
    print(
        f"{'GPU':<12}{'number':>7}{'steps':>12}{'precision':>11}{'computing h':>13}{'weights h':>11}{'at share h':>12}"
    )
    rows = []
    for name, gpu in GPUS.items():
        for count in arguments.gpus:
            for precision in ("float32", "bfloat16"):
                computing, reading = hours(config, gpu, count, precision)
                steps = round(tokens / (count * config.train.batch_size * config.train.unroll_steps))
                expected = max(computing, reading) / arguments.share
                figures = f"{computing:>9.1f} h{reading:>9.1f} h{expected:>10.0f} h"
                print(f"{name:<12}{count:>7}{steps:>12,}{precision:>11}{figures}")
                rows.append([name, count, steps, precision, round(computing, 2), round(reading, 2), round(expected, 1)])
    print(json.dumps({"operations_per_token": operations_per_token(config), "rows": rows}))


if __name__ == "__main__":
    main()
