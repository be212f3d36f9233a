"""Weights stored in bfloat16: half the size, vectors that point the same way."""

import json
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import writing
from tests import checks
from tests.helpers import MICRO, MICRO_CONFIG
from tests.savedmodel.calls import TEXT, assert_same, embed

# Large enough for its weights to be most of what is on disk.
WIDE = ModelConfig(
    CharCNNConfig(filters=((1, 32), (2, 32), (3, 64), (4, 128)), num_highway=1),
    LSTMConfig(units=512, projection_dim=128),
)


def _export(
    folder: pathlib.Path, config: ModelConfig, precision: str, export: Callable = checks.export_unverified
) -> tuple[pathlib.Path, BiLM]:
    bilm = BiLM(config)
    random = np.random.default_rng(0)
    for variable in bilm.trainable_variables:
        variable.assign(random.normal(0, 0.05, variable.shape))
    return export(bilm, Config(config), folder / precision, precision=precision), bilm


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Folders of one network's two exports by precision, and how many numbers it has."""
    folder = tmp_path_factory.mktemp("precision")
    paths = {precision: _export(folder, WIDE, precision) for precision in ("float32", "bfloat16")}
    return {precision: path for precision, (path, _) in paths.items()}, paths["float32"][1].count_params()


def _weight_bytes(path: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in (path / "variables").iterdir())


@pytest.mark.slow
def test_weights_take_four_bytes_each_or_two(both):
    paths, count = both
    assert _weight_bytes(paths["float32"]) < 1.01 * 4 * count
    assert _weight_bytes(paths["bfloat16"]) < 1.01 * 2 * count + 100_000
    for path in paths.values():
        assert sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) < _weight_bytes(path) + 1_000_000


@pytest.mark.slow
def test_vectors_keep_their_direction_and_are_float32(both):
    exact, rounded = (embed(tf.saved_model.load(str(path)), TEXT) for path in both[0].values())
    for name in ("layers", "elmo", "default", "word_emb"):
        one, other = (found[name].reshape(-1, found[name].shape[-1]).astype(np.float64) for found in (exact, rounded))
        assert rounded[name].dtype == np.float32
        real = np.abs(one).sum(-1) > 0
        one, other = one[real], other[real]
        cosines = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
        assert cosines.min() > 0.999
        # They are not the same weights.
        assert np.abs(one - other).max() > 1e-5


@pytest.mark.slow
def test_two_models_in_one_process_do_not_disturb_each_other(tmp_path, both):
    other_path, _ = _export(tmp_path, MICRO, "bfloat16", writing.export)
    first = tf.saved_model.load(str(both[0]["bfloat16"]))
    expected = embed(first, TEXT)
    other, again = (tf.saved_model.load(str(path)) for path in (other_path, both[0]["bfloat16"]))
    assert embed(other, TEXT)["elmo"].shape[-1] == 16
    del first, other
    assert_same(embed(again, TEXT), expected)


@pytest.mark.slow
def test_the_assets_tell_the_precision(both):
    for precision, path in both[0].items():
        assert json.loads((path / "assets" / "provenance.json").read_text())["precision"] == precision


def test_an_unknown_precision_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^precision: expected one of float32, bfloat16, found 'float16'$"):
        writing.export(BiLM(MICRO), MICRO_CONFIG, tmp_path / "model", precision="float16")
    assert not list(tmp_path.iterdir())
