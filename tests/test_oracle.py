"""Against outputs of the reference implementations, in `tests/oracle`."""

import json
import lzma
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import official_scores, replay_reference
from elmo_tf import reference
from elmo_tf.engines.numpy import NumpyBiLM
from elmo_tf.model.bilm import PlainBiLM
from elmo_tf.model.fast import BiLM
from elmo_tf.published import arrays
from elmo_tf.published import weights as published_weights
from elmo_tf.published.options import read_options
from elmo_tf.training import importing
from elmo_tf.training.evaluation import evaluate
from elmo_tf.workdir import checkpoints
from tests import checks
from tests.helpers import write_records
from tests.published import published_files as files

ORACLE = pathlib.Path(__file__).parent / "oracle"
CHECKPOINT = ORACLE / "checkpoint"
both = pytest.mark.parametrize("network", [PlainBiLM, BiLM])


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The workdir of the reference's training checkpoint."""
    paths = CHECKPOINT / "model.ckpt-40", CHECKPOINT / "options.json", CHECKPOINT / "vocab.txt"
    return importing.import_checkpoint(*paths, tmp_path_factory.mktemp("imported") / "workdir")


def test_numpy_and_the_text_to_read_agree_with_the_reference():
    sentences = json.loads((ORACLE / "embed" / "sentences.json").read_bytes())
    for case in ("micro_real", "micro_noskip_nohighway"):
        folder = ORACLE / "embed" / case
        expected, config = np.load(folder / "expected.npz"), read_options(folder / "options.json").model
        weights = dict(arrays.read_weights(folder / "weights.hdf5", config))
        numbers = [number for number in range(len(sentences)) if f"layers/{number}" in expected]
        tokens = [[token.encode() for token in sentences[number]] for number in numbers]
        doubles = {name: values.astype(np.float64) for name, values in weights.items()}
        engine = NumpyBiLM(config, weights).layers(tokens)
        for number, sentence, layers in zip(numbers, tokens, engine, strict=True):
            np.testing.assert_allclose(layers, expected[f"layers/{number}"], **checks.TOLERANCE)
            by_text = reference.layers(doubles, config, sentence)
            np.testing.assert_allclose(by_text, expected[f"layers/{number}"], **checks.TOLERANCE)


@both
@pytest.mark.parametrize("case", ["micro_real", "micro_noskip_nohighway"])
def test_every_layer_agrees_with_the_reference(case, network, tmp_path):
    folder = ORACLE / "embed" / case
    config = read_options(folder / "options.json").model
    bilm = network.from_weights(config, dict(arrays.read_weights(folder / "weights.hdf5", config)))
    expected = np.load(folder / "expected.npz")
    numbers = sorted(int(name.removeprefix("layers/")) for name in expected if name.startswith("layers/"))
    rows = [expected[f"char_ids/{number}"][1:-1] for number in numbers]
    batch = np.zeros((len(rows), max(map(len, rows)), 50), np.int32)
    for ids, row in zip(batch, rows, strict=True):
        ids[: len(row)] = row
    outputs = tf.function(bilm, autograph=False)(tf.constant(batch))[0].numpy()
    for number, row, layers in zip(numbers, rows, outputs, strict=True):
        np.testing.assert_allclose(layers[:, : len(row)], expected[f"layers/{number}"], rtol=0, atol=2e-5)
    published_weights.dump(bilm, tmp_path / "dump")
    assert_same_file(tmp_path / "dump" / "weights.hdf5", folder / "weights.hdf5")
    dumped = json.loads((tmp_path / "dump" / "options.json").read_text())
    assert dumped == json.loads((folder / "options.json").read_text())


@both
def test_eight_training_steps_are_those_of_bilm_tf(network):
    rows, figures = replay_reference.replay(replay_reference.Trace(str(ORACLE / "train" / "exact_micro.npz")), network)
    assert len(rows) == 8
    assert figures["max_loss_difference"] < 1e-5
    assert figures["max_gradient_norm_relative"] < 1e-4
    assert figures["max_weight_relative"] < 1e-4
    assert figures["max_accumulator_relative"] < 1e-4
    assert figures["max_state_difference"] < 1e-5


@both
def test_a_checkpoint_of_bilm_tf_has_the_perplexity_that_bilm_tf_found(imported, network, tmp_path):
    sentences = (CHECKPOINT / "heldout.txt").read_text("utf-8").splitlines()
    words = (CHECKPOINT / "vocab.txt").read_text("utf-8").split("\n")[3:-1]
    records = write_records(tmp_path / "records", sentences, words)
    restored = checkpoints.restore(imported)[0]
    bilm = network(restored.config, restored.vocab_size)
    for variable, value in zip(bilm.weights, restored.weights, strict=True):
        variable.assign(value)
    imported.check_records(records)
    assert evaluate(bilm, records, batch_size=1).perplexity == pytest.approx(244.86818, rel=checks.PERPLEXITY)


def test_dumped_weights_are_those_that_bilm_tf_dumped(imported, tmp_path):
    importing.dump_weights(imported.path, tmp_path / "dump")
    assert_same_file(tmp_path / "dump" / "weights.hdf5", CHECKPOINT / "weights.hdf5")


def assert_same_file(dumped: pathlib.Path, expected: pathlib.Path) -> None:
    """Asserts equal datasets, bit for bit."""
    dumped, expected = files.read_hdf5(dumped), files.read_hdf5(expected)
    assert dumped.keys() == expected.keys()
    for name, array in expected.items():
        assert (dumped[name].dtype, dumped[name].shape) == (array.dtype, array.shape), name
        assert dumped[name].tobytes() == array.tobytes(), name


def test_scores_are_those_of_the_official_scorers(tmp_path, capsys):
    for compressed in (ORACLE / "scores").glob("*.xz"):
        (tmp_path / compressed.stem).write_bytes(lzma.decompress(compressed.read_bytes()))
    official_scores.main([str(tmp_path)])
    assert json.loads(capsys.readouterr().out) == json.loads((ORACLE / "scores" / "expected.json").read_bytes())
