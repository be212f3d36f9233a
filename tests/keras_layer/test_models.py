"""The Keras layer in models and scopes: what is trained, fitting, saving, replicas."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.model.fast import BiLM
from tests import checks
from tests.helpers import MICRO, batch_char_ids, slow, two_cpus
from tests.keras_layer.sentences import LABELS, MASK, ONE_LAYER, SENTENCES, TOKENS


def test_the_frozen_network_stays_frozen_when_its_model_is_thawed(savedmodel):
    frozen, trained = (elmo_tf.ELMo(savedmodel.path, trainable_bilm=trainable) for trainable in (False, True))
    for layer, count in ((frozen, 2), (trained, 2 + len(savedmodel.bilm.variables))):
        model = keras.Sequential([keras.Input((None,), dtype="string"), layer])
        assert len(model.trainable_variables) == count
        model.trainable = False
        assert model.trainable_variables == []
        model.trainable = True
        assert len(model.trainable_variables) == count


def tagger(layer: elmo_tf.ELMo) -> keras.Model:
    """A tagger with ELMo at the input, and at the output of its LSTM if the layer has two mixes."""
    inputs = keras.Input((None,), dtype="string")
    first, *rest = keras.tree.flatten(layer(inputs))
    hidden = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))(first)
    hidden = keras.layers.Concatenate()([hidden, *rest]) if rest else hidden
    model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(hidden))
    model.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)  # otherwise Keras traces the first step twice
    return model


CONFIGURATIONS = {
    "frozen": {"num_mixes": 2, "penalty": 0.01, "layer_norm": True, "dropout_rate": 0.2},
    "trained": {"trainable_bilm": True, "mix": [0.5, 0.0, 1.0], "boundaries": True},
}


@pytest.mark.parametrize("name", ["frozen", slow("trained")])
def test_a_model_fits_and_is_the_same_after_saving_and_loading(savedmodel, tmp_path, name):
    keras.utils.set_random_seed(1)
    source = shutil.copytree(savedmodel.path, tmp_path / "source")
    layer = elmo_tf.ELMo(source, **CONFIGURATIONS[name])
    model = tagger(layer)
    labels = np.pad(LABELS, ((0, 0), (1, 1))) if layer.boundaries else LABELS
    data = tf.data.Dataset.from_tensor_slices((TOKENS, labels)).batch(4)
    before = [np.array(weight) for weight in layer.bilm.weights]
    losses = model.fit(data, epochs=4, shuffle=False, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    moved = [not np.array_equal(old, new) for old, new in zip(before, layer.bilm.weights, strict=True)]
    assert moved == [layer.trainable_bilm] * len(moved)

    model.save(tmp_path / "model.keras")
    shutil.rmtree(source)
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(tf.constant(TOKENS)), model(tf.constant(TOKENS)))
    assert [v.shape for v in again.trainable_variables] == [v.shape for v in model.trainable_variables]


def test_padding_does_not_reach_the_layers_above(with_options):
    model = tagger(with_options(num_mixes=2))
    wide = np.pad(TOKENS, ((0, 0), (0, 4)), constant_values=b"")
    expected, padded = (np.array(model(tf.constant(tokens))) for tokens in (TOKENS, wide))
    np.testing.assert_allclose(padded[:, :6][MASK], expected[MASK], **checks.TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"trainable_bilm": True}, {}])
def test_two_replicas_take_the_step_of_one(options):
    def trained(strategy):
        with strategy.scope():
            keras.utils.set_random_seed(2)
            layer = elmo_tf.ELMo(ONE_LAYER, penalty=0.1, **options)
            inputs = keras.Input((None, 50), dtype="int32")
            model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(layer(inputs)))
            model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
        rows = [0, 1, 0, 3]  # equally many tokens for both replicas: Keras averages over the tokens of each
        data = tf.data.Dataset.from_tensor_slices((TOKENS[rows], LABELS[rows])).batch(4)
        data = data.map(lambda tokens, labels: (layer.char_ids(tokens), labels))
        before = [np.array(weight) for weight in model.weights]
        model.fit(data, shuffle=False, verbose=0)
        moved = {v.path for old, v in zip(before, model.weights, strict=True) if not np.array_equal(old, v)}
        assert moved == {v.path for v in model.trainable_weights}
        return model

    alone, replicated = trained(tf.distribute.get_strategy()), trained(two_cpus())
    for single, mirrored in zip(alone.trainable_weights, replicated.trainable_weights, strict=True):
        np.testing.assert_allclose(np.array(mirrored), np.array(single), **checks.TOLERANCE, err_msg=single.path)


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
    def function():
        made.append(elmo_tf.ELMo(source, **options))

    function()
    return made[0]


@pytest.mark.parametrize("options", [{}, slow({"trainable_bilm": True})], ids=str)
def test_it_is_the_same_in_every_scope(savedmodel, plain, plain_vectors, options):
    for make in (_under_a_name_scope, Inside) if options else (Inside,):
        vectors = make(savedmodel.path, **options)(tf.constant(TOKENS))
        np.testing.assert_allclose(vectors, plain_vectors, **checks.TOLERANCE)
    if not options:
        layer = _in_a_traced_function(savedmodel.path)
        checks.assert_all_close(layer.weights, plain.weights)
        assert [weight.path for weight in layer.weights] == [weight.path for weight in plain.weights]


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
    assert (
        sum(np.prod(variable.shape) for variable in elmo_tf.ELMo(workdir.path).bilm.weights) == MICRO.num_parameters()
    )
