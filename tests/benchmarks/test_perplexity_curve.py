"""The curve of a run's held-out perplexity."""

import json

import pytest

from benchmarks import perplexity_curve
from elmo_tf import config as config_lib
from elmo_tf.workdir.folder import Workdir, new_workdir, open_workdir


@pytest.fixture
def run(tmp_path) -> Workdir:
    config = config_lib.override(config_lib.preset("tiny"), ["train.batch_size=4", "train.unroll_steps=25"])
    with new_workdir(tmp_path / "run", config, None):
        pass
    return open_workdir(tmp_path / "run")


def test_the_curve_counts_tokens_and_is_drawn(run, tmp_path, capsys):
    lines = [
        {"step": 10_000, "heldout": "0", "perplexity": 90.0},
        {"step": 10_001, "forward_loss": 4.0, "backward_loss": 4.0, "gradient_norm": 1.0},
        {"step": 20_000, "heldout": "0", "perplexity": 70.0},
    ]
    run.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    perplexity_curve.main([str(run.path), str(tmp_path / "curve.png"), "--replicas", "2"])
    assert json.loads(capsys.readouterr().out) == {"evaluations": 2, "first": [2.0, 90.0], "last": [4.0, 70.0]}
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
