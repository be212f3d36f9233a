"""What holds for every system."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import ELMo
from elmo_tf.tasks import batching, systems, token_vectors
from tests import checks
from tests.helpers import MICRO, slow
from tests.tasks.small import built, recipe_of


@pytest.fixture(scope="module")
def shared_elmo():
    """Has all systems use one ELMo layer, which then traces the biLM once."""
    layer = ELMo(MICRO, 2, name="elmo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_vectors, "ELMo", lambda *_, **__: layer)
        yield


@pytest.fixture(scope="module", params=list(systems.SYSTEMS))
def with_elmo(shared_elmo, request):
    """A system with ELMo at input and output, its network with random weights, and its examples."""
    return built(request.param, MICRO, recipe_of(request.param, "elmo.place=both"))


@pytest.fixture(scope="module", params=list(systems.SYSTEMS))
def baseline(request):
    """The same without ELMo."""
    return built(request.param)


def predict(system, network, inputs, examples) -> list:
    decoded = system.decode(network, network(inputs, training=False))
    return system.predict({name: one.numpy() for name, one in decoded.items()}, examples)


def assert_same(found, expected) -> None:
    """Compares predictions: probabilities with a tolerance, all else exactly."""
    if hasattr(expected, "probabilities"):
        assert found.label == expected.label
        pair = [list(one.probabilities.values()) for one in (found, expected)]
        np.testing.assert_allclose(*pair, **checks.TOLERANCE)
    elif hasattr(expected, "probability"):
        assert found[:2] == expected[:2]
        np.testing.assert_allclose(found.probability, expected.probability, **checks.TOLERANCE)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "with_elmo", [slow(name) if name in ("ner", "sentiment") else name for name in systems.SYSTEMS], indirect=True
)
def test_padding_and_batch_mates_change_no_prediction(with_elmo):
    system, network, examples = with_elmo
    inputs = system.inputs(examples)
    padding = {name: b"" if array.dtype == object else 0 for name, array in inputs.items()}
    wide = {
        name: np.pad(array, ((0, 0), (0, 4)), constant_values=padding[name]) if array.ndim == 2 else array
        for name, array in inputs.items()
    }
    together, padded = (predict(system, network, one, examples) for one in (inputs, wide))
    # The shortest is padded most.
    number = min(range(len(examples)), key=lambda one: batching.length(system, examples[one]))
    (alone,) = predict(system, network, system.inputs([examples[number]]), [examples[number]])
    assert_same(together[number], alone)
    for one, other in zip(together, padded, strict=True):
        assert_same(one, other)


def test_every_weight_but_those_of_the_bilm_has_a_gradient(with_elmo):
    system, network, examples = with_elmo
    with tf.GradientTape() as tape:
        loss = system.loss(network, network(system.inputs(examples), training=True), system.targets(examples))
    variables = network.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    pairs = zip(variables, gradients, strict=True)
    zero = [variable.path for variable, one in pairs if not np.any(tf.convert_to_tensor(one))]
    assert zero == []
    elmo = network.get_layer("elmo")
    assert elmo.bilm.trainable_variables == []
    mixes = {id(variable) for mix in elmo.mixes for variable in mix.trainable_variables}
    assert len(mixes) == 4
    assert mixes <= {id(variable) for variable in variables}


@pytest.mark.parametrize("baseline", [name if name == "ner" else slow(name) for name in systems.SYSTEMS], indirect=True)
def test_an_example_is_learned_by_heart(baseline):
    system, network, examples = baseline
    # The shortest: steps of an LSTM take time here.
    examples = [min(examples, key=lambda one: batching.length(system, one))]
    inputs, targets = system.inputs(examples), system.targets(examples)
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(network.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = system.loss(network, network(inputs, training=True), targets)
        gradients = tape.gradient(loss, [variable.value for variable in network.trainable_variables])
        optimizer.apply(gradients, network.trainable_variables)
        return loss

    losses = [float(step()) for _ in range(16)]
    assert losses[-1] < 0.05 * losses[0], losses
    assert system.scores(examples, predict(system, network, inputs, examples))[system.metric] == 100


@pytest.mark.parametrize(
    "baseline", [name if name in ("roles", "coreference") else slow(name) for name in systems.SYSTEMS], indirect=True
)
def test_a_saved_network_gives_the_same_outputs(baseline, tmp_path):
    system, network, examples = baseline
    network.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
    inputs = system.inputs(examples)
    found, expected = (keras.tree.flatten(one(inputs, training=False)) for one in (loaded, network))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_sentence_in_brackets_is_not_taken_for_a_tree(tmp_path):
    (tmp_path / "text").write_text("( laughs ) what a film .\n")
    (found,) = systems.system_class("sentiment")(recipe_of("sentiment")).read_unlabelled(tmp_path / "text")
    assert found.tokens[:2] == ["(", "laughs"]
