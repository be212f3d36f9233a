"""Trainings that stop at a budget of CPU time; the systems that are compared are not installed here."""

import json
import signal

import pytest

import elmo_tf
from benchmarks import evening
from benchmarks.evening_budget import Budget, spend
from benchmarks.evening_systems import Elmo


class Seconds:
    """CPU seconds of a process that a test spends."""

    def __init__(self):
        self.now = 5.0  # importing took as long

    def __call__(self):
        return self.now


def test_a_resumed_training_has_what_is_left_since_the_last_save(tmp_path):
    seconds = Seconds()
    budget = Budget(tmp_path, 100, seconds)
    seconds.now += 30
    budget.save()
    seconds.now += 10
    assert (budget.spent, budget.left, budget.fraction) == (40, 60, 0.4)
    assert Budget(tmp_path, 100, seconds).spent == 30


def test_a_training_saves_now_and_then_and_stops_once_the_budget_is_spent(tmp_path):
    seconds, fractions = Seconds(), []
    budget = Budget(tmp_path, 1000, seconds)

    def step(fraction):
        fractions.append(fraction)
        seconds.now += 150
        if len(fractions) == 4:
            raise KeyboardInterrupt

    def save(state):
        (state / "steps").write_text(str(len(fractions)))

    with pytest.raises(KeyboardInterrupt):
        spend(budget, tmp_path, step, save)
    assert (tmp_path / "state/steps").read_text() == "2"
    spend(Budget(tmp_path, 1000, seconds), tmp_path, step, save)
    assert fractions == [0, 0.15, 0.3, 0.45, 0.3, 0.45, 0.6, 0.75, 0.9]
    assert (tmp_path / "state/steps").read_text() == "9"
    assert json.loads((tmp_path / "budget.json").read_text()) == {"seconds": 1050}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.json", "state"]


def test_elmo_plans_its_steps_from_the_speed_of_the_first_tenth_and_again_later(tmp_path, monkeypatch):
    seconds, plans = Seconds(), []
    step_seconds = iter([1.0] * 200 + [2.0] * 2000)  # slower after 200 steps
    done = [0]

    def train(config, records, workdir, steps, on_record):
        plans.append((config.train.decay, steps))
        stopped = []
        before = signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
        while done[0] < steps and not stopped:
            done[0] += 1
            seconds.now += next(step_seconds)
            on_record({"step": done[0]})
        signal.signal(signal.SIGTERM, before)
        if stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(elmo_tf, "train", train)
    (tmp_path / "records").mkdir()
    (tmp_path / "text.txt").write_text("a b c\n" * 80)
    budget = Budget(tmp_path, 1990, seconds)
    passes = Elmo("tiny").train(tmp_path / "text.txt", tmp_path, budget)
    # 200 seconds for 200 steps, so 1,990 for 1,990; at 1,200 seconds, 700 steps, and 790 seconds left.
    assert plans == [("none", 10**9), ("linear", 1990), ("linear", 700 + 395)]
    assert budget.spent == 1990
    assert passes == 1095 * 16 * 20 / 320


def test_the_table_has_the_best_vector_of_each_probe():
    rows = {
        "layer 0": {"pos": 0.8, "entities": 0.3, "senses": 0.5},
        "layer 1": {"pos": 0.9, "entities": 0.2, "senses": 0.6},
    }
    results = {
        "tiny": {
            "train": {"cpu_hours": 4.02, "passes": 1.5},
            "scores": rows | {"seconds": 3},
            "blimp": {"accuracy": 0.7},
        },
        "spacy": {"train": {"cpu_hours": 4, "passes": 2}, "scores": rows, "blimp": {}},
    }
    lines = [line.split("  ") for line in evening.table(results).splitlines()]
    assert [cell.strip() for cell in lines[1] if cell] == [
        "tiny", "90.0 (layer 1)", "30.0 (layer 0)", "60.0 (layer 1)", "70.0", "1.50", "4.02",
    ]  # fmt: skip
    assert "-" in [cell.strip() for cell in lines[2]]
