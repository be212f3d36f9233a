"""Files that were written before LSTMs had one layout of weights, in `tests/old_files`, are read as before."""

import pathlib
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests import checks
from tests.helpers import batch_char_ids

OLD = pathlib.Path(__file__).parents[1] / "old_files"
EXPECTED = np.load(OLD / "expected.npz")
SENTENCES = [[b"A", b"bank"], [b"of", b"the", b"river", b"bank"]]


@pytest.mark.parametrize("name", ["frozen_elmo", "trainable_elmo"])
def test_a_keras_file_with_elmo_computes_what_it_did(name, tmp_path):
    assert elmo_tf.ELMo  # Keras finds the layers that were imported
    model = keras.saving.load_model(OLD / f"{name}.keras")
    tokens = tf.constant([["A", "bank", "", ""], ["of", "the", "river", "bank"]])
    np.testing.assert_allclose(model(tokens), EXPECTED[name], **checks.TOLERANCE)
    model.save(tmp_path / "again.keras")
    again = keras.saving.load_model(tmp_path / "again.keras")
    np.testing.assert_array_equal(again(tokens), model(tokens))


def test_a_keras_file_of_a_network_computes_what_it_did():
    bilm = keras.saving.load_model(OLD / "bilm.keras")
    assert type(bilm) is elmo_tf.BiLM
    np.testing.assert_allclose(bilm(batch_char_ids(SENTENCES))[0], EXPECTED["bilm"], **checks.TOLERANCE)


def test_a_workdir_is_read_and_trained_on(tmp_path):
    folder = shutil.copytree(OLD / "workdir", tmp_path / "workdir")
    workdir = open_workdir(folder)
    bilm, progress = checkpoints.restore(workdir)
    assert progress.step == 3
    np.testing.assert_allclose(bilm(batch_char_ids(SENTENCES))[0], EXPECTED["workdir"], **checks.TOLERANCE)
    elmo_tf.train(workdir.config, OLD / "records", folder, heldout=OLD / "records", steps=4)
    assert checkpoints.restore(open_workdir(folder))[1].step == 4
