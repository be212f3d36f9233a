"""The precision that suits the hardware."""

import dataclasses
import logging

import pytest
import tensorflow as tf

from elmo_tf import precision
from elmo_tf.training import loop
from elmo_tf.workdir.folder import open_workdir
from tests.helpers import MICRO_CONFIG

AUTO = dataclasses.replace(MICRO_CONFIG, train=dataclasses.replace(MICRO_CONFIG.train, precision="auto"))


def chosen(caplog) -> str:
    """Returns the precision that is chosen, which the only line of the log says."""
    with caplog.at_level(logging.INFO, "elmo_tf"):
        name = precision.resolved(AUTO).train.precision
    assert len(caplog.messages) == 1 and caplog.messages[0].startswith(f"train.precision=auto: {name}; ")
    return name


@pytest.mark.parametrize(
    ("flags", "limit", "expected"),
    [
        ("flags : avx2 avx512_bf16", {}, "bfloat16"),
        ("flags : amx_bf16 amx_tile", {}, "bfloat16"),
        ("flags : asimd bf16", {}, "bfloat16"),
        ("flags : avx2 avx512f", {}, "float32"),
        ("", {}, "float32"),
        ("flags : avx2 avx512_bf16", {"ONEDNN_MAX_CPU_ISA": "avx2"}, "float32"),
        ("flags : avx2 avx512_bf16", {"DNNL_MAX_CPU_ISA": "AVX512_CORE"}, "float32"),
        ("flags : avx2 avx512_bf16", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, "bfloat16"),
    ],
)
def test_on_a_cpu_its_flags_decide_and_the_limit_of_what_onednn_uses(
    bfloat16_cpu, monkeypatch, caplog, flags, limit, expected
):
    if flags:
        bfloat16_cpu.write_text(f"{flags}\n")
    else:
        bfloat16_cpu.unlink()
    for name, value in limit.items():
        monkeypatch.setenv(name, value)
    assert chosen(caplog) == expected


@pytest.mark.parametrize(
    ("capabilities", "expected"), [([(9, 0)], "bfloat16"), ([(8, 0), (7, 5)], "float32"), ([None], "float32")]
)
def test_on_gpus_it_is_bfloat16_if_all_have_it(monkeypatch, caplog, capabilities, expected):
    details = [{"compute_capability": capability} if capability else {} for capability in capabilities]
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: details if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: gpu)
    assert chosen(caplog) == expected


def test_a_workdir_keeps_the_precision_that_it_began_with(records, tmp_path, bfloat16_cpu):
    workdir = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    assert workdir.config.train.precision == "bfloat16"
    bfloat16_cpu.write_text("flags : avx2\n")
    assert precision.resolved(MICRO_CONFIG) is MICRO_CONFIG
    again = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    stored = open_workdir(tmp_path / "workdir")
    assert again.config.train.precision == stored.config.train.precision == "bfloat16"
