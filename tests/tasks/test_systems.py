"""What holds for every system."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import tasks
from elmo_tf.tasks import fitting
from elmo_tf.tasks.judging import Judge
from elmo_tf.tasks.trained import Trained
from tests import checks
from tests.helpers import MICRO
from tests.tasks.small import EXAMPLES, arrays, built, recipe_of

WITH_ELMO = ("elmo.place=both",)


@pytest.fixture(scope="module", params=list(tasks.SYSTEMS))
def with_elmo(request):
    """A system with ELMo at input and output, its network with random weights, and its examples."""
    return built(request.param, MICRO, recipe_of(request.param, *WITH_ELMO))


def test_there_are_examples_of_every_system():
    assert EXAMPLES.keys() == tasks.SYSTEMS.keys()


def test_padding_and_batch_mates_change_no_answer(with_elmo):
    system, network, examples = with_elmo
    together = network(system.inputs(examples), training=False)
    wide = {name: np.pad(array, ((0, 0), (0, 4)), constant_values=b"") for name, array in system.inputs(examples).items()}
    padded = network(wide, training=False)
    own = {name: tensor.shape[1] for name, tensor in network.output.items()} if isinstance(network.output, dict) else {}
    del own
    judge = Judge(system, network)
    for number, example in enumerate(examples):
        (alone,) = judge.answers([example])
        for outputs in (together, padded):
            batch = keras.tree.map_structure(np.asarray, outputs)
            answers = system.answers(network, batch, examples)
            assert_same_answer(answers[number], alone)


def assert_same_answer(found, expected) -> None:
    """Compares probabilities with a tolerance, all else exactly."""
    if hasattr(expected, "probabilities"):
        assert found.label == expected.label
        pairs = (list(one.probabilities.values()) for one in (found, expected))
        np.testing.assert_allclose(*pairs, **checks.TOLERANCE)
    else:
        assert found == expected


def test_every_weight_learns_and_the_frozen_bilm_does_not(with_elmo):
    system, network, examples = with_elmo
    inputs, targets = system.inputs(examples), system.targets(examples)
    with tf.GradientTape() as tape:
        loss = system.loss(network, network(inputs, training=True), targets)
    gradients = tape.gradient(loss, [variable.value for variable in network.trainable_variables])
    # A bias that is added to all scores alike has no effect: that of the attention in pooling.
    zero = [
        variable.path
        for variable, gradient in zip(network.trainable_variables, gradients, strict=True)
        if not np.any(tf.convert_to_tensor(gradient))
    ]
    assert [path for path in zero if "sequence_pooling" not in path] == []
    names = [variable.path for variable in network.trainable_variables]
    assert sum("scalar_parameters" in name for name in names) == 2
    assert not any("lstm_cell" in name and "elmo" in name for name in names)


def test_a_saved_network_gives_the_same_answers(with_elmo, tmp_path):
    system, network, examples = with_elmo
    network.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
    expected = Trained(system, network).answer(examples)
    assert Trained(system, loaded).answer(examples) == expected


@pytest.mark.parametrize("task", list(tasks.SYSTEMS))
def test_an_example_is_learned_by_heart(task, tmp_path):
    recipe = recipe_of(task, "fit.epochs=60", "fit.patience=60", "fit.learning_rate=0.02")
    system, network, examples = built(task, None, recipe)
    history = fitting.fit(system, network, examples, examples, tmp_path)
    assert history[-1]["loss"] < 0.01 * history[0]["loss"]
    assert history[-1]["dev"][system.metric] == 100
    assert Judge(system, network).scores(examples)[system.metric] == 100
