"""GPUs that are missing, and the names of those that are there."""

import logging
import pathlib

import pytest
import tensorflow as tf

from elmo_tf.training import devices, loop
from tests.helpers import MICRO_CONFIG, two_cpus


@pytest.fixture
def nvidia(tmp_path, monkeypatch):
    """A machine with an NVIDIA GPU that TensorFlow does not see."""
    (tmp_path / "version").touch()
    monkeypatch.setattr(devices, "_NVIDIA", (tmp_path / "version", pathlib.Path("/nowhere")))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("TensorFlow sees a GPU here")


@pytest.mark.parametrize("value", ["", "-1", None])
def test_a_gpu_that_is_hidden_on_purpose_or_missing_is_not_reported(nvidia, monkeypatch, caplog, value):
    if value is None:
        monkeypatch.setattr(devices, "_NVIDIA", (pathlib.Path("/nowhere"),))
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    devices.warn_of_unused_gpus()
    assert caplog.text == ""


def test_the_start_names_the_devices_and_warns_of_a_gpu_that_is_not_used(
    nvidia, records, tmp_path, caplog, monkeypatch
):
    with caplog.at_level(logging.INFO, "elmo_tf"):
        loop.train(MICRO_CONFIG, records.path, tmp_path / "w", steps=0)
    assert "devices: 1 replica, here on CPU:0" in caplog.messages
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    devices.warn_of_unused_gpus()
    assert caplog.text.count("warning: this machine has an NVIDIA GPU, but TensorFlow does not see it") == 2
    assert "elmo-tf's extra [gpu]" in caplog.text
    assert devices.names(two_cpus()) == "CPU:0, CPU:1"
