"""`train.precision=auto`: what is measured decides, once for each workdir."""

import dataclasses
import logging

import pytest

from elmo_tf.training import loop, precision
from elmo_tf.workdir.folder import open_workdir
from tests.helpers import MICRO_CONFIG

AUTO = dataclasses.replace(MICRO_CONFIG, train=dataclasses.replace(MICRO_CONFIG.train, precision="auto"))


def measured(monkeypatch, **found):
    monkeypatch.setattr(precision, "layer_seconds", lambda _config, name: found[name])


@pytest.mark.parametrize(("bfloat16", "taken"), [(0.5, "bfloat16"), (0.95, "float32"), (2.0, "float32")])
def test_the_faster_one_is_taken_if_it_is_worth_it_and_the_log_says_so(monkeypatch, caplog, bfloat16, taken):
    measured(monkeypatch, float32=1.0, bfloat16=bfloat16)
    with caplog.at_level(logging.INFO, "elmo_tf"):
        assert precision.resolved(AUTO).train.precision == taken
    times = f"1e+03 ms in float32, {1000 * bfloat16:.3g} ms in bfloat16"
    assert caplog.messages == [f"train.precision=auto: {taken}; an LSTM layer takes {times}"]


def test_another_precision_is_left_as_it_is(monkeypatch):
    measured(monkeypatch)
    assert precision.resolved(MICRO_CONFIG) is MICRO_CONFIG


def test_a_layer_of_the_configured_size_is_run(monkeypatch):
    assert 0 < precision.layer_seconds(MICRO_CONFIG, "float32") < 100


def test_a_workdir_keeps_the_precision_that_it_began_with(records, tmp_path, monkeypatch):
    measured(monkeypatch, float32=2.0, bfloat16=1.0)
    workdir = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    assert workdir.config.train.precision == "bfloat16"
    measured(monkeypatch)
    again = loop.train(AUTO, records.path, tmp_path / "workdir", steps=0)
    stored = open_workdir(tmp_path / "workdir")
    assert again.config.train.precision == stored.config.train.precision == "bfloat16"
