"""The benchmark of a training step and the calculated time: arithmetic, text, and that it runs the real thing."""

import json

import numpy as np
import pytest

from benchmarks import train_step, training_time, zipf_text
from elmo_tf import config as config_lib
from elmo_tf.records.windows import Window
from elmo_tf.text import char_ids as char_ids_lib
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG

SETTINGS = (
    "train.unroll_steps=4 train.num_sampled=7 model.lstm.units=8 model.lstm.projection_dim=4 "
    "model.char_cnn.filters=[[2,6]]"
)
SMALL = ["--vocab-size", "300", "--batch-size", "2", "--rounds", "1", "--steps", "2"]
SMALL += [word for setting in SETTINGS.split() for word in ("--set", setting)]


def test_arithmetic_counts_what_a_step_cannot_do_without():
    ids = np.concatenate([char_ids_lib.encode_tokens([b"a", b"the"]), np.zeros((6, 50), np.int32)])
    words, zeros = np.array([[0, 1], [0, 0]], np.int32), np.zeros((2, 2), np.int32)
    window = Window(ids, words, zeros, zeros, words, zeros, np.ones((2, 2), bool))
    config = config_lib.Config(MICRO, MICRO_CONFIG.train)
    convolutions = 4 * (1 * 4 + 2 * 6 + 3 * 8)
    num_windows = (3 + 1) + (5 + 1)  # two distinct tokens with their marks, and a window of pads each
    dense = 2 * 2 * 18 * 18 + 18 * 8
    lstm = 2 * (16 * 96 + 24 * 8)
    softmax = (4 + 1) * 8
    expected = 2 * convolutions * num_windows + 4 * convolutions * 2 + 6 * dense * 2 + 6 * 8 * (lstm + softmax)
    assert train_step.model_flops(config, window) == expected
    once = convolutions * num_windows + dense * 2
    assert train_step.evaluation_flops(MICRO, 100, window) == 2 * once + 2 * 8 * (lstm + 100 * 8)


def test_a_tokens_arithmetic_is_that_of_the_released_model():
    # Two directions of two layers (512 to 4 x 4096 twice, 4096 to 512) and 8,193 words of 512, each twice forward and
    # four times backward; of 0.35 distinct tokens two highway layers of 2048 and the projection to 512, six times, and
    # at 8 + 1 + 2 positions the convolutions, twice.
    lstms = 2 * 2 * 6 * (2 * 512 * 4 * 4096 + 4096 * 512)
    softmax = 2 * 6 * 8193 * 512
    filters = 16 * (32 + 2 * 32 + 3 * 64 + 4 * 128 + 5 * 256 + 6 * 512 + 7 * 1024)
    encoder = 0.35 * (6 * (4 * 2048**2 + 2048 * 512) + 2 * 11 * filters)
    assert training_time.operations_per_token(config_lib.preset("original")) == pytest.approx(lstms + softmax + encoder)


def test_text_has_distinct_words_that_repeat_as_in_real_text(tmp_path):
    words = zipf_text.words(30_000)
    assert len(set(words)) == len(words)
    records = zipf_text.write_records(tmp_path, 16_306, 20_000)
    assert len(records.vocabulary) == 16_306
    assert json.loads((records.path / "info.json").read_text())["unknown_tokens"] == 0
    tokens = (tmp_path / "text.txt").read_text().split()
    assert 0.3 < len(set(tokens[:2560])) / 2560 < 0.45


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--fit"], pytest.param(["--input", "--precision", "bfloat16"], marks=checks.bfloat16_products)]
)
def test_it_prints_figures_of_real_steps(more, capsys):
    train_step.main([*SMALL, *more])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    wanted = {"real_step_seconds", "cached_step_seconds", "real_to_cached"}
    if more == ["--fit"]:
        wanted = {"fit_tokens_per_second", "trainer_tokens_per_second", "fit_to_trainer_speed"}
    if not more:
        wanted = {"tokens_per_second", "step_seconds", "gemm_gflops", "model_gflops", "share_of_gemm"}
    assert wanted | {"peak_rss_mb"} <= figures.keys()
    assert all(value > 0 for value in figures.values())
