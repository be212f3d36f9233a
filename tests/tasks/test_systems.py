"""What holds for every system, and the mean of the probabilities of several networks."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from elmo_tf import ELMo
from elmo_tf.errors import InputError
from elmo_tf.tasks import batching, systems, token_vectors, trained
from elmo_tf.tasks.layers.crf import CRF
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
    return system.predict({name: tensor.numpy() for name, tensor in decoded.items()}, examples)


def assert_same(prediction, expected) -> None:
    """Compares predictions: probabilities with a tolerance, all else exactly."""
    if hasattr(expected, "probabilities"):
        assert prediction.label == expected.label
        pair = [list(answer.probabilities.values()) for answer in (prediction, expected)]
        np.testing.assert_allclose(*pair, **checks.TOLERANCE)
    elif hasattr(expected, "probability"):
        assert prediction[:2] == expected[:2]
        np.testing.assert_allclose(prediction.probability, expected.probability, **checks.TOLERANCE)
    else:
        assert prediction == expected


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
    together, padded = (predict(system, network, given, examples) for given in (inputs, wide))
    # The shortest example is padded most.
    number = min(range(len(examples)), key=lambda index: batching.length(system, examples[index]))
    (alone,) = predict(system, network, system.inputs([examples[number]]), [examples[number]])
    assert_same(together[number], alone)
    for prediction, expected in zip(padded, together, strict=True):
        assert_same(prediction, expected)


def test_every_weight_but_those_of_the_bilm_has_a_gradient(with_elmo):
    system, network, examples = with_elmo
    with tf.GradientTape() as tape:
        loss = system.loss(network, network(system.inputs(examples), training=True), system.targets(examples))
    variables = network.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    pairs = zip(variables, gradients, strict=True)
    zero = [variable.path for variable, gradient in pairs if not np.any(tf.convert_to_tensor(gradient))]
    assert zero == []
    elmo = network.get_layer("elmo")
    assert elmo.bilm.trainable_variables == []
    mixes = {id(variable) for mix in elmo.mixes for variable in mix.trainable_variables}
    assert len(mixes) == 4
    assert mixes <= {id(variable) for variable in variables}


@pytest.mark.parametrize("baseline", [name if name == "ner" else slow(name) for name in systems.SYSTEMS], indirect=True)
def test_an_example_is_learned_by_heart(baseline):
    system, network, examples = baseline
    # The shortest example, because each step of an LSTM takes time here.
    examples = [min(examples, key=lambda example: batching.length(system, example))]
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
    outputs, expected = (keras.tree.flatten(model(inputs, training=False)) for model in (loaded, network))
    checks.assert_all_close(outputs, expected)


EMPTY = {
    "ner": ([], {"tokens": [], "tags": [], "spans": []}),
    "sentiment": ([], {"tokens": [], "label": None, "probabilities": {}}),
    "entailment": (([], ["a"]), {"premise": [], "hypothesis": ["a"], "label": None, "probabilities": {}}),
    "coreference": (" ", {"doc_key": "", "sentences": [], "clusters": [], "mentions": []}),
    "answers": (("a", "\n"), {"question": "\n", "answer": "", "start": None, "end": None, "probability": None}),
}


def test_an_example_without_tokens_has_an_empty_prediction_in_its_place(baseline):
    system, network, examples = baseline
    if system.name not in EMPTY:
        pytest.skip("a sentence without tokens has no predicate")
    item, prediction = EMPTY[system.name]
    tagger = trained.Trained(system, network)
    alone = tagger.predict_examples(examples[:2])
    first, *empty, last = tagger.predict_examples([examples[0], *[system.example_of(item)] * 2, examples[1]])
    assert [first, last] == alone
    assert empty == [prediction] * 2
    assert tagger.predict([item]) == [prediction]


LABELS = {"sentiment": ["0", "1"], "roles": ["B-A0", "B-A1", "O"], "ner": ["O", "U-LOC", "U-PER"], "answers": []}
# The first network is surer of its choice than the second.
FIRST, SECOND = np.log([0.8, 0.1, 0.1]), np.log([0.3, 0.6, 0.1])
MEAN = [0.55, 0.35, 0.1]


NO_QUESTIONS = ("text", ("a",), ("a", "b", "c"), (["a"], "b"), ("a", 3))


def system_of(name: str):
    kind = systems.system_class(name)
    return kind(next(iter(kind.recipes.values())), LABELS.get(name, []))


def scores(values: np.ndarray) -> tf.Tensor:
    """The same scores for one token, and another constant added to them: float32 `(1, 1, 3)`."""
    return tf.constant(values[None, None] + 5.0, tf.float32)


@pytest.mark.parametrize(
    ("task", "item", "message"),
    [
        *(("answers", item, ".*a paragraph and a question.*, found .*") for item in NO_QUESTIONS),
        ("coreference", 3, "documents: lists of sentences, or texts, found 3"),
        ("coreference", [["Anna"], "she"], "lists of tokens, found 'she'"),
        (
            "roles",
            "anna slept",
            "pairs of a sentence, a list of tokens, and the index of a predicate, found 'anna sl.*",
        ),
        ("roles", (("anna",), 1), "a predicate's index from 0 to 0, found 1"),
        ("roles", ("anna", 0), "lists of tokens, found 'anna'"),
    ],
)
def test_what_a_program_asks_with_is_checked(task, item, message):
    with pytest.raises(InputError, match=rf"(?s)^sentences: expected {message}$"):
        system_of(task).example_of(item)


def test_probabilities_of_classes_are_averaged():
    outputs = [tf.constant(logits[None], tf.float32) for logits in (FIRST, SECOND)]
    decoded = system_of("sentiment").decode_together([None, None], outputs)
    np.testing.assert_allclose(decoded["probabilities"], [MEAN], rtol=1e-5)


@pytest.mark.parametrize("sure", [0, 1])
def test_the_tag_with_the_higher_mean_probability_is_chosen(sure):
    """In `ner`, each network's probabilities are the marginals of its own CRF."""
    mask = tf.constant([[True]])
    crf = CRF(3, boundaries=False)
    crf.build(None)
    networks = [types.SimpleNamespace(get_layer=lambda _: crf)] * 2
    surer = np.log([0.3, 0.6, 0.1]) if sure == 0 else np.log([0.05, 0.94, 0.01])
    outputs = [{"scores": scores(logits), "mask": mask} for logits in (FIRST, surer)]
    for name in ("roles", "ner"):
        decoded = system_of(name).decode_together(networks, outputs)
        assert decoded["tags"].numpy().tolist() == [[sure]]


@pytest.mark.parametrize("size", [3, 2])
def test_probabilities_of_an_answers_ends_are_averaged_and_those_of_no_answer(size):
    system = system_of("answers")
    system.labels = ["none"] * (size == 2)
    outputs = []
    for logits in (FIRST, SECOND):
        start, none = tf.split(tf.constant(logits[None], tf.float32), [size, 3 - size], 1)
        outputs.append({"start": start, "end": start} | ({"none": none} if size == 2 else {}))
    decoded = system.decode_together([None, None], outputs)
    assert [int(decoded[name][0]) for name in ("first", "last")] == [0, 0]
    none = MEAN[2] ** 2 * (size == 2)
    total = np.triu(np.outer(MEAN[:size], MEAN[:size])).sum() + none
    np.testing.assert_allclose(decoded["probability"], [MEAN[0] ** 2 / total], rtol=1e-5)
    if size == 2:
        np.testing.assert_allclose(decoded["no_answer"], [none / total], rtol=1e-5)


def test_coreference_is_refused():
    with pytest.raises(InputError, match=r"^workdir: coreference cannot be ensembled, because"):
        system_of("coreference").decode_together([None, None], [{}, {}])
