"""The model that the tests of this folder call."""

import shutil

import pytest
import tensorflow as tf


@pytest.fixture(scope="session")
def loaded(savedmodel):
    """The model as a user loads it, for tests that only call it."""
    return tf.saved_model.load(str(savedmodel.path))


@pytest.fixture
def copy(savedmodel, tmp_path):
    """A model of one's own to damage."""
    return shutil.copytree(savedmodel.path, tmp_path / "micro" / "4")
