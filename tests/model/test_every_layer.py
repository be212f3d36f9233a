"""What holds for every public layer: XLA compiles it or is told not to; it is tracked, saved, loaded and let go."""

import gc
import importlib
import inspect
import pkgutil
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
import elmo_tf.keras_layer
import elmo_tf.model
import elmo_tf.tasks.layers
from elmo_tf.model.bilm import PlainBiLM
from elmo_tf.model.fast import BiLM
from elmo_tf.model.scalar_mix import ScalarMix
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.tasks.layers.antecedents import AntecedentScores
from elmo_tf.tasks.layers.crf import CRF
from elmo_tf.tasks.layers.lstms import CoupledLSTM, HighwayLSTM
from elmo_tf.tasks.layers.mention_spans import MentionSpans
from elmo_tf.tasks.layers.mixed_layers import MixedLayers
from elmo_tf.tasks.layers.token_layers import Spelling, WordEmbedding
from elmo_tf.tasks.layers.trilinear_attention import BiAttention, SelfAttention
from elmo_tf.training.fit import LanguageModel
from tests import checks
from tests.helpers import MICRO, batch_char_ids, slow
from tests.keras_layer.sentences import ONE_LAYER
from tests.tasks.layers.lengths import Lengths

WITHOUT = {
    AntecedentScores: lambda: AntecedentScores(3),
    BiAttention: BiAttention,
    BiLM: lambda: BiLM(MICRO),
    elmo_tf.ELMo: lambda: elmo_tf.ELMo(MICRO),
    MentionSpans: lambda: MentionSpans(3, 0.4),
    MixedLayers: lambda: MixedLayers(Lengths()),
    PlainBiLM: lambda: PlainBiLM(MICRO, 7),
    SelfAttention: SelfAttention,
    Spelling: lambda: Spelling(4),
    TokenMask: TokenMask,
    WordEmbedding: lambda: WordEmbedding(["a"], 4),
}
# Each with the shapes of its inputs.
WITH = {
    CoupledLSTM: (lambda: CoupledLSTM(3, 0.1), (2, 2, 4)),
    CRF: (lambda: CRF(3), (2, 2, 3)),
    HighwayLSTM: (lambda: HighwayLSTM(3, 0.1), (2, 2, 4)),
    ScalarMix: (lambda: ScalarMix(3), (2, 3, 2, 4)),
    SequencePooling: (SequencePooling, (2, 3, 4)),
}


def test_every_public_layer_is_here():
    for package in (elmo_tf.model, elmo_tf.tasks.layers):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    registered = {
        kind
        for name, kind in keras.saving.get_custom_objects().items()
        if name.startswith("elmo_tf>") and issubclass(kind, keras.layers.Layer)
    }
    # `LanguageModel` is no part of another model: test_fit.py.
    assert registered - {LanguageModel} == {*WITHOUT, *WITH}
    # What has strings or arrays of unknown shape is not given to XLA.
    assert [kind for kind in WITHOUT if WITHOUT[kind]().supports_jit] == []


@pytest.mark.parametrize("kind", WITH, ids=lambda kind: kind.__name__)
def test_xla_compiles_every_other_layer_and_its_gradient(kind):
    new, *shapes = WITH[kind]
    random = np.random.default_rng(0)
    first, *states = (tf.constant(random.normal(size=shape), tf.float32) for shape in shapes)
    layer, arguments = new(), (first, tuple(states)) if states else (first,)
    assert layer.supports_jit
    training = {"training": True} if "training" in inspect.signature(layer.call).parameters else {}
    layer(*arguments)

    @tf.function(jit_compile=True)
    def gradients():
        with tf.GradientTape() as tape:
            outputs = layer(*arguments, **training)
            loss = tf.add_n([tf.reduce_sum(output) for output in tf.nest.flatten(outputs)])
        return tape.gradient(loss, [weight.value for weight in layer.trainable_weights])

    gradients()


# Shapes for layers that are built neither when they are made nor with their first shape in `WITH`.
SHAPES = {
    "AntecedentScores": {"vectors": (None, 4)},
    "BiAttention": [(2, 3, 4)] * 2,
    "MentionSpans": {"hidden": (None, None, 6), "vectors": (None, None, 4)},
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
    checks.assert_all_close(other.weights, layer.weights)


@pytest.mark.parametrize("trainable", [False, slow(True)])
def test_a_model_with_elmo_is_a_savedmodel_that_computes_the_same(trainable, tmp_path):
    inputs = keras.Input((None,), dtype="string")
    vectors = elmo_tf.ELMo(ONE_LAYER, trainable_bilm=trainable)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(2)(elmo_tf.SequencePooling()(vectors)))
    tf.saved_model.save(model, str(tmp_path / "model"))
    tokens = tf.constant([["a", "bank"], ["money", ""]])
    (outputs,) = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"](tokens).values()
    np.testing.assert_allclose(outputs, model(tokens), **checks.TOLERANCE)


@pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")
def test_a_quantized_model_with_elmo_is_the_same_when_loaded(tmp_path):
    inputs = keras.Input((None,), dtype="string")
    vectors = elmo_tf.SequencePooling(["mean"])(elmo_tf.ELMo(ONE_LAYER)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(2)(vectors))
    model.quantize("int8")
    assert model.layers[-1].quantization_mode == "int8"
    model.save(tmp_path / "model.keras")
    tokens = tf.constant([["a", "bank"]])
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(tokens), model(tokens))


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
        BiLM(MICRO, 11, "bfloat16", name="elmo"),
        PlainBiLM(MICRO, 11, name="elmo"),
        ScalarMix(3, [1.0, 2.0, 3.0], 0.5, True, 2.0, name="mix"),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_every_argument_survives_the_config(layer):
    config = layer.get_config()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    assert again.name == layer.name


def test_a_model_that_was_used_leaves_nothing_behind():
    def use() -> weakref.ref:
        layer = elmo_tf.ELMo(ONE_LAYER)
        layer(tf.constant([["a", "bank"]]))
        return weakref.ref(layer.bilm.char_cnn.embedding)

    use()
    before, weight = checks.gradients_kept(), use()
    gc.collect()
    assert checks.gradients_kept() == before
    assert weight() is None


def test_a_second_training_run_leaves_nothing_behind(workdir, records, tmp_path):
    before = checks.gradients_kept()
    elmo_tf.train(workdir.config, records.path, tmp_path / "second", steps=1)
    assert checks.gradients_kept() == before
