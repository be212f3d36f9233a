"""Matrix products in a chosen precision."""

import pathlib
import re

import tensorflow as tf

from elmo_tf.errors import InputError

_CPU = pathlib.Path("/proc/cpuinfo")
_BFLOAT16 = r"\b(avx512_bf16|amx_bf16|bf16)\b"  # a flag of x86 and ARM CPUs that multiply bfloat16 matrices


def matmul(left: tf.Tensor, right: tf.Tensor, dtype: str | tf.DType, **transposes: bool) -> tf.Tensor:
    """Returns the float32 product of two arrays that are multiplied in `dtype`, "float32" or "bfloat16"."""
    product = tf.matmul(tf.cast(left, dtype), tf.cast(right, dtype), **transposes)
    return tf.cast(product, tf.float32)


def cpu_has_bfloat16() -> bool:
    """Whether the CPU has instructions for bfloat16 products; False where Linux does not describe it."""
    try:
        return re.search(_BFLOAT16, _CPU.read_text()) is not None
    except OSError:
        return False


def check_bfloat16() -> None:
    """Raises `InputError` if there is no GPU and the CPU has no instructions for bfloat16 products."""
    if not tf.config.get_visible_devices("GPU") and not cpu_has_bfloat16():
        raise InputError("precision", "float32 on this CPU, which has no bfloat16 products", "bfloat16")
