"""TensorBoard's tab HParams: the settings and the best held-out perplexity of several workdirs."""

import dataclasses
import json
import pathlib
import time
import urllib.request

import pytest

from elmo_tf import config as config_lib
from elmo_tf.training import loop
from elmo_tf.workdir.folder import Workdir
from tests.helpers import MICRO_CONFIG, hparams_of, tensorboard
from tests.training.test_loop import with_train

RATE, BEST = "train.learning_rate", "heldout/best_perplexity"
pytestmark = pytest.mark.usefixtures("untraced_steps")


def trained(records, path, rate: float) -> Workdir:
    config = with_train(learning_rate=rate, eval_steps=1, look_steps=0)
    return loop.train(config, records.path, path, records.path, steps=2)


def test_settings_are_numbers_truth_values_and_text():
    config = dataclasses.replace(MICRO_CONFIG, train=dataclasses.replace(MICRO_CONFIG.train, steps=None))
    values = config_lib.hparams(config)
    assert (values[RATE], values["model.lstm.units"], values["train.precision"]) == (
        config.train.learning_rate,
        24,
        config.train.precision,
    )
    assert values["model.char_cnn.filters"] == "((1, 4), (2, 6), (3, 8))"
    assert "train.steps" not in values


def test_a_workdir_has_its_settings(records, tmp_path):
    workdir = trained(records, tmp_path / "w", 0.5)
    found = hparams_of(workdir.logs)
    assert found == config_lib.hparams(workdir.config)
    assert (found[RATE], found["train.steps"]) == (0.5, 2)


def session_groups(logdir) -> dict[str, tuple[float, float]]:
    """Returns the rows of the tab: by workdir, the learning rate and the best perplexity."""
    address = f"{tensorboard(logdir)}data/plugin/hparams/session_groups"
    statuses = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]
    columns = [{"hparam": RATE}, {"metric": {"tag": BEST, "group": ""}}]
    asked = {"allowedStatuses": statuses, "colParams": columns, "startIndex": 0, "sliceSize": 10}
    request = urllib.request.Request(address, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    for _ in range(60):  # TensorBoard reads the files meanwhile
        with urllib.request.urlopen(request) as answer:
            groups = json.load(answer).get("sessionGroups", [])
        if len(groups) == 3 and all(group.get("metricValues") for group in groups):
            break
        time.sleep(0.5)
    return {
        group["name"]: (
            group["hparams"][RATE],
            {value["name"]["tag"]: value["value"] for value in group["metricValues"]}[BEST],
        )
        for group in groups
    }


@pytest.mark.slow
def test_tensorboard_compares_the_workdirs_under_a_folder(records, tmp_path):
    rates = {"a": 0.5, "b": 0.25, "same": 0.5}
    for name, rate in rates.items():
        trained(records, tmp_path / name, rate)
    rows = session_groups(tmp_path)
    assert {name: rate for name, (rate, _) in rows.items()} == {
        str(tmp_path / name): rate for name, rate in rates.items()
    }
    for name, (_, best) in rows.items():
        lines = map(json.loads, pathlib.Path(name, "metrics.jsonl").read_text().splitlines())
        evaluated = [line["perplexity"] for line in lines if "perplexity" in line and not line.get("whole")]
        assert best == pytest.approx(min(evaluated))
