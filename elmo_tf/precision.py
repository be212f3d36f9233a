"""The precision of matrix products: what the hardware can multiply, and what training uses.

TensorFlow is imported only where GPUs are asked about, so that `elmo-tf info` need not wait for it.
"""

import dataclasses
import logging
import os
import pathlib
import re
from typing import Any

from elmo_tf.config import Config
from elmo_tf.errors import InputError

AUTO = "auto"  # the precision that `resolved` replaces
_AMPERE = (8, 0)  # compute capability of the first GPUs with products of bfloat16 and TF32
_CPU = pathlib.Path("/proc/cpuinfo")
# The flags of x86 and ARM CPUs that have instructions for each kind of product.
_PRODUCTS = {
    "AVX2": r"\bavx2\b",
    "AVX-512": r"\bavx512f\b",
    "NEON": r"\basimd\b",
    "bfloat16": r"\b(avx512_bf16|amx_bf16|bf16)\b",
}
# Variables that limit the instructions oneDNN uses, and their values without bfloat16 products.
_MAX_ISA = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_ISA_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")

_log = logging.getLogger("elmo_tf")


def cpu_products() -> list[str]:
    """Returns the kinds of matrix products that the CPU has instructions for; none where Linux does not describe it."""
    description = _described()
    return [kind for kind, flags in _PRODUCTS.items() if re.search(flags, description)]


def cpu_name() -> str:
    """Returns the CPU's name, `unknown` where Linux does not say it."""
    match = re.search(r"^model name\s*: (.*)$", _described(), re.MULTILINE)
    return match[1] if match else "unknown"


def num_cores() -> int:
    """Returns how many cores this process may use; all of them where the system does not limit a process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_has_bfloat16() -> bool:
    """Whether the CPU has instructions for bfloat16 products, and the environment lets oneDNN use them.

    False where Linux does not describe the CPU.
    """
    if any(os.environ.get(name, "").upper() in _ISA_WITHOUT_BFLOAT16 for name in _MAX_ISA):
        return False
    return "bfloat16" in cpu_products()


def check_bfloat16() -> None:
    """Raises `InputError` if there is no GPU and the CPU has no instructions for bfloat16 products."""
    if not _capabilities() and not cpu_has_bfloat16():
        raise InputError("precision", "float32, because this CPU cannot multiply bfloat16 matrices", "bfloat16")


def float32_products() -> str:
    """Returns the actual precision of float32 matrix products on the visible devices: TF32 on some GPUs."""
    import tensorflow as tf  # noqa: PLC0415 - see the top

    is_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    return "TF32" if is_tf32 and any(capability >= _AMPERE for capability in _capabilities()) else "float32"


def resolved(config: Config, stored: Config | None = None) -> Config:
    """Replaces the precision "auto" by float32 or bfloat16, and logs the reason.

    A run that resumes uses the precision in its `stored` configuration.
    """
    if config.train.precision != AUTO:
        return config
    if stored is not None and stored.train.precision != AUTO:
        return _with_train_precision(config, stored.train.precision)
    precision, reason = automatic()
    _log.info("train.precision=auto: %s; %s", precision, reason)
    return _with_train_precision(config, precision)


def automatic(on_gpus: bool = True) -> tuple[str, str]:
    """Returns the precision that "auto" stands for, and the reason.

    That is bfloat16 if all GPUs have bfloat16 products or, without a GPU or unless `on_gpus`, if the CPU has them.
    """
    if on_gpus and (capabilities := _capabilities()):
        has_bfloat16 = min(capabilities) >= _AMPERE
        reason = "all GPUs have" if has_bfloat16 else "not all GPUs have"
    else:
        has_bfloat16 = cpu_has_bfloat16()
        reason = "the CPU has" if has_bfloat16 else "the CPU has no"
    return "bfloat16" if has_bfloat16 else "float32", f"{reason} bfloat16 products"


def _described() -> str:
    """Returns Linux's description of the CPU, "" if there is none."""
    try:
        return _CPU.read_text()
    except OSError:
        return ""


def _capabilities() -> list[tuple[int, int]]:
    """Returns the compute capability of each visible GPU, (0, 0) if it has none."""
    import tensorflow as tf  # noqa: PLC0415 - see the top

    gpus = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    return [gpu.get("compute_capability", (0, 0)) for gpu in gpus]


def _with_train_precision(config: Config, precision: Any) -> Config:
    return dataclasses.replace(config, train=dataclasses.replace(config.train, precision=precision))
