"""The calculated training time: the counts behind it."""

import pytest

from benchmarks import training_time
from elmo_tf.config import preset


def test_a_tokens_arithmetic_is_that_of_the_released_model():
    # Two directions of two layers (512 to 4 x 4096 twice, 4096 to 512) and 8,193 words of 512, each twice forward and
    # four times backward; of 0.35 distinct tokens two highway layers of 2048 and the projection to 512, six times, and
    # at 8 + 1 + 2 positions the convolutions, twice.
    lstms = 2 * 2 * 6 * (2 * 512 * 4 * 4096 + 4096 * 512)
    softmax = 2 * 6 * 8193 * 512
    filters = 16 * (32 + 2 * 32 + 3 * 64 + 4 * 128 + 5 * 256 + 6 * 512 + 7 * 1024)
    encoder = 0.35 * (6 * (4 * 2048**2 + 2048 * 512) + 2 * 11 * filters)
    assert training_time.operations_per_token(preset("original")) == pytest.approx(lstms + softmax + encoder)
