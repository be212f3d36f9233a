"""A training step: what it computes, and that replicas share it as they should."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.model.bilm import BiLM
from elmo_tf.records.windows import Windows
from elmo_tf.training import step as step_lib
from elmo_tf.training.step import Trainer
from tests import checks, float64
from tests.helpers import MICRO, MICRO_CONFIG, char_ids_of, slow, two_cpus

# Nothing random, so that steps can be compared.
EXACT = dataclasses.replace(MICRO_CONFIG.train, batch_size=4, num_sampled=0, dropout_rate=0.0)


def trainer(records, config, strategy=None, seed=3):
    keras.utils.set_random_seed(seed)
    strategy = strategy or tf.distribute.MirroredStrategy(["CPU:0"])
    return Trainer(strategy, config, lambda: BiLM(MICRO, len(records.vocabulary)))


def windows(records, batch_size, count=4):
    pairs = zip(Windows(records, batch_size, EXACT.unroll_steps, seed=0), range(count), strict=False)
    return [window for (window, _), _ in pairs]


def step(made, window, number=0):
    """Makes a step at the recipe's learning rate; returns both losses and the norm."""
    return [float(value) for value in made.step(window, number, made.config.learning_rate)]


def run(made, data):
    return [step(made, window, number) for number, window in enumerate(data)]


def test_two_replicas_of_half_the_batch_do_what_one_does_with_the_whole(records):
    whole, halves = trainer(records, EXACT), trainer(records, dataclasses.replace(EXACT, batch_size=2), two_cpus())
    data = windows(records, 4)
    np.testing.assert_allclose(run(halves, data), run(whole, data), **checks.TOLERANCE)
    made = [[v.numpy() for v in one.variables] + tf.nest.flatten(one.gathered_states()) for one in (halves, whole)]
    for value, expected in zip(*made, strict=True):
        np.testing.assert_allclose(value, expected, **checks.TOLERANCE)


def test_losses_are_the_references_and_the_state_is_carried_from_window_to_window(records):
    made = trainer(records, dataclasses.replace(EXACT, learning_rate=1e-30))  # the weights stay what they are
    data = windows(records, 4, count=3)
    found = np.array(run(made, data))[:, :2]
    weights = float64.weights_of(made.bilm)
    for number, direction in enumerate(("forward", "backward")):
        ids = np.concatenate([char_ids_of(window, direction) for window in data], axis=1)
        targets = np.concatenate([getattr(window, f"{direction}_targets") for window in data], axis=1)
        streams = [float64.direction_losses(weights, MICRO, number, *row) for row in zip(ids, targets, strict=True)]
        means = np.reshape(streams, (4, 3, EXACT.unroll_steps)).mean(axis=(0, 2))
        np.testing.assert_allclose(found[:, number], means, **checks.TOLERANCE)


@pytest.mark.slow
def test_the_same_number_draws_the_same_and_another_draws_anew(records):
    # The weights stay what they are.
    made = trainer(records, dataclasses.replace(EXACT, num_sampled=4, dropout_rate=0.5, learning_rate=1e-30))
    window, losses = windows(records, 4)[0], []
    for number in (7, 7, 8):
        made.set_states(made.bilm.zero_states(4))
        losses.append(step(made, window, number)[0])
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(("replicas", "optimizer"), [(1, "adam"), slow(2, "adagrad")])
def test_a_step_is_traced_once_and_reads_no_more_of_the_softmax_than_it_uses(records, replicas, optimizer):
    config = dataclasses.replace(EXACT, batch_size=4 // replicas, num_sampled=4, optimizer=optimizer)
    made = trainer(records, config, two_cpus() if replicas == 2 else None)
    data = windows(records, 4)
    run(made, data)
    assert made._run.experimental_get_tracing_count() == 1
    seed = tf.constant([config.seed, 0], tf.int32)
    graph = made._run.get_concrete_function(made._distribute(data[0]), made.states, seed).graph
    graphs = [graph, *(getattr(function, "graph", None) for function in graph._functions.values())]
    operations = [operation for one in graphs if one for operation in one.get_operations()]
    read = {tuple(one.outputs[0].shape) for one in operations if one.type == "ReadVariableOp"}
    dim, words = MICRO.lstm.projection_dim, len(records.vocabulary)
    assert (2 * dim, 4 * MICRO.lstm.units) in read  # an LSTM's kernel: reads are seen here
    assert not {(words, dim), (words,)} & read


@pytest.mark.slow
def test_only_streams_whose_window_starts_with_a_sentence_start_from_the_zero_state(records):
    made = trainer(records, dataclasses.replace(EXACT, batch_size=8, reset_rate=0.5))
    ones = tf.nest.map_structure(np.ones_like, made.bilm.zero_states(8))
    seen = {True: [], False: []}
    for number, window in enumerate(windows(records, 8, 12)):
        states = step_lib._some_reset(ones, window, 0.5, tf.constant([0, number]))
        for state in tf.nest.flatten(states):  # all layers of both directions alike
            np.testing.assert_array_equal(state, np.ones_like(state) * tf.nest.flatten(states)[0][:, :1])
        for row, tokens in enumerate(window.forward_token_ids):
            seen[bool(tokens[0] == 0)].append(float(tf.nest.flatten(states)[0][row, 0]))
    assert set(seen[False]) == {1.0}
    assert 0.2 < np.mean(seen[True]) < 0.8
    made.set_states(ones)
    kept = trainer(records, dataclasses.replace(EXACT, batch_size=8))
    kept.set_states(ones)
    window = windows(records, 8, 1)[0]  # all streams begin one
    assert step(made, window)[0] != step(kept, window)[0]
