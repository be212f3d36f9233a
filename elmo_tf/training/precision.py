"""The precision of matrix products: on the devices here, and `train.precision=auto`, which takes the faster one."""

import dataclasses
import logging
import time
from collections.abc import Callable

import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.model.float32 import float32_policy
from elmo_tf.model.lstmp import LSTMP

AUTO = "auto"

_SECONDS = 1.0  # of measuring, at least
_ROUNDS = 3  # at least; the fastest run of each counts
_WORTH_IT = 1.1  # bfloat16 must be this many times as fast

_AMPERE = (8, 0)  # compute capability of the first GPUs with products of bfloat16 and TF32

_log = logging.getLogger("elmo_tf")


def of_products(precision: str) -> str:
    """Returns the actual precision of matrix products on the visible devices: float32 becomes TF32 on some GPUs."""
    if precision != "float32" or not tf.config.experimental.tensor_float_32_execution_enabled():
        return precision
    return "TF32" if any(capability >= _AMPERE for capability in _capabilities()) else precision


def resolved(config: Config, stored: Config | None = None) -> Config:
    """Replaces the precision "auto" by the one to train in, and logs the reason.

    On GPUs, that is bfloat16 if all of them support it. On a CPU, one window of an LSTM layer of the configured
    size is timed, forward and with the gradient, and bfloat16, whose results are coarser, is chosen if it is at least
    1.1 times as fast. If a run resumes, the precision in its `stored` configuration is used, and nothing is measured.
    """
    if config.train.precision != AUTO:
        return config
    if stored is not None and stored.train.precision != AUTO:
        return _with(config, stored.train.precision)
    if capabilities := _capabilities():
        has_it = min(capabilities) >= _AMPERE
        taken, reason = ("bfloat16", "all GPUs have") if has_it else ("float32", "not all GPUs have")
        _log.info("train.precision=auto: %s; %s bfloat16 products", taken, reason)
        return _with(config, taken)
    float32, bfloat16 = layer_seconds(config)
    taken = "bfloat16" if float32 >= _WORTH_IT * bfloat16 else "float32"
    _log.info(
        "train.precision=auto: %s; an LSTM layer takes %.3g ms in float32, %.3g ms in bfloat16",
        *(taken, 1e3 * float32, 1e3 * bfloat16),
    )
    return _with(config, taken)


def _capabilities() -> list[tuple[int, int]]:
    """Returns the compute capability of each visible GPU, (0, 0) if it has none."""
    gpus = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    return [gpu.get("compute_capability", (0, 0)) for gpu in gpus]


def _with(config: Config, precision: str) -> Config:
    return dataclasses.replace(config, train=dataclasses.replace(config.train, precision=precision))


def layer_seconds(config: Config) -> tuple[float, float]:
    """Times an LSTM layer of the configured size in float32 and bfloat16, in turns, and returns the shortest times."""
    runs = [_timed_run(config, precision) for precision in ("float32", "bfloat16")]
    for run in runs:
        run()  # builds the graph
    rounds, until = [], time.perf_counter() + _SECONDS
    while len(rounds) < _ROUNDS or time.perf_counter() < until:
        rounds.append([run() for run in runs])
    float32, bfloat16 = map(min, zip(*rounds, strict=True))
    return float32, bfloat16


def _timed_run(config: Config, precision: str) -> Callable[[], float]:
    """Returns a function that runs the layer once and returns the seconds it took."""
    lstm, recipe = config.model.lstm, config.train
    with float32_policy():
        layer = LSTMP(lstm.units, lstm.projection_dim, lstm.cell_clip, lstm.proj_clip, precision)
    inputs = tf.random.stateless_normal((recipe.batch_size, recipe.unroll_steps, lstm.projection_dim), (0, 0))
    layer.build(inputs.shape)
    state = tuple(tf.zeros((recipe.batch_size, size)) for size in (lstm.units, lstm.projection_dim))
    weights = [weight.value for weight in layer.trainable_weights]

    @tf.function(autograph=False)
    def gradients():
        with tf.GradientTape() as tape:
            outputs, _ = layer(inputs, state, training=True)
            loss = tf.reduce_sum(outputs)
        return tape.gradient(loss, weights)

    def run() -> float:
        started = time.perf_counter()
        for gradient in gradients():
            gradient.numpy()  # waits for it
        return time.perf_counter() - started

    return run
