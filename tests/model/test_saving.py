"""Each public layer in a user's own model, saved to a `.keras` file and loaded; and its arguments."""

import keras
import numpy as np
import pytest

from elmo_tf.model.bilm import BiLM
from elmo_tf.model.char_cnn import CharCNN
from elmo_tf.model.highway import Highway
from elmo_tf.model.lstmp import LSTMP
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.model.scalar_mix import ScalarMix
from tests.helpers import MICRO, batch_char_ids

SENTENCES = [[b"a", b"b"], [b"the", b"bank"]]


def test_a_saved_model_with_a_public_layer_is_the_same_when_loaded(tmp_path):
    layers = np.random.default_rng(0).normal(size=(2, 3, 2, 4)).astype(np.float32)
    for layer, inputs in ((ScalarMix(3, penalty=0.1), layers), (BiLM(MICRO), batch_char_ids(SENTENCES))):
        given = keras.Input(inputs.shape[1:], dtype=inputs.dtype.name)
        model = keras.Model(given, keras.tree.flatten(layer(given))[0])
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(loaded(inputs), model(inputs))


@pytest.mark.parametrize(
    "layer",
    [
        CharCNN(4, ((1, 4), (2, 6)), 2, "tanh", 5, "bfloat16", name="tokens"),
        Highway("bfloat16", name="first"),
        LSTMP(8, 4, None, 2.0, "bfloat16", name="first"),
        SampledSoftmax(7, "bfloat16", name="softmax"),
        ScalarMix(3, [1.0, 2.0, 3.0], 0.5, True, 2.0, name="mix"),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_every_argument_survives_the_config(layer):
    config = layer.get_config()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    assert again.name == layer.name
