"""Benchmarks that print figures: `saving.py` in the time that it is given, `long_metrics.py`, `several_workers.py`."""

import json
import sys

import pytest

from benchmarks import long_metrics, saving, several_workers


@pytest.mark.slow
def test_saving_ends_after_the_round_in_which_the_time_is_up_and_prints_its_figures(tmp_path, capsys):
    command = f"--vocab-size 300 --every 2 --rounds 3 --folder {tmp_path} --minutes 0"
    saving.main(f"{command} --set train.batch_size=2 --set train.optimizer=adam".split())
    printed = capsys.readouterr()
    figures = json.loads(printed.out.splitlines()[-1])
    assert figures["rounds"] == 1 and "the 0 minutes are up" in printed.err
    # Weights and Adam's two moments, and the states.
    assert figures["checkpoint_mb"] == pytest.approx(3 * 4 * (3.0 + 300 * 129 / 1e6), rel=0.05)
    assert min(figures[name] for name in ("step_seconds_with", "step_seconds_without", "with_to_without")) > 0
    assert not list(tmp_path.iterdir())


def test_long_metrics_prints_what_a_step_costs_at_the_beginning_and_at_the_end(capsys):
    long_metrics.main(["--steps", "2000", "--eval-steps", "100"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) == {"first_tenth_us_per_step", "last_tenth_us_per_step", "resume_seconds", "megabytes"}
    # 2,000 lines of about 120 bytes, and 20 evaluations.
    assert min(figures.values()) > 0 and 0.2 < figures["megabytes"] < 0.3


@pytest.mark.slow
def test_all_workers_train_and_say_how_much_memory_they_took(monkeypatch, capfd):
    command = ["--vocab-size", "300", "--steps", "4", "--batch-size", "1", "--set", "train.num_sampled=20"]
    monkeypatch.setattr(sys, "argv", ["several_workers.py", *command])
    assert several_workers.main(command) == 0
    printed = capfd.readouterr()
    assert "4 replicas, here on CPU:0, CPU:1\n" in printed.err
    assert "4 x 20 tokens per step\n" in printed.err
    assert "held-out perplexity: first" in printed.err
    figures = json.loads(printed.out.splitlines()[-1])
    assert len(figures["peak_rss_mb"]) == 2 and min(figures["peak_rss_mb"]) > 100
    assert figures["step_seconds"] > 0
