"""`benchmarks/several_workers.py`: the whole recipe in two processes with two replicas each."""

import json
import sys

import pytest

from benchmarks import several_workers


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
