"""TensorFlow keeps the graph of every custom gradient for good: none of them may hold a network."""

import gc
import weakref

import tensorflow as tf

import elmo_tf
from tests.checks import gradients_kept
from tests.helpers import MICRO, MICRO_CONFIG


def test_a_model_that_was_used_leaves_nothing_behind():
    def use() -> weakref.ref:
        layer = elmo_tf.ELMo(MICRO)
        layer(tf.constant([["a", "bank"]]))
        return weakref.ref(layer.bilm.char_cnn.embedding)

    use()
    before, weight = gradients_kept(), use()
    gc.collect()
    assert gradients_kept() == before
    assert weight() is None


def test_a_training_run_leaves_nothing_behind(records, tmp_path):
    runs = []
    for name in ("first", "second"):
        elmo_tf.train(MICRO_CONFIG, records.path, tmp_path / name, steps=1)
        runs.append(gradients_kept())
    assert runs[0] == runs[1]
