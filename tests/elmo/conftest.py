"""The layer with its defaults, made once."""

import pytest

import elmo_tf
from tests.elmo.sentences import TOKENS


@pytest.fixture(scope="session")
def plain(savedmodel):
    """For tests that only call it."""
    return elmo_tf.ELMo(savedmodel.path)


@pytest.fixture(scope="session")
def plain_vectors(plain):
    return plain(TOKENS)
