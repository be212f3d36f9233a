"""A training step: what it computes, how replicas share it, and its learning rate."""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.training import saver

from elmo_tf.config import TrainConfig
from elmo_tf.model.fast import BiLM
from elmo_tf.records.windows import Windows
from elmo_tf.training import step as step_lib
from elmo_tf.training.step import Trainer, learning_rate
from tests import checks, float64
from tests.helpers import MICRO, MICRO_CONFIG, ONE_LAYER, char_ids_of, slow, two_cpus

# Nothing random, so that steps can be compared.
EXACT = dataclasses.replace(MICRO_CONFIG.train, batch_size=4, num_sampled=0, dropout_rate=0.0)


def trainer(records, config, strategy=None, seed=3, model=MICRO):
    keras.utils.set_random_seed(seed)
    strategy = strategy or tf.distribute.MirroredStrategy(["CPU:0"])
    return Trainer(strategy, config, lambda: BiLM(model, len(records.vocabulary)))


def windows(records, batch_size, count=4):
    pairs = zip(Windows(records, batch_size, EXACT.unroll_steps, seed=0), range(count), strict=False)
    return [window for (window, _), _ in pairs]


def step(made, window, number=0, rate=None):
    """Makes a step, at the recipe's learning rate if there is no other; returns both losses and the norm."""
    return [float(value) for value in made.step(window, number, rate or made.config.learning_rate)]


def run(made, data, rate=None):
    return [step(made, window, number, rate) for number, window in enumerate(data)]


def test_two_replicas_of_half_the_batch_do_what_one_does_with_the_whole_whose_losses_are_the_references(records):
    whole, halves = trainer(records, EXACT), trainer(records, dataclasses.replace(EXACT, batch_size=2), two_cpus())
    data = windows(records, 4)
    # The first rate leaves the weights as they are; the state is carried from window to window.
    by_whole = run(whole, data[:3], 1e-30)
    weights = float64.weights_of(whole.bilm)
    for number, direction in enumerate(("forward", "backward")):
        ids = np.concatenate([char_ids_of(window, direction) for window in data[:3]], axis=1)
        targets = np.concatenate([getattr(window, f"{direction}_targets") for window in data[:3]], axis=1)
        streams = [float64.direction_losses(weights, MICRO, number, *row) for row in zip(ids, targets, strict=True)]
        means = np.reshape(streams, (4, 3, EXACT.unroll_steps)).mean(axis=(0, 2))
        np.testing.assert_allclose(np.array(by_whole)[:, number], means, **checks.TOLERANCE)
    by_whole += run(whole, data)
    tf.config.run_functions_eagerly(True)  # the graph of two replicas takes seconds to make
    try:
        by_halves = run(halves, data[:3], 1e-30) + run(halves, data)
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(by_halves, by_whole, **checks.TOLERANCE)
    made = [[v.numpy() for v in part.variables] + tf.nest.flatten(part.gathered_states()) for part in (halves, whole)]
    checks.assert_all_close(*made, **checks.TOLERANCE)


@pytest.mark.slow
def test_the_same_number_draws_the_same_and_another_draws_anew(records):
    # This learning rate leaves the weights as they are.
    made = trainer(records, dataclasses.replace(EXACT, num_sampled=4, dropout_rate=0.5, learning_rate=1e-30))
    window, losses = windows(records, 4)[0], []
    for number in (7, 7, 8):
        made.set_states(made.bilm.zero_states(4))
        losses.append(step(made, window, number)[0])
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(("replicas", "optimizer"), [(1, "adam"), slow(2, "adagrad")])
def test_a_step_is_traced_once_and_reads_no_more_of_the_softmax_than_it_uses(records, replicas, optimizer):
    config = dataclasses.replace(EXACT, batch_size=4 // replicas, num_sampled=4, optimizer=optimizer)
    made = trainer(records, config, two_cpus() if replicas == 2 else None, model=ONE_LAYER)
    data = windows(records, 4)
    run(made, data)
    assert made._run.experimental_get_tracing_count() == 1
    seed = tf.constant([config.seed, 0], tf.int32)
    graph = made._run.get_concrete_function(made._distribute(data[0].part), made.states, seed).graph
    graphs = [graph, *(getattr(function, "graph", None) for function in graph._functions.values())]
    operations = [operation for inner in filter(None, graphs) for operation in inner.get_operations()]
    read = {tuple(read.outputs[0].shape) for read in operations if read.type == "ReadVariableOp"}
    dim, words = ONE_LAYER.lstm.projection_dim, len(records.vocabulary)
    assert (2 * dim, 4 * ONE_LAYER.lstm.units) in read  # the kernel of an LSTM: the graph shows reads
    assert not {(words, dim), (words,)} & read


def test_no_sum_of_a_step_has_an_order_that_depends_on_timing(records):
    """`AddN` of three or more starts with a buffer that is free by then; TensorFlow's optimizer makes more of them."""
    made = trainer(records, dataclasses.replace(EXACT, num_sampled=4, optimizer="adam"))
    seed = tf.constant([made.config.seed, 0], tf.int32)
    window = made._distribute(windows(records, 4, 1)[0].part)
    step = made._run.get_concrete_function(window, made.states, seed)
    graph = saver.export_meta_graph(graph_def=step.graph.as_graph_def(add_shapes=True), graph=step.graph)
    outputs = [tensor.op.name for tensor in step.outputs]
    graph.collection_def["train_op"].node_list.value.extend(outputs)
    options = config_pb2.ConfigProto()
    options.graph_options.rewrite_options.min_graph_nodes = -1
    optimized = tf_optimizer.OptimizeGraph(options, graph)
    functions = (function.node_def for function in optimized.library.function)
    nodes = [*optimized.node, *itertools.chain.from_iterable(functions)]
    assert len(nodes) > 1000
    assert [node.name for node in nodes if node.op == "AddN" and node.attr["N"].i > 2] == []


@pytest.mark.slow
def test_only_streams_whose_window_starts_with_a_sentence_start_from_the_zero_state(records):
    made = trainer(records, dataclasses.replace(EXACT, batch_size=8, reset_rate=0.5))
    ones = tf.nest.map_structure(np.ones_like, made.bilm.zero_states(8))
    seen = {True: [], False: []}
    for number, window in enumerate(windows(records, 8, 12)):
        states = step_lib._randomly_reset(ones, window, 0.5, tf.constant([0, number]))
        for state in tf.nest.flatten(states):  # all layers of both directions are reset alike
            np.testing.assert_array_equal(state, np.ones_like(state) * tf.nest.flatten(states)[0][:, :1])
        for row, tokens in enumerate(window.forward_token_ids):
            seen[bool(tokens[0] == 0)].append(float(tf.nest.flatten(states)[0][row, 0]))
    assert set(seen[False]) == {1.0}
    assert 0.2 < np.mean(seen[True]) < 0.8
    made.set_states(ones)
    kept = trainer(records, dataclasses.replace(EXACT, batch_size=8))
    kept.set_states(ones)
    window = windows(records, 8, 1)[0]  # every stream begins a sentence
    assert step(made, window)[0] != step(kept, window)[0]


def rates(last_step, **changes):
    config = dataclasses.replace(TrainConfig(learning_rate=0.8), **changes)
    return [learning_rate(config, step, last_step) for step in range(last_step)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0.8, 0.8, 0.8, 0.8]),  # the paper's schedule
        ({"warmup_steps": 2}, [0.4, 0.8, 0.8, 0.8]),
        ({"decay": "linear"}, [0.8, 0.6, 0.4, 0.2]),
        ({"decay": "linear", "warmup_steps": 2}, [0.4, 0.8, 0.8, 0.4]),
        ({"decay": "cosine"}, [0.8, 0.4 + 0.4 * 0.5**0.5, 0.4, 0.4 - 0.4 * 0.5**0.5]),
        ({"decay": "inverse_sqrt"}, [0.8, 0.8 / 2**0.5, 0.8 / 3**0.5, 0.4]),
        ({"decay": "inverse_sqrt", "warmup_steps": 2}, [0.4, 0.8, 0.8 * (2 / 3) ** 0.5, 0.8 / 2**0.5]),
        ({"decay": "cosine", "warmup_steps": 8}, [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_rates_are_warmed_up_and_decayed(changes, expected):
    assert rates(4, **changes) == pytest.approx(expected)
