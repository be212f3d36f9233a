"""The precision of matrix products: on the devices here, and `train.precision=auto`, which takes the faster one."""

import dataclasses
import logging
import time

import tensorflow as tf

from elmo_tf.config import Config
from elmo_tf.layers.lstmp import LSTMP

AUTO = "auto"

_TIME_STEPS = 4
_RUNS = 3  # the fastest counts
_WORTH_IT = 1.1  # bfloat16 must be this many times as fast

_FIRST_WITH_TF32 = (8, 0)  # compute capability: Ampere

_log = logging.getLogger("elmo_tf")


def of_products(precision: str) -> str:
    """Returns the actual precision of matrix products on the visible devices: float32 becomes TF32 on some GPUs."""
    if precision != "float32" or not tf.config.experimental.tensor_float_32_execution_enabled():
        return precision
    details = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    return "TF32" if any(one.get("compute_capability", (0, 0)) >= _FIRST_WITH_TF32 for one in details) else precision


def resolved(config: Config, stored: Config | None = None) -> Config:
    """Replaces the precision "auto" by the faster one on an LSTM layer, and logs the times.

    Four time steps of the configured size are timed, forward and with the gradient, on the first GPU or the CPU.
    bfloat16, whose results are coarser, is chosen if it is at least 1.1 times as fast.

    Args:
        config: whose precision may be "auto".
        stored: the configuration of a run that resumes; its precision is used, and nothing is measured.
    """
    if config.train.precision != AUTO:
        return config
    if stored is not None and stored.train.precision != AUTO:
        return _with(config, stored.train.precision)
    float32, bfloat16 = (layer_seconds(config, precision) for precision in ("float32", "bfloat16"))
    taken = "bfloat16" if float32 >= _WORTH_IT * bfloat16 else "float32"
    _log.info(
        "train.precision=auto: %s; an LSTM layer takes %.3g ms in float32, %.3g ms in bfloat16",
        *(taken, 1e3 * float32, 1e3 * bfloat16),
    )
    return _with(config, taken)


def _with(config: Config, precision: str) -> Config:
    return dataclasses.replace(config, train=dataclasses.replace(config.train, precision=precision))


def layer_seconds(config: Config, precision: str) -> float:
    """Times an LSTM layer of the configured size with products of `precision`."""
    lstm, rows = config.model.lstm, config.train.batch_size
    layer = LSTMP(lstm.units, lstm.projection_dim, lstm.cell_clip, lstm.proj_clip, precision)
    inputs = tf.random.stateless_normal((rows, _TIME_STEPS, lstm.projection_dim), (0, 0))
    layer.build(inputs.shape)
    state = tuple(tf.zeros((rows, size)) for size in layer.state_size)
    weights = [weight.value for weight in layer.trainable_weights]

    @tf.function
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

    run()  # builds the graph
    return min(run() for _ in range(_RUNS))
