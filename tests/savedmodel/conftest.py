"""The model that the tests of this folder call."""

import pytest
import tensorflow as tf


@pytest.fixture(scope="session")
def loaded(savedmodel):
    """The model as a user loads it, for tests that only call it."""
    return tf.saved_model.load(str(savedmodel.path))
