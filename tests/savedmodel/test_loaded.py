"""An exported model in a Keras model."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import MICRO_NUMBERS, batch_char_ids, slow
from tests.savedmodel.calls import LENGTHS, PADDED, TEXT, WORDS, assert_same, embed, numbers_of


@pytest.mark.parametrize("endpoint", [slow("default"), "serving_default", slow("tokens"), slow("char_ids")])
def test_each_signature_is_a_layer_of_a_functional_keras_model(savedmodel, loaded, endpoint):
    _, specs = loaded.signatures[endpoint].structured_input_signature
    # The tokens come before their lengths.
    names = sorted(specs, reverse=True)
    inputs = {name: keras.Input(specs[name].shape[1:], dtype=specs[name].dtype.name, name=name) for name in names}
    layer = keras.layers.TFSMLayer(str(savedmodel.path), call_endpoint=endpoint)
    first, *others = inputs.values()
    model = keras.Model(list(inputs.values()), layer(first, **{one.name: one for one in others}))
    values = {
        "strings": tf.constant(TEXT),
        "tokens": tf.constant(PADDED),
        "sequence_len": tf.constant(LENGTHS),
        "char_ids": tf.constant(batch_char_ids(WORDS)),
    }
    found = model.predict([values[name] for name in names], verbose=0)
    assert_same(numbers_of(found), embed(loaded, TEXT))
    if endpoint != "char_ids":
        assert found["tokens"].tolist() == PADDED
    assert [tuple(variable.shape) for variable in layer.trainable_variables] == [(3,), ()]
    assert sum(int(np.prod(variable.shape)) for variable in layer.non_trainable_variables) == MICRO_NUMBERS


def test_a_keras_model_trains_the_mix_and_nothing_else_of_it(savedmodel):
    strings = keras.Input((), dtype="string")
    layer = keras.layers.TFSMLayer(str(savedmodel.path), call_endpoint="default")
    model = keras.Model(strings, keras.layers.Dense(1)(layer(strings)["default"]))
    model.compile("adam", "mse")
    # As savedmodels/README.md says.
    model.optimizer.build(model.trainable_variables)
    mixed, frozen = layer.trainable_variables, layer.non_trainable_variables
    before = [[variable.numpy().copy() for variable in part] for part in (mixed, frozen)]
    model.fit(tf.constant(TEXT), np.ones((len(TEXT), 1)), epochs=2, verbose=0)
    assert len(mixed) == 2
    assert all(np.abs(new.numpy() - old).max() > 1e-4 for new, old in zip(mixed, before[0], strict=True))
    assert all(np.array_equal(new, old) for new, old in zip(frozen, before[1], strict=True))
