"""Ten of the kills of `benchmarks/kills.py`."""

import json

import pytest

from benchmarks import kills, zipf_text
from tests.helpers import write_records


@pytest.fixture
def folder(tmp_path):
    """A folder with records of generated text."""
    write_records(tmp_path / "records", zipf_text.sentences(200, 5000), zipf_text.words(200))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_run_that_is_killed_at_random_moments_ends_with_the_same_bits(folder, replicas):
    found = kills.run(folder, kills=5, replicas=replicas, steps=120, seed=replicas)
    assert found["different"] == []
    assert found["kills"] > 0


def workdir(folder, name, step):
    """Returns a folder with the names of a workdir with one checkpoint."""
    path = folder / name
    (path / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps({'step': number})}\n" for number in range(1, step + 1)))
    return path


def test_what_differs_is_named(tmp_path):
    one, other = workdir(tmp_path, "one", 3), workdir(tmp_path, "other", 4)
    assert kills.differences(one, other) == [
        "metrics.jsonl",
        "checkpoints: ['step-00000003'], ['step-00000004']",
    ]


def test_a_line_that_is_being_written_is_no_step_yet(tmp_path):
    path = workdir(tmp_path, "one", 3)
    assert kills.steps_of(path) == 3
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4')
    assert kills.steps_of(path) == 3
    assert kills.steps_of(tmp_path) == 0
