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


def test_what_differs_is_named(tmp_path):
    for name, step in (("one", 3), ("other", 4)):
        (tmp_path / name / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
        lines = [json.dumps({"step": number}) for number in range(1, step + 1)]
        (tmp_path / name / "metrics.jsonl").write_text("\n".join(lines))
    assert kills.differences(tmp_path / "one", tmp_path / "other") == [
        "metrics.jsonl",
        "checkpoints: ['step-00000003'], ['step-00000004']",
    ]
