"""The layer is the same wherever a program makes it: in other layers, under scopes, in traced functions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.model.bilm import BiLM
from tests import checks
from tests.helpers import MICRO, MICRO_NUMBERS, batch_char_ids, slow, two_cpus
from tests.keras_layer.sentences import SENTENCES, TOKENS


class Inside(keras.layers.Layer):
    """Makes the layer in its own `build`."""

    def __init__(self, source, **options):
        super().__init__(name="inside")
        self.source, self.options = source, options

    def build(self, input_shape):
        self.elmo = elmo_tf.ELMo(self.source, **self.options)

    def call(self, inputs):
        return self.elmo(inputs)


def _under_a_name_scope(source, **options):
    with keras.name_scope("foo"):
        return elmo_tf.ELMo(source, **options)


def _in_a_traced_function(source, **options):
    made = []

    @tf.function
    def function(tokens):
        made.append(elmo_tf.ELMo(source, **options))
        return made[0](tokens)

    function(tf.constant(TOKENS))
    return made[0]


@pytest.mark.parametrize("options", [{}, slow({"trainable_bilm": True})], ids=str)
def test_it_is_the_same_in_every_scope(savedmodel, plain_vectors, options):
    for make in (_under_a_name_scope, Inside) if options else (Inside, _in_a_traced_function):
        found = make(savedmodel.path, **options)(tf.constant(TOKENS))
        np.testing.assert_allclose(found, plain_vectors, **checks.TOLERANCE)


def test_it_is_mirrored_under_a_strategy(savedmodel, plain_vectors):
    with two_cpus().scope():
        layer = elmo_tf.ELMo(savedmodel.path)
    assert all(isinstance(variable.value, tf.distribute.DistributedValues) for variable in layer.weights)
    np.testing.assert_allclose(layer(TOKENS), plain_vectors, **checks.TOLERANCE)


def test_it_stays_on_the_device_that_is_asked_for():
    with tf.device("CPU:1"):
        layer = elmo_tf.ELMo(MICRO)
    assert {variable.value.device[-5:] for variable in layer.bilm.weights} == {"CPU:1"}


def test_a_network_in_memory_is_a_source_and_one_of_sizes_alone_is_random():
    bilm = BiLM(MICRO)
    expected = tf.reduce_mean(bilm(batch_char_ids(SENTENCES, 6))[0], 1)
    np.testing.assert_allclose(elmo_tf.ELMo(bilm)(TOKENS), expected, **checks.TOLERANCE)
    assert np.any(elmo_tf.ELMo(MICRO).bilm.weights[0])


def test_a_frozen_layer_has_one_copy_of_the_weights_and_no_softmax(workdir):
    assert workdir.config.model == MICRO
    assert sum(np.prod(variable.shape) for variable in elmo_tf.ELMo(workdir.path).bilm.weights) == MICRO_NUMBERS
