"""How fast a training step is, compared with a plain matrix product in the same process.

    python benchmarks/train_step.py --preset original --vocab-size 793471 --batch-size 128 --precision float32

Runs the real trainer: sampled softmax, dropout, clipping, optimizer, carried states. The windows are from `--data`, or
from generated text with words as frequent as in real text. With `--input`, windows that are cut while training
alternate with the same windows, already cut: this shows what reading costs. With `--evaluate`, evaluations between
training steps alternate with those of `elmo-tf evaluate`, on the same tokens; no step is timed. With `--fit`, steps of
Keras's `fit` alternate with the trainer's, both with Adagrad and windows that are cut meanwhile.

Prints a table and a line of JSON. `model_gflops` counts only the necessary arithmetic: distinct tokens, windows with a
character, forward and backward, no elementwise operations. `gemm_gflops` and the steps take turns, so that other work
affects both.
"""

import argparse
import itertools
import os
import pathlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import elmo_tf
from benchmarks import arithmetic, zipf_text
from benchmarks.measuring import report
from elmo_tf import config as config_lib
from elmo_tf.cli import quiet
from elmo_tf.errors import InputError
from elmo_tf.model.fast import BiLM
from elmo_tf.records import record_folder
from elmo_tf.records.windows import Window, Windows, prefetch
from elmo_tf.training.evaluation import Evaluator
from elmo_tf.training.fit import LanguageModel
from elmo_tf.training.step import Trainer

_PRODUCT = 2048  # rows and columns of the bare product


def model_flops(config: config_lib.Config, window: Window) -> float:
    """Returns the arithmetic of a step on `window`: two operations a weight and use, thrice, for the gradients too."""
    model, num_tokens = config.model, 2 * window.mask.size
    distinct = window.char_ids[np.unique([window.forward_words, window.backward_words])]
    per_token = arithmetic.per_token(model) + (config.train.num_sampled + 1) * model.lstm.projection_dim
    # Of the convolutions' gradients (to filters, to characters) only the maxima count.
    convolved = 2 * arithmetic.per_window(model) * (arithmetic.num_windows(distinct) + 2 * len(distinct))
    return convolved + 6 * (arithmetic.per_distinct_token(model) * len(distinct) + per_token * num_tokens)


def evaluation_flops(model: config_lib.ModelConfig, vocab_size: int, window: Window) -> float:
    """Returns the arithmetic of an evaluation on `window`: two operations a weight and use."""
    distinct = window.char_ids[np.unique([window.forward_words, window.backward_words])]
    once = arithmetic.per_window(model) * arithmetic.num_windows(distinct)
    once += arithmetic.per_distinct_token(model) * len(distinct)
    per_token = arithmetic.per_token(model) + vocab_size * model.lstm.projection_dim
    return 2 * (once + per_token * 2 * window.mask.size)


def product_timer(dtype: str):
    """Returns a function that gives the GFLOP/s of one product of `_PRODUCT` rows and columns."""
    matrix = tf.cast(tf.random.stateless_uniform((_PRODUCT, _PRODUCT), (0, 0)), dtype)
    product = tf.function(lambda: tf.reduce_sum(tf.linalg.matmul(matrix, matrix)[0]))
    product()

    def measure() -> float:
        started = time.perf_counter()
        float(product())
        return 2 * _PRODUCT**3 / (time.perf_counter() - started) / 1e9

    return measure


def step_seconds(trainer: Trainer, windows, number: int, count: int) -> float:
    """Trains `count` steps on `windows`; returns seconds per step."""
    started = time.perf_counter()
    for step in range(number, number + count):
        result = trainer.step(next(windows), step, trainer.config.learning_rate)
    float(result.gradient_norm)
    return (time.perf_counter() - started) / count


def measure(trainer: Trainer, windows: list[Window], rounds: int) -> dict[str, float]:
    """Times products and steps in turns, after steps that build the graph; medians count."""
    products, batches = {name: product_timer(name) for name in ("float32", "bfloat16")}, itertools.cycle(windows)
    step_seconds(trainer, batches, 0, 2)
    rates, seconds = {name: [] for name in products}, []
    for number in range(rounds):
        for name, timed in products.items():
            rates[name].append(timed())
        seconds.append(step_seconds(trainer, batches, 2 + number, 1))
    return {"seconds": float(np.median(seconds))} | {name: float(np.median(rate)) for name, rate in rates.items()}


def compare_input(trainer: Trainer, windows: Windows, steps: int, rounds: int) -> dict[str, float]:
    """Times runs of `steps` steps on windows cut meanwhile, in turns with the same windows kept; medians count.

    The same, because a window's distinct tokens decide how long its step takes.
    """
    real = (window for window, _ in prefetch(iter(windows)))
    step_seconds(trainer, real, 0, 2)
    seconds = {"cached": [], "real": []}
    for number in range(rounds):
        seen = []
        seconds["real"].append(step_seconds(trainer, map(_kept_in(seen), real), number * steps, steps))
        seconds["cached"].append(step_seconds(trainer, iter(seen), number * steps, steps))
    medians = {f"{name}_step_seconds": float(np.median(times)) for name, times in seconds.items()}
    ratio = float(np.median(np.array(seconds["real"]) / np.array(seconds["cached"])))
    return medians | {"real_to_cached": ratio}


def compare_fit(trainer: Trainer, windows: Windows, model: LanguageModel, steps: int, rounds: int) -> dict[str, float]:
    """Times runs of `steps` steps of `fit`, in turns with the trainer's; medians count."""
    real = (window for window, _ in prefetch(iter(windows)))
    step_seconds(trainer, real, 0, 2)
    seconds: dict[str, list[float]] = {"fit": [], "trainer": []}

    class Turns(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.started = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            seconds["fit"].append((time.perf_counter() - self.started) / steps)
            seconds["trainer"].append(step_seconds(trainer, real, epoch * steps, steps))

    data = elmo_tf.windows(windows.records.path, windows.batch_size, windows.unroll_steps)
    model.compile(keras.optimizers.Adagrad(trainer.config.learning_rate, trainer.config.initial_accumulator))
    model.fit(data, epochs=1 + rounds, steps_per_epoch=steps, callbacks=[Turns()], verbose=0)
    # The first turn builds the graph.
    medians = {f"{name}_step_seconds": float(np.median(times[1:])) for name, times in seconds.items()}
    per_step = windows.batch_size * windows.unroll_steps
    speeds = {f"{name}_tokens_per_second": per_step / medians[f"{name}_step_seconds"] for name in seconds}
    ratios = np.array(seconds["trainer"][1:]) / np.array(seconds["fit"][1:])
    return medians | speeds | {"fit_to_trainer_speed": float(np.median(ratios))}


def _kept_in(seen: list[Window]) -> Callable[[Window], Window]:
    """Returns a function that appends a window to `seen` and returns it."""
    return lambda window: seen.append(window) or window


def compare_evaluations(
    trainer: Trainer, config: config_lib.Config, vocab_size: int, windows: Windows, rounds: int
) -> dict[str, float]:
    """Times a window's evaluation between training steps and as in `elmo-tf evaluate`, in turns; medians count.

    They differ in the softmax's weights: a variable that a step has updated row by row is copied whenever it is read.
    """
    step_seconds(trainer, (window for window, _ in windows), 0, 2)
    first, product, rates = next(iter(windows))[0], product_timer("float32"), []
    evaluators = {
        "training": Evaluator(trainer.bilm, trainer.strategy),
        "evaluate": Evaluator(BiLM(config.model, vocab_size)),
    }
    seconds = {f"{name}_{clock}": [] for clock in ("wall", "cpu") for name in evaluators}
    for number in range(1 + rounds):
        rates.append(product())
        for name, evaluator in evaluators.items():
            started = time.perf_counter(), time.process_time()
            evaluator.parts(windows.records, [1], config.train.batch_size, config.train.unroll_steps)
            if number > 0:  # the first one builds the graph
                seconds[f"{name}_wall"].append(time.perf_counter() - started[0])
                seconds[f"{name}_cpu"].append(time.process_time() - started[1])
    medians = {f"{name}_seconds": float(np.median(times)) for name, times in seconds.items()}
    gflops = evaluation_flops(config.model, vocab_size, first) / medians["evaluate_wall_seconds"] / 1e9
    return medians | {"gemm_gflops": float(np.median(rates)), "share_of_gemm": gflops / float(np.median(rates))}


def _strategy() -> tf.distribute.Strategy:
    return tf.distribute.MirroredStrategy(tf.config.list_logical_devices("GPU")[:1] or ["CPU:0"])


def run(arguments: argparse.Namespace, folder: pathlib.Path) -> dict[str, float]:
    """Returns the figures of what the command line asks for."""
    config = config_lib.preset(arguments.preset)
    assignments = [f"train.precision={arguments.precision}", *arguments.set]
    if arguments.batch_size is not None:
        assignments.insert(0, f"train.batch_size={arguments.batch_size}")
    config = config_lib.override(config, assignments)
    per_step = config.train.batch_size * config.train.unroll_steps
    if arguments.data is None:
        records = zipf_text.write_records(folder, arguments.vocab_size, 80 * per_step)
    else:
        records = record_folder.open_folder(arguments.data)
    vocab_size = arguments.vocab_size or len(records.vocabulary)
    if vocab_size < len(records.vocabulary):
        raise InputError("--vocab-size", f"at least the {len(records.vocabulary)} of --data", vocab_size)
    if arguments.fit:
        config = config_lib.override(config, ["train.optimizer=adagrad", "train.learning_rate=0.2"])
    trainer = Trainer(_strategy(), config.train, lambda: BiLM(config.model, vocab_size, config.train.precision))
    max_chars = config.model.char_cnn.max_chars_per_token
    windows = Windows(records, trainer.batch_size, config.train.unroll_steps, max_chars, seed=0)
    if arguments.input:
        return compare_input(trainer, windows, arguments.steps, arguments.rounds)
    if arguments.fit:
        return compare_fit(trainer, windows, LanguageModel(config, records.path), arguments.steps, arguments.rounds)
    if arguments.evaluate:
        return compare_evaluations(trainer, config, vocab_size, windows, arguments.rounds)
    # The first windows begin with sentences' beginnings in every stream, which later ones do not.
    cut = [window for window, _ in itertools.islice(windows, 4, 8)]
    medians = measure(trainer, cut, arguments.rounds)
    gflops = np.mean([model_flops(config, window) for window in cut]) / medians["seconds"] / 1e9
    return {
        "tokens_per_second": per_step / medians["seconds"],
        "step_seconds": medians["seconds"],
        "gemm_gflops": medians["float32"],
        "gemm_bfloat16_gflops": medians["bfloat16"],
        "model_gflops": gflops,
        "share_of_gemm": gflops / medians["float32"],
    }


def main(argv: list[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", choices=config_lib.PRESETS)
    parser.add_argument("--vocab-size", type=int, help="words of the softmax (16306, or as many as --data has)")
    parser.add_argument("--batch-size", type=int, help="streams (the preset's)")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for `elmo-tf train`")
    parser.add_argument("--data", metavar="DIR", help="records of `elmo-tf preprocess` (generated text)")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument("--input", action="store_true", help="compare windows cut meanwhile with ready-made ones")
    compared.add_argument("--evaluate", action="store_true", help="compare evaluations in training with `evaluate`")
    compared.add_argument("--fit", action="store_true", help="compare Keras's `fit` with the trainer")
    parser.add_argument("--rounds", type=int, default=9, help="measurements, of which the median counts (9)")
    parser.add_argument("--steps", type=int, default=10, help="steps a measurement of --input or --fit (10)")
    arguments = parser.parse_args(argv)
    if arguments.data is None and arguments.vocab_size is None:
        arguments.vocab_size = 16_306
    quiet.keep_freed_memory()  # as `elmo-tf train` does
    with tempfile.TemporaryDirectory() as folder:
        figures = run(arguments, pathlib.Path(folder))
    figures["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report(figures)


if __name__ == "__main__":
    main()
