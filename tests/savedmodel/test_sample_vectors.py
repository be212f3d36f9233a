"""Sample vectors and warm states: computed on the CPU, wherever the program and its network are."""

from collections.abc import Callable

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from elmo_tf.bilm.model import BiLM
from elmo_tf.layers.scalar_mix import build_mix
from elmo_tf.savedmodel import root, sample_vectors, states
from tests import checks
from tests.helpers import MICRO


def devices_of_products(run: Callable[[], object]) -> set[str]:
    """Returns the devices of the matrix products in graphs that run for the first time while `run` is called."""
    context.context().enable_graph_collection()
    try:
        run()
        graphs = context.context().export_run_metadata().partition_graphs
    finally:
        context.context().disable_graph_collection()
    return {node.device.rpartition("/")[2] for graph in graphs for node in graph.node if "MatMul" in node.op}


@pytest.fixture(scope="module")
def elsewhere():
    """The object to save and its initial states, made on the second of two devices."""
    with tf.device("CPU:1"):
        bilm = checks.randomize(BiLM(MICRO), scale=0.4)
        initial = states.zero(bilm)
        return root.build_root(bilm, build_mix(3, "average", 1.0), "whitespace", initial), initial


@pytest.mark.slow
def test_without_a_choice_products_run_on_the_programs_device(elsewhere):
    built, _ = elsewhere
    with tf.device("CPU:1"):
        devices = devices_of_products(lambda: built.default(tf.constant(["a bank"])))
    assert devices == {"device:CPU:1"}


@pytest.mark.slow
def test_sample_vectors_and_warm_states_are_computed_on_the_first_cpu(elsewhere):
    built, initial = elsewhere
    for run in (
        lambda: sample_vectors.compute(built, sample_vectors.sentences("whitespace")),
        lambda: states.warm_up(built, initial, [b"a bank", b"lends"], "whitespace"),
    ):
        with tf.device("CPU:1"):
            devices = devices_of_products(run)
        assert devices == {"device:CPU:0"}
