"""TensorFlow's own tracking reaches every weight of every public layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from tests import checks
from tests.helpers import MICRO, slow
from tests.model.test_jit import WITH, WITHOUT

# Of the layers that are not built with their first shape of `WITH`, nor when they are made.
SHAPES = {
    "AntecedentScores": {"vectors": (None, 4)},
    "BiAttention": [(2, 3, 4)] * 2,
    "CharCNN": (None, 50),
    "MentionSpans": {"hidden": (None, None, 6), "vectors": (None, None, 4)},
    "SampledSoftmax": (None, 8),
    "SelfAttention": (2, 3, 4),
}


def built(kind: type) -> keras.layers.Layer:
    layer = WITH[kind][0]() if kind in WITH else WITHOUT[kind]()
    if not layer.built:
        layer.build(WITH[kind][1] if kind in WITH else SHAPES.get(kind.__name__))
    return layer


@pytest.mark.parametrize("kind", [*WITH, *WITHOUT], ids=lambda kind: kind.__name__)
def test_a_checkpoint_holds_every_weight_and_restores_it(kind, tmp_path):
    layer, other = checks.randomize(built(kind)), built(kind)
    path = tf.train.Checkpoint(layer=layer).write(str(tmp_path / "checkpoint"))
    stored = [shape for name, shape in tf.train.list_variables(path) if name.endswith("VARIABLE_VALUE")]
    assert sorted(map(tuple, stored)) == sorted(tuple(weight.shape) for weight in layer.weights)
    tf.train.Checkpoint(layer=other).read(path).assert_existing_objects_matched().assert_consumed()
    for weight, restored in zip(layer.weights, other.weights, strict=True):
        np.testing.assert_array_equal(restored, weight)


@pytest.mark.parametrize("trainable", [False, slow(True)])
def test_a_model_with_elmo_is_a_savedmodel_that_computes_the_same(trainable, tmp_path):
    inputs = keras.Input((None,), dtype="string")
    vectors = elmo_tf.ELMo(MICRO, trainable_bilm=trainable)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(2)(elmo_tf.SequencePooling()(vectors)))
    tf.saved_model.save(model, str(tmp_path / "model"))
    tokens = tf.constant([["a", "bank"], ["money", ""]])
    (found,) = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"](tokens).values()
    np.testing.assert_allclose(found, model(tokens), **checks.TOLERANCE)


@pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")
def test_a_quantized_model_with_elmo_is_the_same_when_loaded(tmp_path):
    inputs = keras.Input((None,), dtype="string")
    vectors = elmo_tf.SequencePooling(["mean"])(elmo_tf.ELMo(MICRO)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(2)(vectors))
    model.quantize("int8")
    assert model.layers[-1].quantization_mode == "int8"
    model.save(tmp_path / "model.keras")
    tokens = tf.constant([["a", "bank"]])
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(tokens), model(tokens))
