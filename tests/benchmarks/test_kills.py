"""Runs that `benchmarks/kills.py` kills, ten times in all."""

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
    result = kills.run(folder, kills=5, replicas=replicas, steps=120, seed=replicas)
    assert result["different"] == []
    assert result["kills"] > 0
