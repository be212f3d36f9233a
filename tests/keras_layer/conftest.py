"""The layer with its defaults, made once."""

import pytest

import elmo_tf
from tests.keras_layer.sentences import TOKENS


@pytest.fixture(scope="session")
def plain(savedmodel):
    """The layer with its defaults, for tests that only call it."""
    return elmo_tf.ELMo(savedmodel.path)


@pytest.fixture
def with_options(savedmodel, plain):
    """Makes the layer with options that leave its network as it is, which `plain` has traced."""

    def make(**options):
        layer = elmo_tf.ELMo(savedmodel.path, **options)
        layer._compiled = plain._compiled
        return layer

    return make


@pytest.fixture(scope="session")
def plain_vectors(plain):
    return plain(TOKENS)
