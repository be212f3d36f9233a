"""`train.precision=auto`: what is measured decides, once for each workdir."""

import dataclasses
import logging

import pytest
import tensorflow as tf

from elmo_tf.training import loop, precision
from elmo_tf.workdir.folder import open_workdir
from tests.helpers import MICRO_CONFIG

AUTO = dataclasses.replace(MICRO_CONFIG, train=dataclasses.replace(MICRO_CONFIG.train, precision="auto"))


def measured(monkeypatch, *seconds):
    """Has the layer take `seconds` in float32 and bfloat16; none: it must not be measured."""
    monkeypatch.setattr(precision, "layer_seconds", lambda _: seconds or pytest.fail("measured"))


def chosen(caplog) -> str:
    """Returns the precision that is chosen, which the only line of the log says."""
    with caplog.at_level(logging.INFO, "elmo_tf"):
        found = precision.resolved(AUTO).train.precision
    assert len(caplog.messages) == 1 and caplog.messages[0].startswith(f"train.precision=auto: {found}; ")
    return found


@pytest.mark.parametrize(("bfloat16", "expected"), [(0.5, "bfloat16"), (0.95, "float32"), (2.0, "float32")])
def test_on_a_cpu_the_faster_one_is_chosen_if_it_is_worth_it(monkeypatch, caplog, bfloat16, expected):
    measured(monkeypatch, 1.0, bfloat16)
    assert chosen(caplog) == expected
    assert caplog.messages[0].endswith(f"takes 1e+03 ms in float32, {1000 * bfloat16:.3g} ms in bfloat16")


@pytest.mark.parametrize(
    ("capabilities", "expected"), [([(9, 0)], "bfloat16"), ([(8, 0), (7, 5)], "float32"), ([None], "float32")]
)
def test_on_gpus_bfloat16_is_chosen_if_all_have_it(monkeypatch, caplog, capabilities, expected):
    measured(monkeypatch)
    details = [{"compute_capability": one} if one else {} for one in capabilities]
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: details if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: gpu)
    assert chosen(caplog) == expected


def test_a_layer_is_timed_in_turns_and_the_shortest_times_count(monkeypatch):
    monkeypatch.setattr(precision, "_SECONDS", 0)
    ran, real = [], precision._timed_run

    def timed_run(config, name):
        run, times = real(config, name), iter([9.0, 3.0, 1.0, 2.0])
        return lambda: ran.append(name) or (run() > 0) * next(times)

    monkeypatch.setattr(precision, "_timed_run", timed_run)
    assert precision.layer_seconds(MICRO_CONFIG) == (1.0, 1.0)
    assert ran == ["float32", "bfloat16"] * 4


def test_a_workdir_keeps_the_precision_that_it_began_with(records, tmp_path, monkeypatch):
    measured(monkeypatch, 2.0, 1.0)
    workdir = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    assert workdir.config.train.precision == "bfloat16"
    measured(monkeypatch)
    assert precision.resolved(MICRO_CONFIG) is MICRO_CONFIG
    again = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    stored = open_workdir(tmp_path / "workdir")
    assert again.config.train.precision == stored.config.train.precision == "bfloat16"
