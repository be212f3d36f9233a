"""TensorBoard's tab Graphs: the network, its layers by name."""

import urllib.parse
import urllib.request

import pytest
import tensorflow as tf
from google.protobuf import text_format

from elmo_tf.model.fast import BiLM
from elmo_tf.training import loop
from elmo_tf.training.tensorboard import network_graph
from tests.helpers import MICRO, answered, tensorboard
from tests.training.test_loop import with_train

pytestmark = pytest.mark.usefixtures("untraced_steps")
LAYERS = {"char_cnn", "softmax", *(f"{name}_{number}" for name in ("forward", "backward") for number in (0, 1))}


def scopes(graph: tf.compat.v1.GraphDef, depth: int) -> set[str]:
    """Returns the scopes of the nodes that are in one at this depth."""
    paths = [node.name.split("/") for node in graph.node]
    return {"/".join(path[:depth]) for path in paths if len(path) > depth}


def layers_below(graph: tf.compat.v1.GraphDef, name: str) -> set[str]:
    """Returns the layers whose outputs reach a layer without passing through another layer."""
    nodes = {node.name: node for node in graph.node}
    waiting = [node for node in graph.node if node.name.split("/")[0] == name]
    seen, found = set(), set()
    while waiting:
        for source in waiting.pop().input:
            source_name = source.lstrip("^").partition(":")[0]
            scope = source_name.split("/")[0]
            if scope in LAYERS - {name}:
                found.add(scope)
            elif source_name not in seen:
                seen.add(source_name)
                waiting.append(nodes[source_name])
    return found


def test_the_graph_has_each_layer_by_its_name_above_those_that_it_reads():
    graph = network_graph(BiLM(MICRO, vocab_size=9))
    assert {scope for scope in scopes(graph, 1) if scope.startswith(tuple(LAYERS))} == LAYERS
    assert {"char_cnn/highway_0", "char_cnn/projection"} <= scopes(graph, 2)
    assert layers_below(graph, "char_cnn") == set()
    for direction in ("forward", "backward"):
        assert layers_below(graph, f"{direction}_0") == {"char_cnn"}
        assert layers_below(graph, f"{direction}_1") == {f"{direction}_0"}
    assert {"forward_1", "backward_1"} <= layers_below(graph, "softmax")
    names = [node.name for node in graph.node]
    assert {"char_ids", "targets"} <= set(names) and len(set(names)) == len(names)


def graphs_in(workdir) -> int:
    events = (
        event for file in workdir.logs.glob("events.*") for event in tf.compat.v1.train.summary_iterator(str(file))
    )
    return sum(event.HasField("graph_def") for event in events)


def test_a_run_writes_it_once_and_not_without_diagnostics(records, tmp_path):
    config = with_train(look_steps=1000)
    assert graphs_in(loop.train(config, records.path, tmp_path / "w", steps=1)) == 1
    assert graphs_in(loop.train(config, records.path, tmp_path / "w", steps=2)) == 1
    assert graphs_in(loop.train(with_train(look_steps=0), records.path, tmp_path / "none", steps=1)) == 0


@pytest.mark.slow
def test_tensorboard_has_the_graph(records, tmp_path):
    loop.train(with_train(look_steps=1000), records.path, tmp_path / "w", steps=1)
    address = f"{tensorboard(tmp_path)}data/plugin/graphs"
    runs = answered(f"{address}/info", bool)
    ((run, about),) = runs.items()
    assert (run, about["run_graph"]) == ("w/logs", True)
    query = urllib.parse.urlencode({"run": run, "conceptual": "false"})
    with urllib.request.urlopen(f"{address}/graph?{query}") as answer:
        graph = text_format.Parse(answer.read(), tf.compat.v1.GraphDef())
    assert scopes(graph, 1) >= LAYERS
