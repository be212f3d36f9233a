"""Names of weights relative to their biLM."""

import dataclasses

import pytest

from elmo_tf.config import CharCNNConfig, LSTMConfig, ModelConfig
from elmo_tf.model.bilm import BiLM
from elmo_tf.model.names import relative_names
from tests.helpers import MICRO

PLAIN = ModelConfig(CharCNNConfig(4, ((1, 4), (2, 4)), num_highway=0), LSTMConfig(8, 8, num_layers=1))


@pytest.mark.parametrize("vocab_size", [None, 5])
@pytest.mark.parametrize("config", [MICRO, PLAIN, dataclasses.replace(MICRO, lstm=LSTMConfig(24, 18, 3))])
def test_every_weight_has_a_name_in_the_order_of_trainable_variables(config, vocab_size):
    bilm = BiLM(config, vocab_size)
    named = relative_names(bilm)
    assert [id(variable) for variable in named.values()] == [id(variable) for variable in bilm.trainable_variables]
    assert list(named) == [variable.path for variable in bilm.trainable_variables]
