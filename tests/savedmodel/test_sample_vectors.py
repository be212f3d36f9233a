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


@pytest.mark.slow
def test_sample_vectors_and_warm_states_are_computed_on_the_first_cpu_wherever_the_program_is():
    with tf.device("CPU:1"):
        bilm = checks.randomize(BiLM(MICRO), scale=0.4)
        initial = states.zero(bilm)
        built = root.build_root(bilm, build_mix(3, "average", 1.0), "whitespace", initial)
        runs = {
            lambda: built.default(tf.constant(["a bank"])): "CPU:1",
            lambda: sample_vectors.compute(built, sample_vectors.sentences("whitespace")): "CPU:0",
            lambda: states.warm_up(built, initial, [b"a bank", b"lends"], "whitespace"): "CPU:0",
        }
        for run, device in runs.items():
            assert devices_of_products(run) == {f"device:{device}"}
