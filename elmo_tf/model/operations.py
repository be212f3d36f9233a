"""The operations that layers share: products in a chosen precision, one step of an LSTM's cell."""

import os
import pathlib
import re

import tensorflow as tf

from elmo_tf.errors import InputError

FORGET_BIAS = 1.0  # added to the forget gate at run time; stored files do not have it
_CPU = pathlib.Path("/proc/cpuinfo")
_BFLOAT16 = r"\b(avx512_bf16|amx_bf16|bf16)\b"  # a flag of x86 and ARM CPUs that multiply bfloat16 matrices
# Variables that limit the instructions which oneDNN uses, and their values without bfloat16 products.
_MAX_ISA = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_ISA_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")


def matmul(left: tf.Tensor, right: tf.Tensor, dtype: str | tf.DType, **transposes: bool) -> tf.Tensor:
    """Returns the float32 product of two arrays that are multiplied in `dtype`, "float32" or "bfloat16"."""
    product = tf.matmul(tf.cast(left, dtype), tf.cast(right, dtype), **transposes)
    return tf.cast(product, tf.float32)


def summed(values: tf.Tensor) -> tf.Tensor:
    """Returns the sums of float32 `(terms, columns)` over the terms, float64 `(columns,)`.

    TensorFlow adds the rows of a column one after the other: a million exponentials in float32 would lose the small
    ones. Here 64 rows at a time are added in float32, which rounds by at most 64 half units in the last place, 4e-6.
    """
    num_terms, num_columns = tf.unstack(tf.shape(values)) if None in values.shape else values.shape
    blocks = tf.reshape(tf.pad(values, ((0, -num_terms % 64), (0, 0))), (-1, 64, num_columns))
    return tf.reduce_sum(tf.cast(tf.reduce_sum(blocks, 1), tf.float64), 0)


def real_positions(values: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Returns a Keras mask of `values`, bool `(batch, time)`; without a mask, all positions are real."""
    return tf.ones(tf.shape(values)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)


def cpu_has_bfloat16() -> bool:
    """Whether the CPU has instructions for bfloat16 products, and the environment does not forbid oneDNN to use them.

    False where Linux does not describe the CPU.
    """
    if any(os.environ.get(name, "").upper() in _ISA_WITHOUT_BFLOAT16 for name in _MAX_ISA):
        return False
    try:
        return re.search(_BFLOAT16, _CPU.read_text()) is not None
    except OSError:
        return False


def check_bfloat16() -> None:
    """Raises `InputError` if there is no GPU and the CPU has no instructions for bfloat16 products."""
    if not tf.config.get_visible_devices("GPU") and not cpu_has_bfloat16():
        raise InputError("precision", "float32 on this CPU, which has no bfloat16 products", "bfloat16")


def next_cell(
    input_gate: tf.Tensor,
    forget_gate: tf.Tensor,
    output_gate: tf.Tensor,
    candidate: tf.Tensor,
    cell: tf.Tensor,
    cell_clip: float | None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the next cell and the hidden output before the projection, from activated gates and candidate."""
    cell = clip(forget_gate * cell + input_gate * candidate, cell_clip)
    return cell, output_gate * tf.tanh(cell)


def clip(values: tf.Tensor, limit: float | None) -> tf.Tensor:
    """Returns the values clipped to +-limit; None: no clipping."""
    if limit is None:
        return values
    return tf.raw_ops.ClipByValue(t=values, clip_value_min=-limit, clip_value_max=limit)
