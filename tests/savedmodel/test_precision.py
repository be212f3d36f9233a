"""Weights stored in bfloat16 or int8: half the size or a quarter, vectors that point the same way."""

import json
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.bilm.model import BiLM
from elmo_tf.bilm.names import relative_names
from elmo_tf.bilm.packed import PackedBiLM
from elmo_tf.config import CharCNNConfig, Config, LSTMConfig, ModelConfig
from elmo_tf.errors import InputError
from elmo_tf.savedmodel import contract, writing
from elmo_tf.savedmodel.stored_weights import StoredWeights, read_stored
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
def every(tmp_path_factory):
    """Folders of one network's exports by precision, and how many numbers they have."""
    folder = tmp_path_factory.mktemp("precision")
    paths = {precision: _export(folder, WIDE, precision) for precision in contract.PRECISIONS}
    count = PackedBiLM.of(paths["float32"][1]).count_params()
    return {precision: path for precision, (path, _) in paths.items()}, count


def _weight_bytes(path: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in (path / "variables").iterdir())


@pytest.mark.slow
def test_weights_take_four_bytes_each_or_two_or_one(every):
    paths, count = every
    assert _weight_bytes(paths["float32"]) < 1.01 * 4 * count
    assert _weight_bytes(paths["bfloat16"]) < 1.01 * 2 * count + 100_000
    # Most rows have 128 numbers or more, and a scale of four bytes.
    assert _weight_bytes(paths["int8"]) < (1 + 4 / 128) * count + 100_000
    for path in paths.values():
        assert sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) < _weight_bytes(path) + 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_vectors_keep_their_direction_and_are_float32(every, precision):
    exact, rounded = (embed(tf.saved_model.load(str(every[0][kind])), TEXT) for kind in ("float32", precision))
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
def test_two_models_in_one_process_do_not_disturb_each_other(tmp_path, every):
    other_path, _ = _export(tmp_path, MICRO, "bfloat16", writing.export)
    first = tf.saved_model.load(str(every[0]["bfloat16"]))
    expected = embed(first, TEXT)
    other, again = (tf.saved_model.load(str(path)) for path in (other_path, every[0]["bfloat16"]))
    assert embed(other, TEXT)["elmo"].shape[-1] == 16
    del first, other
    assert_same(embed(again, TEXT), expected)


@pytest.mark.slow
def test_weights_are_read_as_the_graph_reads_them(every):
    exact, rounded = (read_stored(every[0][precision]) for precision in ("float32", "int8"))
    assert exact.keys() == rounded.keys()
    for name, weights in exact.items():
        # Of the largest in its row a number is off by 1/254 at most.
        assert np.abs(rounded[name] - weights).max() <= np.abs(weights).max() * 1.001 / 254, name


@pytest.mark.slow
def test_the_assets_tell_the_precision(every):
    for precision, path in every[0].items():
        assert json.loads((path / "assets" / "provenance.json").read_text())["precision"] == precision


def test_a_number_is_off_by_half_a_step_of_its_row_at_most():
    packed = PackedBiLM.of(checks.randomize(BiLM(MICRO)))
    packed.char_cnn.variables[0].assign(np.zeros(packed.char_cnn.variables[0].shape))  # has no largest number
    stored = StoredWeights(packed, "int8")
    names = {id(variable): name for name, variable in stored.by_name.items()}
    read = {names[id(one._matrix)]: one.read().numpy() for one in stored.expanded}
    for name, variable in relative_names(packed).items():
        if len(variable.shape) < 2:
            continue
        found, weights = read[name], variable.numpy()
        if name.endswith("/from_input"):
            np.testing.assert_array_equal(found[-1], weights[-1])  # the bias
            found, weights = found[:-1], weights[:-1]
        step = np.abs(weights).max(-1, keepdims=True) / 127
        # Besides rounding to int8, a division and a product in float32.
        assert (np.abs(found - weights) <= step * (0.5 + 127 * 2 * np.finfo(np.float32).eps)).all(), name


def test_an_unknown_precision_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^precision: expected one of float32, bfloat16, int8, found 'float16'$"):
        writing.export(BiLM(MICRO), MICRO_CONFIG, tmp_path / "model", precision="float16")
    assert not list(tmp_path.iterdir())
