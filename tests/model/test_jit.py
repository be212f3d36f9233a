"""XLA, with which Keras compiles models on GPUs: layers that it cannot compile say so, the others are compiled here."""

import importlib
import inspect
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
import elmo_tf.keras_layer
import elmo_tf.model
import elmo_tf.tasks.layers
from elmo_tf.model.bilm import BiLM
from elmo_tf.model.char_cnn import CharCNN
from elmo_tf.model.highway import Highway
from elmo_tf.model.lstmp import LSTMP
from elmo_tf.model.packed_bilm import PackedBiLM
from elmo_tf.model.sampled_softmax import SampledSoftmax
from elmo_tf.model.scalar_mix import ScalarMix
from elmo_tf.model.sequence_pooling import SequencePooling
from elmo_tf.model.token_inputs import TokenMask
from elmo_tf.tasks.layers.antecedents import AntecedentScores
from elmo_tf.tasks.layers.crf import CRF
from elmo_tf.tasks.layers.lstms import CoupledLSTM, HighwayLSTM
from elmo_tf.tasks.layers.mention_spans import MentionSpans
from elmo_tf.tasks.layers.token_layers import Spelling, WordEmbedding
from elmo_tf.tasks.layers.trilinear_attention import BiAttention, SelfAttention
from tests.helpers import MICRO

WITHOUT = {
    AntecedentScores: lambda: AntecedentScores(3),
    BiAttention: BiAttention,
    BiLM: lambda: BiLM(MICRO),
    CharCNN: lambda: CharCNN(4, ((1, 4), (2, 6)), 1, "relu", output_dim=8),
    elmo_tf.ELMo: lambda: elmo_tf.ELMo(MICRO),
    MentionSpans: lambda: MentionSpans(3, 0.4),
    PackedBiLM: lambda: PackedBiLM(MICRO),
    SampledSoftmax: lambda: SampledSoftmax(7),
    SelfAttention: SelfAttention,
    Spelling: lambda: Spelling(4),
    TokenMask: TokenMask,
    WordEmbedding: lambda: WordEmbedding(["a"], 4),
}
# Each with the shapes of its inputs.
WITH = {
    CoupledLSTM: (lambda: CoupledLSTM(3, 0.1), (2, 2, 4)),
    CRF: (lambda: CRF(3), (2, 2, 3)),
    Highway: (Highway, (2, 5)),
    HighwayLSTM: (lambda: HighwayLSTM(3, 0.1), (2, 2, 4)),
    LSTMP: (lambda: LSTMP(6, 4), (2, 2, 3), (2, 6), (2, 4)),
    ScalarMix: (lambda: ScalarMix(3), (2, 3, 2, 4)),
    SequencePooling: (SequencePooling, (2, 3, 4)),
}


def test_every_public_layer_is_here():
    for package in (elmo_tf.model, elmo_tf.tasks.layers):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    registered = {
        one
        for name, one in keras.saving.get_custom_objects().items()
        if name.startswith("elmo_tf>") and issubclass(one, keras.layers.Layer)
    }
    assert registered == {*WITHOUT, *WITH}


@pytest.mark.parametrize("kind", WITHOUT, ids=lambda kind: kind.__name__)
def test_what_has_strings_or_arrays_of_unknown_shape_is_not_given_to_xla(kind):
    assert not WITHOUT[kind]().supports_jit


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
