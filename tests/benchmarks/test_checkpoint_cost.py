"""`benchmarks/saving.py` comes to its end, and in the time that it is given."""

import json

import pytest

from benchmarks import saving


@pytest.mark.slow
def test_it_ends_after_the_round_in_which_the_time_is_up_and_prints_its_figures(tmp_path, capsys):
    command = f"--vocab-size 300 --every 2 --rounds 3 --folder {tmp_path} --minutes 0"
    assert saving.main(f"{command} --set train.batch_size=2 --set train.optimizer=adam".split()) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out.splitlines()[-1])
    assert figures["rounds"] == 1 and "the 0 minutes are up" in printed.err
    # Weights and Adam's two moments, and the states.
    assert figures["checkpoint_mb"] == pytest.approx(3 * 4 * (3.0 + 300 * 129 / 1e6), rel=0.05)
    assert min(figures[name] for name in ("step_seconds_with", "step_seconds_without", "with_to_without")) > 0
    assert not list(tmp_path.iterdir())
